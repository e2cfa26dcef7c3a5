"""Noise that changes characters, against the probabilities of its definition."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

import brittle
from brittle.errors import DataError, ParameterError
from brittle.extensions.texts.forms import TextFunction, codes_of, text_of
from brittle.extensions.texts.noise import ALIKE, EDITS, NEIGHBOURS
from brittle.intervals import clopper_pearson
from brittle.noise import Edits, Gaussian, Paraphrases
from brittle.noise.named import noises
from brittle.scores import InputMargin, MonteCarlo, Shrinkage, Softmax, Taylor

COPIES = 20_000
STRICT = 1 - 1e-6


def shares(noise: Edits | Paraphrases, text: str) -> dict[str, float]:
    """Return the shares of the noisy copies of a text."""
    generator = torch.Generator().manual_seed(0)
    counts = Counter(noise.change(text, generator) for _ in range(COPIES))
    return {copy: count / COPIES for copy, count in counts.items()}


def assert_near(actual: dict[str, float], expected: dict[str, float]) -> None:
    """Assert each share within 6 standard errors; fails falsely less than once in 1e6 times for some 100 shares."""
    assert actual.keys() == {copy for copy, share in expected.items() if share > 0}
    for copy, share in expected.items():
        assert actual.get(copy, 0.0) == pytest.approx(share, abs=6 * math.sqrt(share * (1 - share) / COPIES) + 1e-12)


def test_typos_are_one_of_four_slips() -> None:
    share, beside = 0.4, NEIGHBOURS["h"]
    assert set(beside) == set("gyujnb")
    quarter = share / 4
    assert_near(
        shares(Edits("typos", share), "H"),
        {"H": 1 - share + quarter, "": quarter, "HH": quarter} | {key.upper(): quarter / len(beside) for key in beside},
    )


def test_two_characters_change_their_places() -> None:
    actual = shares(Edits("typos", 0.4), "?!")
    assert actual["!?"] == pytest.approx(0.1, abs=0.015)
    assert actual.keys() == {"?!", "!?", "??!", "?!!", "??!!", "?", "!", "", "??", "!!"}


def test_the_other_kinds() -> None:
    s = 0.3
    assert_near(shares(Edits("case", s), "a1"), {"a1": 1 - s, "A1": s})
    assert_near(shares(Edits("spaces", s), "a "), {"a ": (1 - s) ** 2 + s * s, "a  ": s * (1 - s), "a": (1 - s) * s})
    assert_near(shares(Edits("homoglyphs", s), "az"), {"az": 1 - s, f"{ALIKE['a']}z": s})
    assert all(latin.isascii() and not cyrillic.isascii() for latin, cyrillic in ALIKE.items())


def test_paraphrases_are_drawn_alike_and_known_by_their_content(tmp_path: Path) -> None:
    assert_near(shares(Paraphrases({"a": ["b", "c", "b", "d"]}), "a"), {"b": 0.5, "c": 0.25, "d": 0.25})
    file = tmp_path / "others.json"
    file.write_text(json.dumps({"a": ["b", "c"]}))
    paraphrases, different = Paraphrases(file), Paraphrases({"a": ["b"]})
    assert paraphrases == Paraphrases({"a": ("b", "c")}) != different
    assert paraphrases.parameters["code"] != different.parameters["code"]
    with pytest.raises(ParameterError):
        paraphrases.change("another", torch.Generator())
    with pytest.raises(ParameterError):
        Paraphrases({"a": []})
    for content in ("[1]", '{"a": "b"}', '{"a": [1]}', "{"):
        file.write_text(content)
        with pytest.raises(DataError) as caught:
            Paraphrases(file)
        assert caught.value.code == "texts"


@pytest.mark.parametrize("share", [0.0, 1.5, math.nan, True, "0.1"])
def test_a_share_is_a_probability(share: Any) -> None:
    with pytest.raises(ParameterError):
        Edits("typos", share)
    with pytest.raises(ParameterError):
        Edits("slips", 0.1)


@pytest.mark.parametrize("text", ["", "a", "Grüße, \U0001f600 \U0010ffff", "a\n b"])
def test_codes_are_those_of_the_text(text: str) -> None:
    assert text_of(codes_of([text, "longer than that"])[0]) == text


@pytest.mark.parametrize("text", ["a\0b", "much longer"])
def test_a_text_that_has_no_codes_is_refused(text: str) -> None:
    with pytest.raises(DataError) as caught:
        codes_of([text], 5)
    assert caught.value.code == "texts"


def has_only_latin(texts: list[str]) -> Tensor:
    """Give the second class to texts with a letter that is not ASCII."""
    return torch.tensor([[3.0, 0.0] if text.isascii() else [0.0, 3.0] for text in texts])


@pytest.mark.parametrize("score", [MonteCarlo, Shrinkage])
def test_a_rule_that_reads_texts_flips_as_often_as_said(score: Any) -> None:
    """`1 - (1 - s)^n` of `n` letters that have a look-alike; 4 intervals at 99%, the seed is fixed."""
    texts = ["zzz", "az", "peace", "exposes"]
    points = brittle.data.text_points(texts, [0] * 4)
    classifier = brittle.Classifier(TextFunction(has_only_latin), bounds=None)
    table = brittle.score(classifier, points, [score(noise=Edits("homoglyphs", 0.1), draws=400)])
    for text, row in zip(texts, table.scores.to_pylist(), strict=True):
        count = sum(letter in ALIKE for letter in text)
        assert row["low"] <= 1 - 0.9**count <= row["high"]
        assert row["status"] == "ok" or count == 0


def test_a_function_that_returns_a_wrong_row_count_is_refused() -> None:
    points = brittle.data.text_points(["a", "b"])
    classifier = brittle.Classifier(TextFunction(lambda texts: torch.rand(len(texts) + 1, 2)), bounds=None)
    with pytest.raises(brittle.errors.ModelError) as caught:
        brittle.score(classifier, points, [MonteCarlo(noise=Edits("case", 0.1), limit=None)])
    assert caught.value.code in ("model_failed", "output_shape")


def test_paraphrases_are_noise_that_a_check_decides_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores without noise may join them; a paraphrase that is too long is an error before anything is scored."""
    from brittle.noise.named import noises

    texts = ["peace", "war"]
    points = brittle.data.text_points(texts, [0, 0])
    classifier = brittle.Classifier(TextFunction(has_only_latin), bounds=None)
    noise = Paraphrases({text: [text.upper(), f"{text}é"] for text in texts})
    table = brittle.score(classifier, points, [Shrinkage(noise=noise, draws=100, limit=None), Softmax()])
    (verdict,) = brittle.check(table, holds=0.5).verdicts
    assert (verdict.points, verdict.low < 1) == (2, True)
    file = {text: ["x" * 2000] for text in texts}
    monkeypatch.setattr("brittle.extensions.texts.noise._read", lambda path: file)
    with pytest.raises(DataError):
        noises("paraphrases:others.json", (), None, points=points)


