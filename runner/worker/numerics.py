"""Is the compiled result right? Eager twice, float64 once, compiled once, by PyTorch's own rule."""

from __future__ import annotations

import contextlib
import copy
import math
import random
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch

from compilewatch.runner.worker import tensor_comparison
from compilewatch.runner.worker.failures import kind_of
from compilewatch.runner.worker.step.internals import force_eager
from compilewatch.runner.worker.step.leaves import (
    Leaves,
    copied,
    copy_of,
    dense,
    is_comparable,
    leaves,
    mapped,
    pieces,
    same,
    shape_of,
    size_bytes,
    with_inputs,
)
from compilewatch.runner.worker.step.memory import free_bytes, suffices_for
from compilewatch.runner.worker.step.state import State
from compilewatch.runner.worker.step.steps import (
    Variant,
    first_batch,
    grad_context,
    input_tensors,
    loss_of,
    output_of,
)
from compilewatch.runner.worker.streams import shapes_of
from compilewatch.runner.worker.tensor_comparison import TensorComparison, compare, finite
from compilewatch.runner.worker.timing.sampling import Deadline
from compilewatch.runner.workloads.built import TRAINING, Batch, Built

# benchmarks/dynamo/common.py and torchbench.py: 1e-4 for float32 inference, 1e-3 for reduced precision,
# 1e-2 for gradients of large models.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-8}
_REDUCED_TOLERANCE = 1e-3
_TRAINING_TOLERANCE = 1e-2
# Random batch-norm statistics make MobileNetV2 put out 1e-20 everywhere: any result would pass.
_DEGENERATE_BELOW = 1e-4
# Gradients are often far below the tolerance, where upstream's absolute rule passes anything; so each is
# judged by its own size, but none by less than this part of the largest one: those are rounding noise.
_SMALLEST_GRADIENT = 1e-3
# Of a stream: a wrong result is wrong at the first batches or at a shape that was compiled for itself. Of a
# training step each batch is a hundred comparisons, so that one of each shape has to do.
_CHECKED_BATCHES = 8
_CHECKED_SHAPES = 16

# Of 604 eager gradients none was off finite differences by more than 0.026 at the better of two steps; of
# gradients from another dropout mask the first layer's was by 0.06 and more (dropout 0.1, a transformer).
_RIGHT_GRADIENT = 0.03
_WRONG_GRADIENT = 0.06
_TELLING = 0.02
_SMALLER_STEP = tensor_comparison.STEP / 4
_MOST_DERIVED = 4
_DERIVED_NS = 20e9

_RANDOM = "reproducible"
_DIFFERENCES = "finite differences"
_RESULTS = ("output", "loss", "gradient")
_PLURALS = {"output": "outputs", "loss": "loss", "gradient": "gradients", "weight": "weights"}
_GRADIENT_OF = "gradient of "
# How much longer a call takes in float64: on a GPU for want of units for it.
_SLOWER_EXACT = {"cpu": 4}
_SLOWER_EXACT_ON_GPU = 70
# Of results: what a step makes and the copy of it; in float64 twice as much.
_RESULTS_OF_RUN = 2
_RESULTS_OF_EXACT_RUN = 4
# Of all that a workload holds: weights in float32, and in float64 with their gradients.
_COPIES_OF_EXACT = 4
_NO_TIME = "too little time"
_NO_MEMORY = "too little memory"
_TEXT_LIMIT = 60
_MOST_NAMED = 20


def seed_all(seed: int) -> None:
    """Of torch, of Python and, where somebody imported it, of numpy."""
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def tolerance_of(built: Built, results: Leaves) -> float:
    """The workload's own tolerance, else its task's, else that of the coarsest dtype among the results."""
    if built.tolerance is not None:
        return built.tolerance
    if built.task == TRAINING or any(name.startswith(("weight", "gradient")) for name in results):
        return _TRAINING_TOLERANCE
    floating = [tensor.dtype for tensor in _floating(results)]
    return max((_TOLERANCE.get(dtype, _REDUCED_TOLERANCE) for dtype in floating), default=0.0)


def _checked(built: Built) -> list[Batch]:
    """What results are compared on: of a stream the first batches, then one of each other shape."""
    if built.stream is None:
        return [Batch(built.inputs, None, built.keywords)]
    chosen: list[Batch] = []
    names: set[Any] = set()
    for batch in built.stream.batches():
        shapes = shapes_of(batch)
        is_new = shapes not in names and len(names) < _CHECKED_SHAPES
        if is_new or (built.task != TRAINING and len(chosen) < _CHECKED_BATCHES):
            chosen.append(batch)
        names.add(shapes)
    return chosen


