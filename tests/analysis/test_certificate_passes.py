"""The passes of certificates are told apart from those of the search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.problems import inputs, small_classifier

import brittle
from brittle.analysis.outcomes import certificate_passes, certificates_text
from brittle.cli import main
from brittle.report import write_report
from brittle.scores import InputMargin, LogitMargin, Score

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # words are what counts here

COUNT = 6


def run(*scores: Score) -> brittle.Table:
    return brittle.score(small_classifier(), inputs(COUNT), [*scores], skip_doctor=True)


def proved(norm: str, **options: Any) -> InputMargin:
    return InputMargin(norm, effort="fast", certify=True, proof="fast", **options)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_they_are_what_a_run_takes_on_top_of_one_without(norm: str) -> None:
    plain, certified = run(InputMargin(norm, effort="fast")), run(proved(norm))
    more = certified.record.account.passes - plain.record.account.passes
    assert certificate_passes(certified.columns) == more > 0
    assert certificate_passes(plain.columns) == 0
    assert certificates_text(plain.columns) == ""


def test_scores_that_share_a_certificate_count_it_once() -> None:
    both = [proved("linf", attack=attack) for attack in ("segments", "apgd")]
    assert certificate_passes(run(*both).columns) == certificate_passes(run(both[0]).columns)


def test_certificates_in_two_norms_are_two() -> None:
    both = [proved(norm) for norm in ("linf", "l2")]
    assert certificate_passes(run(*both).columns) == sum(certificate_passes(run(one).columns) for one in both)


def test_the_report_and_the_summary_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = run(proved("linf"), LogitMargin())
    said = certificates_text(table.columns)
    write_report(table, tmp_path / "page.html")
    assert said in (tmp_path / "page.html").read_text(encoding="utf-8")
    (tmp_path / "net.py").write_text(
        "import torch\n\n\ndef make():\n    torch.manual_seed(0)\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 4))\n"
    )
    np.savez(tmp_path / "data.npz", x=inputs(COUNT).numpy())
    command = ["score", f"{tmp_path}/net.py:make", f"{tmp_path}/data.npz", "--effort", "fast", "--out"]
    command += [str(tmp_path / "run"), "--scores", "input_margin", "--certify"]
    assert main(command) == 0
    found = capsys.readouterr()
    assert f"({certificates_text(brittle.read_table(tmp_path / 'run').columns)})" in found.out + found.err
