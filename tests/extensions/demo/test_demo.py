"""The work and the output of `brittle demo`, on fewer points."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from html import unescape
from pathlib import Path

import pytest
import torch

import brittle
from brittle.cli.commands import main
from brittle.model.evaluation_mode import one_thread

pytestmark = pytest.mark.xdist_group("demo")  # one demo for all


@pytest.fixture(scope="module")
def demo_output(tmp_path_factory: pytest.TempPathFactory, short_search: None) -> tuple[Path, str, str]:
    """Run a small demo into `my demo`; return its working folder, its stdout and its stderr."""
    place, out, err = tmp_path_factory.mktemp("demo"), io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in {"digits.EPOCHS": 6, "digits.TEST_POINTS": 60, "commands.POINTS": 40}.items():
            patch.setattr(f"brittle.extensions.demo.{name}", value)
        patch.chdir(place)
        before = torch.random.get_rng_state()
        assert main(["demo", "--out", "my demo", "--quiet"]) == 0
        assert torch.equal(before, torch.random.get_rng_state())
    return place, out.getvalue(), err.getvalue()


def test_the_demo(demo_output: tuple[Path, str, str]) -> None:
    """The demo ends on one screen with its findings, the place of the report and the next commands."""
    place, printed, errors = demo_output
    table = brittle.read_table(place / "my demo" / "run")
    assert table.points.num_rows == 40
    page = (place / "my demo" / "report.html").read_text()
    assert all(f'id="{view}"' in page for view in ("worst-case", "expected-change"))
    assert errors == ""
    assert printed.startswith("Under noise of sigma 0.2, ")
    match = re.search(r", (\d+) of 40 predictions .*? (\d+) breaks? and (\d+) (is|are) undecided", printed)
    assert match is not None
    assert int(match[1]) + int(match[2]) + int(match[3]) == 40
    assert int(match[2]) == (table["shrinkage"].low > 0.1).sum()
    assert "report: my demo/report.html, to be opened" in printed


def suggested_commands(page: str) -> list[str]:
    """Return the commands on the first screen of a report."""
    return [unescape(command) for command in re.findall(r"<li data-state=.*?<code>(.*?)</code>", page)]


def test_every_suggested_command_of_the_demo_runs(
    demo_output: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands run in the demo's folder; the recorded command finds its run finished."""
    place, _, _ = demo_output
    monkeypatch.chdir(place)
    page = Path("my demo", "report.html").read_text(encoding="utf-8")
    assert "The commands run in the folder where this run was started." in page
    recorded = brittle.read_table("my demo/run").record.command
    assert recorded is not None
    commands = [shlex.split(command) for command in suggested_commands(page)]
    assert {words[1] for words in commands} >= {"more", "show"}
    with one_thread():
        assert main([word for word in recorded[1:] if word != "--quiet"] + ["--resume"]) == 0
        assert "was finished before; nothing was computed" in capsys.readouterr().err
        for words in commands:
            assert (words[0], main(words[1:])) == ("brittle", 0), words
            message = capsys.readouterr().err
            assert message == "" or words[1] == "more"
    assert brittle.read_table("my demo/run")["shrinkage"].most_draws == 10_000
