"""`make test-lowest` installs the lowest version of every dependency that pyproject.toml allows."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]

HIGHER = {"torch": "2.13.0"}
"""Higher versions where the lowest is not available."""


def test_the_lowest_versions_are_those_that_are_allowed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    optional = [
        line for extra in ("cloud", "demo", "hf", "onnx", "ray", "sklearn", "trees", "test") for line in extras[extra]
    ]
    allowed = [Requirement(line) for line in [*project["dependencies"], *optional]]
    lowest = {
        requirement.name: Version(specifier.version)
        for requirement in allowed
        for specifier in requirement.specifier
        if specifier.operator == ">="
    }
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: Version(version) for name, version in tested.items()} == lowest | {
        name: Version(version) for name, version in HIGHER.items()
    }
