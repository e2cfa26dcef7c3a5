"""Pictures of a report for the README: its first screen, and the page with a selection and an open point.

    PYTHONPATH=tests python -m checks.screenshots REPORT FOLDER

The folder gets `report.png` and, where the page has points to open, `report-point.png`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from helpers.browser import LIGHT, POINT, find_browser, opened
from playwright.sync_api import Page, sync_playwright

GROUP = "button[aria-pressed]"
"""Buttons that select a group of points; the first group of brittle points that is not empty is pressed."""

WORK = "#explore"
"""The part of the page for the second picture."""


def at_work(page: Page) -> bool:
    """Select a group of points and open its first; return whether the page has such points."""
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
    """Take the pictures, and print their paths."""
    report, folder = map(Path, arguments)
    if (program := find_browser()) is None:
        print("no browser is installed: install Chromium, or name one in BRITTLE_BROWSER", file=sys.stderr)
        return 2
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
        with opened(browser, report.resolve(), LIGHT) as page:
            pictures = ["report.png", "report-point.png"]
            page.page.screenshot(path=folder / pictures[0])
            if at_work(page.page):
                page.page.screenshot(path=folder / pictures[1])
            else:
                print(f"the page has no points to open, so {pictures.pop()} is not taken")
        browser.close()
    print("\n".join(str(folder / name) for name in pictures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
