"""A run: examine, measure each point once, derive every score, write rows, shard by shard."""

from brittle.run.arguments import make_job
from brittle.run.progress import Progress
from brittle.run.scoring import execute, score
from brittle.scores.evaluate import plan

__all__ = ["Progress", "execute", "make_job", "plan", "score"]
