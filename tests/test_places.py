"""Links, pipes and devices in every place that is written: nothing is written through them or waits for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.places import CLOSED, PLACES, THINGS, VICTIM, Place, known_detector, known_run, look, run_in
from helpers.refusing import close

from brittle.cli.commands import main
from brittle.errors import StorageError

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # where is what counts here


@pytest.mark.parametrize(
    ("place", "thing"),
    [pytest.param(place, thing, id=f"{place.name}-{thing}") for place in PLACES for thing in place.things],
)
def test_nothing_but_a_regular_file_is_written(place: Place, thing: str, tmp_path: Path) -> None:
    try:
        refused = look(place, THINGS[thing], tmp_path)
    except PermissionError:
        pytest.skip("devices are made by root")
    if place.removed and thing != "folder":
        assert refused is None
    else:
        assert refused is not None
        assert refused.code in ("unreadable", "unwritable")
        assert f"out/{place.file} " in str(refused)
        assert "; " in str(refused)  # what to do


@pytest.mark.parametrize("words", CLOSED)
def test_a_closed_folder_gets_one_sentence(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Let the system refuse the folder, because nothing is closed to a superuser."""
    run_in(tmp_path)
    known_detector().save(tmp_path / "rule.json")
    monkeypatch.chdir(tmp_path)
    close(monkeypatch, tmp_path / "closed")
    code = main(words.split())
    stderr = capsys.readouterr().err
    assert code in (2, 3, 7)
    assert stderr.splitlines()[-1].startswith("brittle: ")
    assert "closed/" in stderr.splitlines()[-1]
    assert "Traceback" not in stderr


def test_a_folder_that_the_user_names_may_be_a_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "run").symlink_to("real")
    run_in(tmp_path)
    assert (tmp_path / "real" / "run.json").is_file()
    assert main(["verify", str(tmp_path / "run")]) == 0
    known_detector().save(tmp_path / "run" / "detector.json")
    assert (tmp_path / "real" / "detector.json").is_file()


def test_a_folder_that_is_a_link_to_nothing_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").symlink_to("nothing")
    assert main(["score", "absent.pt2", "absent.npz", "--out", str(tmp_path / "run")]) == StorageError.exit_code
    assert "is a link to nothing, which is not there; make it first" in capsys.readouterr().err


def test_files_of_others_in_the_folder_of_a_run_stay(tmp_path: Path) -> None:
    """Delete only leftovers with the names of a run's files."""
    files = ["notes.txt", ".notes.tmp", "points-of-view.parquet", "scores-1.parquet", ".report.html.tmp"]
    for name in files:
        (tmp_path / name).write_bytes(VICTIM)
    known_run().save(tmp_path)
    assert all((tmp_path / name).read_bytes() == VICTIM for name in files)
