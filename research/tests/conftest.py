"""The rules of every test hold for those of the studies and the benchmarks, too."""

from __future__ import annotations

pytest_plugins = ["helpers.suite", "helpers.cpu_seconds"]
