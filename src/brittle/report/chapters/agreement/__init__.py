"""The estimators against Monte Carlo."""

from brittle.report.chapters.agreement.chapter import AgreementChapter

__all__ = ["AgreementChapter"]
