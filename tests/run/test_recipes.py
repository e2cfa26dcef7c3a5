"""The recipes of `docs/how-to/cluster.md` do what they say, on stand-ins for what starts them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from checks.faults import contents
from helpers.crews import line, prepare
from helpers.documents import blocks
from helpers.processes import LIMIT

import brittle
from brittle.cli.commands import main
from brittle.scores import Shrinkage
from brittle.store.reading import read_table

PAGE = "docs/how-to/cluster.md"
POINTS = 640

MODULE = """
import torch


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3)).eval()


def points():
    return torch.rand(130, 12, generator=torch.Generator().manual_seed(1)), None
"""
"""What the recipes in Python import."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return prepare(tmp_path, points=POINTS)


STAND_IN = """#!/bin/sh
printf '%s\\0' "$@" > given
"""
"""A `brittle` that writes down what it is given, in place of the one that takes seconds to start."""


def shell(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Run a command of the page for the network and the data of the project: what it gives `brittle` is done here."""
    project = line(folder, "run", "--points", str(POINTS))
    for word, own in (("MODEL", project[1]), ("DATA", project[2]), ("/runs/", "parts/")):
        command = command.replace(word, own)
    options = [word for word in project[5:] if word not in re.findall(r"--\w+", command)]
    command = re.sub(r"(brittle score .*?)(?=\n|$)", lambda found: " ".join((found[0], *options)), command)
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "brittle").write_text(STAND_IN)
    (folder / "bin" / "brittle").chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", **variables}
    subprocess.run(["bash", "-ec", command], cwd=folder, env=environment, check=True, timeout=LIMIT)
    given = (folder / "given").read_text().split("\0")[:-1]
    (folder / "given").unlink()
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["brittle", *given])
        assert main(given) == 0


def whole(folder: Path) -> Mapping[str, Any]:
    """What one process writes."""
    assert main(line(folder, "alone", "--points", str(POINTS))) == 0
    return contents(folder / "alone")


def joined(folder: Path) -> Mapping[str, Any]:
    """What the parts give together."""
    parts = [str(part) for part in sorted((folder / "parts").iterdir())]
    assert main(["join", str(folder / "joined"), *parts]) == 0
    return contents(folder / "joined")


def test_a_slurm_array(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a stand-in for `sbatch`, which starts the script once for each number of the array."""
    (script,) = (one for one in blocks(PAGE, "bash") if "#SBATCH" in one)
    found = re.search(r"--array=(\d+)-(\d+)", script)
    assert found is not None
    for number in range(int(found[1]), int(found[2]) + 1):
        shell(script, project, monkeypatch, SLURM_ARRAY_TASK_ID=str(number))
    assert joined(project) == whole(project)


def test_an_indexed_job_of_kubernetes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a stand-in, which runs the container's command once for each index."""
    (text,) = blocks(PAGE, "yaml")
    job = yaml.safe_load(text)["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert (container["command"], job["completionMode"]) == (["sh", "-c"], "Indexed")
    for index in range(job["completions"]):
        shell(container["args"][0], project, monkeypatch, JOB_COMPLETION_INDEX=str(index))
    assert joined(project) == whole(project)


def python(word: str, folder: Path, changes: Mapping[str, str] | None = None) -> None:
    """Run the block of the page that has this word, in a process of its own, with these words in place of others."""
    (code,) = (one for one in blocks(PAGE, "python") if word in one)
    for old, new in (changes or {}).items():
        assert old in code
        code = code.replace(old, new)
    (folder / "mymodel.py").write_text(MODULE)
    (folder / "recipe.py").write_text(code)
    variables = {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "recipe.py"]
    subprocess.run(command, cwd=folder, env={**os.environ, **variables}, check=True, timeout=LIMIT)


def module() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(MODULE, "mymodel", "exec"), names)
    return names


TWO_PARTS = {"(number, 4)": "(number, 2)", "range(1, 5)": "range(1, 3)"}
IN_ONE_PROCESS = {'AutoExecutor("logs")': 'AutoExecutor("logs", cluster="debug")'}


@pytest.mark.parametrize(
    "changes", [pytest.param(TWO_PARTS | IN_ONE_PROCESS, id="here"), pytest.param(TWO_PARTS, marks=pytest.mark.slow)]
)
def test_submitit(changes: Mapping[str, str], tmp_path: Path) -> None:
    """On this machine, as there is no Slurm; two parts, in one process, or slowly in processes of their own."""
    python("submitit", tmp_path, changes)
    names = module()
    own = brittle.score(names["network"](), names["points"](), "shrinkage", sigma=0.1).scores
    assert read_table(tmp_path / "whole").scores.equals(own)


def frame() -> pd.DataFrame:
    """A table that is somewhere already."""
    x, _ = module()["points"]()
    return pd.DataFrame({"id": [f"p{row}" for row in range(len(x))], "x": list(x.numpy())})


def expected(points: pd.DataFrame) -> pd.DataFrame:
    """What a run over it gives."""
    import torch

    x = brittle.data.array_points(torch.tensor(np.stack(points["x"].to_list())), ids=list(points["id"]))
    return brittle.score(module()["network"](), x, [Shrinkage(sigma=0.1)]).frame().set_index("point")


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_ray_data(tmp_path: Path) -> None:
    points = frame()
    (tmp_path / "points").mkdir()
    points.to_parquet(tmp_path / "points" / "0.parquet")
    python("map_batches", tmp_path)
    found = pd.read_parquet(tmp_path / "robust").set_index("id").loc[points["id"]]
    assert found["p_robust"].to_numpy() == pytest.approx(expected(points)["p_robust"].to_numpy(), abs=1e-6)


def test_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its function, called as Spark calls it: with frames of some of the rows each."""
    (tmp_path / "mymodel.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    (code,) = (one for one in blocks(PAGE, "python") if "def robust(frames)" in one)
    names: dict[str, Any] = {}
    exec(compile(code, PAGE, "exec"), names)
    points = frame()
    found = pd.concat(names["robust"](iter([points[:100], points[100:101], points[101:]]))).set_index("id")
    of_run = expected(points)
    for name in ("p_robust", "low", "high"):
        assert found[name].to_numpy() == pytest.approx(of_run[name].to_numpy(), abs=1e-6)
    sys.modules.pop("mymodel", None)