def _floating(results: Leaves) -> list[torch.Tensor]:
    return [each for each in results.values() if isinstance(each, torch.Tensor) and each.is_floating_point()]


@dataclass
class _Runs:
    """Runs one side from equal state and one seed, `calls` times, and tells what came of it."""

    built: Built
    call: Callable[..., Any]
    state: State
    around: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    calls: int = 1

    def results(self, seed: int) -> Leaves:
        """Outputs of the last call; for training the loss and every gradient of a forward and backward. Of a
        stream those of several batches. Beside them the inputs, buffers and attributes that have changed.
        """
        seed_all(seed)
        self.state.restore()
        results: Leaves = {}
        with self.around():
            self._run(results)
        results |= self.state.changes()
        self.state.restore()
        return results

    def gradient_error(
        self, seed: int, name: str, gradient: torch.Tensor, step: float = tensor_comparison.STEP
    ) -> float:
        """How far the gradient of the weight `name` is from that of the loss of this seed, by `error_of`."""
        model = self.built.model_or_fn
        assert isinstance(model, torch.nn.Module)
        weight = model.get_parameter(name)

        def loss() -> float:
            seed_all(seed)
            # Weights are where they were moved to.
            self.state.restore(weights=False)
            return loss_of(self.built, self.call, first_batch(self.built)).item()

        self.state.restore()
        with self.around():
            return tensor_comparison.error_of(weight, gradient, loss, step)

    def _run(self, results: Leaves) -> None:
        for call in range(self.calls):
            for number, batch in enumerate(_checked(self.built), 1):
                of_batch = _results_of(self.built, self.call, batch)
                suffix = "" if self.built.stream is None else f" of batch {number}"
                results |= {name + suffix: value for name, value in of_batch.items()}
            if call == 0:
                # Those of later calls are of weights that an optimizer has moved, by rounding elsewhere.
                results |= self.state.gradients()


def _results_of(built: Built, call: Callable[..., Any], batch: Batch) -> Leaves:
    if built.task != TRAINING:
        with grad_context(built):
            found = leaves("output", output_of(built, call, batch))
            return {name: copied(value) for name, value in found.items()}
    model = built.model_or_fn
    assert isinstance(model, torch.nn.Module)
    model.zero_grad(set_to_none=True)
    loss = loss_of(built, call, batch)
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            # What a CUDA graph wrote is its own.
            own = parameter.grad.clone() if parameter.grad.is_cuda else parameter.grad
            gradients[_GRADIENT_OF + name] = own
    model.zero_grad(set_to_none=True)
    return {"loss": loss.detach().clone(), **gradients}


def _float64(built: Built) -> Built:
    """The workload in float64, converted from the weights as they are, rounded ones included."""
    if not isinstance(built.model_or_fn, torch.nn.Module):
        model: Callable[..., Any] = built.model_or_fn
    else:
        model = copy.deepcopy(built.model_or_fn).double()
    exact = replace(with_inputs(built, _double), model_or_fn=model, autocast_dtype=None)
    stream = built.stream
    if stream is None:
        return exact
    batches = [batch._replace(inputs=mapped(batch.inputs, _double)) for batch in _checked(built)]
    return replace(exact, stream=replace(stream, batches=lambda: batches))


def _double(tensor: torch.Tensor) -> torch.Tensor:
    return copy_of(tensor, torch.float64 if tensor.is_floating_point() else None)


def _exact_results(runs: _Runs, seed: int) -> Leaves | None:
    """None where the workload cannot run in float64 (out of memory, an operation without the kernel)."""
    try:
        exact = _float64(runs.built)
        return _Runs(exact, exact.model_or_fn, State(exact), runs.around, runs.calls).results(seed)
    except Exception:  # noqa: BLE001 - whatever it is, the plain tolerance decides
        return None
    finally:
        # A function in float64 has the same variables.
        runs.state.restore()


def _difference(one: Leaves, other: Leaves) -> str | None:
    """The first result that is not the same in both."""
    for name, value in one.items():
        if name not in other or (is_comparable(value) and not same(value, other[name])):
            return name
    return next((name for name in other if name not in one), None)


def _is_degenerate(results: Leaves) -> bool:
    floating = _floating({name: each for name, each in results.items() if name.startswith(_RESULTS)})
    known = [tensor for tensor in map(dense, floating) if tensor is not None]
    return bool(known) and all(_largest(tensor) < _DEGENERATE_BELOW for tensor in known)


