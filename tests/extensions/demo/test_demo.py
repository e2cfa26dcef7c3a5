"""What `brittle demo` does and prints, on fewer points."""

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
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """The folder where a small demo was called, for the folder `my demo`, and what it printed on either stream."""
    place, out, err = tmp_path_factory.mktemp("demo"), io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in {"digits.EPOCHS": 6, "digits.TEST_POINTS": 60, "commands.POINTS": 40}.items():
            patch.setattr(f"brittle.extensions.demo.{name}", value)
        patch.chdir(place)
        before = torch.random.get_rng_state()
        assert main(["demo", "--out", "my demo", "--quiet"]) == 0
        assert torch.equal(before, torch.random.get_rng_state())
    return place, out.getvalue(), err.getvalue()


def test_the_demo(shown: tuple[Path, str, str]) -> None:
    """It ends on one screen, which says what it found, where the report lies and what comes next."""
    place, printed, said = shown
    table = brittle.read_table(place / "my demo" / "run")
    assert table.points.num_rows == 40
    page = (place / "my demo" / "report.html").read_text()
    assert all(f'id="{view}"' in page for view in ("worst-case", "expected-change"))
    assert said == ""
    assert printed.startswith("Under noise of sigma 0.2, ")
    found = re.search(r", (\d+) of 40 predictions .*? (\d+) breaks? and (\d+) (is|are) undecided", printed)
    assert found is not None
    assert int(found[1]) + int(found[2]) + int(found[3]) == 40
    assert int(found[2]) == (table["shrinkage"].low > 0.1).sum()
    assert "report: my demo/report.html, to be opened" in printed


def suggested(page: str) -> list[str]:
    """The commands on the first screen of a report."""
    return [unescape(one) for one in re.findall(r"<li data-state=.*?<code>(.*?)</code>", page)]


def test_every_suggested_command_of_the_demo_runs_as_it_is_copied(
    shown: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the folder where it was called. The recorded command is that of the run: it finds it finished."""
    place, _, _ = shown
    monkeypatch.chdir(place)
    page = Path("my demo", "report.html").read_text(encoding="utf-8")
    assert "The commands run in the folder where this run was started." in page
    recorded = brittle.read_table("my demo/run").record.command
    assert recorded is not None
    commands = [shlex.split(command) for command in suggested(page)]
    assert {words[1] for words in commands} >= {"more", "show"}
    with one_thread():
        assert main([word for word in recorded[1:] if word != "--quiet"] + ["--resume"]) == 0
        assert "was finished before; nothing was computed" in capsys.readouterr().err
        for words in commands:
            assert (words[0], main(words[1:])) == ("brittle", 0), words
            said = capsys.readouterr().err
            assert said == "" or words[1] == "more"
    assert brittle.read_table("my demo/run")["shrinkage"].most_draws == 10_000
