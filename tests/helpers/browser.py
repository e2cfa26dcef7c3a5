"""A browser that opens a page of the report: its program, its views, and a record of what the page did."""

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
"""Environment variables: the program to use, and whether a test fails, not skips, without it."""

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Programs of browsers that Playwright can drive, in the order of the search."""

POINT = '[data-point], [role="option"], [role="row"][tabindex]'
"""Points of a list on the page."""

NO_BROWSER = (
    f"no browser is installed: install Chromium (Debian: apt-get install --no-install-recommends chromium), or name a "
    f"Chromium or Chrome in {NAMED}"
)
NO_AXE = "axe-core is not installed: make page-tools"


@dataclass(frozen=True)
class View:
    """A person's view of the page.

    Attributes:
        width, height: size of the window, in CSS pixels.
        scheme: preferred colours.
        media: screen or print.
        density: pixels of the screen per CSS pixel. Zooming to 200% doubles it and halves the window.
        phone: whether the screen has touch and respects the page's `viewport`.
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
"""Views in which the page keeps its laws; 200% zoom is that of 1400 by 900."""


@dataclass(frozen=True)
class Measures:
    """Measurements of a page; texts that break a law come with their place.

    Attributes:
        width, room: width of the document and of its window, in CSS pixels.
        wide: elements that reach beyond the window.
        small: texts that are drawn smaller than 10 pixels.
        faint: marks of drawings with a contrast below 3 to their ground.
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
        page: the page of Playwright.
        messages: messages on the console, uncaught errors, and requests that the policy of the page stopped.
        requests: addresses other than its own file, new windows, and dialogs.
    """

    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open_anew(self, place: Path) -> None:
        """Open the file `place` in this window as in a new one, and clear the record."""
        self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.emulate_media(reduced_motion="reduce")
        self.page.mouse.move(0, 0)
        self.page.goto("about:blank")
        self.page.goto(place.as_uri())
        for heard in (self.messages, self.requests):
            heard.clear()

    def measured(self) -> Measures:
        """Measure the page as it is."""
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

        Absent elements are skipped. At the end the fields are empty and the first point is open.
        """
        self.page.evaluate(call("exercise"))

    def violations(self, only: Sequence[str] = (), but: Sequence[str] = ()) -> list[str]:
        """Return what violates each rule of axe, with the places; `only` or `but` choose the rules."""
        if not AXE.is_file():
            miss(NO_AXE)
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        options: dict[str, Any] = {"resultTypes": ["violations"], "rules": {rule: {"enabled": False} for rule in but}}
        findings = self.page.evaluate(
            "(options) => axe.run(document, options)", options | ({"runOnly": list(only)} if only else {})
        )
        return [
            f"{violation['id']}: {[node['target'] for node in violation['nodes']]}"
            for violation in findings["violations"]
        ]


def find_browser() -> Path | None:
    """Return the program that `BRITTLE_BROWSER` names, else the first of `PROGRAMS` that is installed, else None.

    Raises:
        FileNotFoundError: `BRITTLE_BROWSER` names no file.
    """
    if program := os.environ.get(NAMED):
        if not Path(program).is_file():
            raise FileNotFoundError(f"{NAMED} is {program!r}, which is no file")
        return Path(program)
    programs = filter(None, map(shutil.which, PROGRAMS))
    return next(map(Path, programs), None)


def miss(sentence: str) -> NoReturn:
    """Skip the test with `sentence` as the reason, or fail it where `BRITTLE_REQUIRE_BROWSER` is 1."""
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


@contextmanager
def launched(playwright: Playwright) -> Iterator[Browser]:
    """Run the browser without its sandbox, which a superuser cannot have: it opens pages of tests alone."""
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
    """Open the page in the file `place`, which gets nothing but this file.

    Args:
        browser: the fixture `browser`.
        place: the file.
        view: size, colours and kind of the window.
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
        opened_page = Opened(page)
        _watch(context, opened_page, place.as_uri())
        page.goto(place.as_uri())
        yield opened_page
    finally:
        context.close()


def _watch(context: BrowserContext, opened_page: Opened, address: str) -> None:
    """Record what the page does in `opened_page`, and refuse requests other than for its own file at `address`."""

    def route(route_request: Route) -> None:
        if route_request.request.url.partition("#")[0] == address:
            route_request.continue_()
        else:
            route_request.abort()

    def dialog(box: Dialog) -> None:
        opened_page.requests.append(f"dialog: {box.message}")
        box.dismiss()

    def request(url: str) -> None:
        if url.partition("#")[0] != address and not url.startswith(("data:", "blob:")):
            opened_page.requests.append(url)

    def blocked(stopped: Request) -> None:
        if stopped.failure == "csp":  # it was never sent, and the console says so
            opened_page.requests.remove(stopped.url)
            opened_page.messages.append(f"blocked: {stopped.url}")

    context.route("**/*", route)
    context.on("requestfailed", blocked)
    context.on("request", lambda sent: request(sent.url))
    context.on("page", lambda window: opened_page.requests.append(f"window: {window.url}"))
    opened_page.page.on("websocket", lambda socket: opened_page.requests.append(socket.url))
    opened_page.page.on("dialog", dialog)
    opened_page.page.on("console", lambda message: opened_page.messages.append(f"{message.type}: {message.text}"))
    opened_page.page.on("pageerror", lambda error: opened_page.messages.append(f"error: {error.message}"))


def call(name: str) -> str:
    """Return a call for `evaluate` of the function in `tests/browser/NAME.js`, out of reach of the page's own names."""
    text = (SCRIPTS / f"{name}.js").read_text(encoding="utf-8")
    return f"(() => {{\n{re.sub(r'^export ', '', text, flags=re.MULTILINE)}\nreturn {name}();\n}})()"
