"""The page in a browser: from a slider move to changed numbers, and its load against a trivial page of Panel."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from typing import Any

from playwright.sync_api import Page, sync_playwright

MOVES, LOADS = 50, 7
WAIT = 120_000
SHOWN = "b[data-name='k2']"
SERVER = """
import panel as pn
from corricl.explore import _serve
server = _serve.start(0, "127.0.0.1", apps={"trivial": lambda: pn.pane.HTML("<b data-name='k2'>1</b>")})
print(server.port, flush=True)
server.io_loop.start()
"""


def load(browser: Any, url: str) -> float:
    """Seconds until a page of the server shows its number."""
    page = browser.new_page()
    start = time.perf_counter()
    page.goto(url)
    page.wait_for_selector(SHOWN, timeout=WAIT)
    seconds = time.perf_counter() - start
    page.close()
    return seconds


def move(page: Page) -> float:
    """Seconds from a key on a slider to a changed number."""
    before = page.locator(SHOWN).get_attribute("data-value")
    start = time.perf_counter()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "([name, before]) => window.__read(name) !== before",
        arg=["k2", before],
        polling=5,
        timeout=WAIT,
    )
    return time.perf_counter() - start


READ = """
window.__read = name => {
  const find = root => {
    const here = root.querySelector(`b[data-name='${name}']`);
    if (here) return here;
    for (const element of root.querySelectorAll('*'))
      if (element.shadowRoot) { const inside = find(element.shadowRoot); if (inside) return inside; }
    return null;
  };
  return find(document)?.getAttribute('data-value');
};
"""


def loads(browser: Any, url: str) -> None:
    """Page load of the explorer and of a page with one number, in turn."""
    pairs = [(load(browser, url), load(browser, f"{url}trivial")) for _ in range(LOADS)][1:]
    ours, trivial = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(
        f"page load to the first numbers: {ours:.2f} s, {ratio:.2f} times a trivial page of the same framework "
        f"({trivial:.2f} s; median of {LOADS - 1} pairs)"
    )


def moves(browser: Any, url: str) -> None:
    """Slider moves, while the curves of each new setting are being computed."""
    page = browser.new_page()
    page.add_init_script(READ)
    page.goto(url)
    page.wait_for_selector("text=Simulate here", timeout=WAIT)
    page.locator(".knob-kernel-0 .noUi-handle").focus()
    seconds = [move(page) for _ in range(MOVES)]
    page.close()
    print(f"slider move to changed numbers: {1000 * statistics.median(seconds):.0f} ms (median of {MOVES} moves)")


def main() -> None:
    """Both, against one server."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("bench_explore: there is no Chromium here, nothing was measured")
        return
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            loads(browser, url)
            moves(browser, url)
            browser.close()
        server.kill()


if __name__ == "__main__":
    main()
