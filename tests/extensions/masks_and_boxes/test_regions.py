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
from brittle.decisions import Boxes, Masks
from brittle.decisions.kinds import as_decision
from brittle.errors import ModelError, ParameterError
from brittle.model.loading.load import load_model
from brittle.noise import Gaussian, Stream
from brittle.scores import MonteCarlo
from brittle.scores.catalogue import CATALOGUE

SIGMA, DRAWS = 0.2, 40
NAMES = ("ground", "square", "cross")


def copies_of(points: Tensor) -> Tensor:
    """Return the noisy copies of a run, `[B, DRAWS, *shape]`: pairs of a draw and its mirror image."""
    stream = Stream(Gaussian(SIGMA), points, [str(row) for row in range(len(points))], 0, "sample")
    half = stream.draw(DRAWS // 2)
    return (points[:, None, None] + torch.stack((half, -half), dim=2)).flatten(1, 2)


def places_of(mask: Tensor) -> dict[int, set[tuple[int, int]]]:
    pixels_by_class: dict[int, set[tuple[int, int]]] = {}
    for row, line in enumerate(mask.tolist()):
        for column, kind in enumerate(line):
            pixels_by_class.setdefault(kind, set()).add((row, column))
    return pixels_by_class


def worst_overlap(point: Tensor, copy: Tensor) -> float:
    """Return the smallest intersection over union of the masks at the point, with pixels in sets."""
    before, after = places_of(point), places_of(copy)
    pairs = [(pixels, after.get(kind, set())) for kind, pixels in before.items()]
    return min(len(point_pixels & copy_pixels) / len(point_pixels | copy_pixels) for point_pixels, copy_pixels in pairs)


def number_in(words: str) -> float:
    (number,) = re.findall(r"\d+\.\d+", words)
    return float(number)


def iou(box_a: list[float], box_b: list[float]) -> float:
    width = min(box_a[2], box_b[2]) - max(box_a[0], box_b[0])
    height = min(box_a[3], box_b[3]) - max(box_a[1], box_b[1])
    shared = max(width, 0.0) * max(height, 0.0)
    return shared / (sum((a[2] - a[0]) * (a[3] - a[1]) for a in (box_a, box_b)) - shared)


def boxes_above(output: dict[str, Tensor], score: float) -> list[tuple[int, list[float]]]:
    rows = zip(output["labels"].tolist(), output["boxes"].tolist(), output["scores"].tolist(), strict=True)
    return [(label, box) for label, box, sure in rows if sure >= score]


def count_lost(boxes: list[tuple[int, list[float]]], copies: list[tuple[int, list[float]]], overlap: float) -> int:
    """Count the lost boxes: the fewest over all pairings."""
    fits = [[a == b and iou(box, copy) > overlap for b, copy in copies] + [False] * len(boxes) for a, box in boxes]
    assignments = permutations(range(len(copies) + len(boxes)), len(boxes))
    return min(sum(not row[at] for row, at in zip(fits, columns, strict=True)) for columns in assignments)


def test_counts_of_masks_are_those_of_single_copies() -> None:
    """The share of flips equals that of single copies, with overlaps of sets of pixels."""
    network, points = pixel_network(), shapes(6, seed=9)[0]
    classifier = brittle.Classifier(network, decision="masks:0.8", class_names=NAMES)
    table = brittle.score(classifier, points, [MonteCarlo(sigma=SIGMA, draws=DRAWS, limit=None)])
    shares, overlaps = [], []
    with torch.no_grad():
        for row, copies in enumerate(copies_of(points)):
            mask = network(points[row : row + 1])["out"][0].argmax(dim=0)
            worst = [worst_overlap(mask, network(copy[None])["out"][0].argmax(dim=0)) for copy in copies]
            shares.append(sum(not overlap > 0.8 for overlap in worst) / DRAWS)
            overlaps.append(sum(worst) / DRAWS)
    assert table.scores["value"].to_pylist() == pytest.approx(shares, abs=1e-12)
    assert 0.1 < sum(shares) / len(shares) < 0.9
    for detail, overlap in zip(table.scores["detail"].to_pylist(), overlaps, strict=True):
        assert number_in(detail) == pytest.approx(overlap, abs=0.006)
    assert "ground, " in table.points["decided"][0].as_py()


def test_counts_of_boxes_are_those_of_single_copies() -> None:
    network, points = box_network(), shapes(6, seed=9)[0]
    classifier = brittle.Classifier(network, decision="boxes:0.5,0.6", class_names=NAMES)
    table = brittle.score(classifier, points, [MonteCarlo(sigma=SIGMA, draws=DRAWS, limit=None)])
    shares, words = [], []
    with torch.no_grad():
        for row, copies in enumerate(copies_of(points)):
            point_boxes = boxes_above(network(points[row : row + 1])[0], 0.6)
            lost = [count_lost(point_boxes, boxes_above(network(copy[None])[0], 0.6), 0.5) for copy in copies]
            shares.append(sum(count > 0 for count in lost) / DRAWS)
            words.append((len(point_boxes), sum(lost) / DRAWS))
    assert table.scores["value"].to_pylist() == pytest.approx(shares, abs=1e-12)
    assert 0.1 < sum(shares) / len(shares) < 0.9
    for point, score, (count, lost) in zip(table.points.to_pylist(), table.scores.to_pylist(), words, strict=True):
        assert point["decided"].startswith(f"{count} box")
        assert number_in(score["detail"]) == pytest.approx(lost, abs=0.006)
    assert table.record.model.decision == "boxes:0.5,0.6"


def test_copies_are_counted_until_it_is_decided() -> None:
    """Each interval is on one side of the limit, or its point took more than the first copies."""
    classifier = brittle.Classifier(box_network(), decision="boxes")
    estimate = MonteCarlo(sigma=SIGMA, draws=400, limit=0.5)(classifier, shapes(6, seed=9)[0])
    decided = (estimate.high < 0.5) | (estimate.low > 0.5)
    assert bool(decided.any())
    assert bool((decided | (estimate.passes > 61)).all())


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
    ("point_output", "copy_output", "is_kept"),
    [
        (boxes(*PAIR), boxes(*PAIR), 1),
        (boxes(*PAIR), boxes(*reversed(PAIR), [9.0, 9.0, 10.0, 10.0]), 1),  # a new box does not count
        (boxes(*PAIR), boxes(PAIR[0]), 0),
        (boxes(*PAIR), boxes([1.0, 0.0, 5.0, 4.0]), 0),  # overlaps both by 0.6, and matches one
        (boxes(*PAIR), boxes(*PAIR, labels=[1, 2]), 0),
        (boxes(*PAIR), boxes(*PAIR, scores=[0.9, 0.4]), 0),
        (boxes(*PAIR, scores=[0.9, 0.4]), boxes(PAIR[0]), 1),  # below the score before
        (boxes(PAIR[0]), boxes([0.0, 0.0, 4.0, 2.0]), 0),  # an overlap of exactly 0.5 is not above it
        (boxes(PAIR[0]), boxes([0.0, 0.0, 4.0, 2.1]), 1),
        (boxes(), boxes(*PAIR), 1),
        (boxes([1.0, 1.0, 1.0, 5.0]), boxes(), 1),  # without area
    ],
)
def test_boxes_of_known_answers(point_output: dict[str, Tensor], copy_output: dict[str, Tensor], is_kept: int) -> None:
    """The point has the first output, all noisy copies the second."""
    network = Two([point_output], [copy_output])
    estimate = MonteCarlo(sigma=0.1, draws=10, limit=None)(
        brittle.Classifier(network, decision="boxes"), torch.zeros(1, 2)
    )
    assert float(estimate.value) == 1 - is_kept
    assert estimate.status.tolist() == [0]


