"""What a workload's builder hands to the measured process.

A builder is `build(*, device: torch.device, dtype: torch.dtype, **sizes) -> Built`. Everything it does is
set-up and is timed as `build_model_ns`; what is measured afterwards is one call of the closure that
`runner.worker.steps` makes of it, so that no set-up can slip into a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

INFERENCE = "inference"
TRAINING = "training"
FUNCTION = "function"
TASKS = (INFERENCE, TRAINING, FUNCTION)


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
    """Positional arguments of every call, on the device, shared by all variants and never written to."""

    task: str = INFERENCE
    """`inference`, `training` or `function`."""

    loss: Callable[[Any], torch.Tensor] | None = None
    """Training: scalar loss of the output, targets bound in it. None: mean of the squared output."""

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

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"task must be one of {', '.join(TASKS)}, not {self.task!r}")
        if self.compile_optimizer and str(self.autocast_dtype) == "torch.float16":
            raise ValueError("a GradScaler steps the optimizer itself, so it cannot be compiled in float16")
