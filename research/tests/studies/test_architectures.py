"""Networks of papers: their logits are those of the same weights computed one operation after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import brittle
from brittle.cli.commands import main
from brittle.model.loading.weights import load_weights
from studies import architectures
from studies.architectures import WideResNet

State = Mapping[str, Tensor]


def normalised(state: State, name: str, x: Tensor) -> Tensor:
    """Batch norm in evaluation, by its formula, and an activation."""
    mean, variance, weight, bias = (
        state[f"{name}.{part}"].view(-1, 1, 1) for part in ("running_mean", "running_var", "weight", "bias")
    )
    return (x - mean) / torch.sqrt(variance + 1e-5) * weight + bias


def convolved(state: State, name: str, x: Tensor, stride: int = 1) -> Tensor:
    weight = state[f"{name}.weight"]
    return functional.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)


def blocks(state: State, layers: list[str]) -> Iterator[tuple[str, int]]:
    """Blocks by name, with their stride: 2 in the first of every layer but the first."""
    for number, layer in enumerate(layers):
        places = sorted({int(name.removeprefix(layer).split(".")[0]) for name in state if name.startswith(layer)})
        yield from ((f"{layer}{place}", 2 if number and not place else 1) for place in places)


def last(state: State, name: str, x: Tensor) -> Tensor:
    return functional.linear(
        functional.avg_pool2d(x, x.shape[-1]).flatten(1), state[f"{name}.weight"], state[f"{name}.bias"]
    )


def wide(state: State, x: Tensor) -> Tensor:
    x = convolved(state, "conv1", x)
    for name, stride in blocks(state, ["block1.layer.", "block2.layer.", "block3.layer."]):
        same = f"{name}.convShortcut.weight" not in state
        out = functional.relu(normalised(state, f"{name}.bn1", x))
        x = x if same else convolved(state, f"{name}.convShortcut", out, stride)
        out = functional.relu(normalised(state, f"{name}.bn2", convolved(state, f"{name}.conv1", out, stride)))
        x = x + convolved(state, f"{name}.conv2", out)
    return last(state, "fc", functional.relu(normalised(state, "bn1", x)))


LAYERS = [f"layer{number}." for number in range(1, 5)]


def residual(state: State, x: Tensor) -> Tensor:
    x = functional.relu(normalised(state, "bn1", convolved(state, "conv1", x)))
    for name, stride in blocks(state, LAYERS):
        out = functional.relu(normalised(state, f"{name}.bn1", convolved(state, f"{name}.conv1", x, stride)))
        out = normalised(state, f"{name}.bn2", convolved(state, f"{name}.conv2", out))
        if f"{name}.shortcut.0.weight" in state:
            x = normalised(state, f"{name}.shortcut.1", convolved(state, f"{name}.shortcut.0", x, stride))
        x = functional.relu(out + x)
    return last(state, "linear", x)


def preactivated(state: State, x: Tensor, activated: bool) -> Tensor:
    x = convolved(state, "conv1", x)
    for name, stride in blocks(state, LAYERS):
        before = functional.relu(normalised(state, f"{name}.bn1", x))
        out = functional.relu(normalised(state, f"{name}.bn2", convolved(state, f"{name}.conv1", before, stride)))
        if f"{name}.shortcut.0.weight" in state:
            x = convolved(state, f"{name}.shortcut.0", before if activated else x, stride)
        x = x + convolved(state, f"{name}.conv2", out)
    return last(state, "linear", functional.relu(normalised(state, "bn", x)) if "bn.weight" in state else x)


FORWARD: dict[str, Callable[[State, Tensor], Tensor]] = {
    "wide_resnet_28_10": wide,
    "wide_resnet_34_10": wide,
    "resnet_18": residual,
    "preact_resnet_18": lambda state, x: preactivated(state, x, activated=True),
    "preact_resnet_18_raw": lambda state, x: preactivated(state, x, activated=False),
    "preact_resnet_18_without_bn": lambda state, x: preactivated(state, x, activated=True),
}
NUMBERS = {"wide_resnet_28_10": 36_479_194, "wide_resnet_34_10": 46_160_474, "resnet_18": 11_173_962}
"""Parameters, as papers round them: 36.5, 46.2 and 11.2 million."""


def with_statistics(network: nn.Module) -> nn.Module:
    """Return the network with random batch norms, so that each of them counts."""
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            for tensor in (layer.running_mean, layer.running_var, layer.weight, layer.bias):
                assert tensor is not None
                nn.init.uniform_(tensor, 0.5, 1.5)
    return network.eval()


def agree(network: nn.Module, forward: Callable[[State, Tensor], Tensor]) -> None:
    x = torch.rand(1, 3, 32, 32).double()
    logits = forward(network.state_dict(), x)
    assert (network(x) - logits).abs().max() <= 1e-9 * logits.abs().max()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if "34" in name else name for name in FORWARD]
)
def test_logits_are_those_of_the_weights_alone(name: str) -> None:
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        network = with_statistics(getattr(architectures, name)()).double()
        agree(network, FORWARD[name])
    count = sum(parameter.numel() for parameter in network.parameters())
    assert count == NUMBERS.get(name, count)


def test_a_deeper_one_is_its_weights_at_a_tenth_of_its_width() -> None:
    """And has the parameters that it should, which are counted without numbers."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        agree(with_statistics(WideResNet(34, 1)).double(), wide)
    with torch.device("meta"):
        network = architectures.wide_resnet_34_10()
    assert sum(parameter.numel() for parameter in network.parameters()) == NUMBERS["wide_resnet_34_10"]


MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616)


class Theirs(nn.Module):
    """A network with the mean and deviation of the data within, as training scripts wrap one before they save it."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.model = network
        self.register_buffer("mu", torch.tensor(MEAN).view(1, 3, 1, 1))
        self.register_buffer("sigma", torch.tensor(STD).view(1, 3, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.model((x - self.get_buffer("mu")) / self.get_buffer("sigma"))


def checkpoint(network: nn.Module) -> dict[str, object]:
    """As RobustBench has them: nested, of DataParallel, normalised within, with a block that nothing goes through."""
    state = nn.DataParallel(network).state_dict()
    unused = {f"module.model.sub_block1.layer.0.{part}.weight": torch.rand(4) for part in ("bn1", "conv1")}
    return {"epoch": 76, "best_acc": np.float64(0.5), "state_dict": state | unused, "optimizer": {"state": {}}}


@pytest.fixture(scope="module")
def trained() -> tuple[nn.Module, Tensor, Tensor]:
    """Return a small wide network, trained for seconds to tell four colours, and points that it was not trained on."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        labels = torch.arange(4).repeat(24)
        x = (0.3 * torch.rand(96, 3, 32, 32) + 0.6 * torch.eye(4)[labels, :3, None, None]).clamp(0, 1)
        network = Theirs(WideResNet(10, 1))
        steps = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
        for _ in range(12):
            steps.zero_grad()
            functional.cross_entropy(network(x[:64]), labels[:64]).backward()
            steps.step()
    return network.eval(), x[64:], labels[64:]


CODE = "from studies.architectures import WideResNet\nmake = lambda: WideResNet(10, 1)\n"


def test_a_checkpoint_is_scored_as_the_network_that_wrote_it(
    trained: tuple[nn.Module, Tensor, Tensor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, x, y = trained
    torch.save(checkpoint(network), tmp_path / "theirs.pt")
    np.savez(tmp_path / "data.npz", x=x.numpy(), y=y.numpy())
    (tmp_path / "small.py").write_text(CODE, encoding="utf-8")
    command = ["score", f"{tmp_path}/small.py:make", f"{tmp_path}/data.npz", "--weights", f"{tmp_path}/theirs.pt"]
    assert main([*command, "--out", f"{tmp_path}/run", "--scores", "logit_margin", "--quiet"]) == 0
    stderr = capsys.readouterr().err
    assert all(word in stderr for word in ("state_dict", "'module.model.'", "mean 0.4914 0.4822"))
    ours = brittle.read_table(tmp_path / "run").frame()
    theirs = brittle.score(network, (x, y), [brittle.scores.LogitMargin()]).frame()
    assert (ours["predicted"] == theirs["predicted"]).all()
    assert ours["correct"].mean() > 0.9
    values = [column for column in ours.columns if column.startswith("logit_margin")]
    assert values
    assert (ours[values] - theirs[values]).abs().to_numpy().max() <= 1e-6


def test_a_wide_resnet_28_10_is_loaded_from_such_a_checkpoint(tmp_path: Path) -> None:
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        theirs = Theirs(with_statistics(architectures.wide_resnet_28_10())).eval()
        torch.save(checkpoint(theirs), tmp_path / "theirs.pt")
        ours, x = architectures.wide_resnet_28_10().eval(), torch.rand(1, 3, 32, 32)
        read = load_weights(ours, tmp_path / "theirs.pt")
        classifier = brittle.Classifier(ours, mean=read.mean, std=read.std)
        logits = theirs(x)
        assert (classifier(x) - logits).abs().max() <= 1e-6 * logits.abs().max()
