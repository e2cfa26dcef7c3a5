"""Scores odd networks and sets every number beside an independent truth; prints network, verdict, and what was said.

    PYTHONPATH=tests python -m checks.hostile [--zoo | --data] [NAME ...]

The zoo (`odd_networks.py`, and under noise of their own `odd_noises.py`) is a law: a network is refused by a name that
fits, or every number that `brittle` stands behind holds the truth (`truth.py`: each noisy copy alone through the
network). `beside_truth.py` says which numbers these are. Odd data sets (`odd_data.py`) obey it with the truth about the
rows that they mean. All lie in `tests/helpers/`. How often intervals miss in many runs of one point, `checks.coverage`
counts.

By chance: intervals are taken at 99%, those of the truth at 99.9%, so two that are right lie apart in at most 1.1% of
the comparisons. A row of the zoo counts as wrong where that happens in each of `RUNS` runs with noise of their own:
1.5e-8 per row, 3e-4 in 20,000 comparisons. The misses of the first runs together are compared with a rate of 2% at
1e-6, so a row that misses now and then does not pass either. Everything has a fixed seed.
"""

from __future__ import annotations

import sys
import time
from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch
from helpers import truth
from helpers.beside_truth import Compared, compare, too_many
from helpers.odd_data import ODD_DATA, wrong
from helpers.odd_networks import ZOO
from helpers.odd_noises import NOISES, OddNoise
from helpers.odd_parts import BOUNDS, OddNetwork

import brittle
from brittle.errors import BrittleError
from brittle.noise import Gaussian, Noise
from brittle.scores import MMSE, Moments, MonteCarlo, Score, Shrinkage, Taylor

ALL: Mapping[str, OddNetwork] = ChainMap({}, ZOO, NOISES)  # pyright: ignore[reportArgumentType]
"""All that are examined, by name."""

RUNS = 4
"""Runs with noise of their own in each of which a row must miss, to be called wrong."""

LIMIT = 0.9
"""Probability that stopped counts decide about."""

SCORES, GRADIENTS = "scores", "gradients"
"""What is asked for: scores without gradients, and scores with."""


@dataclass(frozen=True)
class Plan:
    """How much is spent on a network.

    Attributes:
        probes: inputs whose truth is found out, of all that are scored.
        copies: noisy copies of each.
        draws: of scores that count or take moments.
        most_draws: of counts that stop once it is decided whether a point holds.
        gradient_draws: of scores by gradients.
        shares: of the network's own sigma.
        thorough: whether moments, mixtures of as many draws for each point and counts that stop are scored, too.
    """

    probes: int = 6
    copies: int = 1000
    draws: int = 100
    most_draws: int = 400
    gradient_draws: int = 20
    shares: tuple[float, ...] = (1.0, 0.3)
    thorough: bool = True

    def scores(self, noise: Noise) -> dict[str, list[Score]]:
        """By what they ask for, those that serve the noise."""
        many, few, paired = self.draws, self.gradient_draws, noise.is_symmetric
        found: list[Score] = [
            MonteCarlo(noise=noise, draws=many, limit=None),
            Shrinkage(noise=noise, draws=self.most_draws, limit=None),
        ]
        linear: list[Score] = []
        if self.thorough and paired:
            found.append(Moments(noise=noise, draws=many))
        if self.thorough:
            found.append(Shrinkage(noise=noise, draws=many, limit=None))
            found.append(MonteCarlo(noise=noise, draws=self.most_draws, limit=LIMIT))
        if noise.has_covariance:
            linear += [MMSE(noise=noise, draws=few, antithetic=paired), Taylor(noise=noise)]
        return {SCORES: found, GRADIENTS: linear}


@dataclass
class Verdict:
    """What became of one network: refusals by what was asked for, those that do not fit and other errors (`problems`),
    the intervals of the first run, and those that missed in every run."""

    network: OddNetwork
    refused: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)
    wrong: list[Compared] = field(default_factory=list)

    @property
    def lawful(self) -> bool:
        return not self.problems and not self.wrong

    @property
    def name(self) -> str:
        if self.lawful:
            return "scored" if self.compared else "refused"
        return "WRONG" if self.wrong else "UNFIT"

    @property
    def said(self) -> str:
        """What was said of it, and what of that is wrong."""
        parts = [*self.problems]
        if self.wrong:
            first = self.wrong[0]
            parts += [f"{len(self.wrong)} of {self._held} wrong, such as row {first.row}, {first.score}: {first.said}"]
        if self.compared:
            apart = Counter(each.kind for each in self.compared if not each.stood_behind)
            parts += [", ".join([f"{self._held} held", *(f"{count} {kind}" for kind, count in apart.most_common())])]
        parts += [f"{what} refused: {sentence}" for what, sentence in self.refused.items()] * (not self.problems)
        return "; ".join(parts)

    @property
    def _held(self) -> int:
        return sum(each.stood_behind for each in self.compared)


def examine(network: OddNetwork, plan: Plan) -> Verdict:
    """Score a network and compare every row with the truth."""
    verdict = Verdict(network)
    for share in plan.shares:
        sigma = network.sigma * share
        noise = network.noise(sigma, network.inputs()) if isinstance(network, OddNoise) else Gaussian(sigma)
        for what, scores in plan.scores(noise).items():
            if scores and SCORES not in verdict.refused and what not in verdict.refused:
                _examine(verdict, plan, what, scores, sigma)
    return verdict


