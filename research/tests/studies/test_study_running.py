"""A study is run once, goes on where it was stopped, and leaves the same bytes for the same seed."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from studies.measuring import Measuring
from studies.networks import Elsewhere, Network, find_networks
from studies.running import run_study
from studies.study import Setting, Step, Steps, Study, Tables, all_studies


class Counter:
    """A study of three steps of each network, each of which counts how often it is done; one may be broken."""

    def __init__(self, broken: str = "") -> None:
        self.done: list[str] = []
        self.broken = broken

    def study(self) -> Study:
        return Study(
            "counter", "", (), self.of_network, self.summarise, lambda _: [], lambda _: {}, lambda _: {}, lambda _: [],
            lambda setting: [self.step("alone", setting, 10)], self.after,
        )  # fmt: skip

    def step(self, name: str, setting: Setting, total: int) -> Step:
        return Step(name, {"seed": setting.seed}, lambda: self.do(name, total))

    def of_network(self, network: Network, setting: Setting) -> Steps:
        total = 0
        for name in ("a", "b", "c"):
            tables = yield self.step(f"{network.name}/{name}", setting, total)
            total = value(tables)

    def after(
        self, setting: Setting, networks: Sequence[Network], tables_by_step: Mapping[str, Tables]
    ) -> Iterable[Step]:
        yield self.step("after", setting, sum(value(tables_by_step[f"{network.name}/c"]) for network in networks))

    def summarise(self, tables_by_step: Mapping[str, Tables], seed: int) -> Tables:
        return {
            "sum": pa.table({"value": [value(tables) for tables in tables_by_step.values()], "step": [*tables_by_step]})
        }

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


def test_a_stopped_study_goes_on_without_repeating_steps(tmp_path: Path) -> None:
    """Results are there of a run that was finished, and of no other."""
    stopped, counter = Counter("x/b"), Counter()
    with pytest.raises(RuntimeError, match="broken"):
        run_study(stopped.study(), ONE, setting(), tmp_path)
    for _ in range(2):
        results = run_study(counter.study(), ONE, setting(), tmp_path)
        assert results["sum"].to_pydict() == {"value": [1, 2, 3, 11, 4], "step": STEPS}
    assert counter.done == STEPS[1:]
    assert (tmp_path / "counter" / "results" / "sum.parquet").is_file()
    with pytest.raises(RuntimeError, match="broken"):
        run_study(Counter("after").study(), ONE, setting(1), tmp_path)
    assert not (tmp_path / "counter" / "results").exists()


@pytest.mark.parametrize("name", all_studies())
def test_all_that_decides_a_number_is_in_its_step_identity(
    name: str, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Network, points, seed, size, code, and what a step is given besides."""
    first_network = find_networks(shared, None, lambda _: None)[0]
    measuring = one_network(name, first_network, Setting(shared, None, "tiny", 0))
    assert measuring.step("x", dict).identity == measuring.step("x", dict).identity
    for changed in (
        replace(measuring, setting=Setting(shared, None, "tiny", 1)), replace(measuring, network=network("y")),
        replace(measuring, setting=Setting(shared, None, "tiny", 0, "cuda")),
        replace(measuring, size=replace(measuring.size, **{fields(measuring.size)[0].name: 99})),
    ):  # fmt: skip
        monkeypatch.setattr("studies.measuring.points_digest", lambda *_: "same")
        assert changed.step("x", dict).identity != measuring.step("x", dict).identity
    assert measuring.step("x", dict, sigma=0.1).identity != measuring.step("x", dict, sigma=0.2).identity
    before = measuring.step("x", dict).identity
    monkeypatch.setattr("studies.measuring.points_digest", lambda *_: "another")
    assert measuring.step("x", dict).identity != before


def test_repeats_of_a_training_take_part_where_a_study_says_so() -> None:
    once, again = network("x"), replace(network("x_seed1"), repeat=True)
    study = Counter().study()
    assert study.of([once, again]) == [once]
    assert replace(study, repeats=True).of([once, again]) == [once, again]


def test_a_network_takes_inputs_from_another_device(shared: Path) -> None:
    """All of it is moved; inputs go there and outputs come back, with their gradients."""
    first_network = find_networks(shared, None, lambda _: None)[0]
    assert {part.device.type for part in first_network.load("meta").state_dict().values()} == {"meta"}
    network, x = first_network.load(), torch.rand(3, 1, 8, 8, requires_grad=True)
    elsewhere = Elsewhere(network, "cpu")
    assert torch.equal(elsewhere(x), network(x))
    (slope,) = torch.autograd.grad(elsewhere(x)[:, 0].sum(), x)
    assert bool((slope != 0).any())


def test_networks_of_others_are_measured_on_the_exact_images(shared: Path, tmp_path: Path) -> None:
    """Where their folder is there; those that are trained here have seen the copies, and stay with them."""
    for folder in (tmp_path / "shared" / "models", tmp_path / "own"):
        shutil.copytree(shared / "models" / "linear", folder / folder.name)
        (folder / folder.name / "meta.json").write_text('{"dataset": "cifar10", "repeat": 1}')
    shutil.copytree(shared / "data" / "mnist", tmp_path / "shared" / "data" / "cifar10")
    (tmp_path / "shared" / "data" / "cifar10_lossless_854").mkdir()
    images = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 1), dtype=np.uint8)
    np.savez(tmp_path / "shared" / "data" / "cifar10_lossless_854" / "x.npz", images=images, labels=np.arange(5))
    networks = find_networks(tmp_path / "shared", tmp_path / "own", lambda _: None)
    assert [(entry.name, entry.dataset, entry.repeat) for entry in networks] == [
        ("models", "cifar10_lossless_854", True), ("own", "cifar10", True),
    ]  # fmt: skip


def one_network(name: str, measured: Network, setting: Setting) -> Measuring[Any]:
    module = import_module(f"studies.{name}.measures")
    return module.OneNetwork(measured, setting, module.SIZES[setting.size])
