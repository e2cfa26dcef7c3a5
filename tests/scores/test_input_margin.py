"""The input margin as a score: its bracket, its status, its passes, and its counterexamples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.laws import estimate
from helpers.problems import Wrapped, inputs, small_classifier

import brittle
from brittle.analysis.outcomes import refuted_points, refuted_text
from brittle.cli.commands import main
from brittle.estimate import Status
from brittle.extensions.certificates.proof import SHARES
from brittle.extensions.certificates.radius import CertifiedRadius
from brittle.measure import Forward, Nearest
from brittle.measure.base import PROOFS
from brittle.scores import FeatureDistance, InputMargin, LogitMargin

COUNT = 6


def test_a_certificate_beyond_a_counterexample_is_refuted() -> None:
    """The low end is 0 where a counterexample contradicts the proof, and no other point changes."""
    classifier, x = small_classifier(), inputs(4)
    score = InputMargin(effort="fast", certify=True)
    measured = {need: need(classifier, _clean(classifier, x)) for need in score.needs}
    distance = measured[score.needs[1]].distance
    radius = distance * torch.tensor([100.0, 0.5, 1.01, 0.0], dtype=torch.float64)
    measured[score.needs[2]] = CertifiedRadius(radius, torch.full((4,), 7))
    margins = score.estimate(measured, 0.99)
    assert [Status(code) for code in margins.status.tolist()] == [Status.REFUTED, Status.OK, Status.REFUTED, Status.OK]
    assert margins.low.tolist() == [0.0, radius[1].item(), 0.0, 0.0]
    assert torch.equal(margins.value, distance)
    assert torch.equal(margins.high, distance)
    assert margins.detail is not None
    assert ["contradict each other" in str(text) for text in margins.detail] == [True, False, True, False]
    assert f"another prediction found {float(distance[0]):.6g} away" in str(margins.detail[0])
    assert all("6 of the passes for the certificate" in str(text) for text in margins.detail)


@pytest.mark.usefixtures("nothing_drawn")
def test_a_network_that_differs_from_its_layers_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rounding is tested at uniform draws of a fixed seed; all draws are small in the chosen coordinate."""
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([torch.rand(8, 8, generator=generator, dtype=torch.float64).flatten() for _ in SHARES])
    smallest, coordinate = draws.amax(dim=0).min(dim=0)
    assert smallest < 0.48
    (tmp_path / "net.py").write_text(
        "from helpers.problems import ComputesOtherwise\n\n\ndef make():\n"
        f"    return ComputesOtherwise({int(coordinate)})\n"
    )
    x = torch.full((3, 8, 8), 0.48) + 0.001 * torch.arange(3).view(3, 1, 1)
    np.savez(tmp_path / "data.npz", x=x.numpy())
    command = ["score", f"{tmp_path}/net.py:make", f"{tmp_path}/data.npz", "--effort", "fast", "--norm", "linf"]
    run = tmp_path / "run"
    assert main([*command, "--scores", "input_margin", "--set", "input_margin.certify=true", "--out", str(run)]) == 0
    table = brittle.read_table(run)
    (column,) = table.columns
    assert set(column.rows["status"]) == {Status.REFUTED.slug}
    assert set(column.rows["low"]) == {0.0}
    assert bool((column.value < 0.1).all())
    message = refuted_text(refuted_points(table.columns))
    assert message.startswith("The certificates of 3 points are contradicted by what the attack found")
    assert message in capsys.readouterr().err
    assert main(["report", str(run)]) == 0
    assert message in (run / "report.html").read_text(encoding="utf-8")


def test_a_missing_certificate_hides_no_graver_status() -> None:
    classifier = brittle.Classifier(Wrapped(lambda x, logits: logits.sin() * 4))
    x = inputs(6)
    scores = (InputMargin("linf", effort="fast", certify=certify) for certify in (False, True))
    plain, certified = (estimate(classifier, x, score) for score in scores)
    assert torch.equal(plain.value, certified.value)
    assert bool((certified.low == 0).all())
    assert all("no lower bound goes through sin" in str(text) for text in certified.detail or ("",))
    ok = plain.status == int(Status.OK)
    assert torch.equal(certified.status, torch.where(ok, int(Status.NO_CERTIFICATE), plain.status))


