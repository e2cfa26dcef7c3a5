"""Takes safeguards out one at a time, in a copy of the tree, and shows that a test turns red for each of them.

    python tests/mutations.py [NAME ...]

A safeguard that no test misses can be lost without anybody noticing. The tests that are named here pass on a copy that
nothing was taken out of; then each must fail, and not merely break, on a copy that lacks its safeguard.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

COPIED = ("src", "tests", "docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml")
"""What tests need of the tree."""

PASSED, FAILED, OTHER_COPY = 0, 1, 70
"""Exit codes of a run of tests: two of pytest's, and that the copy was not what was imported."""

LIMIT = 300.0
"""Seconds that a run of tests may take."""

RUN = f"""
import sys
from pathlib import Path
import brittle, pytest
if not Path(brittle.__file__).is_relative_to(Path(sys.argv[1], "src")):
    print("imported", brittle.__file__)
    sys.exit({OTHER_COPY})
sys.exit(pytest.main(["-q", "--tb=line", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""
"""Runs tests where the copy of the package is the one that is imported."""


@dataclass(frozen=True)
class Mutation:
    """A safeguard that is taken out.

    Attributes:
        name: of the safeguard.
        file: where it stands, below `src/brittle`.
        edits: texts that stand there exactly once, each with what takes its place.
        test: what turns red.
    """

    name: str
    file: str
    edits: tuple[tuple[str, str], ...]
    test: str

    @property
    def path(self) -> Path:
        """The file, below the root of the tree."""
        return Path("src", "brittle", self.file)

    def applied(self, content: str) -> str:
        """`content` of the file without the safeguard.

        Raises:
            ValueError: a text to be replaced does not stand in it exactly once.
        """
        for old, new in self.edits:
            if (count := content.count(old)) != 1:
                raise ValueError(f"{self.name}: {old.strip()!r} stands {count} times in {self.path}, not once")
            content = content.replace(old, new)
        return content


def mutation(name: str, file: str, old: str, new: str, test: str) -> Mutation:
    """A mutation of one place."""
    return Mutation(name, file, ((old, new),), f"tests/{test}")


PLANTED = "test_planted_defects.py::test_a_defect_is_named_and_nothing_is_scored"

MUTATIONS = (
    # The run folder.
    mutation(
        "bytes of a shard are flushed to the disk", "folder.py",
        "            os.fsync(file.fileno())\n", "",
        "test_resume.py::test_a_file_gets_its_name_when_its_bytes_are_on_the_disk",
    ),
    mutation(
        "buffered bytes are written before the flush", "folder.py",
        "            file.flush()\n", "",
        "test_resume.py::test_a_file_gets_its_name_when_its_bytes_are_on_the_disk",
    ),
    mutation(
        "the folder is flushed after the rename", "folder.py",
        "        _flush(folder)\n", "",
        "test_resume.py::test_a_file_gets_its_name_when_its_bytes_are_on_the_disk",
    ),
    Mutation(
        "files are renamed into place", "folder.py",
        (
            ('        with temporary.open("wb") as file:\n', '        with path.open("wb") as file:\n'),
            ("        temporary.replace(path)\n", ""),
        ),
        "tests/test_resume.py::test_a_file_gets_its_name_when_its_bytes_are_on_the_disk",
    ),
    mutation(
        "digest of a shard that is read", "shards.py",
        "    if hashlib.sha256(content).hexdigest() != shard.sha256:\n", "    if False:\n",
        "test_untrusted.py::test_two_hundred_flipped_bits_are_all_named",
    ),
    mutation(
        "digest of a shard that is kept on resume", "folder.py",
        '            if hashlib.sha256(path.read_bytes()).hexdigest() != file["sha256"]:\n', "            if False:\n",
        "test_resume.py::test_only_what_is_missing_is_computed",
    ),
    mutation(
        "files outside the folder are not kept on resume", "folder.py",
        "if path.parent != self.path or path.is_symlink() or not path.is_file():\n", "if not path.is_file():\n",
        "test_resume.py::test_a_shard_outside_the_folder_is_computed_again",
    ),
    mutation(
        "what a dead process left is removed", "folder.py",
        "if _is_temporary(path) or (of_a_run and path.name not in known):\n",
        "if of_a_run and path.name not in known:\n",
        "test_resume.py::test_what_a_dead_process_left_is_removed",
    ),
    mutation(
        "one writer at a time", "lock.py",
        "        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n", "",
        "test_resume.py::test_a_second_process_is_refused",
    ),
    mutation(
        "names in the manifest stay in the folder", "shards.py",
        '    if Path(file).name != file or file in (".", "..") or "\\\\" in file or "\\0" in file:\n',
        "    if False:\n",
        "test_untrusted.py::test_a_manifest_cannot_lead_out_of_its_folder",
    ),
    mutation(
        "links do not lead out of the folder", "shards.py",
        "    if path.is_symlink() and path.resolve().parent != path.parent.resolve():\n", "    if False:\n",
        "test_untrusted.py::test_a_link_cannot_lead_out_of_its_folder",
    ),
    mutation(
        "NaN is no number in a record", "shards.py",
        ", parse_constant=_refuse_constant)\n", ")\n",
        "test_untrusted.py::test_records_that_are_no_object_are_refused",
    ),
    # What a resumed run is.
    mutation(
        "another experiment is not resumed", "run/__init__.py",
        "            check_same(before, fixed, os.fspath(folder.path))\n", "",
        "test_resume.py::test_another_experiment_is_refused_by_name",
    ),
    Mutation(
        "the digest of the data decides the identity", "run/identity.py",
        (('"data.sha256", ', ""), ('"data.path", ', '"data.path", "data.sha256", ')),
        "tests/test_resume.py::test_another_experiment_is_refused_by_name",
    ),
    Mutation(
        "the version of PyTorch decides the identity", "run/identity.py",
        (('"versions.torch", ', ""), ('"versions.python", ', '"versions.python", "versions.torch", ')),
        "tests/test_resume.py::test_nothing_else_is_left_out_of_the_identity",
    ),
    mutation(
        "data that change during a run", "run/__init__.py",
        "        doctor.check_unchanged(job.points, diagnosis.digest)\n", "",
        f"{PLANTED}[data that are overwritten]",
    ),
    mutation(
        "digest of the data's file after a run", "doctor/data.py",
        "        if now != then:\n", "        if False:\n",
        "test_planted_defects.py::test_a_file_that_is_overwritten_during_the_run_is_seen",
    ),
    # Numbers.
    mutation(
        "NaN logits under noise are a status", "scores/monte_carlo.py",
        "mark(initial_status(sampled.tied), sampled.nonfinite > 0, Status.NONFINITE_LOGITS)\n",
        "initial_status(sampled.tied)\n",
        "test_run.py::test_nan_logits_under_noise_never_count_as_agreement",
    ),
    mutation(
        "a tie under noise is a flip", "measure/sampling.py",
        "        flipped = ~(others.amin(dim=3) > 0)\n", "        flipped = ~(others.amin(dim=3) >= 0)\n",
        "test_measure.py::test_a_copy_that_votes_for_no_class_is_a_flip[tie]",
    ),
    mutation(
        "NaN under noise is no agreement", "measure/sampling.py",
        "        flipped = ~(others.amin(dim=3) > 0)\n", "        flipped = others.amin(dim=3) <= 0\n",
        "test_measure.py::test_a_copy_that_votes_for_no_class_is_a_flip[NaN]",
    ),
    mutation(
        "kinks are a status", "scores/laplacian.py",
        "        status = mark(status, second.kink, Status.KINK)\n", "",
        "test_laplacian.py::test_ties_in_max_pooling_are_kinks",
    ),
    mutation(
        "operations that differentiate once are seen", "classifier.py",
        "        if differentiable and _differentiates_once(gradient):\n", "        if False:\n",
        "test_laplacian.py::test_no_second_derivative_is_one_sentence",
    ),
    mutation(
        "training mode is put back", "classifier.py",
        "                module.training = training\n", "                pass\n",
        "test_classifier.py::test_evaluation_mode_is_left_as_it_was",
    ),
    mutation(
        "a model works on a copy of its input", "classifier.py",
        "if self.mean or self.std else moved.clone()\n", "if self.mean or self.std else moved\n",
        "test_classifier.py::test_the_callers_data_are_not_changed",
    ),
    # Workers, and who is let in.
    mutation(
        "a worker that opened something else is refused", "run/workers/worker.py",
        "        if seen:\n", "        if False:\n",
        "test_workers.py::test_a_worker_that_opens_something_else_is_refused",
    ),
    mutation(
        "a worker that falls silent is ended", "run/workers/worker.py",
        "        process.kill()\n", "",
        "test_workers.py::test_a_worker_that_falls_silent_and_lives_on_is_ended",
    ),
    mutation(
        "a worker ends with its parent", "run/workers/service.py",
        "    os._exit(1)\n", "    return\n",
        "test_workers.py::test_a_worker_ends_with_its_parent",
    ),
    mutation(
        "a cluster without a token is refused", "run/workers/cluster.py",
        "if self.address != LOCAL and not self.insecure and not has_token():", "if False:",
        "test_cluster.py::test_an_address_without_a_token_is_refused",
    ),
    mutation(
        "the shard of a worker that died waits again", "run/workers/posts.py",
        "            self._waiting.appendleft(number)\n", "            pass\n",
        "test_posts.py::test_every_shard_comes_once",
    ),
    mutation(
        "the second answer for a shard does not count", "run/workers/posts.py",
        "not isinstance(answer, PackedShard) or post.number not in self._left", "not isinstance(answer, PackedShard)",
        "test_posts.py::test_a_shard_that_comes_late_comes_once",
    ),
    mutation(
        "a shard that is late is given to a second worker", "run/workers/posts.py",
        "workers[post.number] == 1), None)", "False), None)",
        "test_posts.py::test_a_shard_that_comes_late_comes_once",
    ),
    # The checks before a run.
    mutation(
        "rows that depend on their batch", "doctor/state.py",
        "    if difference > subject.noise_floor:\n", "    if False:\n",
        f"{PLANTED}[attention across rows]",
    ),
    mutation(
        "gradients that are masked", "doctor/gradients.py",
        "    if found is not None and least > allowed.disagreement:\n", "    if False:\n",
        f"{PLANTED}[a made-up gradient]",
    ),
    mutation(
        "only reports of ours are replaced", "cli/common.py",
        "    if not ours:\n", "    if False:\n",
        "test_cli.py::test_another_file_is_kept",
    ),
    mutation(
        "images that are turned are counted", "run/job.py",
        "                turned += sum(batch.turned or ())\n", "",
        "test_exif.py::test_a_run_counts_the_images_that_are_turned",
    ),
    # The detector.
    mutation(
        "a score that is no number is brittle", "detector/calibration.py",
        "    return ~(np.isfinite(scores) & (scores >= threshold))\n", "    return scores < threshold\n",
        "test_detector.py::test_flag_fails_closed",
    ),
    mutation(
        "logits that are no numbers are brittle", "detector/network.py",
        "reaches, tied = score >= total - total + self._threshold, first <= second\n",
        "reaches, tied = ~(score < self._threshold), first <= second\n",
        "test_detector.py::test_broken_logits_and_ties_are_brittle",
    ),
    mutation(
        "a tie is brittle", "detector/network.py",
        "self._threshold, first <= second\n", "self._threshold, first < second\n",
        "test_detector.py::test_broken_logits_and_ties_are_brittle",
    ),
    mutation(
        "inputs outside the bounds are brittle", "detector/network.py",
        "(reaches & inside) <= tied", "reaches <= tied",
        "test_detector.py::test_inputs_outside_the_bounds_are_brittle",
    ),
    mutation(
        "no key twice", "strict_json.py",
        "    if len(found) < len(pairs):\n", "    if False:\n",
        "test_detector.py::test_strictness",
    ),
    mutation(
        "NaN is no number in a detector", "strict_json.py",
        ", parse_constant=_refuse_constant)\n", ")\n",
        "test_detector.py::test_strictness",
    ),
    # What is shown.
    mutation(
        "text in the report is escaped", "report/__init__.py",
        "        autoescape=True,\n", "        autoescape=False,\n",
        "test_report.py::test_hostile_text_in_every_field_is_shown_as_text",
    ),
    mutation(
        "content security policy of the report", "report/page.html.jinja",
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">\n", "",
        "test_report.py::test_the_page_is_well_formed_and_inert",
    ),
    mutation(
        "formulas in the detector's CSV", "detector/flags.py",
        "if text and text.startswith(GUARDED) else text", "if False else text",
        "test_untrusted.py::test_formulas_in_csv_are_text",
    ),
    mutation(
        "formulas in the comparison's CSV", "cli/compare.py",
        "if isinstance(cell, str) and cell.startswith(GUARDED) else cell", "if False else cell",
        "test_comparison.py::test_a_spreadsheet_runs_nothing_of_what_the_command_wrote",
    ),
)  # fmt: skip
"""The safeguards, by the room of the house that they stand in."""


def copy_tree(place: Path) -> None:
    """Copy to the folder `place` what tests need."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy2(ROOT / name, place / name)


