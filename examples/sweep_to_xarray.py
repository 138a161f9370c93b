# %% [markdown]
# # A sweep, read into xarray
#
# A grid of settings is computed once, kept in a file, and read back as an array with named axes. Run this script again:
# nothing is computed twice.

# %%
import matplotlib.pyplot as plt

from corricl.sweeps import Range, Results, Spec, run

# %% [markdown]
# Every value of one axis meets every value of the others. An axis may be a setting, such as `noise`, or fill
# braces in a string: of the kernel, `{xi}`, or of an estimator, `{model}`. Cases are settings with a name.
# Here the best linear and the best softmax attention are predicted, and scored on drawn prompts.

# %%
spec = Spec(
    name="gain",
    base={"d": 8, "length": 32, "noise": 0.05, "kernel": "exp:{xi}"},
    axes={"model": ["linear", "softmax"], "xi": Range(start=1, stop=9, num=3, log=True)},
    cases=[{"name": "alone", "query": "independent"}, {"name": "continued", "query": "continues"}],
    estimators=["theory:{model}", "score:{model}"],
    replicates=4,
)
report = run(spec, "gain.sqlite", workers=1, progress=False)
print(report.sentence())

# %% [markdown]
# ## Named axes

# %%
data = Results("gain.sqlite").dataset()
print(dict(data.sizes))

# %% [markdown]
# What does a query that continues the sequence gain? The difference of the two cases; labels do the bookkeeping.

# %%
theory, scored = data.sel(estimator="theory:{model}"), data.sel(estimator="score:{model}")
gain = theory.icl.sel(case="alone") - theory.icl.sel(case="continued")
print(gain.to_pandas().round(3))

# %% [markdown]
# How far is theory from the score, in standard errors? With four replicates those are rough.

# %%
off = abs(theory.icl - scored.icl) / scored.icl_stderr
print(f"theory is {float(off.median()):.1f} standard errors off in the median")

# %%
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for color, model in enumerate(data.model.values):
    for case, style in (("alone", "--"), ("continued", "-")):
        line, points = (part.sel(model=model, case=case) for part in (theory, scored))
        axes.semilogx(data.xi, line.icl, f"C{color}{style}", label=f"{model}, {case}")
        axes.errorbar(data.xi, points.icl, points.icl_stderr, fmt=f"C{color}o", capsize=3)
axes.set(xlabel="correlation length ξ, in positions", ylabel="error on fresh tasks")
axes.legend(fontsize="small")
figure.savefig("sweep_to_xarray.png", dpi=150)
