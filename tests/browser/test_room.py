"""What fits where there is little room: the words of a plot on a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.browser import VIEWS, opened
from helpers.gestures import ALONE, run
from helpers.pages import text_of
from playwright.sync_api import Browser

from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("browser")


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