class Two(nn.Module):
    """A network with one output at 0 and another elsewhere."""

    def __init__(self, at_zero: Any, elsewhere: Any) -> None:
        super().__init__()
        self.at_zero, self.elsewhere = at_zero, elsewhere

    def forward(self, x: Tensor) -> Any:
        parts = [self.elsewhere if bool(row.any()) else self.at_zero for row in x]
        return [image for part in parts for image in part] if isinstance(self.at_zero, list) else torch.cat(parts)


SQUARE = torch.zeros(1, 2, 4, 4)
SQUARE[:, 1, :2, :2] = 1.0
WIDER = SQUARE.clone()
WIDER[:, 1, :2, 2:] = 1.0  # twice as many pixels of class 1
MOVED = SQUARE.roll(1, 3)


@pytest.mark.parametrize(
    ("point_output", "copy_output", "overlap", "is_kept"),
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
def test_masks_of_known_answers(point_output: Tensor, copy_output: Tensor, overlap: float, is_kept: int) -> None:
    classifier = brittle.Classifier(Two(point_output, copy_output), decision=Masks(overlap))
    estimate = MonteCarlo(sigma=0.1, draws=10, limit=None)(classifier, torch.zeros(1, 2))
    assert float(estimate.value) == 1 - is_kept
    assert estimate.status.tolist() == [0]


def test_outputs_that_are_not_finite_have_a_status() -> None:
    broken = boxes(PAIR[0], scores=[float("nan")])
    for output, invalid, decision in ((SQUARE, SQUARE * torch.nan, "masks"), ([boxes(PAIR[0])], [broken], "boxes")):
        clean = MonteCarlo(sigma=0.1, draws=10, limit=None)(
            brittle.Classifier(Two(invalid, output), decision=decision), torch.zeros(1, 2)
        )
        noisy = MonteCarlo(sigma=0.1, draws=10, limit=None)(
            brittle.Classifier(Two(output, invalid), decision=decision), torch.zeros(1, 2)
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
    """Return a function that turns boxes into DETR's output: logits of classes 0, 1, 2 and none, and centres."""

    def form(output: list[dict[str, Tensor]]) -> SimpleNamespace:
        names = ("boxes", "labels", "scores")
        corners, labels, scores = (torch.stack([image[name] for image in output]) for name in names)
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
    numbers = [score(brittle.Classifier(network, decision="masks"), x).value.tolist() for network in pixels]
    assert numbers[0] == numbers[1] == numbers[2]
    probabilities = Reformed(pixel_network(), lambda output: output["out"].softmax(dim=1))
    assert score(brittle.Classifier(probabilities, decision="masks", outputs="probs"), x).value.tolist() == numbers[0]
    queries = [
        box_network(),
        Reformed(box_network(), as_queries(softmax=True), labelled),
        Reformed(box_network(), as_queries(softmax=False), labelled),
    ]
    numbers = [score(brittle.Classifier(network, decision="boxes"), x).value.tolist() for network in queries]
    assert numbers[0] == numbers[1] == numbers[2]


@pytest.mark.parametrize("decision", ["masks:0.5", "boxes:0.5"])
@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "monte_carlo"])
def test_scores_that_do_more_than_count_are_refused_by_name(name: str, decision: str) -> None:
    kind = CATALOGUE[name]
    score = kind(sigma=0.1) if "sigma" in kind.__dataclass_fields__ else kind()  # pyright: ignore[reportCallIssue]
    network = pixel_network() if decision.startswith("masks") else box_network()
    classifier = brittle.Classifier(network, decision=decision)
    with pytest.raises(ParameterError, match=f"{name}.*{decision}"):
        score(classifier, shapes(2, seed=9)[0])
    with pytest.raises(ParameterError, match=f"{name}.*{decision}"):
        brittle.score(classifier, shapes(2, seed=9)[0], [score])


