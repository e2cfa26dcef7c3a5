"""A browser that opens a page of the report: how it is found, how the page is looked at, and what the page did."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

import pytest
from helpers.documents import ROOT
from helpers.processes import LIMIT
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, Playwright, Request, Route

SCRIPTS = ROOT / "tests" / "browser"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"

NAMED, REQUIRED = "BRITTLE_BROWSER", "BRITTLE_REQUIRE_BROWSER"
"""Environment: the program to use, and whether a test that misses something fails, rather than being skipped."""

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Names under which a browser that Playwright can drive is looked for, in this order."""

POINT = '[data-point], [role="option"], [role="row"][tabindex]'
"""Points of a list on the page."""

NO_BROWSER = (
    f"no browser is installed: install Chromium (Debian: apt-get install --no-install-recommends chromium), or name a "
    f"Chromium or Chrome in {NAMED}"
)
NO_AXE = "axe-core is not installed: make page-tools"


@dataclass(frozen=True)
class View:
    """How a person looks at the page.

    Attributes:
        width, height: of the window, in CSS pixels.
        scheme: the colours that the person prefers.
        media: where the page is shown.
        density: pixels of the screen in a CSS pixel. Zooming to 200% doubles it and halves the window.
        phone: whether it is touched, and keeps to the page's `viewport`.
    """

    width: int = 1400
    height: int = 900
    scheme: Literal["light", "dark"] = "light"
    media: Literal["screen", "print"] = "screen"
    density: float = 1.0
    phone: bool = False


LIGHT = View()
VIEWS: Mapping[str, View] = {
    "light": LIGHT,
    "dark": View(scheme="dark"),
    "phone": View(390, 844, density=2.0, phone=True),
    "print": View(673, 987, media="print"),  # A4 at 96 pixels to the inch, within the margins of the page
    "zoom": View(700, 450, density=2.0),
}
"""The ways to look at the page for which it keeps its laws; 200% zoom is that of 1400 by 900."""


@dataclass(frozen=True)
class Measures:
    """What a page looks like; the texts of what breaks a law say where it stands.

    Attributes:
        width, room: of the document, and of the window that it is in, in CSS pixels.
        wide: what reaches beyond the window.
        small: texts that are drawn smaller than 10 pixels.
        faint: marks of drawings with a contrast below 3 to what they stand on.
        ground: relative luminance behind the page, 0 (black) to 1 (white).
    """

    width: int
    room: int
    wide: list[str]
    small: list[str]
    faint: list[str]
    ground: float


@dataclass(frozen=True)
class Opened:
    """A page that is open, and what it did since.

    Attributes:
        page: Playwright's.
        said: messages on the console, errors that nothing caught, and what the policy of the page stopped.
        asked: addresses that it asked for beside its own file, new windows, and dialogs that it opened.
    """

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open_anew(self, place: Path) -> None:
        """Open the file `place` in this window as in a new one, and forget what was seen here."""
        self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.emulate_media(reduced_motion="reduce")
        self.page.mouse.move(0, 0)
        self.page.goto("about:blank")
        self.page.goto(place.as_uri())
        for heard in (self.said, self.asked):
            heard.clear()

    def measured(self) -> Measures:
        """What the page looks like as it stands."""
        return Measures(**self.page.evaluate(call("measure")))

    def unfold(self) -> None:
        """Open every part that is folded."""
        self.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    def open_point(self) -> None:
        """Open every part that is folded, and the first point of the list, where there is one."""
        self.unfold()
        self.page.evaluate("(points) => document.querySelector(points)?.click()", POINT)

    def exercise(self) -> None:
        """Use everything that can be used: open, click, choose, type, drag, walk the list, open the first points.

        What is not there is passed over. At the end the fields are empty and the first point is open.
        """
        self.page.evaluate(call("exercise"))

    def violations(self, only: Sequence[str] = (), but: Sequence[str] = ()) -> list[str]:
        """What axe objects to, rule by rule, with the places; by all rules, by a few only, or by all but a few."""
        if not AXE.is_file():
            miss(NO_AXE)
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        options: dict[str, Any] = {"resultTypes": ["violations"], "rules": {rule: {"enabled": False} for rule in but}}
        found = self.page.evaluate(
            "(options) => axe.run(document, options)", options | ({"runOnly": list(only)} if only else {})
        )
        return [f"{one['id']}: {[node['target'] for node in one['nodes']]}" for one in found["violations"]]


