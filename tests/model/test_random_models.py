"""Models that draw at random: known probabilities, a plain loop, what is refused, and what a run says of it."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import Tensor, nn

import brittle
from brittle.cli.commands import main
from brittle.doctor.rounding import check_alike
from brittle.errors import BrittleError, ModelError, ParameterError
from brittle.model.classifier import CLEAN_PASSES
from brittle.run import make_job
from brittle.scores import CATALOGUE, MonteCarlo

SIGMA, DROPPED = 0.3, 0.4
X = torch.rand(12, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)

pytestmark = pytest.mark.filterwarnings("ignore:nondeterministic_model")


class Dropping(nn.Module):
    """A linear model of two classes behind dropout that stays on; `how` it draws."""

    def __init__(self, how: str = "rows") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.last, self.how = nn.Linear(6, 2).double(), how

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "passes":
            return self.last(x * nn.functional.dropout(x.new_ones(6), DROPPED))
        if self.how == "never":
            return self.last(x)
        if self.how == "again":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                return self.last(nn.functional.dropout(x, DROPPED))
        return self.last(nn.functional.dropout(x, DROPPED))


def known_shares(sigma: float) -> list[float]:
    """That a copy is of class 1: over all 64 ways to drop numbers, a normal probability each."""
    last = Dropping().last
    weight = (last.weight[1] - last.weight[0]).detach()
    bias = float((last.bias[1] - last.bias[0]).detach())
    shares = [0.0] * len(X)
    for kept in product((0, 1), repeat=6):
        own = weight * torch.tensor(kept) / (1 - DROPPED)
        chance = DROPPED ** (6 - sum(kept)) * (1 - DROPPED) ** sum(kept)
        spread = max(sigma * float(own.norm()), 1e-12)
        for row, x in enumerate(X):
            shares[row] += chance * float(norm.cdf((float(own @ x) + bias) / spread))
    return shares


@pytest.mark.parametrize("until", [False, True])
def test_intervals_hold_the_known_probability(until: bool) -> None:
    """24 intervals at 99.99%: one fails falsely 1 time in 400 at most, on these seeds never."""
    classifier = brittle.Classifier(Dropping(), random=True)
    rule: dict[str, Any] = {"draws": 2000, "precision": 0.2} if until else {"draws": 1000, "limit": None}
    score = MonteCarlo(sigma=SIGMA, **rule)
    table = brittle.score(classifier, X, [score], confidence=0.9999)
    clean = known_shares(0.0)
    rows = zip(table.points.to_pylist(), table.scores.to_pylist(), known_shares(SIGMA), clean, strict=True)
    for point, found, share, without in rows:
        assert found["low"] <= (1 - share if point["predicted"] else share) <= found["high"]
        assert point["predicted"] == (without > 0.5) or abs(without - 0.5) < 0.2  # 4 deviations of 101 passes
        assert found["status"] == "ok"


def test_shares_are_those_of_a_plain_loop() -> None:
    """Each copy alone, of 1,000: within 5 of its deviations of the interval (3 points: fails falsely 1 in 10^5)."""
    network = Dropping()
    found = MonteCarlo(sigma=SIGMA, draws=1000, limit=None)(brittle.Classifier(network, random=True), X[:3])
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        for row, x in enumerate(X[:3]):
            ahead = [int(network(x[None]).argmax()) for _ in range(101)]
            own = int(sum(ahead) > 50)
            flips = sum(int(network((x + SIGMA * torch.randn(6))[None]).argmax()) != own for _ in range(1000))
            off = 5 * (0.25 / 1000) ** 0.5
            assert float(found.low[row]) - off <= flips / 1000 <= float(found.high[row]) + off


def test_a_run_says_so_and_is_the_same_again() -> None:
    classifier = brittle.Classifier(Dropping(), random=True)
    before = torch.random.get_rng_state()
    one, two = (brittle.score(classifier, X, sigma=SIGMA, limit=None) for _ in range(2))
    assert one.scores.equals(two.scores)
    assert {score.score for score in one.record.scores} == {"monte_carlo"}
    assert one.record.model.random == CLEAN_PASSES
    assert "nondeterministic_model" in {finding.code for finding in one.record.warnings}
    assert one.points["passes"].to_pylist() == [CLEAN_PASSES + 1000] * 12
    assert one.record.account.passes == 12 * (CLEAN_PASSES + 1000)
    assert str(CLEAN_PASSES) in brittle.analysis.overview_text.format_overview(brittle.analysis.overview(one))
    assert brittle.score(brittle.Classifier(nn.Linear(6, 2)), X.float()).record.model.random is None
    with torch.random.fork_rng(devices=[]):
        torch.random.set_rng_state(before)
        MonteCarlo(sigma=SIGMA, draws=10, limit=None)(classifier, X)
        assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "monte_carlo"])
def test_scores_that_do_more_than_count_are_refused_by_name(name: str) -> None:
    kind = CATALOGUE[name]
    one = kind(sigma=0.1) if "sigma" in kind.__dataclass_fields__ else kind()  # pyright: ignore[reportCallIssue]
    classifier = brittle.Classifier(Dropping(), random=True)
    for ask in (lambda: one(classifier, X), lambda: brittle.score(classifier, X, [one])):
        with pytest.raises(ParameterError, match=f"{name}.*random"):
            ask()


def test_another_process_is_not_asked_for_the_same_logits() -> None:
    jobs = [make_job(brittle.Classifier(Dropping(), random=True), X, "monte_carlo", 0, None, 0.99) for _ in range(2)]
    own, other = (job.begin().content(job.classifier) for job in jobs)
    assert own["logits"] != other["logits"]
    check_alike(own, other, "in a worker")


def test_what_needs_one_function_is_refused() -> None:
    classifier = brittle.Classifier(Dropping(), random=True)
    for ask in (brittle.nearest, brittle.linearize):
        with pytest.raises(ParameterError, match="random"):
            ask(classifier, X)
    with pytest.raises(BrittleError) as caught:
        brittle.Detector.fit(brittle.score(classifier, X, sigma=SIGMA))
    assert caught.value.code == "other_model"
    with pytest.raises(ParameterError, match="multilabel"):
        brittle.Classifier(Dropping(), random=True, decision="multilabel")


@pytest.mark.parametrize(
    ("how", "declared", "code"),
    [
        ("rows", False, "nondeterministic_model"),
        ("never", True, "nondeterministic_model"),
        ("again", True, "nondeterministic_model"),
        ("passes", True, "batch_dependent"),
    ],
)
def test_the_doctor_knows_how_a_model_draws(how: str, declared: bool, code: str) -> None:
    """Points that share what is drawn are not independent, so an interval over them would not hold."""
    with pytest.raises(ModelError) as caught:
        brittle.score(brittle.Classifier(Dropping(how), random=declared), X, [MonteCarlo(SIGMA, draws=10, limit=None)])
    assert caught.value.code == code


def test_a_model_that_draws_once_a_pass_is_scored_row_by_row() -> None:
    """And its intervals hold the known probability: 4 at 99.99%, which fail falsely 1 time in 2,500 at most."""
    classifier = brittle.Classifier(Dropping("passes"), random=True)
    table = brittle.score(
        classifier, X[:4], [MonteCarlo(SIGMA, draws=400, limit=None)], batch_size=1, confidence=0.9999
    )
    for point, found, share in zip(
        table.points.to_pylist(), table.scores.to_pylist(), known_shares(SIGMA), strict=False
    ):
        assert found["low"] <= (1 - share if point["predicted"] else share) <= found["high"]


class Sharing(nn.Module):
    """Class 1 where `x_0 + e > 0`, `e` standard normal for each row alone, whatever the rows of a pass share."""

    def __init__(self, how: str, share: float) -> None:
        super().__init__()
        self.how, self.share, self.scale = how, share, nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        own, of_pass = torch.randn(len(x)).to(x), torch.randn(1).to(x).expand(len(x))
        drawn = {
            "sum": lambda: self.share**0.5 * of_pass + (1 - self.share) ** 0.5 * own,
            "size": lambda: own.abs() * torch.where(of_pass > 0, 1.0, -1.0),
            "now and then": lambda: of_pass if torch.rand(()) < self.share else own,
            "one half": lambda: torch.cat((of_pass[: len(x) // 2], own[len(x) // 2 :])),
            "neighbours": lambda: own.repeat_interleave(2)[: len(x)],
            "every fourth": lambda: own[:4].repeat(len(x) // 4 + 1)[: len(x)],
        }[self.how]()
        return nn.functional.pad((x[:, 0] + drawn)[:, None], (1, 0)) * self.scale


@pytest.mark.parametrize("until", [False, True])
def test_intervals_hold_whatever_the_rows_of_a_pass_share(until: bool) -> None:
    """12 models of known probabilities, 99% intervals of 100 points each: of the 1,200 at most 12 miss in the mean.

    Of 40 other seeds none had more than 6. Of copies that share passes 34 to 334 miss, but at one seed of eight.
    """
    kinds = [("sum", share) for share in (0.0, 0.05, 0.1, 0.2, 1 / 3, 0.5, 1.0)]
    kinds += [("now and then", 0.2), ("size", 0.0), ("one half", 0.0), ("neighbours", 0.0), ("every fourth", 0.0)]
    x = torch.linspace(0.6, 3.0, 100, dtype=torch.float64)[:, None].repeat(1, 2)  # class 1 wins 101 clean passes
    rule: dict[str, Any] = {"draws": 500, "limit": 0.9} if until else {"draws": 200, "limit": None}
    score = MonteCarlo(sigma=SIGMA, **rule)
    kept, misses = torch.from_numpy(norm.cdf(x[:, 0] / (1 + SIGMA**2) ** 0.5)), 0
    for kind in kinds:
        found = score(brittle.Classifier(Sharing(*kind), bounds="none", random=True), x, seed=1)
        misses += int(((found.low > 1 - kept) | (found.high < 1 - kept)).sum())
    assert misses <= 12


def test_the_doctor_finds_a_tenth_of_shared_variance() -> None:
    """It misses that once in 1,000 times, and refuses a model that shares nothing once in a million."""
    one, other = (brittle.Classifier(Sharing("sum", share), bounds="none", random=True) for share in (0.0, 0.1))
    assert brittle.score(one, X, [MonteCarlo(SIGMA, draws=10, limit=None)]).scores.num_rows == len(X)
    with pytest.raises(ModelError) as caught:
        brittle.score(other, X, [MonteCarlo(SIGMA, draws=10, limit=None)])
    assert caught.value.code == "batch_dependent"


def test_the_command_line_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Linear):\n"
        "    def forward(self, x):\n"
        "        return super().forward(torch.nn.functional.dropout(x, 0.4))\n"
        "def make():\n    torch.manual_seed(0)\n    return Net(6, 2)\n"
    )
    np.savez("data.npz", x=np.random.default_rng(0).random((40, 6), dtype=np.float32))
    command = ["score", "./net.py:make", "data.npz", "--random-model", "--draws", "20", "--quiet"]
    assert main([*command, "--out", "alone"]) == 0
    assert brittle.read_table("alone").record.model.random == CLEAN_PASSES
    assert main(["doctor", "./net.py:make", "data.npz", "--random-model"]) == 0
