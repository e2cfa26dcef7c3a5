"""Whether certificates can be computed, and what they cost, is said before the run."""

from __future__ import annotations

import re

import pytest
import torch
from helpers.decided import first_leads
from helpers.examined import examined
from helpers.problems import Wrapped, inputs, small_classifier, small_network
from torch import nn

import brittle
from brittle import doctor
from brittle.data import array_points
from brittle.decisions import Custom, Decision
from brittle.doctor import Finding, run_all
from brittle.doctor.facts import cost_of_certificates, passes_per_point
from brittle.doctor.settings import check_certificates
from brittle.errors import BrittleWarning
from brittle.estimate import Status
from brittle.scores import InputMargin, LogitMargin, Score

COUNT = 12
CERTIFIED = InputMargin("linf", effort="fast", certify=True, proof="fast")


def wavy() -> nn.Module:
    """A network with a layer that no bounds go through."""
    return Wrapped(lambda x, logits: logits.sin() * 4)


NETWORKS = {"perceptron of convolutions": small_network, "waves": wavy}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_doctor_foretells_the_status_of_the_points(name: str) -> None:
    network = NETWORKS[name]()
    told = any(isinstance(found, Finding) for found in check_certificates(examined(network, [CERTIFIED])))
    found = CERTIFIED(brittle.Classifier(network), inputs(COUNT))
    assert told == (int(Status.NO_CERTIFICATE) in found.status.tolist())
    assert told == bool((found.low == 0).all())


def test_the_layer_is_named_and_the_way_out() -> None:
    outcome = next(one for one in run_all(examined(wavy(), [CERTIFIED])) if one.name == "certificates")
    assert (outcome.state, outcome.code) == ("note", "no_certificate")
    assert "no lower bound goes through sin" in outcome.sentence
    assert "leave the certificate out" in outcome.sentence


def test_without_a_certificate_asked_for_nothing_is_tried() -> None:
    looked = examined(wavy(), [InputMargin("linf", effort="fast"), LogitMargin()])
    assert list(check_certificates(looked)) == ["no chosen score asks for certificates"]
    assert cost_of_certificates(looked) == "none"


@pytest.mark.parametrize(
    "decision", [None, "top:2", "multilabel", Custom(first_leads)], ids=["default", "top", "multilabel", "custom"]
)
def test_every_decision_is_tried_as_the_run_decides(decision: Decision | str | None) -> None:
    classifier = brittle.Classifier(small_network(), decision=decision)
    points = array_points(inputs(COUNT), None)
    batch = next(iter(points.batches(COUNT)))
    looked = doctor.Subject(classifier, batch, None, [CERTIFIED], 0, 64, points)
    told = [found.sentence for found in check_certificates(looked) if isinstance(found, Finding)]
    found = CERTIFIED(classifier, inputs(COUNT))
    assert bool(told) == (int(Status.NO_CERTIFICATE) in found.status.tolist())
    assert all(str(found.detail and found.detail[0]) in sentence for sentence in told)


def test_a_run_tells_it_before_it_scores_and_records_it() -> None:
    with pytest.warns(BrittleWarning, match="no_certificate: no certificate can be computed"):
        table = brittle.score(brittle.Classifier(wavy()), inputs(COUNT), [CERTIFIED, LogitMargin()])
    assert [note.code for note in table.record.warnings].count("no_certificate") == 1
    assert set(table[CERTIFIED].status) == {Status.NO_CERTIFICATE.slug}
    assert set(table[LogitMargin()].status) == {Status.OK.slug}


def test_the_passes_that_are_told_are_those_of_a_run() -> None:
    x = inputs(4)
    said = cost_of_certificates(examined(small_network(), [CERTIFIED], x))
    told = [float(number.replace(",", "")) for number in re.findall(r"([\d,]+) passes", said)]
    plain, certified = (
        brittle.score(small_classifier(), x, [score], skip_doctor=True).points["passes"].to_pylist()
        for score in (InputMargin("linf", effort="fast"), CERTIFIED)
    )
    assert told == pytest.approx([(sum(certified) - sum(plain)) / 4], abs=0.51)


def test_the_cost_of_the_rest_is_told_without_certificates() -> None:
    scores: list[Score] = [InputMargin("linf", effort="fast")]
    assert passes_per_point(examined(small_network(), [CERTIFIED])) == passes_per_point(
        examined(small_network(), scores)
    )


def test_one_point_is_enough_to_tell_a_cost() -> None:
    assert "passes a point" in cost_of_certificates(examined(small_network(), [CERTIFIED], inputs(1)))


def test_points_of_which_none_can_be_proved_have_a_cost() -> None:
    tied = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    with torch.no_grad():
        tied[1].weight.zero_()  # pyright: ignore[reportCallIssue] a layer of a known kind
        tied[1].bias.zero_()  # pyright: ignore[reportCallIssue] a layer of a known kind
    assert "0 passes a point" in cost_of_certificates(examined(tied, [CERTIFIED]))