def run_tests(place: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests of the copy in `place` on the package of that copy; gives the exit code and what was said."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
    environment = inherited | {"PYTHONPATH": str(place / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN, str(place), f"--basetemp={place / 'temporary'}", *tests]
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    return done.returncode, done.stdout + done.stderr


def put(path: Path, content: str) -> None:
    """Write a file of the copy, and forget what Python compiled of the one before, however soon it follows."""
    path.write_text(content, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()


def survives(place: Path, chosen: Mutation) -> tuple[bool, str]:
    """Whether the test of a mutation does not fail, and what was seen, in words."""
    path = place / chosen.path
    whole = path.read_text(encoding="utf-8")
    put(path, chosen.applied(whole))
    try:
        code, said = run_tests(place, [chosen.test])
    finally:
        put(path, whole)
    counts = re.findall(r"\d+ (?:failed|passed|errors?)", said.rstrip().rpartition("\n")[2])
    failed = code == FAILED and any("failed" in count for count in counts) and not any("err" in one for one in counts)
    return not failed, ", ".join(counts) if code in (PASSED, FAILED) else f"exit code {code}"


def main(names: Sequence[str]) -> int:
    """All of it, or the mutations of these names; prints a table."""
    if unknown := set(names) - {one.name for one in MUTATIONS}:
        print(f"no safeguard is called {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [one for one in MUTATIONS if not names or one.name in names]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        copy_tree(place)
        for one in chosen:
            one.applied((place / one.path).read_text(encoding="utf-8"))
        began = time.monotonic()
        code, said = run_tests(place, sorted({one.test for one in chosen}))
        if code != PASSED:
            print(said, f"the tests do not pass on the tree as it is (exit code {code})", sep="\n", file=sys.stderr)
            return 2
        print(f"on the tree as it is: {said.rstrip().rpartition(chr(10))[2]}")
        alive = []
        for one in chosen:
            survived, seen = survives(place, one)
            alive += [one.name] * survived
            print(f"{'SURVIVED' if survived else 'caught':8}  {one.name:50}  {one.file:24}  {one.test:104}  {seen}")
            sys.stdout.flush()
    seconds = time.monotonic() - began
    print(
        f"{len(chosen)} safeguards taken out, {len(chosen) - len(alive)} caught, {len(alive)} survived; {seconds:.0f} s"
    )
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
