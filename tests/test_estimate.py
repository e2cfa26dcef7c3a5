"""Outcomes and evidence: each has a name in tables, a sentence, and says whether there is a number."""

from __future__ import annotations

import pytest

from brittle.estimate import Evidence, Status


@pytest.mark.parametrize("outcome", [*Status, *Evidence], ids=lambda outcome: outcome.name)
def test_an_outcome_is_told_in_a_sentence(outcome: Status | Evidence) -> None:
    assert outcome.slug == outcome.name.lower()
    assert outcome.sentence[0].isupper()
    assert outcome.sentence.endswith(".")


def test_no_two_outcomes_say_the_same() -> None:
    for kind in (Status, Evidence):
        assert len({outcome.sentence for outcome in kind}) == len(kind)


def test_what_cannot_be_read_or_computed_has_no_number() -> None:
    assert Status.OK.has_value
    assert not any(status.has_value for status in (Status.NONFINITE_INPUT, Status.DECODE_ERROR, Status.WORKER_DIED))
