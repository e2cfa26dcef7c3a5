"""Measurements of the study of margin consistency, their size and their steps."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import pandas as pd
import torch

import brittle
from studies.groups import ADVERSARIAL
from studies.margin_consistency.autoattack.fab import fab_margins
from studies.margin_consistency.autoattack.standard import stands
from studies.margin_consistency.descent import NEARER, withstands
from studies.margin_consistency.exact import affine_weight, exact_margins
from studies.margin_consistency.facts import NORMS, Facts, facts_of
from studies.margin_consistency.margins import head_distances, margins, pseudo_margins, scores_of_all
from studies.measuring import Measuring
from studies.networks import Network
from studies.study import Setting, Steps, Tables
from studies.tables import as_table


@dataclass(frozen=True)
class Size:
    """Size of the measurements.

    Attributes:
        linf: test points of a network with margins in Linf.
        l2: in L2.
        attacked: test points that are attacked at one perturbation size, the first ones those with margins.
        steps: of that attack, from each of two starts.
        checked: points at which something nearer than what was found is looked for, by a descent and by FAB.
        checking: steps of that search, from each of two starts.
        learning: further test points that a pseudo-margin is learned from.
        weakest: networks that it is learned for, those with the smallest tau: so many that were trained on attacked
            inputs, and so many of the rest.
        effort: of the library's search.
        standard: test points that AutoAttack's standard set attacks, the first of those with margins in Linf, of
            networks that were trained on attacked inputs; its steps; its queries.
    """

    linf: int
    l2: int
    attacked: int
    steps: int
    checked: int
    checking: int
    learning: int
    weakest: int
    effort: str
    standard: tuple[int, int, int]

    def points(self, norm: str) -> int:
        """Test points with margins in a norm."""
        return self.linf if norm == "linf" else self.l2


SIZES = {
    "cpu": Size(100, 50, 400, 20, 8, 60, 2000, 2, "fast", (100, 100, 5000)),
    "paper": Size(10_000, 1000, 10_000, 100, 100, 500, 5000, 3, "standard", (10_000, 100, 5000)),
    "tiny": Size(14, 10, 16, 3, 3, 3, 24, 1, "fast", (6, 4, 20)),
}

STARTS = 2


def of_network(network: Network, setting: Setting) -> Steps:
    """Its margins, attacks at one size, a check."""
    measuring = OneNetwork(network, setting, SIZES[setting.size])
    facts = asdict(measuring.facts)
    for norm in NORMS:
        yield measuring.step(f"margins {norm}", partial(measuring.margins, norm), facts=facts)
    yield measuring.step("attacked", measuring.attacked, facts=facts)
    yield measuring.step("checked", measuring.checked)
    yield measuring.step("fab", measuring.fab)
    if measuring.facts.group == ADVERSARIAL:
        yield measuring.step("standard", measuring.standard, facts=facts)


class OneNetwork(Measuring[Size]):
    """Measurements of a network."""

    @property
    def facts(self) -> Facts:
        """Return the facts of the network."""
        return facts_of(self.network)

    def margins(self, norm: str) -> Tables:
        """Margins and scores of each point; in Linf what is known of the network and its head, too."""
        model, (x, y) = self.load(), self.points(self.size.points(norm))
        tables = {"points": as_table(margins(model, x, y, norm, self.size.effort, self.setting.seed))}
        if norm == NORMS[0]:
            about = {"network": self.network.name, "dataset": self.network.dataset, "effort": self.size.effort}
            tables["about"] = as_table(pd.DataFrame([about | asdict(self.facts)]))
            tables["head"] = as_table(head_distances(model, x))
        return tables

    def attacked(self) -> Tables:
        """Return logit margins of many points, and which are right and withstand the descent in Linf."""
        model, (x, y) = self.load(), self.points(self.size.attacked)
        radius = torch.full((len(x),), self.facts.linf)
        held = withstands(model, x, y, radius, "linf", self.size.steps, STARTS, self.setting.seed + 1)
        return {"all": as_table(scores_of_all(model, x, y, self.setting.seed).assign(robust=held.numpy()))}

    def standard(self) -> Tables:
        """Return which points are right and withstand AutoAttack's standard set in Linf."""
        count, steps, queries = self.size.standard
        x, y = self.points(count)
        held = stands(self.load(), x, y, self.facts.linf, steps, queries, self.setting.seed + 3)
        return {"standard": as_table(pd.DataFrame({"robust": held.numpy()}))}

    def checked(self) -> Tables:
        """Check a few points by other means: the nearest inputs, a search for nearer ones, and the exact distance."""
        model, (x, _) = self.load(), self.points(self.size.checked)
        classifier = brittle.Classifier(model, bounds=(0, 1))
        weight, frames = affine_weight(model, x), []
        with torch.no_grad():
            logits = model(x)
        predicted = logits.argmax(1)
        for norm in NORMS:
            nearest = brittle.nearest(classifier, x, norm=norm, effort=self.size.effort)
            with torch.no_grad():
                flipped = model(nearest.points).argmax(1) != predicted
            order = torch.inf if norm == "linf" else 2
            length = torch.linalg.vector_norm((nearest.points - x).double().flatten(1), ord=order, dim=1)
            confirmed = flipped & ((length - nearest.distance).abs() <= 1e-5 * nearest.distance)
            inside = (nearest.points >= 0).flatten(1).all(1) & (nearest.points <= 1).flatten(1).all(1)
            radius = NEARER * torch.where(nearest.distance.isfinite(), nearest.distance, 0.0)
            held = withstands(model, x, predicted, radius, norm, self.size.checking, STARTS, self.setting.seed + 2)
            exact = np.full(len(x), np.nan)
            if weight is not None:
                flat = x.flatten(1).double().numpy()
                exact = exact_margins(weight, logits.double().numpy(), flat, norm)
            columns = {"margin": nearest.distance.numpy(), "there": (confirmed & inside).numpy(), "held": held.numpy()}
            frames.append(pd.DataFrame({"norm": norm, **columns, "exact": exact}))
        return {"checked": as_table(pd.concat(frames))}

    def fab(self) -> Tables:
        """Return the margins of the same points in Linf, and those that FAB finds."""
        model, (x, _) = self.load(), self.points(self.size.checked)
        nearest = brittle.nearest(brittle.Classifier(model, bounds=(0, 1)), x, norm="linf", effort=self.size.effort)
        with torch.no_grad():
            predicted = model(x).argmax(1)
        distance = fab_margins(model, x, predicted, self.size.standard[1])
        return {"fab": as_table(pd.DataFrame({"margin": nearest.distance.numpy(), "fab": distance.numpy()}))}

    def pseudo(self) -> Tables:
        """Pseudo-margins of the points with margins in Linf, learned from points that nothing else looks at."""
        model, (x, _) = self.load(), self.points(self.size.linf)
        learned, _ = self.points(self.size.learning, self.size.attacked)
        frame = pseudo_margins(model, learned, x, NORMS[0], self.size.effort, self.setting.seed)
        return {"pseudo": as_table(frame.assign(learned=len(learned)))}
