"""DDN beside that of Foolbox."""

from __future__ import annotations

import warnings

import pytest
import torch
from helpers import problems
from helpers.attacked import run


@pytest.mark.filterwarnings("ignore")
def test_ddn_is_as_near_as_foolbox() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import foolbox
    network, points = problems.small_network(), problems.inputs(24)
    labels = network(points).argmax(dim=1)
    theirs = foolbox.attacks.DDNAttack(steps=200)  # pyright: ignore[reportPrivateImportUsage] exported in all but its type
    _, moved, success = theirs(foolbox.PyTorchModel(network, (0, 1), device="cpu"), points, labels, epsilons=None)  # pyright: ignore[reportPrivateImportUsage] exported in all but its type
    rival = torch.where(success, (moved - points).flatten(1).norm(dim=1), torch.inf).double()
    found = run(problems.small_classifier(), points, attack="ddn", norm="l2", effort="thorough")
    assert success.any()
    assert float((found.distance / rival)[success].median()) <= 1.02
    assert float(found.distance[success].sum() / rival[success].sum()) <= 1.02
