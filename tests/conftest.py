"""One thread per test process: the suite runs two processes on two cores."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that tests start

import torch

torch.set_num_threads(1)
