"""Mistakes that people make: what is typed, and the one sentence that is said."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """What somebody does, and what is said.

    Attributes:
        what: the mistake, in words.
        typed: the command after `brittle `, or a line of Python.
        said: the sentence; `…` stands for what depends on the machine.
        code: the exit code; None for Python.
    """

    what: str
    typed: str
    said: str
    code: int | None = None


MISTAKES = (
    Mistake(
        "MODEL and DATA swapped",
        "score data.npz ./net.py:make --out run",
        "swapped: MODEL is data.npz, which is data, and DATA is net.py:make, which is a model; write MODEL first",
        2,
    ),
    Mistake(
        "Numbers joined by a comma",
        "score ./net.py:make data.npz --out run --sigma 0.1,0.2",
        "--sigma takes numbers with spaces between them; found '0.1,0.2': write --sigma 0.1 0.2",
        2,
    ),
    Mistake(
        "Bounds joined by a comma",
        "score ./net.py:make data.npz --out run --bounds 0,1",
        "--bounds takes numbers with spaces between them; found '0,1': write --bounds 0 1",
        2,
    ),
    Mistake(
        "The output folder forgotten",
        "score ./net.py:make data.npz",
        "brittle score needs --out; brittle score --help shows how it is called",
        2,
    ),
    Mistake(
        "The data forgotten",
        "score ./net.py:make --out run",
        "brittle score needs DATA; brittle score --help shows how it is called",
        2,
    ),
    Mistake(
        "A mistyped command",
        "scroe ./net.py:make data.npz",
        'Unknown command "scroe". Did you mean "score"? Available commands: …',
        2,
    ),
    Mistake(
        "A mistyped option",
        "score ./net.py:make data.npz --out run --sigam 0.1",
        "Unknown option: --sigam. Did you mean --sigma?",
        2,
    ),
    Mistake(
        "A mistyped score",
        "score ./net.py:make data.npz --out run --scores shrinkgae",
        "unknown_name: no score is called 'shrinkgae'; did you mean shrinkage? there are monte_carlo, …",
        2,
    ),
    Mistake(
        "A mistyped data file",
        "score ./net.py:make dataa.npz --out run",
        "no_such_path: dataa.npz does not exist; did you mean data.npz?",
        3,
    ),
    Mistake(
        "A mistyped network file",
        "score ./nett.py:make data.npz --out run",
        "model_missing: nett.py cannot be read: No such file or directory; did you mean net.py?",
        3,
    ),
    Mistake(
        "A function that is not there",
        "score ./net.py:mak data.npz --out run",
        "factory_missing: ./net.py:mak does not exist; the file has make, untrained, …",
        3,
    ),
    Mistake(
        "A mistyped run folder",
        "report old-rum",
        "no_run: old-rum/run.json is missing; old-rum is not a run folder; did you mean old-run?",
        2,
    ),
    Mistake(
        "A file in place of a run folder",
        "show data.npz",
        "no_run: data.npz/run.json is missing; data.npz is not a run folder; … holds old-run, part",
        2,
    ),
    Mistake(
        "A file of networks without a function",
        "score net.py data.npz --out run",
        "model_spec: net.py names no function in the file; export the network with "
        "torch.export.save(torch.export.export(model, (inputs,), dynamic_shapes=...), 'model.pt2'), or name a"
        " factory: FILE.py:FUNCTION",
        2,
    ),
    Mistake(
        "A file named as if it were a module",
        "score net:make data.npz --out run",
        "model_missing: there is no module net (no module net); the current folder is not searched: for the "
        "file in this folder write ./net.py:make",
        3,
    ),
    Mistake(
        "A checkpoint as the model",
        "score weights.pt data.npz --out run",
        "model_spec: weights.pt is a .pt file, which holds a pickle that could run code and is not read; "
        "export the network with torch.export.save(torch.export.export(model, (inputs,), dynamic_shapes=...),"
        " 'model.pt2'), or name a factory: FILE.py:FUNCTION",
        6,
    ),
    Mistake(
        "A checkpoint as the weights",
        "score ./net.py:make data.npz --out run --weights weights.pt",
        "weights_format: weights.pt is not a .safetensors file, the only form that is read; convert once "
        'with: python -c "import torch; from safetensors.torch import save_file; '
        "save_file(torch.load('weights.pt', weights_only=True), 'weights.safetensors')\"",
        6,
    ),
    Mistake(
        "A missing file of weights",
        "score ./net.py:make data.npz --out run --weights weigths.safetensors",
        "weights_missing: weigths.safetensors cannot be read: No such file or directory; did you mean "
        "weights.safetensors?",
        3,
    ),
    Mistake(
        "The weights of another network",
        "score ./net.py:make data.npz --out run --weights prefixed.safetensors",
        "state_dict: prefixed.safetensors does not fit the network (2 missing: 1.bias, 1.weight; 2 "
        "unexpected: model.1.bias, model.1.weight); all names must agree",
        3,
    ),
    Mistake(
        "A forgotten `--weights`",
        "score ./net.py:untrained data.npz --out run",
        "note: accuracy_suspicious: accuracy 0.000 on 40 labelled rows, little better than chance or worse; "
        "no --weights were given: if ./net.py:untrained does not load trained weights itself, the network is "
        "untrained, so add --weights FILE.safetensors; otherwise check bounds, mean and std, channel order "
        "and the order of the classes",
        0,
    ),
    Mistake(
        "A function with arguments",
        "score ./net.py:of_size data.npz --out run",
        "factory_type: expected a function without arguments that returns a torch.nn.Module, found that "
        "./net.py:of_size cannot be called without arguments (missing a required argument: 'size')",
        3,
    ),
    Mistake(
        "A function that returns nothing",
        "score ./net.py:nothing data.npz --out run",
        "factory_type: expected a torch.nn.Module, found that ./net.py:nothing returned an object of type "
        "builtins.NoneType",
        3,
    ),
    Mistake(
        "A function that fails",
        "score ./net.py:failing data.npz --out run",
        "factory_failed: ./net.py:failing failed at line …: ValueError: no such layer; relative paths start at …",
        3,
    ),
    Mistake(
        "An archive exported for one batch size",
        "score fixed.pt2 data.npz --out run",
        "fixed_batch: fixed.pt2 was exported for batches of 1; export it with a dynamic batch dimension, from"
        " 2 inputs or more: torch.export.save(torch.export.export(model, (inputs,), dynamic_shapes=({0: "
        "torch.export.Dim('batch')},)), 'fixed.pt2')",
        3,
    ),
    Mistake(
        "NaN in the weights",
        "score ./net.py:diverged data.npz --out run",
        "weights_nonfinite: 1.weight of ./net.py:diverged holds 1 NaN or infinite values among 64; the "
        "training has diverged or the file is damaged",
        3,
    ),
    Mistake(
        "Constant outputs",
        "score ./net.py:constant data.npz --out run",
        "constant_output: the model returned the same logits (0, 1, 2, 3…) for 40 rows and for 2 random "
        "inputs; it does not look at its input",
        3,
    ),
    Mistake(
        "Memory that runs out",
        "score ./net.py:large data.npz --out run",
        "out_of_memory: out of memory: 40 rows do not fit on cpu; try --batch-size 10 (batch_size=10)",
        3,
    ),
    Mistake(
        "Memory that runs out, as Python says it",
        "score ./net.py:larger data.npz --out run",
        "out_of_memory: out of memory: 40 rows do not fit on cpu; try --batch-size 10 (batch_size=10)",
        3,
    ),
    Mistake(
        "A network in half precision",
        "score ./net.py:half data.npz --out run",
        "note: low_precision: the model computes in float16, so its logits are rounded to about 0.001 of "
        "their size; sums are taken in single precision or better, score in float32 to tell small margins "
        "apart",
        0,
    ),
    Mistake(
        "Probabilities taken for logits",
        "score ./net.py:probabilities data.npz --out run",
        "probabilities: every row of the output is between 0 and 1 and sums to 1: these are probabilities; "
        "use --outputs probs (outputs='probs'), which takes their logarithm",
        3,
    ),
    Mistake(
        "Logits taken for probabilities",
        "score ./net.py:make data.npz --out run --outputs probs",
        "not_probabilities: the outputs were declared as probabilities, but hold values from … to …; leave "
        "out --outputs probs (outputs='probs') if they are class scores",
        3,
    ),
    Mistake(
        "Softmax twice",
        "score ./net.py:twice data.npz --out run --outputs probs",
        "note: softmax_twice: the probabilities are those of a softmax over probabilities: in all 40 rows no "
        "class gets more than 2.72 times what another gets; if the model ends with two softmax layers, take "
        "one away",
        0,
    ),
    Mistake(
        "A device that is not there",
        "score ./net.py:make data.npz --out run --device cuda:99",
        "device: the model cannot be moved to cuda:99: …",
        3,
    ),
    Mistake(
        "Inputs 0..255 against bounds 0..1",
        "score ./net.py:make bytes.npz --out run",
        "value_range: values from … to 255, outside [0, 1] in 40 of 40 rows, the first of them row 0; use "
        "--bounds 0 255 (bounds=(0, 255)) or divide by 255",
        3,
    ),
    Mistake(
        "Inputs normalised already",
        "score ./net.py:make normalised.npz --out run",
        "value_range: values from … to 2, outside [0, 1] in 40 of 40 rows, the first of them row 0; the data "
        "look normalised; give pixels and declare --mean and --std (mean=, std=) instead",
        3,
    ),
    Mistake(
        "Inputs divided by 255 twice",
        "score ./net.py:make divided.npz --out run",
        "note: huge_sigma: sigma 0.1 is 25.5 times what the first 40 rows span (…); sigma is in the units of "
        "the data: choose a smaller one (--sigma, sigma=), or see whether the data were divided twice",
        0,
    ),
    Mistake(
        "Whole numbers 0..255",
        "score ./net.py:make levels.npz --out run",
        "dtype: x in levels.npz has type uint8; use --scale-uint8 (scale_uint8=True) to map 0..255 to the "
        "bounds, or convert to float",
        3,
    ),
    Mistake(
        "Sigma for values 0..1, data in 0..255",
        "score ./net.py:make bytes.npz --out run --bounds 0 255 --sigma 0.1",
        "note: small_sigma: sigma 0.1 is 0.04% of the value range 255, so hardly a prediction will flip; "
        "sigma is in the units of the data (--sigma, sigma=); if it was meant for values from … to 1, it is "
        "25.5 here",
        0,
    ),
    Mistake(
        "Sigma far beyond the range",
        "score ./net.py:make data.npz --out run --sigma 25",
        "note: huge_sigma: sigma 25 is 25 times the value range 1; sigma is in pixel units, choose a smaller one",
        0,
    ),
    Mistake(
        "Sigma of zero",
        "score ./net.py:make data.npz --out run --sigma 0",
        "sigma: sigma must be a positive finite number in pixel units; found 0.0",
        3,
    ),
    Mistake(
        "Channels last",
        "score ./net.py:colours last.npz --out run",
        "layout: x in last.npz has shape (40, 8, 8, 3), which looks channels-last; use --layout nhwc "
        "(layout='nhwc') to transpose it, or --layout nchw (layout='nchw') if the first axis after the points"
        " is the channels",
        3,
    ),
    Mistake(
        "Channels last, declared as first",
        "score ./net.py:colours last.npz --out run --layout nchw",
        "layout: the model takes inputs of shape [40, 3, 8, 8], found [40, 8, 8, 3]; the data look "
        "channels-last: use --layout nhwc (layout='nhwc'), or give "
        "x.permute(0, 3, 1, 2)",
        3,
    ),
    Mistake(
        "A network that wants channels last",
        "score ./net.py:last pictures.npz --out run",
        "layout: the model takes inputs of shape [40, 8, 8, 3], found [40, 3, 8, 8]; the model wants "
        "channels last: wrap it in a module whose forward begins with x = "
        "x.permute(0, 2, 3, 1)",
        3,
    ),
    Mistake(
        "Grey images for a network of colours",
        "score ./net.py:colours data.npz --out run",
        "layout: the model takes inputs of shape [40, 3, 4, 4], found [40, 1, 4, 4]; the model wants "
        "colours: use --mode RGB (mode='RGB') for image files, or give "
        "x.repeat(1, 3, 1, 1)",
        3,
    ),
    Mistake(
        "Rows of numbers for a network of images",
        "score ./net.py:grey flat.npz --out run",
        "layout: the model takes inputs of shape [40, 1, 4, 4], found [40, 16]; the model wants images: give "
        "x.reshape(-1, 1, 4, 4), if they lie so",
        3,
    ),
    Mistake(
        "One image without an axis of points",
        "score ./net.py:make one-image.npz --out run",
        "layout: the model takes inputs of shape [1, 4, 4], found [4, 4]; the data seem to be one input "
        "without an axis of points: give x[None], and one label",
        3,
    ),
    Mistake(
        "Labels from 1 to K",
        "score ./net.py:make from-one.npz --out run",
        "label_offset: labels 1..4, the model has 0..3; subtract 1",
        3,
    ),
    Mistake(
        "Labels shifted by one",
        "score ./net.py:make shifted.npz --out run",
        "note: accuracy_suspicious: accuracy 0.000 on 40 labelled rows, little better than chance or worse; "
        "75.0% are right when 1 is subtracted from every label: the labels look shifted by one, so give "
        "classes that count from 0",
        0,
    ),
    Mistake(
        "Names as labels",
        "score ./net.py:make names.npz --out run",
        "label_dtype: y in names.npz holds text such as 'ant'; class indices are whole numbers: with names "
        "the names of the model's outputs in their order, give [names.index(one) for one in y]",
        3,
    ),
    Mistake(
        "One-hot labels",
        "score ./net.py:make one-hot.npz --out run",
        "label_dtype: y in one-hot.npz has shape (40, 4), which looks one-hot; give class indices: y.argmax(1). If "
        "several labels may hold at once, use --decision multilabel (decision='multilabel')",
        3,
    ),
    Mistake(
        "Labels as fractions",
        "score ./net.py:make fractions.npz --out run",
        "label_dtype: y in fractions.npz holds 0.5 in row 1; class indices are whole numbers: give those, or, where "
        "the model predicts a number, use --decision within:T (decision='within:T'), T being the tolerance",
        3,
    ),
    Mistake(
        "One label too few",
        "score ./net.py:make short.npz --out run",
        "length: y in short.npz has shape (39,) for 40 points; expected one label each",
        3,
    ),
    Mistake(
        "Points of one class only",
        "score ./net.py:make one-class.npz --out run",
        "note: one_label: all 20 points have the label 0, so nothing is said of other classes; data sorted by"
        " class begin with one: take points of all with --ids FILE (ids=), or all points",
        0,
    ),
    Mistake(
        "No points",
        "score ./net.py:make empty.npz --out run",
        "empty_dataset: empty.npz holds no points; expected at least 1",
        3,
    ),
    Mistake(
        "Two points with one id",
        "score ./net.py:make repeated.npz --out run",
        "duplicate_id: rows 0 and 1 of repeated.npz share the id '0'; an id keys the noise of its point, so "
        "make the ids unique or leave them out",
        3,
    ),
    Mistake(
        "A NaN in one point",
        "score ./net.py:make hole.npz --out run",
        "point 3, shrinkage: nonfinite_input: row 3: 16 NaN of 16",
        4,
    ),
    Mistake(
        "Arrays under other names",
        "score ./net.py:make others.npz --out run",
        "missing_key: others.npz has none of the keys x, images; it has data, target; call the inputs x, and "
        "the labels y",
        3,
    ),
    Mistake(
        "The index of pandas in a table",
        "score ./net.py:make indexed.csv --out run",
        "table_columns: column 0 of indexed.csv has no name, as the index that pandas writes; write the table"
        " without it (index=False), or give it a name",
        3,
    ),
    Mistake(
        "Columns of labels that nobody named",
        "score ./net.py:make labels.csv --out run --decision multilabel",
        "label_columns: the model takes 16 numbers a row and labels.csv has 20 columns of features, with 'ant', 'bee', "
        "'cow', 'dog' among them; they look like what is right for a row: name them with --label-column "
        "ant,bee,cow,dog (label_column='ant,bee,cow,dog')",
        3,
    ),
    Mistake(
        "A column to predict that nobody named",
        "score ./net.py:make measured.csv --out run --decision within:5",
        "label_columns: the model takes 16 numbers a row and measured.csv has 17 columns of features, with 'size' "
        "among them; it looks like what is right for a row: name it with --label-column size (label_column='size')",
        3,
    ),
    Mistake(
        "A file of another format",
        "score ./net.py:make notes.txt --out run",
        "unknown_format: notes.txt is none of the formats that are read (npz: a .npz file with x and y, or "
        "images and labels; …)",
        3,
    ),
    Mistake(
        "An empty folder as data",
        "score ./net.py:make none --out run",
        "unknown_format: none is none of the formats that are read (npz: a .npz file with x and y, or images "
        "and labels; …)",
        3,
    ),
    Mistake(
        "A folder with fewer classes than the model",
        "score ./net.py:ten two --out run",
        "note: class_count: the data name 2 classes ('ant', 'bee') and the model has 10 outputs, so the place"
        " of a name may not be its output; give the names of the outputs, one a line, with --class-names FILE"
        " (class_names=), and labels are mapped by name; most points of 'ant' get output 5, of 'bee' get "
        "output 7 (the first output is 0)",
        0,
    ),
    Mistake(
        "Names of classes that are spelled otherwise",
        "score ./net.py:colours photos --out run --class-names classes.txt",
        "class_names: the classes of the data are called otherwise than those of the model, but agree with "
        "them one by one when case, spaces, '-' and '_' are left aside: 'ant' is 'Ant', 'bee' is 'Bee', 'cow'"
        " is 'Cow' and 1 more; write the names (--class-names, class_names=) as the data do",
        3,
    ),
    Mistake(
        "`--ids` of points that are not there",
        "score ./net.py:make data.npz --out run --ids ids.txt",
        "unknown_ids: 1 of 2 ids are not in data.npz: '99'; its 40 ids, the column point of a run, look like "
        "'0', '1', '2'",
        3,
    ),
    Mistake(
        "A split of data that have none",
        "score ./net.py:make data.npz --out run --split test",
        "split_missing: data.npz has no splits (its keys: x, y); leave out --split (split=)",
        3,
    ),
    Mistake(
        "Image options for arrays",
        "score ./net.py:make data.npz --out run --resize 8",
        "unused_option: --resize (resize=) is for encoded images, and data.npz is a .npz file with x and y, "
        "or images and labels; leave it out",
        3,
    ),
    Mistake(
        "An output that cannot be written",
        "score ./net.py:make data.npz --out notes.txt",
        "unwritable: notes.txt cannot be made, because …/notes.txt is no folder; choose another",
        7,
    ),
    Mistake(
        "An output folder with other files",
        "score ./net.py:make data.npz --out kept",
        "kept holds other files, too (mine.txt); they stay as they are",
        0,
    ),
    Mistake(
        "An output folder with a run",
        "score ./net.py:make data.npz --out old-run",
        "run_exists: old-run holds a run already; go on with it (--resume, resume=True) or choose another folder",
        7,
    ),
    Mistake(
        "Another experiment resumed",
        "score ./net.py:make data.npz --out old-run --resume --sigma 0.3",
        "other_run: old-run holds another run: scores shrinkage: sigma 0.1 there, 0.3 now; repeat its "
        "command, or choose another folder",
        5,
    ),
    Mistake(
        "An accuracy in per cent",
        "score ./net.py:make data.npz --out run --expected-accuracy 95",
        "expected_accuracy: the expected accuracy must lie in (0, 1]; found 95; write 0.95 for 95%",
        3,
    ),
    Mistake(
        "No rows in a batch",
        "score ./net.py:make data.npz --out run --batch-size 0",
        "batch_size: the batch size must be a whole number of at least 1; found 0",
        3,
    ),
    Mistake(
        "A limit without draws",
        "score ./net.py:make data.npz --out run --limit 0.9",
        "until: a limit draws for each point only together with --until decided (until='decided'); which "
        "points of a run hold at another limit, brittle show RUN --limit 0.9 says, and "
        "brittle.analysis.decide(table, limit=0.9)",
        3,
    ),
    Mistake(
        "A report of a run that was interrupted",
        "report part",
        "note: run_unfinished: the run in part has not finished: 256 of 600 points are there; its command "
        "goes on with it by --resume",
        0,
    ),
    Mistake(
        "A screen of a run that was interrupted",
        "show part",
        "note: run_unfinished: the run in part has not finished: 256 of 600 points are there; its command "
        "goes on with it by --resume",
        0,
    ),
    Mistake(
        "A bare network",
        "brittle.score(network, (x, y), scores)",
        "classifier: expected a brittle.Classifier, found Sequential; wrap it: brittle.Classifier(model)",
    ),
    Mistake(
        "A class in place of a network",
        "brittle.score(brittle.Classifier(torch.nn.Linear), (x, y), scores)",
        "classifier: the classifier wraps the class Linear; make a network of it: Linear(...)",
    ),
    Mistake(
        "A path in place of a network",
        'brittle.score(brittle.Classifier("net.pt2"), (x, y), scores)',
        "model_type: 'net.pt2' is of type str and no network; give a torch.nn.Module, a function from inputs to class "
        "scores, or a fitted scikit-learn classifier",
    ),
    Mistake(
        "A score by its name",
        'brittle.score(classifier, (x, y), "shrinkage")',
        "scores: expected a list of scores such as [brittle.scores.Shrinkage(sigma=0.1)]; found 'shrinkage'",
    ),
    Mistake(
        "A class in place of a score",
        "brittle.score(classifier, (x, y), [Shrinkage])",
        "scores: expected a list of scores such as [brittle.scores.Shrinkage(sigma=0.1)]; found [<class "
        "'brittle.scores.shrinkage.Shrinkage'>]",
    ),
    Mistake(
        "Several sigmas in one score",
        "Shrinkage(sigma=[0.1, 0.2])",
        "sigma: sigma must be a positive finite number in pixel units; found [0.1, 0.2]",
    ),
    Mistake(
        "Bounds of one number",
        "brittle.Classifier(network, bounds=255)",
        "bounds: bounds must be two numbers, finite and increasing, such as (0, 1); found 255",
    ),
    Mistake(
        "Inputs and labels swapped",
        "brittle.score(classifier, (y, x), scores)",
        "dtype: x has type int64; expected floating point numbers, such as float32; give (x, y), the inputs first",
    ),
    Mistake(
        "A table of pandas",
        "brittle.score(classifier, frame, scores)",
        "dtype: expected a tensor or a NumPy array, found that x is a table of pandas; give its features and "
        "labels as arrays: (frame.drop(columns='label').to_numpy('float32'), frame['label'].to_numpy()), or "
        "write it to a .csv file and open that with brittle.data.open_points",
    ),
    Mistake(
        "A generator of batches",
        "brittle.score(classifier, ((a, b) for a, b in batches), scores)",
        "dtype: expected a tensor or a NumPy array, found that x is a generator, which can be read once only;"
        " give the arrays (x, y), or a torch.utils.data.Dataset",
    ),
    Mistake(
        "A list of tensors",
        "brittle.score(classifier, list(x), scores)",
        "dtype: expected a tensor or a NumPy array, found that x is a list of tensors; give one tensor, torch.stack(x)",
    ),
    Mistake(
        "A list in place of a pair",
        "brittle.score(classifier, [x, y], scores)",
        "dtype: expected a tensor or a NumPy array, found that x is a list of two arrays; give a tuple, (x, "
        "y), for inputs and labels, or stack them for two points",
    ),
    Mistake(
        "A dictionary",
        'brittle.score(classifier, {"x": x, "y": y}, scores)',
        "dtype: expected a tensor or a NumPy array, found that x is a dictionary; give the pair (x, y) of its"
        " inputs and labels",
    ),
    Mistake(
        "A sparse tensor",
        "brittle.score(classifier, (x.to_sparse(), y), scores)",
        "dtype: x is a sparse tensor; give x.to_dense()",
    ),
    Mistake(
        "One image without an axis of points, in Python",
        "brittle.score(classifier, x[0, 0], scores)",
        "layout: the model takes inputs of shape [1, 4, 4], found [4, 4]; the data seem to be one input "
        "without an axis of points: give x[None], and one label",
    ),
    Mistake(
        "Images 0..255 in a tensor",
        "brittle.score(classifier, (255 * x, y), scores)",
        "value_range: values from … to 255, outside [0, 1] in 40 of 40 rows, the first of them row 0; use "
        "--bounds 0 255 (bounds=(0, 255)) or divide by 255",
    ),
    Mistake(
        "Names as labels, in Python",
        "brittle.score(classifier, (x, names), scores)",
        "label_dtype: y holds text such as 'ant'; class indices are whole numbers: with names the names of "
        "the model's outputs in their order, give [names.index(one) for one in y]",
    ),
    Mistake(
        "A Dataset whose items are of different shapes",
        "brittle.score(classifier, Growing(), scores)",
        "shape_mixed: item 0 has shape (1, 4, 4) of float32 and item 1 has shape (1, 4, 5) of float32; bring "
        "all items to one shape and type first",
    ),
    Mistake(
        "A DataLoader that shuffles",
        "brittle.score(classifier, DataLoader(TensorDataset(x, y), shuffle=True), scores)",
        "shuffled: the DataLoader over the data set TensorDataset shuffles (RandomSampler), so its order "
        "cannot be repeated and the ids, which are positions, would name other points the next time; make it "
        "with shuffle=False",
    ),
    Mistake(
        "A list of images of two sizes",
        'brittle.score(classifier, [Image.new("L", (4, 4)), Image.new("L", (8, 8))], scores)',
        "shape_mixed: item 0 has shape (1, 4, 4) of float32 and item 1 has shape (1, 8, 8) of float32; bring "
        "all items to one shape and type first",
    ),
    Mistake(
        "A network in training mode",
        "brittle.score(brittle.Classifier(network.train()), (x, y), scores)",
        "train_mode: the model was in training mode; it was scored in evaluation mode and put back",
    ),
    Mistake(
        "Labels shifted by one, in Python",
        "brittle.score(classifier, (x, (y + 1) % 4), scores)",
        "accuracy_suspicious: accuracy 0.000 on 40 labelled rows, little better than chance or worse; 75.0% "
        "are right when 1 is subtracted from every label: the labels look shifted by one, so give classes "
        "that count from 0",
    ),
    Mistake(
        "A folder in place of a table",
        'brittle.write_report("old-run")',
        "table: a report is made of the table of a run, and of a file to write; found 'old-run' in place of "
        "the table: write brittle.write_report(brittle.read_table('old-run'), 'report.html')",
    ),
    Mistake(
        "A report without a file",
        "brittle.write_report(table)",
        "out: name the file to write: brittle.write_report(table, 'report.html')",
    ),
    Mistake(
        "A score that the table does not hold",
        'table["taylor"]',
        "no_such_score: expected a score of this run, found taylor; the nearest of its scores: "
        "shrinkage(adaptive=True, draws=20, sigma=0.1)",
    ),
    Mistake(
        "A run that is not there",
        'brittle.read_table("old-rum")',
        "no_run: old-rum/run.json is missing; old-rum is not a run folder; did you mean old-run?",
    ),
)
"""All of them, by where they are made: what is typed, the model, values and shapes, labels, data, the run, Python."""


def table() -> str:
    """The tables of `docs/mistakes.md`: of commands, and of lines of Python."""
    commands = [mistake for mistake in MISTAKES if mistake.code is not None]
    lines = [mistake for mistake in MISTAKES if mistake.code is None]
    return "\n\n".join(
        "\n".join(
            [f"## {title}", "", "| mistake | what is typed | what is said |", "| --- | --- | --- |", *map(_row, some)]
        )
        for title, some in (("On the command line", commands), ("In Python", lines))
    )


def _row(mistake: Mistake) -> str:
    typed = mistake.typed if mistake.code is None else f"brittle {mistake.typed}"
    said = mistake.said.replace("|", "\\|")
    return f"| {mistake.what} | `{typed}` | {said} |"


if __name__ == "__main__":
    print(table())
