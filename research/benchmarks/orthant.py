"""Time and error of `orthant_probability` against SciPy's `multivariate_normal.cdf`, and its error in the tail.

Real problems of dimension 9: the margins and their covariance at images of a classifier of ten classes, linearised.
Dimension 99: a random head of 100 classes on random features. Ours runs at its default tolerance, 2e-3, and in some
rows at a finer one; SciPy runs as for a quick answer (`maxpts=10000, abseps=1e-4`), in the same process. The reference
is our long run, and a long run of SciPy must agree with it.

    python research/benchmarks/orthant.py --model model.pt2 --images t10k-images-idx3-ubyte.gz
"""

from __future__ import annotations

import argparse
import gzip
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from scipy import special, stats
from torch import Tensor

from brittle.orthant import orthant_probability

ROW = "{:<24}{:>10}{:>5}{:>10}{:>10}{:>8}{:>10}{:>10}{:>10}{:>11}{:>11}"
TITLES = (
    *("problems", "tolerance", "rows", "ours ms", "scipy ms", "faster", "by CPU"),
    *("ours rms", "scipy rms", "reference", "agreement"),
)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="exported program (.pt2) from [B, 1, 28, 28] in [0, 1] to logits")
    parser.add_argument("--images", type=Path, help="MNIST test images, IDX file, gzipped")
    parser.add_argument("--rows", type=int, default=256, help="problems of dimension 9 per sigma")
    parser.add_argument("--wide-rows", type=int, default=32, help="problems of dimension 99 per sigma")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch; SciPy's integrator has one")
    options = parser.parse_args(argv)
    missing = [name for name in ("model", "images") if not (path := getattr(options, name)) or not path.is_file()]
    if missing:
        print(f"needs files that are not there: {', '.join('--' + name for name in missing)}", file=sys.stderr)
        return 2

    torch.set_num_threads(options.threads)
    print(f"PyTorch on {options.threads} threads; SciPy's integrator has one. Times in ms per problem, rms errors.")
    print(ROW.format(*TITLES))
    mean, covariance = real_problems(options.model, options.images, options.rows)
    for sigma in (0.3, 1.0):
        compare(f"MNIST, sigma {sigma}", mean, sigma**2 * covariance, 2e-3, long_nodes=3_000_000, long_maxpts=1_000_000)
    mean, covariance = wide_problems(options.wide_rows)
    for sigma, tolerance in ((0.3, 2e-3), (0.3, 2e-4), (1.0, 2e-3)):
        noisy = sigma**2 * covariance
        compare(f"100 classes, sigma {sigma}", mean, noisy, tolerance, long_nodes=1_000_000, long_maxpts=100_000)
    print(
        "reference: largest error that our long run states; agreement: rms difference from SciPy's long run, 8 rows\n"
    )
    print_tail_errors()
    return 0


def real_problems(model: Path, images: Path, rows: int) -> tuple[Tensor, Tensor]:
    """Return margins `[rows, 9]` and Gram matrices `[rows, 9, 9]` of their gradients, by a backward pass per class."""
    pixels = np.frombuffer(gzip.decompress(images.read_bytes()), np.uint8, offset=16).reshape(-1, 1, 28, 28)[:rows]
    inputs = torch.from_numpy(pixels / np.float32(255)).requires_grad_()
    logits = torch.export.load(model).module()(inputs)
    classes = range(logits.shape[1])
    gradients = [torch.autograd.grad(logits[:, c].sum(), inputs, retain_graph=True)[0].flatten(1) for c in classes]
    return margins(logits.detach().double(), torch.stack(gradients, 1).double())


def wide_problems(rows: int) -> tuple[Tensor, Tensor]:
    """Return margins and Gram matrices of a random linear head of 100 classes on 64 random features of 256 inputs."""
    generator = torch.Generator().manual_seed(0)
    head = torch.randn(100, 64, generator=generator, dtype=torch.float64)
    features = torch.randn(rows, 64, generator=generator, dtype=torch.float64)
    jacobian = torch.randn(rows, 64, 256, generator=generator, dtype=torch.float64) / 16
    return margins(features @ head.T, head @ jacobian)


