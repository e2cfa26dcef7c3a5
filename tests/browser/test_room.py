"""What fits where there is little room: words on a phone, and many points in one plot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.browser import VIEWS, Opened, opened
from helpers.gestures import ALONE, run
from helpers.known_groups import made
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


def test_what_is_chosen_is_read_in_full_on_a_phone(phone: Opened) -> None:
    cut = phone.page.evaluate(
        """() => [...document.querySelectorAll("#explore select")].filter((list) => {
          if (!list.checkVisibility()) return false;
          const free = document.createElement("select");
          free.append(new Option(list.selectedOptions[0].text));
          free.style.cssText = "width: max-content; max-width: none; position: absolute";
          list.parentElement.append(free);
          const room = free.getBoundingClientRect().width;
          free.remove();
          return room > list.getBoundingClientRect().width + 0.5;
        }).map((list) => list.selectedOptions[0].text)"""
    )
    assert cut == []


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


def test_wrong_points_do_not_cover_right_ones_where_both_are_many(
    browser: Browser, written: Callable[[str], Path]
) -> None:
    """Half of 2,000 points are wrong, anywhere among the others: neither half of the plot's colours is lost."""
    flips = np.random.default_rng(0).uniform(0.1, 0.9, 2000)
    table = made([(float(one) - 0.01, float(one) + 0.01) for one in flips], [True, False] * 1000)
    with opened(browser, written(text_of(table, chapters=ALONE))) as page:
        blue, orange = page.page.locator("#scatter").evaluate(
            """(canvas) => {
              const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
              const found = [0, 0];
              for (let place = 0; place < data.length; place += 4) {
                const apart = data[place + 3] ? data[place + 2] - data[place] : 0;
                if (Math.abs(apart) > 25) found[apart > 0 ? 0 : 1]++;
              }
              return found;
            }"""
        )
    assert blue + orange > 500
    assert 0.2 < blue / (blue + orange) < 0.8
