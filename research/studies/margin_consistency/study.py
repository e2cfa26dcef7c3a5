"""The study of margin consistency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from studies.groups import ADVERSARIAL
from studies.margin_consistency.facts import NORMS, facts_of
from studies.margin_consistency.measures import SIZES, OneNetwork, of_network
from studies.margin_consistency.page import content, headlines
from studies.margin_consistency.pictures import pictures
from studies.margin_consistency.said import findings
from studies.margin_consistency.summary import summarise, tau_of
from studies.networks import Network
from studies.study import Setting, Step, Study, Tables

FEWEST = 50
"""Further test points below which no pseudo-margin is learned."""


def after(setting: Setting, networks: Sequence[Network], tables_by_step: Mapping[str, Tables]) -> Iterable[Step]:
    """Return steps for pseudo-margins on the networks with the smallest tau of the logit margin."""
    size, taus = SIZES[setting.size], {}
    for network in networks:
        further, _ = OneNetwork(network, setting, size).points(size.learning, size.attacked)
        if network.repeat or len(further) < min(FEWEST, size.learning):
            continue
        margins = tables_by_step[f"{network.name}/margins {NORMS[0]}"]
        if len(margins["head"]) and np.isfinite(tau := tau_of(margins["points"].to_pandas())):
            taus[network] = tau  # without a head there is nothing to learn from
    ordered = sorted(taus, key=lambda network: taus[network])
    attacked = [network for network in ordered if facts_of(network).group == ADVERSARIAL]
    otherwise = [network for network in ordered if network not in attacked]
    for network in (*attacked[: size.weakest], *otherwise[: size.weakest]):
        measuring = OneNetwork(network, setting, size)
        yield measuring.step("pseudo", measuring.pseudo)


STUDY = Study(
    name="margin_consistency",
    title="Margin consistency: does the logit margin say how near another prediction is?",
    papers=("Ngnawé et al. (NeurIPS 2024)",),
    of_network=of_network,
    after=after,
    repeats=True,
    summarise=summarise,
    findings=findings,
    content=content,
    pictures=pictures,
    headlines=headlines,
)
