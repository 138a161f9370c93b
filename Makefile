PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test test-browser lint bench validate docs clean

demo: $(STAMP)
	$(BIN)/corricl theory --d 32 --length 128 --sequences 4096 --tasks 320 --noise .01 --kernel exp:2 --query continues
	$(BIN)/corricl figure effective-length --quick --out out

test: $(STAMP)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

test-browser: $(STAMP)
	$(BIN)/python -m pytest browser

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

bench: $(STAMP)
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

validate: $(STAMP)
	for script in validation/*.py; do $(BIN)/python $$script || exit 1; done

docs: $(STAMP)
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_BUILD_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,docs]"
	touch $@

clean:
	rm -rf .venv out docs/_build