def _largest(tensor: torch.Tensor) -> float:
    """The largest absolute value of those that are finite; 0 without any."""
    values = (piece.abs().nan_to_num(posinf=0.0) for (piece,) in pieces(tensor) if piece.numel())
    return max((float(each.max()) for each in values), default=0.0)


class _NotCheckedError(Exception):
    """The deadline leaves no time for another run, or memory no room; which of them is the message."""


def _has_room_beside(results: Leaves, copies: int) -> bool:
    """Whether so many `copies` of `results` fit beside them."""
    tensors = [each for each in results.values() if isinstance(each, torch.Tensor)]
    free = free_bytes(tensors[0].device) if tensors else None
    return free is None or copies * sum(map(size_bytes, tensors)) < free


class _Clock:
    """How long a call takes, and whether the trial's deadline leaves time for more."""

    def __init__(self, deadline: Deadline | None) -> None:
        self._deadline = deadline or Deadline()
        self._longest_ns = 0
        self._first: Leaves = {}

    def run(self, runs: _Runs, seed: int) -> Leaves:
        """Raises _NotCheckedError."""
        if not self.leaves(1):
            raise _NotCheckedError(_NO_TIME)
        if not _has_room_beside(self._first, _RESULTS_OF_RUN):
            raise _NotCheckedError(_NO_MEMORY)
        began = time.monotonic_ns()
        results = runs.results(seed)
        self._first = self._first or results
        self._longest_ns = max(self._longest_ns, time.monotonic_ns() - began)
        return results

    def leaves(self, runs: float) -> bool:
        """Whether there is time for so many runs."""
        return self._deadline.leaves(1.5 * runs * self._longest_ns)

    def runs_within(self, budget_ns: float) -> int:
        """How many runs take about `budget_ns`."""
        return int(budget_ns / max(1, self._longest_ns))


def check(
    eager: Variant,
    compiled: Variant,
    states: tuple[State, State] | None,
    seed: int,
    *,
    draws_as_eager: bool = False,
    deadline: Deadline | None = None,
) -> tuple[dict[str, Any], str | None]:
    """`Numerics` of the record and, when it fails, the sentence that says how.

    `states` are those that eager and compiled start from; None: the one they are in. Of a workload that draws
    random numbers each side is held to its own results of the same seed, and compiled to eager's where it
    `draws_as_eager`. Nothing is checked that would not end before the `deadline`.
    """
    own, other = states or (State(eager.built), State(compiled.built))
    control = _Runs(eager.built, eager.call, own, force_eager)
    subject = _Runs(compiled.built, compiled.call, other)
    clock = _Clock(deadline)
    if eager.built is not compiled.built and not (own.is_complete and other.is_complete):
        return {"status": "not_checked", "reason": _NO_MEMORY}, None
    fits_exact = suffices_for(eager, _device_of(eager), _COPIES_OF_EXACT)
    try:
        return _checked_numerics(
            control, subject, seed, clock, draws_as_eager=draws_as_eager, fits_exact=fits_exact
        )
    except _NotCheckedError as error:
        return {"status": "not_checked", "reason": str(error)}, None
    except Exception as error:
        if kind_of(error, "numerics") != "out_of_memory":
            raise
        return {"status": "not_checked", "reason": _NO_MEMORY}, None


def _device_of(variant: Variant) -> torch.device:
    tensors = [
        *input_tensors(variant.built),
        *(variant.module.parameters() if variant.module else ()),
    ]
    return tensors[0].device if tensors else torch.device("cpu")


def _checked_numerics(
    control: _Runs, subject: _Runs, seed: int, clock: _Clock, *, draws_as_eager: bool, fits_exact: bool
) -> tuple[dict[str, Any], str | None]:
    built = control.built
    first = clock.run(control, seed)
    if built.task != TRAINING and any(not name.startswith(_RESULTS) for name in first):
        # What carries state from call to call shows it in the second one.
        control.calls = subject.calls = 2
        first = clock.run(control, seed)
    if all(each is None or not is_comparable(each) for each in first.values()):
        return {"status": "not_checked"}, None
    if _difference(first, clock.run(control, seed)) is not None:
        return {"status": "eager_two_runs_differ"}, None
    # The workload draws random numbers, which a compiled one draws from another generator.
    if _difference(first, clock.run(control, seed + 1)) is not None:
        return _repeated(first, control, subject, seed, clock, draws_as_eager=draws_as_eager)
    if _is_degenerate(first):
        return {"status": "degenerate"}, None
    result = clock.run(subject, seed)
    slower = _SLOWER_EXACT.get(_device_type(first), _SLOWER_EXACT_ON_GPU)
    fits_exact = fits_exact and _has_room_beside(first, _RESULTS_OF_EXACT_RUN)
    exact = _exact_results(control, seed) if fits_exact and clock.leaves(slower) else None
    return _verdict(first, result, exact, tolerance_of(built, first), _scales(first, built.task))


