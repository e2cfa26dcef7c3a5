"""Measurements of the study of the expected change, their size and their steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from brittle.scores import Laplacian
from studies.corruptions import corrupt_all, strengths
from studies.expected_change.counted import count_changes
from studies.expected_change.scored import PROBES, laplacians, score_all, score_changes, score_points
from studies.measuring import Measuring
from studies.networks import Network
from studies.study import Setting, Step, Steps, Tables
from studies.tables import as_table

RADII = (0.1, 0.25, 0.5, 1.0, 2.0)
"""Lengths of the noise; the last three are the paper's."""

LONG = (1.0, 2.0, 4.0)
"""Lengths of the noise at confident points: few of these flip under less."""

CONFIDENT = 0.8
"""Probability from which the paper calls a prediction confident (section 4.2)."""


@dataclass(frozen=True)
class Size:
    """Size of the measurements.

    Attributes:
        points: test points of a network.
        pairs: of noisy copies by which the truth is counted at a point and radius.
        draws: noisy copies that the library draws there.
        corrupted: of the points, how many have the Laplacian of their corrupted copies taken.
        many: test points among which the confident ones are looked for.
        copies: pairs of noisy copies of these.
    """

    points: int
    pairs: int
    draws: int
    corrupted: int
    many: int
    copies: int


SEVERITIES = (1, 3, 5)
"""Severities of the corruptions: the least, the middle and the strongest."""

SIZES = {
    "cpu": Size(100, 60, 50, 100, 600, 30),
    "paper": Size(1000, 5000, 200, 1000, 1000, 5000),
    "tiny": Size(12, 20, 10, 2, 24, 5),
}


def alone(setting: Setting) -> Iterable[Step]:
    """Return the step that stores the size."""
    size = asdict(SIZES[setting.size])
    yield Step("size", size, lambda: {"size": as_table(pd.DataFrame([size]))})


def of_network(network: Network, setting: Setting) -> Steps:
    """Measure the truth, the library's scores, both under corruptions, and the flips of confident points."""
    measuring = OneNetwork(network, setting, SIZES[setting.size])
    yield measuring.step("points", measuring.scored, about=measuring.about)
    yield measuring.step("counted", measuring.counted, radii=RADII)
    yield measuring.step("library", measuring.library, radii=RADII)
    yield measuring.step("corrupted", measuring.corrupted)
    yield measuring.step("confident", measuring.confident, lengths=LONG)


class OneNetwork(Measuring[Size]):
    """Measurements of a network."""

    def inputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Test points and their labels, in an order that the seed decides."""
        return self.points(self.size.points)

    @property
    def about(self) -> dict[str, Any]:
        """Return the facts of the network in `meta.json`."""
        meta = self.network.meta()
        accuracy = meta.get("accuracy")  # of other people's networks it may have parts
        return {
            "architecture": str(meta.get("architecture", "")), "way": str(meta.get("way", "")),
            "accuracy": accuracy if isinstance(accuracy, float) else np.nan,
        }  # fmt: skip

    def scored(self) -> Tables:
        """`points`: scores of each; `network`: what is known of how it was trained."""
        model, (x, y) = self.load(), self.inputs()
        scored = score_points(model, x, self.setting.seed)
        with torch.no_grad():
            scored["right"] = (model(x).argmax(1) == y).numpy()
        about = {
            "network": self.network.name, "dataset": self.network.dataset, "inputs": x[0].numel(),
            "norm": norm_of_weights(model), **self.about,
        }  # fmt: skip
        return {"points": as_table(scored), "network": as_table(pd.DataFrame([about]))}

    def counted(self) -> Tables:
        """Count the truth at each point and radius, `changes`."""
        model, (x, _) = self.load(), self.inputs()
        seed = self.setting.seed + 1  # other draws than the library's
        frames = [count_changes(model, x, radius, self.size.pairs, seed).assign(radius=radius) for radius in RADII]
        return {"changes": as_table(pd.concat(frames, ignore_index=True))}

    def library(self) -> Tables:
        """Score the same by the library, `changes`."""
        x, _ = self.inputs()
        frame = score_changes(self.load(), x, RADII, self.size.draws, self.setting.seed)
        return {"changes": as_table(frame)}

    def corrupted(self) -> Tables:
        """`lost`: whether each point loses its class, by kind and severity; `copies`: Laplacians of some."""
        model, (x, _) = self.load(), self.inputs()
        with torch.no_grad():
            predicted = model(x).argmax(1)
            batches = [
                (kind, severity, corrupt_all(x, kind, severity, self.setting.seed))
                for kind in strengths(x.shape[1])
                for severity in SEVERITIES
            ]
            lost = [(model(images).argmax(1) != predicted).numpy() for _, _, images in batches]
        count, score = self.size.corrupted, Laplacian(probes=PROBES)
        table = score_all(model, torch.cat([images[:count] for _, _, images in batches]), [score], self.setting.seed)
        frames = [
            pd.DataFrame({"kind": kind, "severity": severity, "point": range(len(x)), "lost": gone})
            for (kind, severity, _), gone in zip(batches, lost, strict=True)
        ]
        at = pd.concat([frame.iloc[:count] for frame in frames], ignore_index=True)
        at["laplacian"] = laplacians(table, score)["laplacian"].to_numpy()
        return {"lost": as_table(pd.concat(frames, ignore_index=True)), "copies": as_table(at)}

    def confident(self) -> Tables:
        """`points`: scores of the confident ones of many points; `flips`: the share of their copies that flips."""
        model, (x, _) = self.load(), self.points(self.size.many)
        with torch.no_grad():
            sure = model(x).double().softmax(1).amax(1) >= CONFIDENT
        x, seed = x[sure], self.setting.seed + 2  # other draws than those of all points
        if not len(x):
            return {}
        counted = [count_changes(model, x, length, self.size.copies, seed).assign(length=length) for length in LONG]
        flips = pd.concat(counted, ignore_index=True)[["length", "point", "flips"]]
        return {"points": as_table(score_points(model, x, self.setting.seed)), "flips": as_table(flips)}


def norm_of_weights(network: torch.nn.Module) -> float:
    """Return the L2 norm of all parameters together, as in the paper's table 2."""
    return sum(float(parameter.detach().double().square().sum()) for parameter in network.parameters()) ** 0.5
