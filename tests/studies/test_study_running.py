"""A study is run once, goes on where it was stopped, and leaves the same bytes for the same seed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
import torch

from studies.measuring import constants_of
from studies.networks import Network, find_networks
from studies.running import locked, measure_beside, run_study
from studies.study import SIZES, Setting, Step, Steps, Study, Tables, all_studies


class Counter:
    """A study of three steps of each network, each of which counts how often it is done; one may be broken."""

    def __init__(self, broken: str = "") -> None:
        self.done: list[str] = []
        self.broken = broken

    def study(self) -> Study:
        return Study(
            "counter", "", (), self.of_network, self.summarise, lambda _: [], lambda _: {}, lambda _: {},
            lambda setting: [self.step("alone", setting, 10)], self.after,
        )  # fmt: skip

    def step(self, name: str, setting: Setting, total: int) -> Step:
        return Step(name, {"seed": setting.seed}, lambda: self.do(name, total))

    def of_network(self, network: Network, setting: Setting) -> Steps:
        total = 0
        for name in ("a", "b", "c"):
            found = yield self.step(f"{network.name}/{name}", setting, total)
            total = value(found)

    def after(self, setting: Setting, networks: Sequence[Network], kept: Mapping[str, Tables]) -> Iterable[Step]:
        yield self.step("after", setting, sum(value(kept[f"{network.name}/c"]) for network in networks))

    def summarise(self, kept: Mapping[str, Tables], seed: int) -> Tables:
        return {"sum": pa.table({"value": [value(tables) for tables in kept.values()], "step": [*kept]})}

    def do(self, name: str, total: int) -> Tables:
        self.done.append(name)
        if name == self.broken:
            raise RuntimeError("broken")
        return {"sum": pa.table({"value": [total + 1]})}


def value(tables: Tables) -> int:
    return tables["sum"]["value"][0].as_py()


def network(name: str) -> Network:
    return Network(name, "mnist", Path(name), name)


ONE = [network("x")]
STEPS = ["x/a", "x/b", "x/c", "alone", "after"]


def setting(seed: int = 0) -> Setting:
    return Setting(Path("shared"), None, "tiny", seed)


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    counter = Counter()
    for _ in range(2):
        found = run_study(counter.study(), ONE, setting(), tmp_path)
        assert found["sum"].to_pydict() == {"value": [1, 2, 3, 11, 4], "step": STEPS}
    assert counter.done == STEPS


def test_another_seed_is_another_study(tmp_path: Path) -> None:
    counter = Counter()
    run_study(counter.study(), ONE, setting(), tmp_path)
    run_study(counter.study(), ONE, setting(1), tmp_path)
    assert counter.done == STEPS * 2


def test_a_stopped_study_goes_on(tmp_path: Path) -> None:
    stopped = Counter("x/b")
    with pytest.raises(RuntimeError, match="broken"):
        run_study(stopped.study(), ONE, setting(), tmp_path)
    again = Counter()
    run_study(again.study(), ONE, setting(), tmp_path)
    assert again.done == STEPS[1:]


def test_commands_side_by_side_share_the_networks(tmp_path: Path) -> None:
    """What one measures at this moment the other leaves alone; the results wait for it."""
    first, second, both = Counter(), Counter(), [network("x"), network("y")]
    with locked(first.study(), "x", tmp_path):
        measure_beside([second.study()], both, setting(), tmp_path)
    assert second.done == ["y/a", "y/b", "y/c"]
    found = run_study(first.study(), both, setting(), tmp_path)
    assert first.done == [*STEPS[:3], "alone", "after"]
    assert found["sum"].to_pydict()["value"] == [1, 2, 3, 1, 2, 3, 11, 7]


MEASURING = all_studies()


@pytest.mark.parametrize("name", MEASURING)
def test_all_that_decides_a_number_is_in_the_identity_of_its_step(
    name: str, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another value of any constant of a module that measures makes every step another one."""
    one = find_networks(shared, None, lambda _: None)[0]

    def first(seed: int = 0) -> dict[str, Any]:
        return dict(next(MEASURING[name].of_network(one, Setting(shared, None, "tiny", seed))).identity)

    known = first()
    assert known != first(1)
    assert {"network", "dataset", "data", "seed", "size", "constants"} <= known.keys()
    assert known["constants"]
    for place in known["constants"]:
        module, _, constant = place.rpartition(".")
        with monkeypatch.context() as patched:
            patched.setattr(sys.modules[module], constant, "another")
            assert first() != known, place


def test_constants_are_plain_values_in_capitals() -> None:
    module = ModuleType("one")
    vars(module).update(A=1, B=(0.5, {"c": "d"}), c=2, Deep=3, E=torch.zeros(1), F=[torch.zeros(1)], G=None)
    assert constants_of(module) == {"one.A": "1", "one.B": "(0.5, {'c': 'd'})", "one.G": "None"}


def test_every_study_has_what_a_study_has() -> None:
    studies = all_studies()
    assert "estimators" in studies
    for name, study in studies.items():
        assert study.name == name
        assert study.title
        assert study.papers
    assert SIZES == ("cpu", "tiny")
