"""A served page and a browser for each test, and nothing that the tests do not see.

Chromium is that of the system (Debian's package). Where it is missing every test fails and says so.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

WAIT = 120_000  # ms; a busy machine is slow, not wrong
STATIC = Path(__file__).parents[1] / "docs" / "_static"
expect.set_options(timeout=WAIT)


@pytest.fixture(scope="session")
def chromium():
    path = shutil.which(os.environ.get("CHROMIUM", "chromium")) or shutil.which("chromium-browser")
    if path is None:
        pytest.fail("there is no Chromium here: apt-get install chromium, or name one in CHROMIUM", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def served():
    """(address of the page, its process)."""
    words = [sys.executable, "-m", "corricl.cli", "explore", "--no-browser", "--port", "0", "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    for name in ("JAX_NUMPY_DTYPE_PROMOTION", "JAX_NUMPY_RANK_PROMOTION"):
        environment.pop(name, None)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield json.loads(process.stdout.readline())["url"], process
        finally:
            process.kill()


@pytest.fixture
def visit(chromium, served):
    """Open the page; afterwards no error was on its console and no request has left this machine."""
    contexts, problems = [], []

    def request(sent):
        if not sent.url.startswith((served[0], served[0].replace("http", "ws"), "blob:", "data:")):
            problems.append(f"left this machine: {sent.url}")

    def call(query="", width=1280, height=900):
        context = chromium.new_context(viewport={"width": width, "height": height}, accept_downloads=True)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served[0])
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", request)
        page.goto(served[0] + query)
        page.wait_for_selector("text=Simulate here")
        return page

    yield call
    for context in contexts:
        context.close()
    assert problems == []
