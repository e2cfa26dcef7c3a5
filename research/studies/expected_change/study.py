"""The study of the expected change of the predicted probability."""

from __future__ import annotations

from studies.expected_change.measures import alone, of_network
from studies.expected_change.page import content, headlines
from studies.expected_change.pictures import pictures
from studies.expected_change.said import findings
from studies.expected_change.summary import summarise
from studies.study import Study

STUDY = Study(
    name="expected_change",
    title="The expected change of the predicted probability, and its Laplacian",
    papers=("Yang, Liu, Bilgic (TMLR 2023)",),
    alone=alone,
    of_network=of_network,
    summarise=summarise,
    findings=findings,
    content=content,
    pictures=pictures,
    headlines=headlines,
)
