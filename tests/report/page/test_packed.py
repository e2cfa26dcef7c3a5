"""Numbers and texts on the page: the same when they are read again, and nothing in them ends an element."""

from __future__ import annotations

import base64
import json
import math

import numpy as np
import pytest
from helpers.tables import HOSTILE

from brittle.report.page.packed import KINDS, inert_json, packed


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_those_that_were_packed(kind: str) -> None:
    numbers = np.array([0, 1, 2, 200], dtype=KINDS[kind])
    read = np.frombuffer(base64.b64decode(packed(numbers, kind)["bytes"]), dtype=KINDS[kind])
    assert read.tolist() == numbers.tolist()


def test_probabilities_keep_every_bit_and_none_stays_none() -> None:
    numbers = [0.1, 1 - 0.9, math.nextafter(0.1, 1), math.nan, math.inf, 5e-324]
    read = np.frombuffer(base64.b64decode(packed(numbers, "f8")["bytes"]))
    assert np.array_equal(read, numbers, equal_nan=True)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_ends_the_element(text: str) -> None:
    written = inert_json({"name": text, text: [text]})
    assert json.loads(written) == {"name": text, text: [text]}
    assert not set(written) & set("<>&\u2028\u2029")


def test_what_json_cannot_say_is_no_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        inert_json({"number": math.nan})
