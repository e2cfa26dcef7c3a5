"""Loads the ONNX files of a collection of networks, and compares each with the `torch.export` archive beside it.

    PYTHONPATH=tests python -m checks.onnx_models FOLDER

FOLDER has a folder a network, with `model.onnx`, `model.pt2` and `meta.json`: `input_chw`, the shape of an input;
`scale`, `mean` and `std`, by which the ONNX file wants inputs in [0, 1] to be changed: `(scale x - mean) / std`. At 20
random images the table says which scores the ONNX file can have, the largest difference of its class scores from those
of the archive, as a share of their range, in how many images the predictions differ, and the largest difference of the
gradients of the predicted class, as a share of the largest slope; or the sentence that loading ends with. The exit code
is 1 where a file ends with a sentence, has no gradients, or a share is above 1e-4.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

import brittle
from brittle.errors import BrittleError
from brittle.model.loading.load import load_model
from brittle.scores import MonteCarlo, Taylor

ROWS, ALLOWED = 20, 1e-4


def compared(folder: Path) -> tuple[str, float]:
    """What the table says of the network in `folder`, and the share by which its class scores differ."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    x = torch.rand(ROWS, *meta["input_chw"], generator=torch.Generator().manual_seed(0))
    scale = float(meta.get("scale") or 1.0)
    mean, std = ([value / scale for value in meta.get(key) or [usual]] for key, usual in (("mean", 0.0), ("std", 1.0)))
    own = brittle.Classifier(load_model(folder / "model.onnx").module, mean=mean, std=std)
    (ours, slopes), (theirs, expected) = (
        _computed(one, x) for one in (own, brittle.Classifier(load_model(folder / "model.pt2").module))
    )
    share = float((ours - theirs).abs().max() / (theirs.max() - theirs.min()))
    steep = float((slopes - expected).abs().max() / expected.abs().max().clamp_min(1e-30))
    others = int((ours.argmax(1) != theirs.argmax(1)).sum())
    return f"{offered(own, x[:2])}  {share:.1e}  {others} of {ROWS}  {steep:.1e}", max(share, steep)


def _computed(classifier: brittle.Classifier, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Class scores, and the gradients of those of the predicted classes; infinite where there are none."""
    x = x.clone().requires_grad_()
    scores = classifier(x)
    top = scores.amax(1).sum()
    slopes = torch.autograd.grad(top, x)[0] if top.requires_grad else torch.full_like(x, torch.inf)
    return scores.detach().double(), slopes.double()


def offered(classifier: brittle.Classifier, x: torch.Tensor) -> str:
    """Which scores a network can have."""
    MonteCarlo(sigma=0.1, draws=10)(classifier, x)
    try:
        Taylor(sigma=0.1)(classifier, x)
    except BrittleError as error:
        return f"forward only ({error.code})"
    return "all"


def main(place: Path) -> int:
    """Print the table."""
    worst = 0.0
    for folder in sorted(path.parent for path in place.glob("*/model.onnx")):
        try:
            said, share = compared(folder)
        except BrittleError as error:
            said, share = str(error), float("inf")
        worst = max(worst, share)
        print(f"{folder.name:32}  {said}")
    return int(not worst <= ALLOWED)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
