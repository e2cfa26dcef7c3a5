"""Warnings of libraries are kept from the reader, and the filters put back."""

from __future__ import annotations

import warnings
from functools import partial

from helpers.threads import Worker

from brittle.model.quiet import without_warnings


def test_filters_of_warnings_are_put_back(workers: list[Worker]) -> None:
    before = list(warnings.filters)
    blocks = [without_warnings(), without_warnings()]
    for step in (0, 1):
        workers[step](blocks[step].__enter__)
    for step in (0, 1):
        warnings.warn("seen by nobody", stacklevel=1)
        workers[step](partial(blocks[step].__exit__, None, None, None))
    assert warnings.filters == before
