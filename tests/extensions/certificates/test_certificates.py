"""Whether certificates can be computed is said before the run, with the layer because of which they cannot."""

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
    """A network with a layer that no bounds go through."""
    return Wrapped(lambda x, logits: logits.sin() * 4)


@pytest.mark.every_other
@pytest.mark.parametrize(
    ("network", "decision"),
    [(wavy, None), *((small_network, each) for each in (None, "top:2", "multilabel", Custom(first_leads)))],
    ids=["waves", "default", "top", "multilabel", "custom"],
)
def test_the_doctor_foretells_the_status_of_the_points(network, decision: Decision | str | None) -> None:
    told = [
        one.sentence
        for one in check_certificates(examined(network(), [CERTIFIED], decision=decision))
        if isinstance(one, Finding)
    ]
    found = CERTIFIED(brittle.Classifier(network(), decision=decision), inputs(COUNT))
    assert bool(told) == (int(Status.NO_CERTIFICATE) in found.status.tolist()) == bool((found.low == 0).all())
    assert all(str(found.detail and found.detail[0]) in sentence for sentence in told)


def test_a_run_tells_it_before_it_scores_and_records_it() -> None:
    with pytest.warns(BrittleWarning, match="no_certificate: .* sin;"):
        table = brittle.score(brittle.Classifier(wavy()), inputs(COUNT), [CERTIFIED, LogitMargin()])
    assert [note.code for note in table.record.warnings].count("no_certificate") == 1
    assert set(table[CERTIFIED].status) == {Status.NO_CERTIFICATE.slug}
    assert set(table[LogitMargin()].status) == {Status.OK.slug}
