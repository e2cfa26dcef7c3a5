"""A study is run once, goes on where it was stopped, and leaves the same bytes for the same seed."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pyarrow as pa
import pytest

from studies.running import run_study
from studies.study import SIZES, Setting, Step, Study, Tables, all_studies


class Counter:
    """A study of three steps, each of which counts how often it is done; one may be broken."""

    def __init__(self, broken: str = "") -> None:
        self.done: list[str] = []
        self.broken = broken

    def study(self) -> Study:
        return Study(
            "counter", "", (), self.steps, lambda kept, seed: kept["a/c"], lambda _: [], lambda _: {}, lambda _: {}
        )

    def steps(self, setting: Setting) -> Generator[Step, Tables, None]:
        total = 0
        for name in ("a/a", "a/b", "a/c"):
            found = yield Step(name, {"seed": setting.seed}, lambda name=name, total=total: self.do(name, total))
            total = found["sum"]["value"][0].as_py()

    def do(self, name: str, total: int) -> Tables:
        self.done.append(name)
        if name == self.broken:
            raise RuntimeError("broken")
        return {"sum": pa.table({"value": [total + 1]})}


def setting(seed: int = 0) -> Setting:
    return Setting(Path("shared"), None, "tiny", seed)


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    counter = Counter()
    for _ in range(2):
        found = run_study(counter.study(), setting(), tmp_path)
        assert found["sum"].to_pydict() == {"value": [3]}
    assert counter.done == ["a/a", "a/b", "a/c"]


def test_another_seed_is_another_study(tmp_path: Path) -> None:
    counter = Counter()
    run_study(counter.study(), setting(), tmp_path)
    run_study(counter.study(), setting(1), tmp_path)
    assert counter.done == ["a/a", "a/b", "a/c"] * 2


def test_a_stopped_study_goes_on(tmp_path: Path) -> None:
    stopped = Counter("a/b")
    with pytest.raises(RuntimeError, match="broken"):
        run_study(stopped.study(), setting(), tmp_path)
    again = Counter()
    assert run_study(again.study(), setting(), tmp_path)["sum"].to_pydict() == {"value": [3]}
    assert again.done == ["a/b", "a/c"]


def test_every_study_has_what_a_study_has() -> None:
    studies = all_studies()
    assert "estimators" in studies
    for name, study in studies.items():
        assert study.name == name
        assert study.title
        assert study.papers
    assert SIZES == ("cpu", "tiny")
