"""Masks and boxes: counts against single copies in a plain loop, hand-made outputs, forms, words, refusals."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from helpers.shapes import box_network, pixel_network, shapes
from torch import Tensor, nn

import brittle
from brittle.decisions import Boxes, Masks, as_decision
from brittle.errors import ModelError, ParameterError
from brittle.model.loading.load import load_model
from brittle.noise import Gaussian, Stream
from brittle.scores import CATALOGUE, MonteCarlo

SIGMA, DRAWS = 0.2, 40
NAMES = ("ground", "square", "cross")


def copies_of(points: Tensor) -> Tensor:
    """The noisy copies that are counted, `[B, DRAWS, *shape]`: pairs of a draw and its mirror image."""
    stream = Stream(Gaussian(SIGMA), points, [str(row) for row in range(len(points))], 0, "sample")
    half = stream.draw(DRAWS // 2)
    return (points[:, None, None] + torch.stack((half, -half), dim=2)).flatten(1, 2)


def places_of(mask: Tensor) -> dict[int, set[tuple[int, int]]]:
    found: dict[int, set[tuple[int, int]]] = {}
    for row, line in enumerate(mask.tolist()):
        for column, kind in enumerate(line):
            found.setdefault(kind, set()).add((row, column))
    return found


def worst_overlap(own: Tensor, other: Tensor) -> float:
    """The smallest intersection over union of the masks at the point, with pixels in sets."""
    before, after = places_of(own), places_of(other)
    pairs = [(there, after.get(kind, set())) for kind, there in before.items()]
    return min(len(there & here) / len(there | here) for there, here in pairs)


def number_in(words: str) -> float:
    (number,) = re.findall(r"\d+\.\d+", words)
    return float(number)


def iou(one: list[float], other: list[float]) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0.0) * max(height, 0.0)
    return shared / (sum((a[2] - a[0]) * (a[3] - a[1]) for a in (one, other)) - shared)


def found_in(output: dict[str, Tensor], score: float) -> list[tuple[int, list[float]]]:
    rows = zip(output["labels"].tolist(), output["boxes"].tolist(), output["scores"].tolist(), strict=True)
    return [(label, box) for label, box, sure in rows if sure >= score]


def lost_of(own: list[tuple[int, list[float]]], other: list[tuple[int, list[float]]], overlap: float) -> int:
    """Boxes that are not found again, the fewest over all ways to pair them."""
    fits = [[a == b and iou(one, two) > overlap for b, two in other] + [False] * len(own) for a, one in own]
    ways = permutations(range(len(other) + len(own)), len(own))
    return min(sum(not row[at] for row, at in zip(fits, way, strict=True)) for way in ways)


def test_counts_of_masks_are_those_of_single_copies() -> None:
    """In double precision, and with the overlap of pixels counted in sets: the same share flips."""
    network, points = pixel_network(), shapes(6, seed=9)[0]
    classifier = brittle.Classifier(network, decision="masks:0.8", class_names=NAMES)
    table = brittle.score(classifier, points, [MonteCarlo(sigma=SIGMA, draws=DRAWS, limit=None)])
    shares, overlaps = [], []
    with torch.no_grad():
        for row, copies in enumerate(copies_of(points)):
            own = network(points[row : row + 1])["out"][0].argmax(dim=0)
            worst = [worst_overlap(own, network(copy[None])["out"][0].argmax(dim=0)) for copy in copies]
            shares.append(sum(not one > 0.8 for one in worst) / DRAWS)
            overlaps.append(sum(worst) / DRAWS)
    assert table.scores["value"].to_pylist() == pytest.approx(shares, abs=1e-12)
    assert 0.1 < sum(shares) / len(shares) < 0.9
    for said, overlap in zip(table.scores["detail"].to_pylist(), overlaps, strict=True):
        assert number_in(said) == pytest.approx(overlap, abs=0.006)
    assert "ground, " in table.points["decided"][0].as_py()


def test_counts_of_boxes_are_those_of_single_copies() -> None:
    network, points = box_network(), shapes(6, seed=9)[0]
    classifier = brittle.Classifier(network, decision="boxes:0.5,0.6", class_names=NAMES)
    table = brittle.score(classifier, points, [MonteCarlo(sigma=SIGMA, draws=DRAWS, limit=None)])
    shares, words = [], []
    with torch.no_grad():
        for row, copies in enumerate(copies_of(points)):
            own = found_in(network(points[row : row + 1])[0], 0.6)
            lost = [lost_of(own, found_in(network(copy[None])[0], 0.6), 0.5) for copy in copies]
            shares.append(sum(one > 0 for one in lost) / DRAWS)
            words.append((len(own), sum(lost) / DRAWS))
    assert table.scores["value"].to_pylist() == pytest.approx(shares, abs=1e-12)
    assert 0.1 < sum(shares) / len(shares) < 0.9
    for point, score, (count, lost) in zip(table.points.to_pylist(), table.scores.to_pylist(), words, strict=True):
        assert point["decided"].startswith(f"{count} box")
        assert number_in(score["detail"]) == pytest.approx(lost, abs=0.006)
    assert table.record.model.decision == "boxes:0.5,0.6"


def test_copies_are_counted_until_it_is_decided() -> None:
    """Most points take few copies: the interval is on one side of the limit, or the point took more than the first."""
    classifier = brittle.Classifier(box_network(), decision="boxes")
    found = MonteCarlo(sigma=SIGMA, draws=400, limit=0.5)(classifier, shapes(6, seed=9)[0])
    decided = (found.high < 0.5) | (found.low > 0.5)
    assert bool(decided.any())
    assert bool((decided | (found.passes > 61)).all())


PAIR = [[0.0, 0.0, 4.0, 4.0], [2.0, 0.0, 6.0, 4.0]]
"""Two boxes that share a third."""


def boxes(
    *corners: list[float], labels: list[int] | None = None, scores: list[float] | None = None
) -> dict[str, Tensor]:
    return {
        "boxes": torch.tensor(corners).reshape(-1, 4),
        "labels": torch.tensor(labels or [1] * len(corners), dtype=torch.int64),
        "scores": torch.tensor(scores or [0.9] * len(corners)),
    }


@pytest.mark.parametrize(
    ("own", "other", "kept"),
    [
        (boxes(*PAIR), boxes(*PAIR), 1),
        (boxes(*PAIR), boxes(*reversed(PAIR), [9.0, 9.0, 10.0, 10.0]), 1),  # a new one does not count
        (boxes(*PAIR), boxes(PAIR[0]), 0),
        (boxes(*PAIR), boxes([1.0, 0.0, 5.0, 4.0]), 0),  # overlaps both by 0.6, and finds one
        (boxes(*PAIR), boxes(*PAIR, labels=[1, 2]), 0),
        (boxes(*PAIR), boxes(*PAIR, scores=[0.9, 0.4]), 0),
        (boxes(*PAIR, scores=[0.9, 0.4]), boxes(PAIR[0]), 1),  # it was none before
        (boxes(PAIR[0]), boxes([0.0, 0.0, 4.0, 2.0]), 0),  # an overlap of exactly 0.5 is not above it
        (boxes(PAIR[0]), boxes([0.0, 0.0, 4.0, 2.1]), 1),
        (boxes(), boxes(*PAIR), 1),
        (boxes([1.0, 1.0, 1.0, 5.0]), boxes(), 1),  # without area
    ],
)
def test_boxes_of_known_answers(own: dict[str, Tensor], other: dict[str, Tensor], kept: int) -> None:
    """One input gives the first output, all noisy copies the second."""
    network = Two([own], [other])
    found = MonteCarlo(sigma=0.1, draws=10, limit=None)(
        brittle.Classifier(network, decision="boxes"), torch.zeros(1, 2)
    )
    assert float(found.value) == 1 - kept
    assert found.status.tolist() == [0]


class Two(nn.Module):
    """One output at 0, another one elsewhere."""

    def __init__(self, own: Any, other: Any) -> None:
        super().__init__()
        self.own, self.other = own, other

    def forward(self, x: Tensor) -> Any:
        parts = [self.other if bool(row.any()) else self.own for row in x]
        return [one for part in parts for one in part] if isinstance(self.own, list) else torch.cat(parts)


SQUARE = torch.zeros(1, 2, 4, 4)
SQUARE[:, 1, :2, :2] = 1.0
WIDER = SQUARE.clone()
WIDER[:, 1, :2, 2:] = 1.0  # twice as many pixels of class 1
MOVED = SQUARE.roll(1, 3)


@pytest.mark.parametrize(
    ("own", "other", "overlap", "kept"),
    [
        (SQUARE, SQUARE, 0.9, 1),
        (SQUARE, WIDER, 0.5, 0),  # exactly one half
        (SQUARE, WIDER, 0.49, 1),
        (SQUARE, MOVED, 0.3, 1),  # a third, and of the ground 10 of 14
        (SQUARE, MOVED, 0.34, 0),
        (0 * SQUARE, SQUARE, 0.7, 1),  # 12 of 16 pixels of the ground; that there is another class does not count
        (SQUARE[:, 1:] - 0.5, WIDER[:, 1:] - 0.5, 0.5, 0),  # one channel, positive inside
        (SQUARE[:, 1:] - 0.5, SQUARE[:, 1:] - 0.5, 0.5, 1),
    ],
)
def test_masks_of_known_answers(own: Tensor, other: Tensor, overlap: float, kept: int) -> None:
    classifier = brittle.Classifier(Two(own, other), decision=Masks(overlap))
    found = MonteCarlo(sigma=0.1, draws=10, limit=None)(classifier, torch.zeros(1, 2))
    assert float(found.value) == 1 - kept
    assert found.status.tolist() == [0]


def test_what_is_not_finite_has_a_status() -> None:
    broken = boxes(PAIR[0], scores=[float("nan")])
    for own, other, decision in ((SQUARE, SQUARE * torch.nan, "masks"), ([boxes(PAIR[0])], [broken], "boxes")):
        clean = MonteCarlo(sigma=0.1, draws=10, limit=None)(
            brittle.Classifier(Two(other, own), decision=decision), torch.zeros(1, 2)
        )
        noisy = MonteCarlo(sigma=0.1, draws=10, limit=None)(
            brittle.Classifier(Two(own, other), decision=decision), torch.zeros(1, 2)
        )
        assert clean.status.tolist() == noisy.status.tolist() == [int(brittle.estimate.Status.NONFINITE_LOGITS)]


class Reformed(nn.Module):
    """A network with its output in another form."""

    def __init__(self, network: nn.Module, form: Any, config: Any = None) -> None:
        super().__init__()
        self.network, self.form = network, form
        if config is not None:
            self.config = config

    def forward(self, x: Tensor) -> Any:
        return self.form(self.network(x))


def as_queries(softmax: bool) -> Any:
    """The boxes of quarters as DETR returns them: logits of classes 0, 1, 2 and none, and centres."""

    def form(output: list[dict[str, Tensor]]) -> SimpleNamespace:
        corners, labels, scores = (torch.stack([one[name] for one in output]) for name in ("boxes", "labels", "scores"))
        logits = torch.full((*labels.shape, 4 if softmax else 3), -40.0, dtype=scores.dtype)
        logits.scatter_(2, labels[..., None], scores.logit()[..., None])
        if softmax:
            logits[..., 3] = 0.0
        centres = torch.cat(((corners[..., :2] + corners[..., 2:]) / 2, corners[..., 2:] - corners[..., :2]), dim=2)
        return SimpleNamespace(logits=logits, pred_boxes=centres / 16)

    return form


def test_all_forms_of_an_output_get_the_same_numbers() -> None:
    x, score = shapes(4, seed=9)[0], MonteCarlo(sigma=SIGMA, draws=DRAWS, limit=None)
    labelled = SimpleNamespace(num_labels=3)
    pixels = [
        pixel_network(),
        Reformed(pixel_network(), lambda output: output["out"]),
        Reformed(pixel_network(), lambda output: SimpleNamespace(logits=output["out"])),
    ]
    numbers = [score(brittle.Classifier(one, decision="masks"), x).value.tolist() for one in pixels]
    assert numbers[0] == numbers[1] == numbers[2]
    probabilities = Reformed(pixel_network(), lambda output: output["out"].softmax(dim=1))
    assert score(brittle.Classifier(probabilities, decision="masks", outputs="probs"), x).value.tolist() == numbers[0]
    queries = [
        box_network(),
        Reformed(box_network(), as_queries(softmax=True), labelled),
        Reformed(box_network(), as_queries(softmax=False), labelled),
    ]
    numbers = [score(brittle.Classifier(one, decision="boxes"), x).value.tolist() for one in queries]
    assert numbers[0] == numbers[1] == numbers[2]


@pytest.mark.parametrize("decision", ["masks:0.5", "boxes:0.5"])
@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "monte_carlo"])
def test_scores_that_do_more_than_count_are_refused_by_name(name: str, decision: str) -> None:
    kind = CATALOGUE[name]
    one = kind(sigma=0.1) if "sigma" in kind.__dataclass_fields__ else kind()  # pyright: ignore[reportCallIssue]
    network = pixel_network() if decision.startswith("masks") else box_network()
    classifier = brittle.Classifier(network, decision=decision)
    with pytest.raises(ParameterError, match=f"{name}.*{decision}"):
        one(classifier, shapes(2, seed=9)[0])
    with pytest.raises(ParameterError, match=f"{name}.*{decision}"):
        brittle.score(classifier, shapes(2, seed=9)[0], [one])


def test_searches_and_derivatives_are_refused_too() -> None:
    classifier, x = brittle.Classifier(pixel_network(), decision="masks"), shapes(2, seed=9)[0]
    for ask in (brittle.nearest, brittle.linearize):
        with pytest.raises(ParameterError, match=r"masks:0\.5"):
            ask(classifier, x)


def test_what_is_written_is_what_is_read() -> None:
    for text, decision in {
        "masks": Masks(),
        "masks:0.5": Masks(0.5),
        "boxes": Boxes(),
        "boxes:0.25": Boxes(0.25),
        "boxes:0.5,0.7": Boxes(0.5, 0.7),
    }.items():
        assert as_decision(text) == decision == as_decision(decision.label)
    for text in ("masks:1", "masks:-0.1", "masks:a", "masks:0.5,0.5", "boxes:0.5,0", "boxes:0.5,0.7,0.1", "boxes:nan"):
        with pytest.raises(ParameterError):
            as_decision(text)
    assert [brittle.scores.choose.usual_names(one) for one in (Masks(), Boxes())] == [("monte_carlo",)] * 2


@pytest.mark.parametrize(
    ("output", "decision", "code"),
    [
        (lambda x: x.flatten(1) @ torch.ones(x[0].numel(), 3, dtype=x.dtype), "masks", "output_shape"),
        (lambda x: {"out": x.sigmoid()}, "masks", "outputs"),  # of which the sign says nothing
        (lambda x: {"out": x}, "boxes", "output_shape"),
        (lambda x: [{"boxes": x[0, 0, :3, :4]}] * len(x), "boxes", "output_shape"),
        (lambda x: [boxes(PAIR[0])] * len(x), "class", "output_shape"),
        (lambda x: x, "class", "output_shape"),
    ],
)
def test_what_a_model_returns_must_be_what_is_decided(output: Any, decision: str, code: str) -> None:
    network = Reformed(nn.Identity(), output)
    with pytest.raises(ModelError) as caught:
        brittle.score(
            brittle.Classifier(network, decision=decision), torch.rand(8, 1, 16, 16), "monte_carlo", sigma=0.1
        )
    assert caught.value.code == code


def test_a_detector_that_mixes_rows_is_refused() -> None:
    network = Reformed(nn.Identity(), lambda x: box_network()(x - x.mean(dim=0) * (len(x) > 1)))
    with pytest.raises(ModelError) as caught:
        brittle.score(
            brittle.Classifier(network, decision="boxes"),
            shapes(20, seed=9)[0],
            [MonteCarlo(0.1, draws=10, limit=None)],
        )
    assert caught.value.code == "batch_dependent"


def test_names_of_labels_are_no_names_of_masks() -> None:
    """Of a folder whose images have classes of their own."""
    points = brittle.data.array_points(shapes(4, seed=9)[0], [0, 1, 0, 1], class_names=("cats", "dogs"))
    table = brittle.score(
        brittle.Classifier(pixel_network(), decision="masks"), points, [MonteCarlo(0.1, draws=10, limit=None)]
    )
    words = " ".join(table.points["decided"].to_pylist())
    assert "cats" not in words
    assert "class 0" in words


def test_models_of_transformers_are_read_as_they_are(tmp_path: Path) -> None:
    """Given as they are, and as a folder."""
    transformers = pytest.importorskip("transformers")
    x = torch.rand(6, 3, 32, 32)
    sizes = {"depths": [1, 1], "hidden_sizes": [8, 8], "num_attention_heads": [1, 1], "num_encoder_blocks": 2}
    sizes |= {"sr_ratios": [1, 1], "patch_sizes": [7, 3], "strides": [4, 2], "mlp_ratios": [2, 2]}
    masks = transformers.SegformerForSemanticSegmentation(
        transformers.SegformerConfig(num_labels=3, decoder_hidden_size=8, **sizes)
    )
    found = transformers.YolosForObjectDetection(
        transformers.YolosConfig(
            hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=[32, 32],
            patch_size=8, num_detection_tokens=5, num_labels=3,
        )
    )  # fmt: skip
    for network, decision, taken in ((masks, "masks:0.3", "logits"), (found, "boxes:0.5,0.2", "pred_boxes")):
        table = brittle.score(network.eval(), x, "monte_carlo", sigma=0.1, decision=decision)
        assert table.scores["value"].null_count == 0
        assert taken in str(table.record.model.taken)
        network.save_pretrained(tmp_path / taken)
        again = load_model(tmp_path / taken)
        assert again.provenance["state_sha256"] == table.record.model.state_sha256
