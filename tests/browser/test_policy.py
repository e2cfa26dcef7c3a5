"""What the page may do: its policy names the one style and the one script that it holds, and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from helpers.browser import Opened, opened
from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")

POLICY = 'meta[http-equiv="Content-Security-Policy" i]'
RUNS = 'script:not([type="application/json"])'
"""Script elements that a browser would run, or that are none of ours."""


@pytest.fixture(scope="module")
def page(browser: Browser, report: Path) -> Iterator[Opened]:
    with opened(browser, report) as found:
        yield found


def rules(page: Opened) -> Mapping[str, str]:
    """What the policy of the page says of each kind of thing."""
    (policy,) = page.page.locator(POLICY).evaluate_all("(found) => found.map((one) => one.content)")
    return dict(rule.split(" ", 1) for rule in policy.split("; "))


def digests(page: Opened, selector: str) -> list[str]:
    """Of the texts of the elements, as a policy would name them."""
    texts = page.page.locator(selector).evaluate_all("(found) => found.map((one) => one.textContent)")
    hashes = [hashlib.sha256(text.encode("utf-8")).digest() for text in texts]
    return [f"'sha256-{base64.b64encode(one).decode('ascii')}'" for one in hashes]


def test_the_policy_allows_images_inside_the_page_one_style_and_one_script(page: Opened) -> None:
    styles, scripts = digests(page, "style"), digests(page, RUNS)
    stated = {"default-src": "'none'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}
    named = {"style-src": " ".join(styles)} | ({"script-src": " ".join(scripts)} if scripts else {})
    assert (len(styles), len(scripts)) in ((1, 0), (1, 1))
    assert rules(page) == stated | named


def test_the_policy_stands_before_what_it_governs(page: Opened) -> None:
    order = "(found) => found.map((one) => one.tagName.toLowerCase())"
    governed = page.page.locator(f"{POLICY}, style, script, link, img").evaluate_all(order)
    assert governed[0] == "meta"
    assert governed.count("meta") == 1


def test_what_is_no_script_holds_data_alone(page: Opened) -> None:
    inert = page.page.locator('script[type="application/json"]')
    for text in inert.all_text_contents():
        assert "<" not in text
    assert page.page.locator("script[src], script[async], style[src], link[rel='stylesheet']").count() == 0


def test_without_scripts_the_first_screen_says_what_was_found(browser: Browser, report: Path, page: Opened) -> None:
    """All text that is in the first screen with scripts and stands in the file is there without them."""
    top = "[...document.querySelectorAll('h1, h2, p, td, th')]"
    top += ".filter((one) => one.checkVisibility() && one.getBoundingClientRect().bottom < innerHeight)"
    top += ".map((one) => one.innerText)"
    with opened(browser, report, scripts=False) as found:
        still = found.page.evaluate(top)
        assert found.said == []
    assert any("How easily do the predictions" in text for text in still)
    assert sum(len(text.split()) for text in still) > 60
