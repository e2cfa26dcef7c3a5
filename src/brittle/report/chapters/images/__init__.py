"""The least and the most robust points of each class."""

from brittle.report.chapters.images.chapter import ImagesChapter

__all__ = ["ImagesChapter"]
