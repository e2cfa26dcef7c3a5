"""Warnings of libraries and their last words are kept from the reader, and what they were said through is put back."""

from __future__ import annotations

import sys
import warnings
from functools import partial

import pytest
from helpers.threads import Worker

from brittle.model.quiet import without_last_words, without_warnings


def test_filters_of_warnings_are_put_back(workers: list[Worker]) -> None:
    before = list(warnings.filters)
    blocks = [without_warnings(), without_warnings()]
    for step in (0, 1):
        workers[step](blocks[step].__enter__)
    for step in (0, 1):
        warnings.warn("seen by nobody", stacklevel=1)
        workers[step](partial(blocks[step].__exit__, None, None, None))
    assert warnings.filters == before


def say(word: str) -> None:
    print(word, file=sys.stderr)


def fails(word: str) -> None:
    with without_last_words():
        with without_last_words():
            say(word)
        raise ValueError(word)


def test_last_words_are_lost_and_others_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    stream = sys.stderr
    with without_last_words():
        say("sound")
        with pytest.raises(ValueError, match="the graph"):
            fails("the graph")
        with without_last_words():
            say("nested")
    with pytest.raises(ValueError, match="the last"):
        fails("the last")
    assert sys.stderr is stream
    assert capsys.readouterr().err == "sound\nnested\n"


def test_other_threads_are_heard_meanwhile(workers: list[Worker], capsys: pytest.CaptureFixture[str]) -> None:
    stream = sys.stderr
    blocks = [without_last_words(), without_last_words()]
    for step in (0, 1):
        workers[step](blocks[step].__enter__)
        workers[step](partial(say, f"from {step}"))
    say("from without")
    assert capsys.readouterr().err == "from without\n"
    for step in (0, 1):
        workers[step](partial(blocks[step].__exit__, None, None, None))
        assert capsys.readouterr().err == f"from {step}\n"
    assert sys.stderr is stream
