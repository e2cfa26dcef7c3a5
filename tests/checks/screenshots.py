"""Pictures of a report for the README: its first screen, and the page at work with a selection and a point open.

    PYTHONPATH=tests python -m checks.screenshots REPORT FOLDER

Writes `report.png` and, where the page has points to open, `report-point.png` to the folder.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from helpers.browser import LIGHT, POINT, find_browser, opened
from playwright.sync_api import Page, sync_playwright

GROUP = "button[aria-pressed]"
"""Buttons that select a group of points; pressed are those of points that break, up to the first that holds any."""

WORK = "#explore"
"""The part of the page that is at work."""


def at_work(page: Page) -> bool:
    """Select a group of points and open the first of them; whether the page offers that."""
    if page.locator(POINT).count() == 0:
        return False
    for group in page.locator(GROUP).filter(has_text="break").all():
        group.click()
        if page.locator(POINT).count():
            break
        group.click()
    page.locator(POINT).first.click()
    page.mouse.move(0, 0)
    page.locator(WORK).evaluate("(part) => part.scrollIntoView()")
    return True


def main(arguments: Sequence[str]) -> int:
    """Take the pictures; prints what was written."""
    report, folder = map(Path, arguments)
    if (program := find_browser()) is None:
        print("no browser is installed: install Chromium, or name one in BRITTLE_BROWSER", file=sys.stderr)
        return 2
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
        with opened(browser, report.resolve(), LIGHT) as found:
            taken = ["report.png", "report-point.png"]
            found.page.screenshot(path=folder / taken[0])
            if at_work(found.page):
                found.page.screenshot(path=folder / taken[1])
            else:
                print(f"the page has no points to open, so {taken.pop()} is not taken")
        browser.close()
    print("\n".join(str(folder / name) for name in taken))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