def find_browser() -> Path | None:
    """The program that `BRITTLE_BROWSER` names, else the first of `PROGRAMS` that is installed, else None.

    Raises:
        FileNotFoundError: what `BRITTLE_BROWSER` names is no file.
    """
    if named := os.environ.get(NAMED):
        if not Path(named).is_file():
            raise FileNotFoundError(f"{NAMED} is {named!r}, which is no file")
        return Path(named)
    found = filter(None, map(shutil.which, PROGRAMS))
    return next(map(Path, found), None)


def miss(sentence: str) -> NoReturn:
    """Skip the test, or fail it where `BRITTLE_REQUIRE_BROWSER` is 1, because of what `sentence` says is missing."""
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


@contextmanager
def launched(playwright: Playwright) -> Iterator[Browser]:
    """The browser, running. Without its sandbox, which a superuser cannot have: it opens pages of tests alone."""
    program = find_browser()
    if program is None:
        miss(NO_BROWSER)
    browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
    try:
        yield browser
    finally:
        browser.close()


@contextmanager
def opened(browser: Browser, place: Path, view: View = LIGHT, scripts: bool = True) -> Iterator[Opened]:
    """The page in the file `place`, open; nothing but this file is given to it.

    Args:
        browser: of the fixture `browser`.
        place: the file.
        view: how it is looked at.
        scripts: whether the browser runs scripts of pages.
    """
    context = browser.new_context(
        viewport={"width": view.width, "height": view.height},
        device_scale_factor=view.density,
        is_mobile=view.phone,
        has_touch=view.phone,
        color_scheme=view.scheme,
        java_script_enabled=scripts,
        reduced_motion="reduce",
    )
    context.set_default_timeout(1000 * LIMIT)
    try:
        page = context.new_page()
        page.emulate_media(media=view.media)
        found = Opened(page)
        _watch(context, found, place.as_uri())
        page.goto(place.as_uri())
        yield found
    finally:
        context.close()


def _watch(context: BrowserContext, found: Opened, own: str) -> None:
    """Write down in `found` what the page does, and refuse what it asks for beside its own file."""

    def route(one: Route) -> None:
        if one.request.url.partition("#")[0] == own:
            one.continue_()
        else:
            one.abort()

    def dialog(one: Dialog) -> None:
        found.asked.append(f"dialog: {one.message}")
        one.dismiss()

    def request(url: str) -> None:
        if url.partition("#")[0] != own and not url.startswith(("data:", "blob:")):
            found.asked.append(url)

    def blocked(one: Request) -> None:
        if one.failure == "csp":  # it was never sent, and the console says so
            found.asked.remove(one.url)
            found.said.append(f"blocked: {one.url}")

    context.route("**/*", route)
    context.on("requestfailed", blocked)
    context.on("request", lambda one: request(one.url))
    context.on("page", lambda one: found.asked.append(f"window: {one.url}"))
    found.page.on("websocket", lambda one: found.asked.append(one.url))
    found.page.on("dialog", dialog)
    found.page.on("console", lambda one: found.said.append(f"{one.type}: {one.text}"))
    found.page.on("pageerror", lambda one: found.said.append(f"error: {one.message}"))


def call(name: str) -> str:
    """The function `name` of `tests/browser/NAME.js`, called out of reach of the page's own names, for `evaluate`."""
    text = (SCRIPTS / f"{name}.js").read_text(encoding="utf-8")
    return f"(() => {{\n{re.sub(r'^export ', '', text, flags=re.MULTILINE)}\nreturn {name}();\n}})()"
