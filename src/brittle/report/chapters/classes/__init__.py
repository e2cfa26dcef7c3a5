"""Robustness by class."""

from brittle.report.chapters.classes.chapter import ClassesChapter

__all__ = ["ClassesChapter"]
