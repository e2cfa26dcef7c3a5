"""The study of the expected change of the predicted probability: its sizes, its steps, its results."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
import torch

from brittle.scores import Laplacian
from studies.expected_change.corrupted import SEVERITIES, copies
from studies.expected_change.counted import count_changes
from studies.expected_change.page import content
from studies.expected_change.pictures import pictures
from studies.expected_change.said import findings
from studies.expected_change.scored import PROBES, laplacians, score_all, score_changes, score_points
from studies.expected_change.summary import RADII, summarise
from studies.networks import Network, find_networks, test_points
from studies.study import Setting, Step, Study, Tables
from studies.tables import as_table


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes:
        points: test points of a network.
        pairs: of noisy copies by which the truth is counted at a point and radius.
        draws: noisy copies that the library draws there.
        corrupted: of the points, how many have the Laplacian of their corrupted copies taken.
    """

    points: int
    pairs: int
    draws: int
    corrupted: int


SIZES = {"cpu": Size(200, 100, 60, 24), "tiny": Size(12, 20, 10, 2)}


def steps(setting: Setting) -> Generator[Step, Tables, None]:
    """Of each network: the truth by counting, what the library says, and both under corruptions."""
    size = asdict(SIZES[setting.size])
    yield Step("size", size, lambda: {"size": as_table(pd.DataFrame([size]))})
    for network in find_networks(setting.shared, setting.networks):
        measuring = Measuring(network, setting, SIZES[setting.size])
        yield measuring.step("points", measuring.points)
        yield measuring.step("counted", measuring.counted)
        yield measuring.step("library", measuring.library)
        yield measuring.step("corrupted", measuring.corrupted)


@dataclass(frozen=True)
class Measuring:
    """What is measured of a network."""

    network: Network
    setting: Setting
    size: Size

    def step(self, name: str, run: Callable[[], Tables]) -> Step:
        """The step of this name."""
        identity = {"network": self.network.digest, "seed": self.setting.seed, "size": asdict(self.size)}
        return Step(f"{self.network.name}/{name}", identity | {"radii": RADII, "severities": SEVERITIES}, run)

    def inputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Test points and their labels, in an order that the seed decides."""
        return test_points(self.setting.shared, self.network.dataset, self.size.points, self.setting.seed)

    def points(self) -> Tables:
        """`points`: scores of each; `network`: what is known of how it was trained."""
        model, (x, y) = self.network.load(), self.inputs()
        scored = score_points(model, x, self.setting.seed)
        with torch.no_grad():
            scored["right"] = (model(x).argmax(1) == y).numpy()
        meta = self.network.meta()
        accuracy = meta.get("accuracy")  # of other people's networks it may have parts
        about = {
            "network": self.network.name, "dataset": self.network.dataset, "inputs": x[0].numel(),
            "architecture": str(meta.get("architecture", "")), "way": str(meta.get("way", "")),
            "accuracy": accuracy if isinstance(accuracy, float) else np.nan,
        }  # fmt: skip
        return {"points": as_table(scored), "network": as_table(pd.DataFrame([about]))}

    def counted(self) -> Tables:
        """`changes`: the truth at each point and radius."""
        model, (x, _) = self.network.load(), self.inputs()
        seed = self.setting.seed + 1  # other draws than the library's
        frames = [count_changes(model, x, one, self.size.pairs, seed).assign(radius=one) for one in RADII]
        return {"changes": as_table(pd.concat(frames, ignore_index=True))}

    def library(self) -> Tables:
        """`changes`: what the library says of the same."""
        x, _ = self.inputs()
        found = score_changes(self.network.load(), x, RADII, self.size.draws, self.setting.seed)
        return {"changes": as_table(found)}

    def corrupted(self) -> Tables:
        """`lost`: whether each point loses its class, by kind and severity; `copies`: Laplacians of some."""
        model, (x, _) = self.network.load(), self.inputs()
        with torch.no_grad():
            own = model(x).argmax(1)
            found = [(kind, severity, images) for kind, severity, images in copies(x, self.setting.seed)]
            lost = [(model(images).argmax(1) != own).numpy() for _, _, images in found]
        few, score = self.size.corrupted, Laplacian(probes=PROBES)
        table = score_all(model, torch.cat([images[:few] for _, _, images in found]), [score], self.setting.seed)
        frames = [
            pd.DataFrame({"kind": kind, "severity": severity, "point": range(len(x)), "lost": gone})
            for (kind, severity, _), gone in zip(found, lost, strict=True)
        ]
        at = pd.concat([frame.iloc[:few] for frame in frames], ignore_index=True)
        at["laplacian"] = laplacians(table, score)["laplacian"].to_numpy()
        return {"lost": as_table(pd.concat(frames, ignore_index=True)), "copies": as_table(at)}


STUDY = Study(
    name="expected_change",
    title="The expected change of the predicted probability, and its Laplacian",
    papers=("Yang, Liu, Bilgic (TMLR 2023)",),
    steps=steps,
    summarise=summarise,
    findings=findings,
    content=content,
    pictures=pictures,
)
