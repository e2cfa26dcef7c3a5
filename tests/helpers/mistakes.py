"""Mistakes that people make: what is typed, and the code, the facts and the exit code of what is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """What somebody does, and what is said.

    Attributes:
        what: the mistake, in words.
        typed: the command after `brittle `, or a line of Python.
        code: of the error or the note; `usage` where the parser itself refuses, empty where nothing is wrong.
        facts: what the sentence names.
        exit_code: of the command; None for Python.
    """

    what: str
    typed: str
    code: str
    facts: Sequence[str]
    exit_code: int | None = None


MISTAKES = (
    Mistake(
        "MODEL and DATA swapped", "score data.npz ./net.py:make --out run", "usage", ["data.npz", "net.py:make"], 2
    ),
    Mistake(
        "Numbers joined by a comma",
        "score ./net.py:make data.npz --out run --sigma 0.1,0.2",
        "usage",
        ["--sigma", "'0.1,0.2'"],
        2,
    ),
    Mistake(
        "Bounds joined by a comma",
        "score ./net.py:make data.npz --out run --bounds 0,1",
        "usage",
        ["--bounds", "'0,1'"],
        2,
    ),
    Mistake("The output folder forgotten", "score ./net.py:make data.npz", "usage", ["--out", "--help"], 2),
    Mistake("The data forgotten", "score ./net.py:make --out run", "usage", ["DATA", "--help"], 2),
    Mistake("A mistyped command", "scroe ./net.py:make data.npz", "usage", ["scroe", "score"], 2),
    Mistake(
        "A mistyped option", "score ./net.py:make data.npz --out run --sigam 0.1", "usage", ["--sigam", "--sigma"], 2
    ),
    Mistake(
        "A mistyped score", "score ./net.py:make data.npz --out run --scores shrinkgae", "usage", ["'shrinkgae'"], 2
    ),
    Mistake(
        "A mistyped data file", "score ./net.py:make dataa.npz --out run", "no_such_path", ["dataa.npz", "data.npz"], 3
    ),
    Mistake(
        "A mistyped network file", "score ./nett.py:make data.npz --out run", "unreadable", ["nett.py", "net.py"], 3
    ),
    Mistake("A function that is not there", "score ./net.py:mak data.npz --out run", "user_code", ["/net.py:mak"], 3),
    Mistake("A mistyped run folder", "report old-rum", "no_run", ["old-rum/run.json"], 2),
    Mistake("A file in place of a run folder", "show data.npz", "no_run", ["data.npz/run.json"], 2),
    Mistake(
        "A file of networks without a function",
        "score net.py data.npz --out run",
        "usage",
        ["'model.pt2'", "net.py", "FILE.py:FUNCTION"],
        2,
    ),
    Mistake(
        "A file named as if it were a module", "score net:make data.npz --out run", "user_code", ["/net.py:make"], 3
    ),
    Mistake(
        "A checkpoint as the model",
        "score weights.pt data.npz --out run",
        "model_file",
        ["'model.pt2'", "weights.pt", "FILE.py:FUNCTION"],
        6,
    ),
    Mistake(
        "A checkpoint as the weights",
        "score ./net.py:make data.npz --out run --weights weights.pt",
        "weights_format",
        ["'weights.pt'", "'weights.safetensors'"],
        6,
    ),
    Mistake(
        "A missing file of weights",
        "score ./net.py:make data.npz --out run --weights weigths.safetensors",
        "unreadable",
        ["weigths.safetensors", "weights.safetensors"],
        3,
    ),
    Mistake(
        "The weights of another network",
        "score ./net.py:make data.npz --out run --weights prefixed.safetensors",
        "weights",
        ["prefixed.safetensors"],
        3,
    ),
    Mistake(
        "A forgotten `--weights`",
        "score ./net.py:untrained data.npz --out run",
        "accuracy_suspicious",
        ["--weights", "/net.py:untrained", "0.000"],
        0,
    ),
    Mistake(
        "A function with arguments",
        "score ./net.py:of_size data.npz --out run",
        "user_code",
        ["'size'", "/net.py:of_size"],
        3,
    ),
    Mistake(
        "A function that returns nothing",
        "score ./net.py:nothing data.npz --out run",
        "user_code",
        ["/net.py:nothing"],
        3,
    ),
    Mistake("A function that fails", "score ./net.py:failing data.npz --out run", "user_code", ["/net.py:failing"], 3),
    Mistake(
        "An archive exported for one batch size",
        "score fixed.pt2 data.npz --out run",
        "fixed_batch",
        ["'batch'", "'fixed.pt2'"],
        3,
    ),
    Mistake(
        "NaN in the weights", "score ./net.py:diverged data.npz --out run", "weights", ["/net.py:diverged", "64"], 3
    ),
    Mistake("Constant outputs", "score ./net.py:constant data.npz --out run", "constant_output", ["40"], 3),
    Mistake(
        "Memory that runs out", "score ./net.py:large data.npz --out run", "out_of_memory", ["--batch-size 10", "40"], 3
    ),
    Mistake(
        "Memory that runs out, as Python says it",
        "score ./net.py:larger data.npz --out run",
        "out_of_memory",
        ["--batch-size 10", "40"],
        3,
    ),
    Mistake("A network in half precision", "score ./net.py:half data.npz --out run", "low_precision", ["0.001"], 0),
    Mistake(
        "Probabilities taken for logits",
        "score ./net.py:probabilities data.npz --out run",
        "outputs",
        ["--outputs", "'probs'"],
        3,
    ),
    Mistake(
        "Logits taken for probabilities",
        "score ./net.py:make data.npz --out run --outputs probs",
        "outputs",
        ["--outputs", "'probs'"],
        3,
    ),
    Mistake("Softmax twice", "score ./net.py:twice data.npz --out run --outputs probs", "outputs", ["40", "2.72"], 0),
    Mistake(
        "A device that is not there", "score ./net.py:make data.npz --out run --device cuda:99", "device", ["99"], 3
    ),
    Mistake(
        "Inputs 0..255 against bounds 0..1",
        "score ./net.py:make bytes.npz --out run",
        "value_range",
        ["--bounds 0 255", "40"],
        3,
    ),
    Mistake(
        "Inputs normalised already",
        "score ./net.py:make normalised.npz --out run",
        "value_range",
        ["--mean", "--std", "40"],
        3,
    ),
    Mistake(
        "Inputs divided by 255 twice",
        "score ./net.py:make divided.npz --out run",
        "sigma",
        ["--sigma", "0.1", "25.5"],
        0,
    ),
    Mistake(
        "Whole numbers 0..255",
        "score ./net.py:make levels.npz --out run",
        "dtype",
        ["--scale-uint8", "levels.npz", "0..255"],
        3,
    ),
    Mistake(
        "Sigma for values 0..1, data in 0..255",
        "score ./net.py:make bytes.npz --out run --bounds 0 255 --sigma 0.1",
        "sigma",
        ["--sigma", "0.1", "0.04"],
        0,
    ),
    Mistake("Sigma far beyond the range", "score ./net.py:make data.npz --out run --sigma 25", "sigma", ["25"], 0),
    Mistake("Sigma of zero", "score ./net.py:make data.npz --out run --sigma 0", "parameter", ["0.0"], 3),
    Mistake(
        "Channels last", "score ./net.py:colours last.npz --out run", "layout", ["--layout", "'nhwc'", "'nchw'"], 3
    ),
    Mistake(
        "Channels last, declared as first",
        "score ./net.py:colours last.npz --out run --layout nchw",
        "layout",
        ["--layout", "'nhwc'", "x.permute(0, 3, 1, 2"],
        3,
    ),
    Mistake(
        "A network that wants channels last",
        "score ./net.py:last pictures.npz --out run",
        "layout",
        ["x.permute(0, 2, 3, 1", "40"],
        3,
    ),
    Mistake(
        "Grey images for a network of colours",
        "score ./net.py:colours data.npz --out run",
        "layout",
        ["--mode", "'RGB'", "x.repeat(1, 3, 1, 1"],
        3,
    ),
    Mistake(
        "Rows of numbers for a network of images",
        "score ./net.py:grey flat.npz --out run",
        "layout",
        ["x.reshape(-1, 1, 4, 4", "40", "16"],
        3,
    ),
    Mistake(
        "One image without an axis of points", "score ./net.py:make one-image.npz --out run", "layout", ["layout"], 3
    ),
    Mistake("Labels from 1 to K", "score ./net.py:make from-one.npz --out run", "labels", ["1..4", "0..3"], 3),
    Mistake(
        "Labels shifted by one",
        "score ./net.py:make shifted.npz --out run",
        "accuracy_suspicious",
        ["0.000", "40", "75.0"],
        0,
    ),
    Mistake("Names as labels", "score ./net.py:make names.npz --out run", "labels", ["'ant'", "names.npz"], 3),
    Mistake(
        "One-hot labels",
        "score ./net.py:make one-hot.npz --out run",
        "labels",
        ["--decision", "'multilabel'", "one-hot.npz"],
        3,
    ),
    Mistake(
        "Labels as fractions",
        "score ./net.py:make fractions.npz --out run",
        "labels",
        ["--decision", "'within:T'", "fractions.npz"],
        3,
    ),
    Mistake("One label too few", "score ./net.py:make short.npz --out run", "shape", ["short.npz", "39", "40"], 3),
    Mistake("Points of one class only", "score ./net.py:make one-class.npz --out run", "labels", ["--ids", "20"], 0),
    Mistake("No points", "score ./net.py:make empty.npz --out run", "empty_dataset", ["empty.npz"], 3),
    Mistake("Two points with one id", "score ./net.py:make repeated.npz --out run", "ids", ["'0'", "repeated.npz"], 3),
    Mistake("A NaN in one point", "score ./net.py:make hole.npz --out run", "nonfinite_input", ["row 3", "16 NaN"], 4),
    Mistake("Arrays under other names", "score ./net.py:make others.npz --out run", "columns", ["others.npz"], 3),
    Mistake(
        "The index of pandas in a table", "score ./net.py:make indexed.csv --out run", "columns", ["indexed.csv"], 3
    ),
    Mistake(
        "Columns of labels that nobody named",
        "score ./net.py:make labels.csv --out run --decision multilabel",
        "labels",
        ["--label-column", "'ant,bee,cow,dog'", "labels.csv"],
        3,
    ),
    Mistake(
        "A column to predict that nobody named",
        "score ./net.py:make measured.csv --out run --decision within:5",
        "labels",
        ["--label-column", "'size'", "measured.csv"],
        3,
    ),
    Mistake("A file of another format", "score ./net.py:make notes.txt --out run", "unknown_format", ["notes.txt"], 3),
    Mistake("An empty folder as data", "score ./net.py:make none --out run", "unknown_format", ["unknown_format"], 3),
    Mistake(
        "A folder with fewer classes than the model",
        "score ./net.py:ten two --out run",
        "labels",
        ["--class-names", "'ant'", "'bee'"],
        0,
    ),
    Mistake(
        "Names of classes that are spelled otherwise",
        "score ./net.py:colours photos --out run --class-names classes.txt",
        "parameter",
        ["--class-names", "'ant' is 'Ant'"],
        3,
    ),
    Mistake(
        "`--ids` of points that are not there",
        "score ./net.py:make data.npz --out run --ids ids.txt",
        "parameter",
        ["'99'", "'0'", "'1'"],
        3,
    ),
    Mistake(
        "A split of data that have none",
        "score ./net.py:make data.npz --out run --split test",
        "split",
        ["--split", "data.npz"],
        3,
    ),
    Mistake(
        "Image options for arrays",
        "score ./net.py:make data.npz --out run --resize 8",
        "parameter",
        ["--resize", "data.npz"],
        3,
    ),
    Mistake(
        "An output that cannot be written",
        "score ./net.py:make data.npz --out notes.txt",
        "unwritable",
        ["notes.txt"],
        7,
    ),
    Mistake("An output folder with other files", "score ./net.py:make data.npz --out kept", "", ["mine.txt"], 0),
    Mistake("An output folder with a run", "score ./net.py:make data.npz --out old-run", "exists", ["--resume"], 7),
    Mistake(
        "Another experiment resumed",
        "score ./net.py:make data.npz --out old-run --resume --sigma 0.3",
        "other_run",
        ["0.1", "0.3"],
        5,
    ),
    Mistake(
        "An accuracy in per cent",
        "score ./net.py:make data.npz --out run --expected-accuracy 95",
        "parameter",
        ["95"],
        3,
    ),
    Mistake("No rows in a batch", "score ./net.py:make data.npz --out run --batch-size 0", "parameter", ["batch"], 3),
    Mistake(
        "A limit without draws",
        "score ./net.py:make data.npz --out run --limit 0.9",
        "parameter",
        ["--until", "--limit 0.9", "'decided'"],
        3,
    ),
    Mistake("A report of a run that was interrupted", "report part", "run_unfinished", ["--resume", "320", "600"], 0),
    Mistake("A screen of a run that was interrupted", "show part", "run_unfinished", ["--resume", "320", "600"], 0),
    Mistake("A bare network", "brittle.score(network, (x, y), scores)", "parameter", ["expected"]),
    Mistake(
        "A class in place of a network",
        "brittle.score(brittle.Classifier(torch.nn.Linear), (x, y), scores)",
        "parameter",
        ["classifier"],
    ),
    Mistake(
        "A path in place of a network",
        'brittle.score(brittle.Classifier("net.pt2"), (x, y), scores)',
        "model_file",
        ["'net.pt2'"],
    ),
    Mistake(
        "A score by its name", 'brittle.score(classifier, (x, y), "shrinkage")', "parameter", ["'shrinkage'", "0.1"]
    ),
    Mistake("A class in place of a score", "brittle.score(classifier, (x, y), [Shrinkage])", "parameter", ["0.1"]),
    Mistake("Several sigmas in one score", "Shrinkage(sigma=[0.1, 0.2])", "parameter", ["0.1", "0.2"]),
    Mistake("Bounds of one number", "brittle.Classifier(network, bounds=255)", "parameter", ["255"]),
    Mistake("Inputs and labels swapped", "brittle.score(classifier, (y, x), scores)", "dtype", ["dtype"]),
    Mistake("A table of pandas", "brittle.score(classifier, frame, scores)", "dtype", ["'label'", "'float32'"]),
    Mistake(
        "A generator of batches", "brittle.score(classifier, ((a, b) for a, b in batches), scores)", "dtype", ["dtype"]
    ),
    Mistake("A list of tensors", "brittle.score(classifier, list(x), scores)", "dtype", ["dtype"]),
    Mistake("A list in place of a pair", "brittle.score(classifier, [x, y], scores)", "dtype", ["dtype"]),
    Mistake("A dictionary", 'brittle.score(classifier, {"x": x, "y": y}, scores)', "dtype", ["dtype"]),
    Mistake("A sparse tensor", "brittle.score(classifier, (x.to_sparse(), y), scores)", "dtype", ["x.to_dense"]),
    Mistake(
        "One image without an axis of points, in Python",
        "brittle.score(classifier, x[0, 0], scores)",
        "layout",
        ["layout"],
    ),
    Mistake(
        "Images 0..255 in a tensor",
        "brittle.score(classifier, (255 * x, y), scores)",
        "value_range",
        ["--bounds 0 255", "40"],
    ),
    Mistake("Names as labels, in Python", "brittle.score(classifier, (x, names), scores)", "labels", ["'ant'"]),
    Mistake(
        "A Dataset whose items are of different shapes",
        "brittle.score(classifier, Growing(), scores)",
        "shape",
        ["item"],
    ),
    Mistake(
        "A DataLoader that shuffles",
        "brittle.score(classifier, DataLoader(TensorDataset(x, y), shuffle=True), scores)",
        "shuffled",
        ["shuffled"],
    ),
    Mistake(
        "A list of images of two sizes",
        'brittle.score(classifier, [Image.new("L", (4, 4)), Image.new("L", (8, 8))], scores)',
        "shape",
        ["item"],
    ),
    Mistake(
        "Labels shifted by one, in Python",
        "brittle.score(classifier, (x, (y + 1) % 4), scores)",
        "accuracy_suspicious",
        ["0.000", "40", "75.0"],
    ),
    Mistake(
        "A folder in place of a table", 'brittle.write_report("old-run")', "parameter", ["'old-run'", "'report.html'"]
    ),
    Mistake("A report without a file", "brittle.write_report(table)", "parameter", ["'report.html'"]),
    Mistake("A score that the table does not hold", 'table["taylor"]', "no_such_score", ["20", "0.1"]),
    Mistake("A run that is not there", 'brittle.read_table("old-rum")', "no_run", ["old-rum/run.json"]),
)
"""All of them, by where they are made: what is typed, the model, values and shapes, labels, data, the run, Python."""


def table() -> str:
    """The tables of `docs/mistakes.md`: of commands, and of lines of Python."""
    commands = [mistake for mistake in MISTAKES if mistake.exit_code is not None]
    lines = [mistake for mistake in MISTAKES if mistake.exit_code is None]
    return "\n\n".join(
        "\n".join(
            [
                *(f"## {title}", "", "| mistake | what is typed | code | what the sentence names |"),
                *("| --- | --- | --- | --- |", *map(_row, some)),
            ]
        )
        for title, some in (("On the command line", commands), ("In Python", lines))
    )


def _row(mistake: Mistake) -> str:
    typed = mistake.typed if mistake.exit_code is None else f"brittle {mistake.typed}"
    facts = ", ".join(f"`{fact}`" for fact in mistake.facts).replace("|", "\\|")
    return f"| {mistake.what} | `{typed}` | {mistake.code} | {facts} |"


if __name__ == "__main__":
    print(table())