def _examine(verdict: Verdict, plan: Plan, what: str, scores: Sequence[Score], sigma: float) -> None:
    """Compare one run; where rows miss, run again with other noise, and keep those that miss every time."""
    network, missing = verdict.network, {}
    for seed in range(RUNS):
        try:
            found = _compared(network, plan, scores, sigma, seed)
        except BrittleError as error:
            _refuse(verdict, what, error)
            return
        except Exception as error:  # noqa: BLE001 - the law is that nothing else is raised
            verdict.problems.append(f"{what} ended in {type(error).__name__}: {str(error).strip().splitlines()[0]}")
            return
        missed = {each.key: each for each in found if each.stood_behind and not each.holds}
        if seed == 0:
            verdict.compared += found
        missing = {key: each for key, each in missed.items() if seed == 0 or key in missing}
        if not missing:
            return
    verdict.wrong += missing.values()


def _refuse(verdict: Verdict, what: str, error: BrittleError) -> None:
    network = verdict.network
    verdict.refused[what] = str(error)
    allowed = network.refused if what == SCORES else (*network.refused, *network.without_gradients)
    if error.code not in allowed or error.exit_code != 3:
        named = ", ".join(allowed) or "nothing: it is sound"
        verdict.problems.append(f"{what} refused: {error} (exit code {error.exit_code}); it may be refused as {named}")


def _compared(network: OddNetwork, plan: Plan, scores: Sequence[Score], sigma: float, seed: int) -> list[Compared]:
    bounds = network.bounds if isinstance(network, OddNoise) else BOUNDS
    declared = {"outputs": network.outputs, "decision": network.decision}
    classifier = brittle.Classifier(network.build(), bounds=bounds, **declared)
    table = brittle.score(classifier, network.inputs(), scores, seed=seed, batch_size=network.rows, most_failures=None)
    probes = torch.linspace(0, network.points - 1, plan.probes).round().int().tolist()
    return compare(table, lambda row: _truth(network.name, row, sigma, plan.copies, seed), probes)


@cache
def _truth(name: str, row: int, sigma: float, copies: int, seed: int) -> truth.Truth:
    """The truth of a row, with noise that depends on the seed and the row."""
    network = ALL[name]
    options = {"fresh": network.fresh, "meaning": network.meaning}
    noise = 1_000_000 + 1000 * seed + row
    if isinstance(network, OddNoise):
        x = network.inputs()[row]
        noisy = network.copies(np.random.default_rng(noise), x, sigma, copies)
        return truth.of_copies(network.build, x, torch.from_numpy(noisy).to(x), **options)
    return truth.alone(network.build, network.inputs()[row], sigma, copies, noise, **options)


def misses(verdicts: Iterable[Verdict]) -> dict[str, tuple[int, int]]:
    """Intervals that missed in the first run, and all, of networks of which none is surely wrong, by kind and score."""
    found: dict[str, tuple[int, int]] = {}
    for each in (each for verdict in verdicts if verdict.lawful for each in verdict.compared if each.stood_behind):
        key = f"{each.score}, {each.kind}"
        missed, total = found.get(key, (0, 0))
        found[key] = (missed + (not each.holds), total + 1)
    return found


# What is printed.


def run_zoo(names: Sequence[str]) -> bool:
    """Examine the networks whose name holds one of `names`, or all; print each and say whether all are lawful."""
    chosen = [each for each in ALL.values() if not names or any(name in each.name for name in names)]
    verdicts = []
    for network in chosen:
        verdicts.append(verdict := examine(network, Plan()))
        print(f"{network.family:9}  {network.name:52}  {verdict.name:8}  {verdict.said}", flush=True)
    print()
    lawful = all(verdict.lawful for verdict in verdicts)
    for key, (missed, total) in misses(verdicts).items():
        more = too_many(missed, total)
        lawful = lawful and not more
        print(f"{key:36} {missed:5} of {total:6} missed in the first run{', MORE THAN CHANCE EXPLAINS' * more}")
    counts = Counter(verdict.name for verdict in verdicts)
    print(f"\n{len(verdicts)} networks: {', '.join(f'{count} {name}' for name, count in counts.most_common())}")
    return lawful


def run_data(names: Sequence[str]) -> bool:
    """Score the data sets whose name holds one of `names`, or all; print each and say whether all are lawful."""
    lawful = True
    for odd in (each for each in ODD_DATA if not names or any(name in each.name for name in names)):
        said, problems = wrong(odd)
        lawful = lawful and not problems
        print(
            f"{'data':9}  {odd.name:52}  {'WRONG' if problems else 'right':8}  {'; '.join([*problems, said])}",
            flush=True,
        )
    return lawful


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; 0 where every law holds."""
    torch.set_num_threads(1)
    started = time.perf_counter()
    every = {"--zoo", "--data"}
    parts = every & set(arguments) or every
    names = [each for each in arguments if not each.startswith("--")]
    lawful = [run_zoo(names)] if "--zoo" in parts else []
    lawful += [run_data(names)] if "--data" in parts else []
    print(f"\n{'Every law holds' if all(lawful) else 'A law is broken'}, in {time.perf_counter() - started:.0f} s.")
    return 0 if all(lawful) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