def test_the_function_gets_each_text_once_and_few_at_a_time() -> None:
    calls: list[list[str]] = []

    def function(texts: list[str]) -> Tensor:
        calls.append(texts)
        return has_only_latin(texts)

    texts = [f"text {number % 100}" for number in range(300)]
    model = TextFunction(function)
    assert model(codes_of(texts)).shape == (300, 2)
    assert sorted(text for call in calls for text in call) == sorted(set(texts))
    assert max(map(len, calls)) <= 64
    assert model.digest != TextFunction(has_only_latin).digest == TextFunction(has_only_latin).digest


def test_scores_with_gradients_and_other_inputs_are_refused() -> None:
    points = brittle.data.text_points(["a", "b"])
    classifier = brittle.Classifier(TextFunction(has_only_latin), bounds=None)
    with pytest.raises((ParameterError, brittle.errors.ModelError)):
        brittle.score(classifier, points, [Taylor(sigma=0.1)])
    with pytest.raises(ParameterError):
        brittle.score(torch.nn.Linear(8, 2), torch.rand(2, 8), [MonteCarlo(noise=Edits("typos", 0.1), limit=None)])
    for score in (MonteCarlo(sigma=0.1, limit=None), InputMargin(effort="fast")):
        with pytest.raises(ParameterError):
            brittle.score(classifier, points, [score])
    with pytest.raises(ParameterError):
        brittle.data.text_points(["a"], tokenizer=lambda texts: {})


@pytest.mark.parametrize("copies", [5_000, pytest.param(COPIES, marks=pytest.mark.slow)])
def test_typos_of_a_model_against_drawings_of_its_own_texts(copies: int) -> None:
    """No formula gives the truth of this rule: typos are drawn by a second implementation; both intervals at 1 - 1e-6
    overlap (fails falsely less than once in 100,000 times)."""
    text, share = "a bad film that is not fine", 0.1

    def counts_words(texts: list[str]) -> Tensor:
        counts = [sum(word in ("bad", "not", "fine") for word in review.split()) for review in texts]
        return torch.tensor([[float(count) - 1.5, 1.5 - float(count)] for count in counts])

    generator = torch.Generator().manual_seed(5)
    flips = 0
    for _ in range(copies):
        out, at = "", 0
        while at < len(text):
            letter, step = text[at], 1
            if float(torch.rand(1, generator=generator)) < share:
                kind = int(torch.randint(4, (1,), generator=generator))
                keys = NEIGHBOURS.get(letter, letter)
                if kind == 0:
                    letter = keys[int(torch.randint(len(keys), (1,), generator=generator))]
                elif kind == 1 and at + 1 < len(text):
                    letter, step = text[at + 1] + letter, 2
                elif kind == 2:
                    letter = ""
                elif kind == 3:
                    letter = letter + letter
            out, at = out + letter, at + step
        flips += bool(counts_words([out])[0].argmax() == 1)
    points = brittle.data.text_points([text])
    classifier = brittle.Classifier(TextFunction(counts_words), bounds=None)
    (row,) = brittle.score(
        classifier, points, [MonteCarlo(noise=Edits("typos", share), draws=4000, limit=None)]
    ).scores.to_pylist()
    low, high = clopper_pearson(flips, copies, STRICT)
    own_low, own_high = clopper_pearson(round(4000 * row["value"]), 4000, STRICT)
    assert float(own_low) <= float(high)
    assert float(low) <= float(own_high)


def test_every_kind_is_one_of_the_command_line() -> None:
    from brittle.noise.named import NOISES, NamedNoise, noises

    for kind in EDITS:
        word = NOISES[kind]
        assert isinstance(word, NamedNoise)
        (noise,) = noises(f"{kind}:{word.example}", (), None)
        assert noise == Edits(kind, 0.05)


def test_another_family_may_not_take_the_name_of_one_here() -> None:
    @dataclass(frozen=True)
    class Mine(Gaussian):
        name: ClassVar[str] = "edits"

    with pytest.raises(ParameterError):
        Mine(0.1)


@pytest.mark.parametrize("kind", EDITS)
def test_a_word_of_the_table_is_noise_of_its_kind(kind: str) -> None:
    (noise,) = noises(f"{kind}:0.25", [], (0, 1))
    assert noise.kind == kind  # type: ignore[union-attr]
