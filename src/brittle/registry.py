"""The one table of what extensions add to the core, each part imported when it is first used.

A part has a kind and a name: `score.laplacian` is the score that `--scores laplacian` names. The core imports no
extension; it looks up a part here, so that each folder of `brittle.extensions` can be deleted, and all else runs.
Another package adds parts by entry points of the group `brittle.extensions`:

    [project.entry-points."brittle.extensions"]
    "score.stability" = "my_package.stability:Stability"
"""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from brittle.errors import BrittleError, ParameterError, listed

GROUP = "brittle.extensions"  # the package of our extensions, and the group of entry points of those of others

PARTS: dict[str, str] = {
    "score.taylor_mvs": "mmse:TaylorMVS",
    "score.mmse": "mmse:MMSE",
    "score.mmse_mvs": "mmse:MMSEMVS",
    "score.rare_event": "rare_events.rare_event:RareEvent",
    "score.laplacian": "expected_change.laplacian:Laplacian",
    "score.probability_change": "expected_change.probability_change:ProbabilityChange",
    "score.first_order_change": "expected_change.probability_change:FirstOrderChange",
    "score.change_bound": "expected_change.probability_change:ChangeBound",
    "score.first_order_margin": "worst_case.first_order_margin:FirstOrderMargin",
    "score.feature_distance": "worst_case.feature_distance:FeatureDistance",
    "measurement.certified": "certificates.radius:Certified",
    "decision.masks": "masks_and_boxes:Masks",
    "decision.boxes": "masks_and_boxes:Boxes",
    "name.Detector": "detector.detector:Detector",
    "name.Surrogate": "detector.surrogate:Surrogate",
    "name.RobustnessMetric": "maite:RobustnessMetric",
    "name.robust_accuracy": "worst_case.run:robust_accuracy",
    "name.functional": "functional:",
    "model.by_name": "named_model:open_model",
    "analysis.expected_change_points": "expected_change.predicted_change:expected_change_points",
    "analysis.expected_change_table": "expected_change.predicted_change:expected_change_table",
    "analysis.label_flips": "expected_change.predicted_change:label_flips",
    "analysis.mean_absolute": "expected_change.predicted_change:mean_absolute",
    "analysis.model_card": "report.model_card:model_card",
    "analysis.agreement": "agreement.agreement:agreement",
    "analysis.margin_consistency": "worst_case.table:margin_consistency",
    "analysis.ProbabilisticAccuracy": "probabilistic_accuracy:ProbabilisticAccuracy",
    "analysis.probabilistic_accuracy": "probabilistic_accuracy:probabilistic_accuracy",
    "analysis.direct_robust_accuracy": "worst_case.robust_accuracy:direct_robust_accuracy",
    "analysis.estimate_robust_accuracy": "worst_case.robust_accuracy:estimate_robust_accuracy",
    "analysis.smoothed_radius": "worst_case.smoothing:smoothed_radius",
    "analysis.worst_case_table": "worst_case.table:worst_case_table",
    "file.detector": "detector.detector:Detector",
    "file.pseudo_margin": "detector.surrogate:Surrogate",
    "workers.processes": "workers.workers:Processes",
    "workers.cluster": "workers.cluster:Cluster",
    "view.text": "report.notebook:table_text",
    "view.points": "report.notebook:list_points",
    "view.page": "report.notebook:ReportPage",
    "view.mark": "report.render:MARK",
    "chapter.overview": "report.chapters.overview:CHAPTER",
    "chapter.scored": "report.chapters.scored:CHAPTER",
    "chapter.classes": "report.chapters.classes:CHAPTER",
    "chapter.agreement": "agreement.chapter:CHAPTER",
    "chapter.worst_case": "worst_case.chapter:CHAPTER",
    "chapter.vote": "worst_case.vote:CHAPTER",
    "chapter.expected_change": "expected_change.chapter:CHAPTER",
    "chapter.other_runs": "report.chapters.other_runs:CHAPTER",
    "command.detector": "detector.commands:detector",
    "command.surrogate": "detector.commands:surrogate",
    "command.join": "workers.commands:join",
    "command.more": "workers.commands:more",
    "command.robust-accuracy": "worst_case.commands:robust_accuracy",
    "command.report": "report.commands:report",
    "command.demo": "demo.commands:demo",
    "attack.straight_through": "more_attacks.straight_through:STRAIGHT_THROUGH",
    "attack.exchange": "more_attacks.exchange:EXCHANGE",
    "attack.blocks": "more_attacks.exchange:BLOCKS",
    "exact_search.trees": "trees.boxes:search_boxes",
    "format.webdataset": "webdataset:WEBDATASET",
    "format.corruptions": "corruptions:CORRUPTIONS",
    "format.texts": "texts.data:TEXTS",
    "points.text_points": "texts.data:text_points",
    "texts.TextForm": "texts.forms:TextForm",
    "texts.TextFunction": "texts.forms:TextFunction",
    "texts.TextEstimator": "texts.forms:TextEstimator",
    "family.edits": "texts.noise:Edits",
    "family.paraphrases": "texts.noise:Paraphrases",
    "family.token-dropout": "texts.noise:TokenDropout",
    "family.relative": "more_noise:Relative",
    "family.decibels": "more_noise:Decibels",
    "family.swap": "more_noise:Swap",
    "noise.relative": "more_noise:RELATIVE",
    "noise.decibels": "more_noise:DECIBELS",
    "noise.swap": "more_noise:SWAP",
    "family.corruption": "image_noise:Corruption",
    "noise.rotation": "image_noise:ROTATION",
    "noise.shift": "image_noise:SHIFT",
    "noise.brightness": "image_noise:BRIGHTNESS",
    "noise.contrast": "image_noise:CONTRAST",
    "noise.gaussian_blur": "image_noise:GAUSSIAN_BLUR",
    "noise.gaussian_noise": "image_noise:GAUSSIAN_NOISE",
    "noise.shot_noise": "image_noise:SHOT_NOISE",
    "noise.impulse_noise": "image_noise:IMPULSE_NOISE",
    "noise.saturate": "image_noise:SATURATE",
    "noise.jpeg_compression": "image_noise:JPEG_COMPRESSION",
    "noise.pixelate": "image_noise:PIXELATE",
    "noise.typos": "texts.noise:TYPOS",
    "noise.case": "texts.noise:CASE",
    "noise.spaces": "texts.noise:SPACES",
    "noise.homoglyphs": "texts.noise:HOMOGLYPHS",
    "noise.paraphrases": "texts.noise:PARAPHRASES",
    "noise.token_dropout": "texts.noise:TOKEN_DROPOUT",
    "noise.token_mask": "texts.noise:TOKEN_MASK",
    "noise.token_replacement": "texts.noise:TOKEN_REPLACEMENT",
    "place.store": "object_stores:STORE",
    "place.mirror": "object_stores:MirroredFolder",
    "source.FILE.pt2": "exported.archive:PT2",
    "source.FILE.onnx": "exported.onnx_network:ONNX",
    "source.FILE.json": "trees.tree_file:TREES",
    "source.FILE.ubj": "trees.tree_file:TREES",
    "source.FILE.txt": "trees.tree_file:TREES",
    "source.FOLDER": "hugging_face.sources:FOLDER",
    "source.hf:NAME": "hugging_face.sources:FOLDER",
    "source.timm:NAME": "hugging_face.sources:TIMM",
}
"""Every part of our extensions: its kind and name, and its place below `brittle.extensions`, `module:attribute`."""

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """The parts of one kind by name: those of the core, then those of the extensions that are installed.

    Args:
        kind: what stands before the dot in `PARTS`.
        core: the parts of the core.
        types: what the parts of other packages have to be: instances of these, or subclasses where the core has
            classes. Without any they may be anything.
    """

    def __init__(self, kind: str, core: Mapping[str, T], *types: type) -> None:
        self._kind, self._core, self._types = kind, core, types

    def __getitem__(self, name: str) -> T:
        if name in self._core:
            _check_alone(f"{self._kind}.{name}", "brittle")
            return self._core[name]
        value, part = load(self._kind, name), f"{self._kind}.{name}"
        if self._types and part not in PARTS:
            classes = [isinstance(entry, type) for entry in self._core.values()]
            if isinstance(value, type):
                fits = any(classes) and issubclass(value, self._types)
            else:
                fits = isinstance(value, self._types) and not (classes and all(classes))
            if not fits:
                (entry,) = _outside()[part]
                expected = " or ".join(kind.__name__ for kind in self._types)
                raise ParameterError(
                    f"{part} of the package {_package_of(entry)}, {entry.value}, is a {type(value).__name__}, "
                    f"{value!r:.60}; expected {'a subclass' if any(classes) else 'an instance'} of {expected}"
                )
        return cast("T", value)

    def __contains__(self, name: object) -> bool:
        return name in self._core or name in _names(self._kind)

    def __iter__(self) -> Iterator[str]:
        yield from self._core
        yield from (name for name in _names(self._kind) if name not in self._core)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def load(kind: str, name: str) -> Any:
    """Import a part of an extension."""
    part = f"{kind}.{name}"
    if sentence := missing(kind, name):
        raise BrittleError("not_installed", f"{name} {sentence}")
    if part not in PARTS:
        return _load_outside(part)
    _check_alone(part, "brittle")
    module, _, attribute = PARTS[part].partition(":")
    home = import_module(f"{GROUP}.{module}")
    return getattr(home, attribute) if attribute else home