def margins(logits: Tensor, jacobian: Tensor) -> tuple[Tensor, Tensor]:
    rows, classes = logits.shape
    top = logits.argmax(1)
    eye = torch.eye(classes, dtype=torch.float64)
    is_rival = torch.arange(classes) != top[:, None]
    difference = (eye[top][:, None] - eye)[is_rival].view(rows, classes - 1, classes)
    gradients = difference @ jacobian
    return (difference @ logits[:, :, None])[:, :, 0], gradients @ gradients.mT


def compare(name: str, mean: Tensor, covariance: Tensor, tolerance: float, long_nodes: int, long_maxpts: int) -> None:
    orthant_probability(mean, covariance, tolerance=tolerance)  # builds the lattices
    ours, our_time, our_cpu = timed(lambda: orthant_probability(mean, covariance, tolerance=tolerance).value)
    quick, scipy_time, scipy_cpu = timed(lambda: scipy_probability(mean, covariance, maxpts=10_000, abseps=1e-4))
    reference = orthant_probability(mean, covariance, tolerance=1e-5, seed=1, max_nodes=long_nodes)
    long = scipy_probability(mean[:8], covariance[:8], maxpts=long_maxpts, abseps=1e-7)
    times = [f"{1e3 * t / len(mean):.3f}" for t in (our_time, scipy_time)]
    ratios = [f"{scipy_time / our_time:.1f}", f"{scipy_cpu / our_cpu:.1f}"]
    errors = [f"{rms(value - reference.value):.1e}" for value in (ours, quick)]
    agreement = [f"{float(reference.error.max()):.1e}", f"{rms(long - reference.value[:8]):.1e}"]
    print(ROW.format(name, tolerance, len(mean), *times, *ratios, *errors, *agreement), flush=True)


def scipy_probability(mean: Tensor, covariance: Tensor, maxpts: int, abseps: float) -> Tensor:
    rng = np.random.default_rng(0)
    zero = np.zeros(mean.shape[1])
    problems = zip(mean.numpy(), covariance.numpy(), strict=True)
    options = {"maxpts": maxpts, "abseps": abseps, "allow_singular": True, "rng": rng}
    return torch.tensor([stats.multivariate_normal.cdf(m, zero, s, **options) for m, s in problems]).double()


def timed(call: Callable[[], Tensor]) -> tuple[Tensor, float, float]:
    """Return the answer with its wall-clock and its processor time, each the shortest of three runs."""
    runs = [clocked(call) for _ in range(3)]
    return runs[0][0], min(run[1] for run in runs), min(run[2] for run in runs)


def clocked(call: Callable[[], Tensor]) -> tuple[Tensor, float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    answer = call()
    return answer, time.perf_counter() - wall, time.process_time() - processor


def rms(difference: Tensor) -> float:
    return float(difference.square().mean().sqrt())


def print_tail_errors() -> None:
    """Print relative errors of the complement for equal margins of correlation 1/2, against an integral."""
    print("{:>4}{:>8}{:>16}{:>18}{:>18}{:>8}".format("K", "u", "1 - P", "relative error", "relative, stated", "nodes"))
    for dimension in (2, 9, 20, 99):
        for level in (4.9, 6.1, 7.2, 20.0, 36.0):
            covariance = torch.full((1, dimension, dimension), 0.5, dtype=torch.float64) + torch.eye(dimension) / 2
            mean = torch.full((1, dimension), level, dtype=torch.float64)
            result = orthant_probability(mean, covariance)
            exact = equal_margin_complement(level, dimension)
            complement, stated, nodes = float(result.complement), float(result.error), int(result.nodes)
            errors = f"{abs(complement / exact - 1):>18.1e}{stated / exact:>18.1e}"
            print(f"{dimension:>4}{level:>8}{exact:>16.6e}{errors}{nodes:>8}")


def equal_margin_complement(level: float, dimension: int) -> float:
    factor = np.linspace(-45, 45, 60_001)
    weight = np.exp(-(factor**2) / 2) / math.sqrt(2 * math.pi) * (factor[1] - factor[0])
    log = dimension * special.log_ndtr((level - math.sqrt(0.5) * factor) / math.sqrt(0.5))
    return float(weight @ -np.expm1(log))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
