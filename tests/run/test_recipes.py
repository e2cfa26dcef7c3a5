"""The recipes of `docs/how-to/cluster.md` work, on stand-ins for the programs that start them."""

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
from helpers.forks import LIMIT, forked

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
"""The module that the recipes in Python import."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return prepare(tmp_path, points=POINTS)


STAND_IN = """#!/bin/sh
printf '%s\\0' "$@" > given
"""
"""A `brittle` that writes its arguments to a file, in place of the command, which takes seconds to start."""


def shell(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Run a command of the page for the network and the data of the project, with `brittle` in this process."""
    project = line(folder, "run", "--points", str(POINTS))
    for word, argument in (("MODEL", project[1]), ("DATA", project[2]), ("/runs/", "parts/")):
        command = command.replace(word, argument)
    options = [word for word in project[5:] if word not in re.findall(r"--\w+", command)]
    command = re.sub(r"(brittle score .*?)(?=\n|$)", lambda match: " ".join((match[0], *options)), command)
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "brittle").write_text(STAND_IN)
    (folder / "bin" / "brittle").chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", **variables}
    subprocess.run(["bash", "-ec", command], cwd=folder, env=environment, check=True, timeout=LIMIT)
    arguments = (folder / "given").read_text().split("\0")[:-1]
    (folder / "given").unlink()
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["brittle", *arguments])
        assert main(arguments) == 0


def run_alone(folder: Path) -> Mapping[str, Any]:
    """Return the content of a run by one process."""
    assert main(line(folder, "alone", "--points", str(POINTS))) == 0
    return contents(folder / "alone")


def join_parts(folder: Path) -> Mapping[str, Any]:
    """Return the content of the parts joined."""
    parts = [str(part) for part in sorted((folder / "parts").iterdir())]
    assert main(["join", str(folder / "joined"), *parts]) == 0
    return contents(folder / "joined")


def test_a_slurm_array_gives_the_run_of_one_process(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for `sbatch` starts the script once for each number of the array."""
    (script,) = (block for block in blocks(PAGE, "bash") if "#SBATCH" in block)
    array = re.search(r"--array=(\d+)-(\d+)", script)
    assert array is not None
    for number in range(int(array[1]), int(array[2]) + 1):
        shell(script, project, monkeypatch, SLURM_ARRAY_TASK_ID=str(number))
    assert join_parts(project) == run_alone(project)


def test_a_job_of_kubernetes_gives_the_run_of_one_process(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in runs the command of the container once for each index."""
    (text,) = blocks(PAGE, "yaml")
    job = yaml.safe_load(text)["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert (container["command"], job["completionMode"]) == (["sh", "-c"], "Indexed")
    for index in range(job["completions"]):
        shell(container["args"][0], project, monkeypatch, JOB_COMPLETION_INDEX=str(index))
    assert join_parts(project) == run_alone(project)


def python(word: str, folder: Path, changes: Mapping[str, str] | None = None) -> None:
    """Run the block of the page that contains `word`, in another process, with `changes` of its words."""
    (code,) = (block for block in blocks(PAGE, "python") if word in block)
    for old, new in (changes or {}).items():
        assert old in code
        code = code.replace(old, new)
    (folder / "mymodel.py").write_text(MODULE)
    variables = {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    process = forked(code, cwd=folder, env={**os.environ, **variables})
    assert process.returncode == 0, process.stderr


def module() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(MODULE, "mymodel", "exec"), names)
    return names


TWO_PARTS = {"(number, 4)": "(number, 2)", "range(1, 5)": "range(1, 3)"}
IN_ONE_PROCESS = {'AutoExecutor("logs")': 'AutoExecutor("logs", cluster="debug")'}


@pytest.mark.parametrize(
    "changes", [pytest.param(TWO_PARTS | IN_ONE_PROCESS, id="here"), pytest.param(TWO_PARTS, marks=pytest.mark.slow)]
)
def test_submitit_gives_the_scores_of_one_run(changes: Mapping[str, str], tmp_path: Path) -> None:
    """On this machine, without Slurm; two parts, in one process, or slowly in separate processes."""
    python("submitit", tmp_path, changes)
    names = module()
    expected_scores = brittle.score(names["network"](), names["points"](), "shrinkage", sigma=0.1).scores
    assert read_table(tmp_path / "whole").scores.equals(expected_scores)


def frame() -> pd.DataFrame:
    """Make a table of points."""
    x, _ = module()["points"]()
    return pd.DataFrame({"id": [f"p{row}" for row in range(len(x))], "x": list(x.numpy())})


def expected(points: pd.DataFrame) -> pd.DataFrame:
    """Return the frame of a run over `points`."""
    import torch

    x = brittle.data.array_points(torch.tensor(np.stack(points["x"].to_list())), ids=list(points["id"]))
    return brittle.score(module()["network"](), x, [Shrinkage(sigma=0.1)]).frame().set_index("point")


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_ray_data_gives_the_numbers_of_a_run(tmp_path: Path) -> None:
    points = frame()
    (tmp_path / "points").mkdir()
    points.to_parquet(tmp_path / "points" / "0.parquet")
    python("map_batches", tmp_path)
    robust = pd.read_parquet(tmp_path / "robust").set_index("id").loc[points["id"]]
    assert robust["p_robust"].to_numpy() == pytest.approx(expected(points)["p_robust"].to_numpy(), abs=1e-6)


def test_spark_gives_the_numbers_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its function is called as Spark calls it: with frames of some of the rows."""
    (tmp_path / "mymodel.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    (code,) = (block for block in blocks(PAGE, "python") if "def robust(frames)" in block)
    names: dict[str, Any] = {}
    exec(compile(code, PAGE, "exec"), names)
    points = frame()
    robust = pd.concat(names["robust"](iter([points[:100], points[100:101], points[101:]]))).set_index("id")
    run_frame = expected(points)
    for name in ("p_robust", "low", "high"):
        assert robust[name].to_numpy() == pytest.approx(run_frame[name].to_numpy(), abs=1e-6)
    sys.modules.pop("mymodel", None)
