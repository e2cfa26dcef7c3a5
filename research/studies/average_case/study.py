"""The study of average-case robustness."""

from __future__ import annotations

from studies.average_case.measures import alone, of_network
from studies.average_case.page import content, headlines
from studies.average_case.pictures import pictures
from studies.average_case.said import findings
from studies.average_case.summary import summarise
from studies.study import Study

STUDY = Study(
    name="average_case",
    title="Average-case robustness: the papers' tables and figures",
    papers=("Han, Srinivas, Lakkaraju (UAI 2024)", "Han, Srinivas, Lakkaraju (ICML workshop 2023)"),
    alone=alone,
    of_network=of_network,
    summarise=summarise,
    findings=findings,
    content=content,
    pictures=pictures,
    headlines=headlines,
)
