"""A run: examine, measure each point once, derive every score, write rows, shard by shard."""

from brittle.run.arguments import make_job
from brittle.run.evaluation import plan
from brittle.run.progress import Progress
from brittle.run.scoring import CONFIDENCE, MOST_FAILURES, JobOptions, execute, score

__all__ = [
    "CONFIDENCE",
    "MOST_FAILURES",
    "JobOptions",
    "Progress",
    "execute",
    "make_job",
    "plan",
    "score",
]
