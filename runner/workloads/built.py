"""What a workload's builder hands to the measured process.

A builder is `build(*, device: torch.device, dtype: torch.dtype, **sizes) -> Built`. Everything it does is
set-up and is timed as `build_model_ns`; what is measured afterwards is one call of the closure that
`runner.worker.step.steps` makes of it, so that no set-up can slip into a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

INFERENCE = "inference"
TRAINING = "training"
FUNCTION = "function"
TASKS = (INFERENCE, TRAINING, FUNCTION)
HEADLINES = ("wall_sync", "wall_pipelined")


class Batch(NamedTuple):
    """What one call of the model gets, on the device; `target` is the second argument of a training loss."""

    inputs: tuple[Any, ...]
    target: Any = None
    keywords: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Stream:
    """Several batches that one iteration goes through: an epoch, or requests of different lengths.

    The time of an iteration includes that of `batches` itself, as a data loader's is part of an epoch.
    """

    batches: Callable[[], Iterable[Batch]]
    """Makes the batches of one iteration: every time of the same shapes in the same order."""

    policy: str | None = None
    """How lengths are evened out: `none`, `max`, `buckets` or `dynamic`. None where all are equal."""

    marked_dimension: int | None = None
    """The dimension of every input tensor that is marked as varying before anything is compiled. `batches`
    then returns the same tensors every time."""

    tokens: int | None = None
    """Tokens of one iteration that are wanted, padding not counted."""

    padded_tokens: int | None = None
    """Tokens of one iteration that are computed, padding included."""


@dataclass(frozen=True)
class Built:
    """One workload, ready on its device in its dtype.

    `model_or_fn(*inputs)` is the whole of an inference or function step. A training step is zero_grad,
    forward, `loss(output)` outside the model (a loss computed inside breaks GPT-2's graph), backward,
    optimizer step; the worker makes every variant its own deep copy of the model and its own optimizer from
    these factories.
    """

    model_or_fn: Callable[..., Any]
    """An `nn.Module` (train/eval mode already set) or a plain function of tensors."""

    inputs: tuple[Any, ...]
    """Positional arguments of every call, on the device, shared by all variants and never written to. With a
    `stream` those of its first batch."""

    task: str = INFERENCE
    """`inference`, `training` or `function`."""

    loss: Callable[..., torch.Tensor] | None = None
    """Training: scalar loss of the output, targets bound in it. None: mean of the squared output. With a
    `stream` it is given the batch's target as second argument."""

    optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] | None = None
    """Training: makes the optimizer of one variant from its parameters. None: `torch.optim.SGD(lr=1e-3)`."""

    autocast_dtype: torch.dtype | None = None
    """Forward and loss run under `torch.autocast` in this dtype when given (automatic mixed precision).

    A training step in float16 scales its loss with a `torch.amp.GradScaler`, at a fixed scale.
    """

    compile_optimizer: bool = False
    """Training: the compiled variant compiles the optimizer's step as well, as a graph of its own."""

    regions: tuple[str, ...] = ()
    """Class names of the repeated blocks that `scope: regional` compiles one by one, in place."""

    tolerance: float | None = None
    """Overrides the dtype's default tolerance of the numeric check."""

    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of every call: inputs that cannot be given by position."""

    with_gradients: bool = False
    """Inference and function: called with gradients enabled, as a step needs that calls `backward()`."""

    scheduler: Callable[[Any], Any] | None = None
    """Training: makes the scheduler of one variant from its optimizer; each step ends with its `step()`."""

    accumulation_steps: int = 1
    """Training: forward and backward passes before each step of the optimizer."""

    stream: Stream | None = None
    """Batches that one iteration goes through, one call of the model each."""

    reset: Callable[..., object] | None = None
    """Puts back what calls change and Python does not show: state of C++, files. Called, untimed, before each
    block of samples, with the model of the side where it takes an argument."""

    headline: str | None = None
    """Which wall time is the latency on a GPU: `wall_sync`, one step and a wait for it, or `wall_pipelined`,
    steps in a row. None: pipelined for training, synchronised for the rest."""

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"task must be one of {', '.join(TASKS)}, not {self.task!r}")
        if self.headline is not None and self.headline not in HEADLINES:
            raise ValueError(f"headline must be one of {', '.join(HEADLINES)}, not {self.headline!r}")
        if self.accumulation_steps < 1 or (self.accumulation_steps > 1 and self.stream is not None):
            raise ValueError("accumulation_steps is 1 or more, and 1 with a stream")
        if self.compile_optimizer and str(self.autocast_dtype) == "torch.float16":
            raise ValueError("a GradScaler steps the optimizer itself, so it cannot be compiled in float16")
