"""Pictures of a report for the README: its first screen, and the page with a selection and an open point.

    PYTHONPATH=tests python -m checks.screenshots REPORT FOLDER

The folder gets `report.png` and, where the page has points to open, `report-point.png`. Each picture
holds the digest of the files that the page is made from, by which a test sees that it is of the page as it is.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from helpers.browser import LIGHT, POINT, find_browser, opened
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import Page, sync_playwright

GROUP = "button[aria-pressed]"
"""Buttons that select a group of points; the first group of brittle points that is not empty is pressed."""

WORK = "#explore"
"""The part of the page for the second picture."""


KEY = "page"
"""The text chunk of a picture that holds the digest of its page."""

SOURCES = (".css", ".jinja", ".js")
"""Ends of the files that a page is made from."""


def page_digest() -> str:
    """Return the digest of the templates, the style and the script of the page."""
    folder = Path(str(resources.files("brittle.extensions.report")))
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.suffix in SOURCES):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def stamp(picture: Path) -> None:
    """Write the digest of the page into a picture of it."""
    notes = PngInfo()
    notes.add_text(KEY, page_digest())
    with Image.open(picture) as image:
        image.load()
        image.save(picture, pnginfo=notes, optimize=True)


def open_point(page: Page) -> bool:
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
            if open_point(page.page):
                page.page.screenshot(path=folder / pictures[1])
            else:
                print(f"the page has no points to open, so {pictures.pop()} is not taken")
        browser.close()
    for name in pictures:
        stamp(folder / name)
    print("\n".join(str(folder / name) for name in pictures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
