"""Cost of a flag or a bound in a service: one server on this machine, with requests in turn with and without it.

    python research/benchmarks/service.py [REQUESTS]

One process of uvicorn, one thread of PyTorch, one connection. Inputs travel as raw bytes, so that reading them hides as
little as may be. Needs `fastapi` and `uvicorn`. Prints the times from request to answer, as the client sees them.
"""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Annotated

import numpy as np
import torch
import uvicorn
from detector import with_bounds
from fastapi import Body, FastAPI
from timing import print_table
from torch import nn

import brittle
from brittle.extensions.detector.network import DetectorNetwork
from brittle.scores import LogitMargin

THREADS, REQUESTS, WARM_UP, AIM = 1, 1000, 50, 1.3

Sent = Annotated[bytes, Body(media_type="application/octet-stream")]


def perceptron() -> nn.Module:
    """Return two linear layers."""
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def convolutional() -> nn.Module:
    """Return two layers of convolutions and a linear one."""
    body = nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Flatten()
    return nn.Sequential(*body, nn.Linear(2048, 10))


SUBJECTS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "a digit, perceptron": (perceptron, (1, 64)),
    "an image, small CNN": (convolutional, (1, 3, 32, 32)),
    "16 images, small CNN": (convolutional, (16, 3, 32, 32)),
}
"""Networks, and the shape of the inputs of a request."""


def serve(descriptor: int) -> None:
    """Answer on a socket that listens: `/bare/NUMBER`, `/flag/NUMBER` and `/bound/NUMBER`, for each of `SUBJECTS`."""
    torch.set_num_threads(THREADS)
    networks = [make().eval() for make, _ in SUBJECTS.values()]
    wrapped = [DetectorNetwork(brittle.Classifier(network), LogitMargin(), 0.1) for network in networks]
    bounded = [with_bounds(network) for network in networks]
    shapes = [shape for _, shape in SUBJECTS.values()]
    app = FastAPI()

    @app.post("/bare/{number}")
    def bare(number: int, body: Sent) -> dict[str, list[float]]:
        with torch.inference_mode():
            logits = networks[number](torch.frombuffer(bytearray(body), dtype=torch.float32).reshape(shapes[number]))
        return {"predicted": logits.argmax(1).tolist()}

    @app.post("/flag/{number}")
    def flag(number: int, body: Sent) -> dict[str, list[float]]:
        with torch.inference_mode():
            rows = torch.frombuffer(bytearray(body), dtype=torch.float32).reshape(shapes[number])
            logits, score, flags = wrapped[number](rows)
        return {"predicted": logits.argmax(1).tolist(), "score": score.tolist(), "brittle": flags.tolist()}

    @app.post("/bound/{number}")
    def bound(number: int, body: Sent) -> dict[str, list[float] | list[list[float]]]:
        with torch.inference_mode():
            rows = torch.frombuffer(bytearray(body), dtype=torch.float32).reshape(shapes[number])
            logits, p_robust, lower = bounded[number](rows)
        return {"predicted": logits.argmax(1).tolist(), "p_robust": p_robust.tolist(), "bound": lower.tolist()}

    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    server.run(sockets=[socket.socket(fileno=descriptor)])


def ask(connection: http.client.HTTPConnection, path: str, body: bytes) -> float:
    """Return the seconds to the complete answer."""
    start = time.perf_counter()
    connection.request("POST", path, body, {"Content-Type": "application/octet-stream"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {content!r:.200}")
    return time.perf_counter() - start


def measure(port: int, requests: int) -> list[list[object]]:
    """Return a row per subject and addition: `requests` without it and as many with it, in turn."""
    connection, rows = http.client.HTTPConnection("127.0.0.1", port, timeout=60), []
    for number, (name, (_, shape)) in enumerate(SUBJECTS.items()):
        body = np.random.default_rng(0).random(shape, dtype=np.float32).tobytes()
        times: dict[str, list[float]] = {"bare": [], "flag": [], "bound": []}
        for turn in range(WARM_UP + requests):
            for route in list(times)[:: 1 if turn % 2 else -1]:
                times[route].append(ask(connection, f"/{route}/{number}", body))
        bare, *others = (1e3 * np.quantile(route_times[WARM_UP:], (0.5, 0.99)) for route_times in times.values())
        for addition, quantiles in zip(("flag", "bound"), others, strict=True):
            ratios = quantiles / bare
            numbers = *bare, *quantiles, *ratios
            rows.append([name, addition, requests, *numbers, "yes" if ratios[0] <= AIM else "no"])
    return rows


def main() -> None:
    """Start the server, send the requests, and stop it."""
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else REQUESTS
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [sys.executable, __file__, "serve", str(listening.fileno())]
        server = subprocess.Popen(command, pass_fds=[listening.fileno()])
        try:
            rows = measure(listening.getsockname()[1], requests)
        finally:
            server.terminate()
            server.wait(30)
    print(f"{THREADS} thread of PyTorch {torch.__version__} in 1 process of uvicorn, 1 connection; times in ms")
    header = ["request", "with", "requests", "bare p50", "bare p99", "p50", "p99", "ratio p50", "ratio p99"]
    print_table([*header, f"p50 <= {AIM}"], rows)


if __name__ == "__main__":
    serve(int(sys.argv[2])) if sys.argv[1:2] == ["serve"] else main()