def test_searches_and_derivatives_are_refused_too() -> None:
    classifier, x = brittle.Classifier(pixel_network(), decision="masks"), shapes(2, seed=9)[0]
    for ask in (brittle.nearest, brittle.linearize):
        with pytest.raises(ParameterError, match=r"masks:0\.5"):
            ask(classifier, x)


def test_a_label_is_read_as_its_decision() -> None:
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
    assert [brittle.scores.choose.usual_names(decision) for decision in (Masks(), Boxes())] == [("monte_carlo",)] * 2


@pytest.mark.parametrize(
    ("output", "decision", "code"),
    [
        (lambda x: x.flatten(1) @ torch.ones(x[0].numel(), 3, dtype=x.dtype), "masks", "output_shape"),
        (lambda x: {"out": x.sigmoid()}, "masks", "outputs"),  # a sign of these means nothing
        (lambda x: {"out": x}, "boxes", "output_shape"),
        (lambda x: [{"boxes": x[0, 0, :3, :4]}] * len(x), "boxes", "output_shape"),
        (lambda x: [boxes(PAIR[0])] * len(x), "class", "output_shape"),
        (lambda x: x, "class", "output_shape"),
    ],
)
def test_outputs_that_do_not_fit_the_decision_are_refused(output: Any, decision: str, code: str) -> None:
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
    """Labels of images have other classes than their pixels."""
    points = brittle.data.array_points(shapes(4, seed=9)[0], [0, 1, 0, 1], class_names=("cats", "dogs"))
    table = brittle.score(
        brittle.Classifier(pixel_network(), decision="masks"), points, [MonteCarlo(0.1, draws=10, limit=None)]
    )
    words = " ".join(table.points["decided"].to_pylist())
    assert "cats" not in words
    assert "class 0" in words


def test_models_of_transformers_are_read_as_they_are(tmp_path: Path) -> None:
    """Models in memory, and in a folder."""
    transformers = pytest.importorskip("transformers")
    x = torch.rand(6, 3, 32, 32)
    sizes = {"depths": [1, 1], "hidden_sizes": [8, 8], "num_attention_heads": [1, 1], "num_encoder_blocks": 2}
    sizes |= {"sr_ratios": [1, 1], "patch_sizes": [7, 3], "strides": [4, 2], "mlp_ratios": [2, 2]}
    masks = transformers.SegformerForSemanticSegmentation(
        transformers.SegformerConfig(num_labels=3, decoder_hidden_size=8, **sizes)
    )
    detector = transformers.YolosForObjectDetection(
        transformers.YolosConfig(
            hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=[32, 32],
            patch_size=8, num_detection_tokens=5, num_labels=3,
        )
    )  # fmt: skip
    for network, decision, part in ((masks, "masks:0.3", "logits"), (detector, "boxes:0.5,0.2", "pred_boxes")):
        table = brittle.score(network.eval(), x, "monte_carlo", sigma=0.1, decision=decision)
        assert table.scores["value"].null_count == 0
        assert part in str(table.record.model.taken)
        network.save_pretrained(tmp_path / part)
        again = load_model(tmp_path / part)
        assert again.provenance["state_sha256"] == table.record.model.state_sha256
