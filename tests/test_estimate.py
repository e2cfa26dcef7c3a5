"""Outcomes: each has a name in tables, a sentence, and says whether there is a number."""

from __future__ import annotations

import pytest

from brittle.estimate import Status, short_labels


@pytest.mark.parametrize("outcome", Status, ids=lambda outcome: outcome.name)
def test_an_outcome_is_told_in_a_sentence(outcome: Status) -> None:
    assert outcome.slug == outcome.name.lower()
    assert outcome.sentence[0].isupper()
    assert outcome.sentence.endswith(".")


def test_no_two_outcomes_say_the_same() -> None:
    assert len({outcome.sentence for outcome in Status}) == len(Status)


def test_what_cannot_be_read_or_computed_has_no_number() -> None:
    assert Status.OK.has_value
    assert not any(status.has_value for status in (Status.NONFINITE_INPUT, Status.DECODE_ERROR, Status.WORKER_DIED))


def test_what_people_read_of_a_label_is_short_and_stays_unique() -> None:
    long = [
        "taylor(noise=per_feature, scale=21d5ac4bbda45697, sigma=0.1, unit=deviations per feature)",
        "taylor(noise=per_feature, scale=21d5ac4bbda45697, sigma=0.2, unit=deviations per feature)",
        "monte_carlo(digest=21d5ac4bbda45697)",
        "moments(draws=20, sigma=0.1)",
    ]
    assert list(short_labels(long).values()) == [
        "taylor(noise=per_feature, sigma=0.1)",
        "taylor(noise=per_feature, sigma=0.2)",
        "monte_carlo",
        "moments(draws=20, sigma=0.1)",
    ]
    twins = ["taylor(scale=21d5ac4bbda45697, sigma=0.1)", "taylor(scale=8c73ac4bbda45697, sigma=0.1)"]
    assert list(short_labels(twins).values()) == twins, "two that would be alike stay as they are"


def test_a_chosen_label_is_not_mistaken_for_a_shortened_one() -> None:
    labels = ["taylor(digest=21d5ac4bbda45697, sigma=0.1)", "taylor(sigma=0.1)"]
    assert set(short_labels(labels).values()) == set(labels)
