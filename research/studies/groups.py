"""Groups of networks by how they were trained."""

from __future__ import annotations

ADVERSARIAL, OTHERWISE, UNKNOWN = "adversarial", "other ways", "by others"
"""Trained on attacked inputs, trained in another way, and trained in another way by somebody else."""

GROUPS = (ADVERSARIAL, OTHERWISE, UNKNOWN)

ATTACKED = ("fgsm", "pgd", "trades", "mart", "alp", "clp")
"""Ways of training that attack their inputs."""

PUBLISHED = {"vnn21_cifar10_resnet2b": "pgd"}
"""Networks of others that were trained on attacked inputs, and how; their `meta.json` says so in words."""


def group_of(method: str) -> str:
    """Return the group of a way of training."""
    return UNKNOWN if not method else ADVERSARIAL if method in ATTACKED else OTHERWISE
