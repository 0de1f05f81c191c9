"""What a compiler sees of each built-in workload, and the traps that its shape avoids.

Graphs are counted with a backend that only keeps them, so nothing is generated or built.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.catalog.libraries import extra_of
from compilewatch.runner.worker.step.steps import loss_of, tensors_of
from compilewatch.runner.workloads.built import TRAINING, Batch, Built
from compilewatch.runner.workloads.calibration import calibrate_batch_norm
from tests.runner.measuring import build

# FlexAttention takes no meta device and warns in eager: test_operators.py.
PURE_TORCH = [
    name for name, definition in WORKLOADS.items() if not definition.packages and name != "flex-attention"
]
WITH_PACKAGES = [name for name, definition in WORKLOADS.items() if definition.packages]

# Parameters in millions: counted from the published configurations.
PARAMETERS = {
    "resnet50": 25.56,
    "bert-base": 109.48,
    "bert-base-train": 109.48,
    "vit-b16": 86.57,
    "gpt2": 124.44,
    "sd-unet": 859.52,
    "encoder-512": 18.92,
    "lstm-cell": 1.58,
    "mlp-4096": 67.17,
    "llama-decode": 1100.05,
}


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


@pytest.fixture(autouse=True)
def _same_weights() -> None:
    torch.manual_seed(0)


class Capture:
    """A backend that keeps the graphs it is given and runs them as they are."""

    def __init__(self) -> None:
        self.graphs: list[torch.fx.GraphModule] = []

    def __call__(self, graph: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.graphs.append(graph)
        return graph.forward

    @property
    def operations(self) -> list[Any]:
        """Everything in the graphs but inputs, attributes and the output."""
        calls = ("call_function", "call_method", "call_module")
        return [node for graph in self.graphs for node in graph.graph.nodes if node.op in calls]


def load(name: str, device: str = "cpu", **sizes: Any) -> Built:
    definition = WORKLOADS[name]
    for package in definition.packages:
        pytest.importorskip(
            package, reason=f"needs {package}: pip install 'compilewatch[{extra_of(package)}]'"
        )
    return build(definition, device, **sizes)


@cache
def on_meta(name: str) -> Built:
    """Only read: of no test alone. A batch norm's count has no value on meta, and calibration asks for it."""
    if name == "resnet50":
        return load(name, batch_size=2, image_size=32)
    return load(name, "meta", batch_size=2)


def captured(function: Callable[..., Any], *inputs: Any, fullgraph: bool = False) -> Capture:
    capture = Capture()
    with torch.no_grad():
        torch.compile(function, backend=capture, fullgraph=fullgraph)(*inputs)
    return capture


def autocast(ready: Built) -> contextlib.AbstractContextManager[Any]:
    if ready.autocast_dtype is None:
        return contextlib.nullcontext()
    return torch.autocast("cpu", dtype=ready.autocast_dtype)


@pytest.mark.parametrize("name", PURE_TORCH)
def test_the_whole_workload_is_one_graph(name: str) -> None:
    ready = on_meta(name)
    capture = captured(ready.model_or_fn, *ready.inputs, fullgraph=True)
    assert len(capture.graphs) == 1
    assert len(capture.operations) > 2


@pytest.mark.parametrize("name", WITH_PACKAGES)
def test_the_whole_model_of_a_library_is_one_graph(name: str) -> None:
    if name == "sd-unet":
        pytest.skip("1,226 operations take Dynamo 17 s; the graph of the other models shows the same")
    ready = on_meta(name)
    with autocast(ready):
        capture = captured(ready.model_or_fn, *ready.inputs, fullgraph=True)
    assert len(capture.graphs) == 1
    assert len(capture.operations) > 100


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_the_model_is_the_published_one_and_regions_name_its_classes(name: str) -> None:
    ready = on_meta(name)
    if not isinstance(ready.model_or_fn, nn.Module):
        assert ready.regions == ()
        return
    classes = {type(module).__name__ for module in ready.model_or_fn.modules()}
    assert set(ready.regions) <= classes
    if name in PARAMETERS:
        count = sum(parameter.numel() for parameter in ready.model_or_fn.parameters())
        assert count / 1e6 == pytest.approx(PARAMETERS[name], abs=0.005)


OF_ORDER_1 = ("resnet50", "vit-b16", "bert-base", "gpt2", "mlp-4096")