def missing(kind: str, name: str) -> str:
    """Say which extension has a part that is not installed; empty where none has it."""
    place = PARTS.get(f"{kind}.{name}", "")
    extension = place.partition(":")[0].partition(".")[0]
    return "" if not place or is_installed(extension) else f"is of the extension {extension}, which is missing here"


@cache
def is_installed(module: str) -> bool:
    """Tell whether the extension of a module lies in its place."""
    try:
        spec = find_spec(f"{GROUP}.{module.partition('.')[0]}")
    except ModuleNotFoundError:
        return False
    return spec is not None and spec.origin is not None  # a folder without files is a namespace


def find_attribute(module: str, kind: str) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module that has the parts of this kind by the names of their classes or functions."""

    def find(attribute: str) -> Any:
        for part, place in PARTS.items():
            part_kind, _, name = part.partition(".")
            if part_kind == kind and attribute == (place.partition(":")[2] or name):
                if sentence := missing(kind, name):
                    raise AttributeError(f"{module}.{attribute} {sentence}")
                return load(kind, name)
        raise AttributeError(f"module {module!r} has no attribute {attribute!r}")

    return find


@cache
def _names(kind: str) -> tuple[str, ...]:
    """Names of the parts of a kind that extensions have."""
    places = {part: place.partition(":")[0] for part, place in PARTS.items()}
    parts = [part for part, module in places.items() if is_installed(module)]
    names = (part.partition(".")[2] for part in (*parts, *_outside()) if part.startswith(f"{kind}."))
    return tuple(dict.fromkeys(names))


def missing_extensions(*kinds: str) -> list[str]:
    """Return the extensions of ours that have parts of these kinds and are missing."""
    places = (place for part, place in PARTS.items() if part.partition(".")[0] in kinds)
    extensions = dict.fromkeys(place.partition(":")[0].partition(".")[0] for place in places)
    return [extension for extension in extensions if not is_installed(extension)]


@cache
def _outside() -> dict[str, list[EntryPoint]]:
    """Return the parts of extensions of other packages, each with all entry points that name it."""
    parts: dict[str, list[EntryPoint]] = {}
    kinds = dict.fromkeys(part.partition(".")[0] for part in PARTS)
    for entry in entry_points(group=GROUP):
        kind, _, name = entry.name.partition(".")
        if kind not in kinds:
            near = "".join(f"did you mean {word}.{name}?" for word in get_close_matches(kind, kinds, 1))
            raise ParameterError(
                f"the package {_package_of(entry)} adds {entry.name!r:.60}, and no part is of the kind {kind!r:.40}; "
                f"{near or f'kinds are {listed(list(kinds), len(kinds))}'}"
            )
        parts.setdefault(entry.name, []).append(entry)
    return parts


def _check_alone(part: str, *owners: str) -> None:
    """Raise where a part of these owners is one of another package, too: neither takes the place of the other."""
    packages = [*owners, *(_package_of(entry) for entry in _outside().get(part, ()))]
    if len(packages) > 1:
        raise ParameterError(f"{' and '.join(packages)} each have {part}; uninstall one, or have it renamed")


def _load_outside(part: str) -> Any:
    """Import a part of another package."""
    _check_alone(part)
    (entry,) = _outside()[part]
    try:
        return entry.load()
    except Exception as error:
        raise ParameterError(
            f"{part} of the package {_package_of(entry)}, {entry.value}, cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error


def _package_of(entry: EntryPoint) -> str:
    return entry.value if entry.dist is None else entry.dist.name
