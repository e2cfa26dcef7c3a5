"""The study of probabilistic robust accuracy."""

from __future__ import annotations

from studies.probabilistic_accuracy.measures import of_network
from studies.probabilistic_accuracy.page import content, headlines
from studies.probabilistic_accuracy.pictures import pictures
from studies.probabilistic_accuracy.said import findings
from studies.probabilistic_accuracy.summary import summarise
from studies.study import Study

STUDY = Study(
    name="probabilistic_accuracy",
    title="Probabilistic robust accuracy: is no flip in a hundred copies enough?",
    papers=("Zhang et al., PRBench (KDD 2026)", "Robey et al. (ICML 2022)"),
    of_network=of_network,
    summarise=summarise,
    findings=findings,
    content=content,
    pictures=pictures,
    headlines=headlines,
)
