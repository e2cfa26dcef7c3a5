"""Cost of the report's page: bytes, seconds to write, and in a browser the time until it is ready and of each gesture.

    PYTHONPATH=tests python research/benchmarks/report_page.py [RUN ...] [--made-up POINTS ...]

Runs are folders of `brittle score`. Made-up tables have noise for images, which no format compresses, so their pages
are larger than those of real data. Prints one line a page: points, bytes, seconds to write, milliseconds until the page
is ready (DOMContentLoaded), until its first paint, and of each gesture until the next frame is drawn, the median and
the slowest of five, with the name of the slowest gesture.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from helpers.browser import LIGHT, launched, opened
from helpers.tables import make_table
from playwright.sync_api import Browser, sync_playwright

import brittle
from brittle.store.table import Table

REPEATS = 5

CHOOSE = "const list = document.querySelector('{}'); list.selectedIndex = (list.selectedIndex + 1) % list.length; \
list.dispatchEvent(new Event('change'))"

GESTURES = {
    "group": "document.querySelector('#overview .groups li:nth-child(3) button')?.click()",
    "class": "document.querySelector('#overview .bars button')?.click()",
    "all": "document.querySelector('#clear').click()",
    "limit": "const field = document.querySelector('#limit'); field.value = 0.5 + 0.4 * Math.random(); \
field.dispatchEvent(new Event('input'))",
    "sort": "document.querySelector('#head button').click()",
    "open": "document.querySelectorAll('#rows .row')[1]?.click()",
    "score": CHOOSE.format("#by"),
    "axis": CHOOSE.format("#across"),
    "scroll": "document.querySelector('#rows').scrollTop += 2000",
    "walk": "document.querySelector('#rows').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown'}))",
}

TIMED = "async () => {{ const start = performance.now(); {{ {} }} \
await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); return performance.now() - start; }}"

LOADED = "() => [performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd, \
performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN]"


def gestures(browser: Browser, page: Path) -> tuple[list[float], dict[str, list[float]]]:
    """Measure milliseconds until the page is ready and painted, and of every gesture."""
    with opened(browser, page, LIGHT) as opened_page:
        opened_page.page.wait_for_timeout(500)
        loaded = opened_page.page.evaluate(LOADED)
        times = {
            name: [opened_page.page.evaluate(TIMED.format(script)) for _ in range(REPEATS)]
            for name, script in GESTURES.items()
        }
        return loaded, times


def tables(runs: list[Path], made_up: list[int]) -> Iterator[tuple[str, Table]]:
    """Return the tables of the pages, by name."""
    for run in runs:
        yield run.name, brittle.read_table(run)
    for points in made_up:
        scores = ("monte_carlo", "moments", "taylor", "softmax", "logit_margin")
        names = tuple(f"class {number}" for number in range(100))
        yield f"made up, {points:,}", make_table(points=points, scores=scores, budgets=(100,), class_names=names)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--made-up", nargs="*", type=int, default=[])
    arguments = parser.parse_args()
    heads = ("points", 9), ("bytes", 12), ("write s", 9), ("ready ms", 10), ("paint ms", 10), ("gesture", 9)
    print("page".ljust(24) + "".join(head.rjust(width) for head, width in (*heads, ("slowest", 9))))
    with sync_playwright() as playwright, launched(playwright) as browser, tempfile.TemporaryDirectory() as folder:
        for name, table in tables(arguments.runs, arguments.made_up):
            place, start = Path(folder) / "report.html", time.perf_counter()
            table.report(place)
            written = time.perf_counter() - start
            (ready, paint), times = gestures(browser, place)
            milliseconds = [time_taken for times in times.values() for time_taken in times]
            slowest = max(times, key=lambda gesture: max(times[gesture]))
            print(
                f"{name[:23]:24}{len(table.points):9,}{place.stat().st_size:12,}{written:9.1f}{ready:10.0f}{paint:10.0f}"
                f"{statistics.median(milliseconds):9.0f}{max(milliseconds):9.0f}  {slowest}"
            )


if __name__ == "__main__":
    main()