def test_nothing_found_is_infinite_and_no_distance_of_zero() -> None:
    classifier = brittle.Classifier(Wrapped(lambda x, logits: 1e-3 * logits + torch.tensor([5.0, 0, 0, 0])))
    margins = estimate(classifier, inputs(3), InputMargin(effort="fast"))
    assert bool(margins.value.isinf().all())
    assert set(margins.status.tolist()) == {int(Status.NOT_FOUND)}
    assert bool((margins.low == 0).all())


def test_a_network_without_gradients_is_masked() -> None:
    margins = estimate(
        brittle.Classifier(Wrapped(lambda x, logits: logits.round())), inputs(4), InputMargin(effort="fast")
    )
    assert set(margins.status.tolist()) <= {int(Status.MASKED), int(Status.TIE)}
    assert int(Status.MASKED) in margins.status.tolist()


def test_margin_and_feature_distance_share_a_search() -> None:
    classifier, x = small_classifier(), inputs(COUNT)
    scores = [InputMargin(effort="fast"), FeatureDistance(effort="fast")]
    table = brittle.score(classifier, x, scores)
    wide = table.frame(whole=True)
    margins, moved = (wide[score.label].to_numpy() for score in scores)
    passes = wide[f"{scores[0].label}.passes"].to_numpy()
    assert (wide[f"{scores[1].label}.passes"].to_numpy() == passes + 1).all()
    assert (wide["passes"].to_numpy() == passes + 1).all()
    nearest = Nearest("l2", effort="fast")(classifier, _clean(classifier, x))
    with torch.no_grad():
        steps = classifier.observe(nearest.points)[1] - classifier.observe(x)[1]
    assert margins == pytest.approx(nearest.distance.numpy(), rel=1e-5)
    assert moved == pytest.approx(steps.norm(dim=1).numpy(), rel=1e-4)


def test_counterexamples_have_another_prediction(tmp_path: Path) -> None:
    table = brittle.score(small_classifier(), inputs(COUNT), [InputMargin("linf", effort="fast"), LogitMargin()])
    table.save(tmp_path / "run")
    again = brittle.read_table(tmp_path / "run")
    assert again.counterexamples.equals(table.counterexamples)
    predicted = dict(zip(again.points["point"].to_pylist(), again.points["predicted"].to_pylist(), strict=True))
    assert again.counterexamples.num_rows == COUNT
    assert all(row["predicted"] != predicted[row["point"]] for row in again.counterexamples.to_pylist())


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["--scores", "logit_margin", "--draws", "10"], "--draws"),
        (["--scores", "logit_margin", "--sigma", "0.1"], "--sigma"),
        (["--scores", "input_margin", "--norm", "l3"], "'l3'"),
        (["--scores", "input_margin", "--set", "input_margin.attack=pgd"], "apgd"),
    ],
)
def test_options_that_change_nothing_are_refused(
    arguments: list[str], fact: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "./net.py:make", "data.npz", "--out", "run", *arguments]) == 2
    assert fact in capsys.readouterr().err


def test_a_smaller_proof_costs_less_and_holds() -> None:
    classifier, x = small_classifier(), inputs(1)
    scores = [InputMargin(effort="fast", certify=True, proof=proof) for proof in PROOFS]
    full, middle, fast = margins = [estimate(classifier, x, score) for score in scores]
    assert classifier.passes == sum(int(margin.passes.sum()) for margin in margins)
    assert bool((fast.low > 0).all() & (fast.low <= middle.low).all() & (fast.low <= full.low * (1 + 1e-2)).all())
    assert fast.passes.sum() < middle.passes.sum() < full.passes.sum()
    with pytest.raises(brittle.errors.ParameterError, match=r"proof 'fast' says how .* none is asked for; ask for one"):
        InputMargin(proof="fast")


def _clean(classifier: brittle.Classifier, x: torch.Tensor):
    from brittle.measure.forward import look

    return Forward()(classifier, look(classifier, x, [str(number) for number in range(len(x))], 0))
