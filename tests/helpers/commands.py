"""A model and data for commands."""

from __future__ import annotations

from brittle.cli.commands import main

FACTORY = """
import sys
sys.path.insert(0, {tests!r})
from helpers.problems import Wrapped, nan_under_noise, small_network
def make():
    return small_network()
def broken():
    return Wrapped(nan_under_noise)
def detached():
    return Wrapped(lambda x, z: z.detach())
def nothing():
    return 3
"""


def score(*more: str, model: str = "./net.py:make", data: str = "data.npz", out: str = "run") -> int:
    return main(["score", model, data, "--out", out, *more])


WRITING = [
    (["report", "run", "--out", "page.html"], "page.html", "report"),
    (["report", "run"], "run/report.html", "report"),
    (["compare", "run", "run", "--out", "table.csv"], "table.csv", "comparison"),
]
"""Commands that write a file, the file, and the name of its kind."""
