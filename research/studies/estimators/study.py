"""The study of estimators."""

from __future__ import annotations

from studies.estimators.measures import of_network
from studies.estimators.page import content, headlines
from studies.estimators.pictures import pictures
from studies.estimators.said import findings
from studies.estimators.summary import summarise
from studies.study import Study

STUDY = Study(
    name="estimators",
    title="Which estimator of the flip probability, at which budget",
    papers=(
        "Han, Srinivas, Lakkaraju (UAI 2024)",
        "Han, Srinivas, Lakkaraju (ICML workshop 2023)",
        "Ngnawé et al. (NeurIPS 2024)",
        "Yang, Liu, Bilgic (TMLR 2023)",
    ),
    of_network=of_network,
    summarise=summarise,
    findings=findings,
    content=content,
    pictures=pictures,
    headlines=headlines,
)