def _device_type(results: Leaves) -> str:
    return next((each.device.type for each in results.values() if isinstance(each, torch.Tensor)), "cpu")


def _repeated(
    first: Leaves, control: _Runs, subject: _Runs, seed: int, clock: _Clock, *, draws_as_eager: bool
) -> tuple[dict[str, Any], str | None]:
    """Of a workload whose eager results repeat from one seed and differ from another: do compiled ones?"""
    built = control.built
    once, twice = clock.run(subject, seed), clock.run(subject, seed)
    different = _difference(once, twice)
    if different is not None:
        return {"status": "fail"}, f"The compiled {different} differs between two runs from the same seed."
    if draws_as_eager:
        return _verdict(first, once, None, tolerance_of(built, first), _scales(first, built.task))
    kinds = dict.fromkeys(name.split()[0] for name in first if name.startswith((*_RESULTS, "weight")))
    left_out = " and ".join(_PLURALS[kind] for kind in kinds)
    content: dict[str, Any] = {"status": _RANDOM} | ({"not_compared": [left_out]} if left_out else {})
    # A backward pass may draw another mask than its forward pass did, from one seed every time.
    if built.task == TRAINING and built.stream is None:
        wrong, is_judged = _held_to_loss((first, once), (control, subject), seed, clock)
        if wrong is not None:
            return {"status": "fail", "reference": _DIFFERENCES}, wrong
        if is_judged:
            content |= {"reference": _DIFFERENCES, "not_compared": [_PLURALS["loss"]]}
    return content, None


def _held_to_loss(
    results: tuple[Leaves, Leaves], sides: tuple[_Runs, _Runs], seed: int, clock: _Clock
) -> tuple[str | None, bool]:
    """Gradients of eager and compiled code beside finite differences of their loss: the sentence that says
    which compiled one is wrong, and whether all that could be told are right.
    """
    (control, subject), (first, once) = sides, results
    judged, doubted = 0, 0
    for name in _derived(once, clock):
        weight = name.removeprefix(_GRADIENT_OF)
        # Both sides, and a smaller step where one is in doubt.
        if name not in first or not clock.leaves(3 * tensor_comparison.RUNS):
            break
        try:
            of_eager = control.gradient_error(seed, weight, first[name])
            error = math.inf if of_eager > _TELLING else subject.gradient_error(seed, weight, once[name])
            if _RIGHT_GRADIENT < error < math.inf:
                # A corner of the loss within the step lies outside of a smaller one.
                error = min(error, subject.gradient_error(seed, weight, once[name], _SMALLER_STEP))
        except Exception:  # noqa: BLE001 - what a weight is made of, or memory: then nothing is told
            traceback.print_exc()
            break
        finally:
            control.state.restore()
            subject.state.restore()
        if math.isinf(error):
            continue
        if error > _WRONG_GRADIENT:
            return (
                f"The compiled {name} is wrong: it is {100 * error:.0f} % off finite differences of its "
                f"own loss from the same random numbers, eager's {100 * of_eager:.1f} %."
            ), False
        judged, doubted = judged + 1, doubted + (error > _RIGHT_GRADIENT)
    return None, judged > doubted == 0


