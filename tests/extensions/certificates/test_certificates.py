"""The doctor and a run name, before any score, the layer that prevents certificates."""

from __future__ import annotations

import pytest
from helpers.decided import first_leads
from helpers.examined import examined
from helpers.problems import Wrapped, inputs, small_network
from torch import nn

import brittle
from brittle.decisions import Custom, Decision
from brittle.doctor import Finding
from brittle.doctor.settings import check_certificates
from brittle.errors import BrittleWarning
from brittle.estimate import Status
from brittle.scores import InputMargin, LogitMargin

pytestmark = pytest.mark.usefixtures("short_search")

COUNT = 5
CERTIFIED = InputMargin("linf", effort="fast", certify=True, proof="fast")


def wavy() -> nn.Module:
    """Return a network with a layer that bounds cannot be sent through."""
    return Wrapped(lambda x, logits: logits.sin() * 4)


@pytest.mark.every_other
@pytest.mark.parametrize(
    ("network", "decision"),
    [(wavy, None), *((small_network, decision) for decision in (None, "top:2", "multilabel", Custom(first_leads)))],
    ids=["waves", "default", "top", "multilabel", "custom"],
)
def test_the_doctor_foretells_the_status_of_the_points(network, decision: Decision | str | None) -> None:
    sentences = [
        finding.sentence
        for finding in check_certificates(examined(network(), [CERTIFIED], decision=decision))
        if isinstance(finding, Finding)
    ]
    estimate = CERTIFIED(brittle.Classifier(network(), decision=decision), inputs(COUNT))
    statuses, low = estimate.status.tolist(), estimate.low
    assert bool(sentences) == (int(Status.NO_CERTIFICATE) in statuses) == bool((low == 0).all())
    assert all(str(estimate.detail and estimate.detail[0]) in sentence for sentence in sentences)


def test_a_run_warns_before_it_scores_and_records_it() -> None:
    with pytest.warns(BrittleWarning, match=r"no_certificate: .*\bsin\b"):
        table = brittle.score(brittle.Classifier(wavy()), inputs(COUNT), [CERTIFIED, LogitMargin()])
    assert [note.code for note in table.record.warnings].count("no_certificate") == 1
    assert set(table[CERTIFIED].status) == {Status.NO_CERTIFICATE.slug}
    assert set(table[LogitMargin()].status) == {Status.OK.slug}