@pytest.mark.parametrize("name", [*PURE_TORCH, *(name for name in WITH_PACKAGES if name != "sd-unet")])
def test_outputs_are_neither_near_zero_nor_large(name: str) -> None:
    """Of order 100 a rounding fails the absolute tolerance, of order 0.01 everything passes it."""
    less = {"kwargs": {"layers": 1}} if name == "llama-decode" else {}
    if name in WITH_PACKAGES:
        less["dtype"] = "float32"
    ready = load(name, batch_size=2, **less)
    with torch.no_grad():
        outputs = [x for x in tensors_of(ready.model_or_fn(*ready.inputs)) if x.is_floating_point()]
    assert outputs[0].isfinite().all()
    assert outputs[0].abs().max() > 1e-4
    if name in OF_ORDER_1:
        assert all(0.1 < float(output.float().square().mean().sqrt()) < 10 for output in outputs)


# Of the variants of encoder-train one: test_training.py compiles each of them as one graph.
@pytest.mark.parametrize(
    "name",
    [
        n
        for n, d in WORKLOADS.items()
        if d.task == TRAINING and (n == "encoder-train-fp16" or not n.startswith("encoder-train"))
    ],
)
def test_a_training_steps_loss_is_outside_the_graph(name: str) -> None:
    ready = load(name, batch_size=2)
    capture = Capture()
    batch = Batch(ready.inputs) if ready.stream is None else next(iter(ready.stream.batches()))
    loss = loss_of(ready, torch.compile(ready.model_or_fn, backend=capture, fullgraph=True), batch)
    loss.backward()
    assert len(capture.graphs) == 1
    assert loss.dtype is torch.float32
    gradients = [parameter.grad for parameter in ready.model_or_fn.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)
    assert max(gradient.abs().max() for gradient in gradients) > 1e-6
    assert not any("cross_entropy" in str(node.target) for node in capture.operations)


def test_gpt2_given_labels_breaks_its_graph_and_ours_is_not() -> None:
    ready = load("gpt2", "meta", batch_size=1, shape={"sequence_length": 16})
    (ids,) = ready.inputs
    model = ready.model_or_fn
    assert len(captured(lambda tokens: model(tokens, labels=tokens).loss, ids).graphs) > 1
    torch._dynamo.reset()
    assert len(captured(ready.model_or_fn, ids, fullgraph=True).graphs) == 1


def test_torchs_own_encoder_takes_a_fused_path_that_leaves_nothing_to_compile() -> None:
    layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True, norm_first=False)
    naive = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = torch.randn(4, 16, 64)
    assert len(captured(naive, x).operations) == 2
    ready = load("encoder", batch_size=4, kwargs={"width": 64, "heads": 4, "layers": 2})
    assert len(captured(ready.model_or_fn, *ready.inputs).operations) > 30


def test_torchs_own_lstm_is_skipped_and_ours_is_unrolled() -> None:
    x = torch.randn(2, 8, 16)
    assert captured(nn.LSTM(16, 32, batch_first=True).eval(), x).graphs == []
    ready = load("lstm-cell", batch_size=2, shape={"sequence_length": 8, "width": 16})
    capture = captured(ready.model_or_fn, *ready.inputs, fullgraph=True)
    cells = [node for node in capture.operations if "lstm" in str(node.target).lower()]
    assert len(cells) == 8


def test_the_unrolled_lstm_computes_what_torchs_own_does() -> None:
    ready = load("lstm-cell", batch_size=2, shape={"sequence_length": 8, "width": 16}, dtype="float32")
    reference = nn.LSTM(16, 512, batch_first=True)
    cell = ready.model_or_fn.cell
    with torch.no_grad():
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(reference, f"{name}_l0").copy_(getattr(cell, name))
        _, (hidden, _) = reference(ready.inputs[0])
        torch.testing.assert_close(ready.model_or_fn(*ready.inputs), hidden[0])


def test_the_elementwise_function_computes_gelu_and_layer_norm() -> None:
    ready = load("elementwise", batch_size=4)
    x, residual, bias, weight, shift = ready.inputs
    activated = nn.functional.gelu(x + bias, approximate="tanh") + residual
    expected = nn.functional.layer_norm(activated, (512,), weight, shift)
    torch.testing.assert_close(ready.model_or_fn(*ready.inputs), expected)


def test_batch_norm_is_calibrated_to_what_it_is_given():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    images = 50 + 20 * torch.randn(16, 3, 8, 8)
    calibrate_batch_norm(model, images)
    assert not model.training
    assert model[1].momentum == 0.1
    normalised = model[:2](images)
    assert torch.allclose(normalised.mean((0, 2, 3)), torch.zeros(8), atol=1e-3)
    assert torch.allclose(normalised.std((0, 2, 3)), torch.ones(8), atol=1e-2)