def _derived(results: Leaves, clock: _Clock) -> list[str]:
    """The gradients that are held to finite differences: none that is noise, first that of the first layer,
    through which all masks of a backward pass go; as many as time allows.
    """
    norms = {
        name: float(value.double().norm())
        for name, value in results.items()
        if name.startswith(_GRADIENT_OF) and _is_plain_float32(value)
    }
    floor = _SMALLEST_GRADIENT * max(norms.values(), default=0.0)
    names = [name for name, norm in norms.items() if norm > floor]
    most = clock.runs_within(_DERIVED_NS) // (2 * tensor_comparison.RUNS)
    return names[:: max(1, len(names) // _MOST_DERIVED)][: max(1, min(_MOST_DERIVED, most))]


def _is_plain_float32(value: Any) -> bool:
    return type(value) is torch.Tensor and value.layout is torch.strided and value.dtype == torch.float32


def _scales(results: Leaves, task: str) -> dict[str, float]:
    """The size each tensor is judged by: its largest element for training and gradients, 1 otherwise
    (upstream's rule).
    """
    sizes = {
        name: _largest(value)
        for name, value in results.items()
        if isinstance(value, torch.Tensor)
        and value.numel()
        and (task == TRAINING or name.startswith(_GRADIENT_OF))
    }
    floor = _SMALLEST_GRADIENT * max(sizes.values(), default=0.0)
    own = results if task == TRAINING else sizes
    return dict.fromkeys(results, 1.0) | {name: max(sizes.get(name, 0.0), floor) for name in own}


def _compared(
    reference: Any, result: Any, exact: Any, *, tolerance: float, scale: float
) -> TensorComparison | None:
    """One leaf against eager's; None where they cannot be compared."""
    if isinstance(reference, torch.Tensor) and isinstance(result, torch.Tensor):
        return _compared_tensors(reference, result, exact, tolerance=tolerance, scale=scale)
    if not (is_comparable(reference) and is_comparable(result)):
        return None
    passed, difference = same(reference, result), None
    if isinstance(reference, float) and isinstance(result, float) and math.isfinite(reference):
        passed = math.isclose(reference, result, rel_tol=tolerance, abs_tol=tolerance * scale)
        difference = finite(abs(reference - result))
    reason = None if passed else f"{_text(result)} instead of {_text(reference)}"
    return TensorComparison(passed, difference, reason=reason)


def _compared_tensors(
    reference: torch.Tensor, result: torch.Tensor, exact: Any, *, tolerance: float, scale: float
) -> TensorComparison | None:
    if reference.layout != result.layout:
        return TensorComparison(False, reason=f"layout {result.layout} instead of {reference.layout}")
    one, other = dense(reference), dense(result)
    if one is None or other is None:
        return None
    of_exact = dense(exact) if isinstance(exact, torch.Tensor) else None
    if of_exact is not None and of_exact.shape != one.shape:
        of_exact = None
    return compare(one, other, of_exact, tolerance=tolerance, scale=scale)


def _text(value: Any) -> str:
    text = f"a tensor of {tuple(shape_of(value) or ())}" if isinstance(value, torch.Tensor) else repr(value)
    return text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}..."


def _verdict(
    first: Leaves, result: Leaves, exact: Leaves | None, tolerance: float, scales: dict[str, float]
) -> tuple[dict[str, Any], str | None]:
    if first.keys() != result.keys():
        different = ", ".join(sorted(first.keys() ^ result.keys())[:3])
        return {"status": "fail", "tolerance": tolerance}, f"The results differ in {different}."
    inexact = [name for name, each in first.items() if isinstance(each, torch.Tensor) and _is_inexact(each)]
    usable = (
        exact is not None
        and bool(inexact)
        and all(
            isinstance(exact.get(name), torch.Tensor) and shape_of(exact[name]) == shape_of(first[name])
            for name in inexact
        )
    )
    found = {
        name: _compared(
            value,
            result[name],
            exact.get(name) if usable and exact else None,
            tolerance=tolerance,
            scale=scales[name],
        )
        for name, value in first.items()
    }
    compared = {name: each for name, each in found.items() if each is not None}
    left_out = sorted(found.keys() - compared.keys())
    if not compared:
        return {"status": "not_checked", "not_compared": left_out[:_MOST_NAMED]}, None
    failed = {name: each for name, each in compared.items() if not each.passed}
    by_error = sorted(compared.items(), key=lambda item: -(item[1].max_abs_error or 0.0))
    name, worst = next(iter(failed.items())) if failed else by_error[0]
    content: dict[str, Any] = {
        "status": "fail" if failed else "pass",
        "reference": "float64" if usable else None,
        "cosine_similarity": worst.cosine_similarity,
        "max_abs_error": worst.max_abs_error,
        "rmse_reference": worst.rmse_reference,
        "rmse_result": worst.rmse_result,
        "rms_exact": worst.rms_exact,
        "dtype": worst.dtype,
        "multiplier": worst.multiplier,
        "tolerance": tolerance,
    }
    if left_out:
        content["not_compared"] = left_out[:_MOST_NAMED]
    message = f"The compiled {name} is wrong: {worst.reason}." if failed else None
    return content, message


def _is_inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
