"""What a worker does: compute the shards that it is asked for, over its standard input and output."""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import IO, Any

from brittle.data import Batch
from brittle.errors import BrittleError
from brittle.run.job import Job
from brittle.run.record import describe
from brittle.store.account import Account
from brittle.store.files.records import MOST_TEXT
from brittle.store.files.strict_json import convert
from brittle.store.folder import PackedShard
from brittle.store.record import plain

PARENT_SECONDS = 0.5
"""How often a worker looks whether its parent is there."""


def serve(open_job: Callable[[], Job]) -> int:
    """Open a job, say what it is, and compute shards of it until there are no more requests; gives the exit code.

    Each answer is a line of JSON: `hello` with the record of the job and the logits of its first points, once; then for
    every request `begun` with the rows of each batch, and `done` with the shard; `error` in place of either. What a
    model prints goes to the standard error.
    """
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    answers = _claim_output()

    def say(content: Mapping[str, Any]) -> None:
        try:
            answers.write(json.dumps(content) + "\n")
            answers.flush()
        except BrokenPipeError:
            os._exit(1)  # nobody listens any more

    def begun(batch: Batch) -> None:
        say({"begun": list(batch.rows)})

    try:
        job = open_job()
        reference = job.begin()
    except BrittleError as error:
        say(error_content(error))
        return error.exit_code
    say({"hello": {"record": plain(describe(job)), "reference": reference.content(job.classifier)}})
    for line in sys.stdin:
        request = json.loads(line)
        lost = {int(row): why for row, why in request["lost"].items()}
        try:
            shard = job.shard(request["shard"], lost, begun, only=request["only"], reference=reference)
        except BrittleError as error:
            say(error_content(error))
            continue
        tried = request["only"] is not None
        say({"done": None if tried else shard_content(PackedShard.of(shard.number, shard.tables, shard.account))})
    return 0


def shard_content(shard: PackedShard) -> dict[str, object]:
    """A shard as JSON."""
    files = {kind: base64.b64encode(content).decode() for kind, content in shard.files.items()}
    return {"number": shard.number, "account": asdict(shard.account), "files": files}


def shard_of(content: Mapping[str, Any]) -> PackedShard:
    """The shard in an answer of `shard_content`."""
    files = {kind: base64.b64decode(text) for kind, text in content["files"].items()}
    return PackedShard(content["number"], convert(Account, content["account"], MOST_TEXT), files)


def error_content(error: BrittleError) -> dict[str, object]:
    """An error as JSON."""
    return {"error": error.code, "sentence": str(error.args[0]), "exit_code": error.exit_code}


def error_of(answer: Mapping[str, Any], where: str = "") -> BrittleError:
    """The error in an answer of `error_content`, with the place where it was raised before its sentence."""
    error = BrittleError(answer["error"], f"{where}: {answer['sentence']}" if where else answer["sentence"])
    error.exit_code = answer["exit_code"] if answer["exit_code"] in range(1, 8) else BrittleError.exit_code
    return error


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: nobody else would take its answers."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def _claim_output() -> IO[str]:
    """The standard output of this process for its answers alone; what a model prints goes to the standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers
