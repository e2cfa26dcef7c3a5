"""What fits where there is little room: words on a phone, and many points in one plot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.browser import VIEWS, Opened, opened
from helpers.gestures import ALONE, run
from helpers.pages import text_of
from playwright.sync_api import Browser

from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def phone(browser: Browser, place: Path) -> Iterator[Opened]:
    with opened(browser, place, VIEWS["phone"]) as found:
        yield found
        assert found.said == []


BROKEN_WORDS = r"""(selector) => {
  const broken = [];
  for (const part of document.querySelectorAll(selector)) {
    const texts = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.textContent.matchAll(/[a-z]+/gi)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
}"""


def test_no_word_of_the_list_is_broken_on_a_phone(phone: Opened) -> None:
    """Heads, classes and states; names of files may break."""
    assert phone.page.evaluate(BROKEN_WORDS, "#head button, #rows .row > span:not(.name), #rows .row small") == []


def test_words_of_a_plot_end_inside_it(browser: Browser, table: Table, written: Callable[[str], Path]) -> None:
    """Where the names of two runs make those of the axes longer than a phone is wide."""
    place = written(text_of(table, against={"another run": run(1)}, chapters=ALONE))
    with opened(browser, place, VIEWS["phone"]) as page:
        for chosen in ("#by", "#across", "#up"):
            texts = page.page.locator(f"{chosen} option").all_inner_texts()
            page.page.locator(chosen).select_option(label=max(texts, key=len))
        drawn = page.page.evaluate(WORDS_DRAWN)
    assert len(drawn) > 10
    assert [text for text, inside in drawn if not inside] == []


WORDS_DRAWN = """() => {
  const beyond = [];
  const own = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const room = this.canvas.getBoundingClientRect().width;
    const wide = this.measureText(text).width;
    const left = x - { left: 0, center: wide / 2, right: wide }[this.textAlign];
    beyond.push([text, left >= -0.5 && left + wide <= room + 0.5]);
    own.call(this, text, x, y);
  };
  dispatchEvent(new Event("resize"));
  return beyond;
}"""
"""Every text that the plots write, and whether it lies inside its plot."""
