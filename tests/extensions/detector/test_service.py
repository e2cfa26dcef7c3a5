"""The service of the page, as a separate process, answers over HTTP as the wrapped network does."""

from __future__ import annotations

import http.client
import json
import math
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
import torch
from helpers.calibrated import with_margins
from helpers.documents import blocks
from helpers.problems import linear_network
from safetensors.torch import save_file

import brittle
from brittle.extensions.detector.detector import Detector
from brittle.extensions.detector.network import DetectorNetwork
from brittle.scores import LogitMargin

CLIENTS, REQUESTS, SECONDS = 4, 25, 60

SERVE = """import socket, sys, uvicorn
import service
uvicorn.Server(uvicorn.Config(service.app, log_level="warning")).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""

MODEL = """import torch
from safetensors.torch import load_file
def make():
    network = torch.nn.Linear(64, 10)
    network.load_state_dict(load_file("mynet.safetensors"))
    return network
"""


@pytest.fixture(scope="module")
def flagging() -> tuple[Detector, DetectorNetwork]:
    network = linear_network(10, 64, 0, torch.float32)
    run = brittle.score(network, torch.rand(400, 64, generator=torch.Generator().manual_seed(0)), [LogitMargin()])
    margins = run.scores["value"].to_pylist()
    detector = Detector.fit(with_margins(run, margins), float(torch.tensor(margins).median()))
    return detector, detector.wrap(network)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory, flagging: tuple[Detector, DetectorNetwork]) -> Iterator[int]:
    """Start a server on this machine, which ends afterwards, and yield its port."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    folder, (detector, wrapped) = tmp_path_factory.mktemp("service"), flagging
    (page,) = blocks("docs/how-to/service.md", "python")
    (folder / "service.py").write_text(page, encoding="utf-8")
    (folder / "mynet.py").write_text(MODEL, encoding="utf-8")
    detector.save(folder / "detector.json")
    save_file(wrapped.get_submodule("network").state_dict(), folder / "mynet.safetensors")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        number = listening.fileno()
        process = subprocess.Popen([sys.executable, "-c", SERVE, str(number)], cwd=folder, pass_fds=[number])
        try:
            yield listening.getsockname()[1]
        finally:
            process.terminate()
            assert process.wait(SECONDS) in (0, -15)


def ask(connection: http.client.HTTPConnection, rows: Any) -> tuple[int, Any]:
    """Return the status and the content of the answer."""
    connection.request("POST", "/predict", json.dumps(rows), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_concurrent_requests_get_the_answers_of_the_network(
    port: int, flagging: tuple[Detector, DetectorNetwork]
) -> None:
    x = torch.rand(CLIENTS, REQUESTS, 2, 64, generator=torch.Generator().manual_seed(1)) * 1.002

    def client(batches: torch.Tensor) -> list[tuple[int, Any]]:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as connection:
            return [ask(connection, rows.tolist()) for rows in batches]

    with ThreadPoolExecutor(CLIENTS) as clients:
        answers = [answer for batch in clients.map(client, x) for answer in batch]
    logits, _, flags = flagging[1](x.reshape(-1, 64))
    expected = list(zip(logits.argmax(1).tolist(), flags.tolist(), strict=True))
    assert {status for status, _ in answers} == {200}
    assert [(row["predicted"], row["brittle"]) for _, rows in answers for row in rows] == expected
    assert 0 < int(flags.sum()) < len(flags)


def test_the_service_fails_closed(port: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as connection:
        for value in (math.nan, math.inf, 255.0):
            status, answer = ask(connection, [[value] + [0.5] * 63])
            assert status == 200
            assert answer[0]["brittle"] is True
        for wrong in ([], [[0.5] * 63], [[0.5] * 64] * 101, [["a"] * 64], {"rows": 1}):
            assert ask(connection, wrong)[0] == 422
