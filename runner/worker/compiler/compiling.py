"""A strategy applied to a workload: what `torch.compile` is called with, and on what.

And what one process leaves for the next: nothing to do for warm, one file for portable. A warm cache is the
same directories again, and a package is written where it is made.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

from compilewatch.runner.worker.compiler.knobs import of_compile, put_in_force
from compilewatch.runner.worker.step.internals import mark_step, mode_options
from compilewatch.runner.worker.step.loading import UnsupportedCaseError, exportable
from compilewatch.runner.worker.step.messages import Strategy
from compilewatch.runner.worker.step.steps import Variant, grad_context, make_variant, tensors_of
from compilewatch.runner.workloads.built import TRAINING, Built

_SUBMODULE = "submodule:"


def needs_own_model(built: Built, strategy: Strategy) -> bool:
    """Whether executing `strategy` changes the model, so that eager needs a copy of its own.

    A training step changes the weights; the partial scopes compile in place. A full compilation wraps the
    model, so inference shares one copy of the weights, as a user would.
    """
    if strategy.kind == "eager" or not isinstance(built.model_or_fn, torch.nn.Module):
        return False
    return built.task == TRAINING or strategy.scope != "full"


def compile_arguments(strategy: Strategy) -> dict[str, Any]:
    """Keyword arguments of `torch.compile` for `strategy`.

    `mode` and `options` exclude each other there, so a mode given with options is spelled out as the options
    it stands for (`torch._inductor.list_mode_options`).
    """
    arguments: dict[str, Any] = {"fullgraph": strategy.fullgraph, "backend": strategy.backend or "inductor"}
    if strategy.dynamic is not None:
        arguments["dynamic"] = strategy.dynamic
    mode, options = strategy.mode, of_compile(strategy.options)
    if mode == "default":
        mode = None
    if mode is not None and options:
        options = mode_options(mode) | options
        mode = None
    if mode is not None:
        arguments["mode"] = mode
    if options:
        arguments["options"] = options
    return arguments


def optimizer_compiler(strategy: Strategy) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """What compiles an optimizer's step as `strategy` compiles the model; an optimizer has no fixed graph."""
    arguments = compile_arguments(strategy) | {"fullgraph": False}

    def compiled(step: Callable[[], Any]) -> Callable[[], Any]:
        compiled_step: Callable[[], Any] = torch.compile(step, **arguments)
        return compiled_step

    return compiled


def repeated_blocks(model: torch.nn.Module, regions: tuple[str, ...]) -> Iterator[torch.nn.Module]:
    """The blocks that regional compilation compiles one by one: `regions` by class name, else the elements of
    every `ModuleList` or `Sequential` that holds one class at least twice.
    """
    if regions:
        yield from (module for module in model.modules() if type(module).__name__ in regions)
        return
    for container in model.modules():
        if isinstance(container, (torch.nn.ModuleList, torch.nn.Sequential)):
            classes = Counter(type(block) for block in container)
            yield from (block for block in container if classes[type(block)] > 1 and any(block.children()))


def apply(built: Built, strategy: Strategy, artifacts: Path) -> Callable[..., Any]:
    """The callable that executes the workload under `strategy`.

    `torch.compile` compiles at the first call. A package is made and written to `artifacts` where there is
    none, else loaded from there. Raises UnsupportedCaseError where the strategy cannot execute the workload.
    """
    _mark_lengths(built)
    put_in_force(strategy.options)
    if strategy.kind == "compile":
        return _compiled(built, strategy)
    if strategy.kind == "export":
        return session_of(built) if strategy.backend == "onnxruntime" else _exported(built)
    if strategy.kind == "aot_package":
        captured = _aot_compiled if strategy.fullgraph else _packaged
        return captured(built, strategy, artifacts.with_suffix(".aot" if strategy.fullgraph else ".pt2"))
    raise UnsupportedCaseError(f"This worker cannot execute a strategy of kind {strategy.kind}.")


def _compiled(built: Built, strategy: Strategy) -> Callable[..., Any]:
    target = built.model_or_fn
    arguments, scope = compile_arguments(strategy), strategy.scope
    if scope == "full":
        compiled: Callable[..., Any] = torch.compile(target, **arguments)
        return compiled
    if not isinstance(target, torch.nn.Module):
        raise UnsupportedCaseError(f"Scope {scope} needs an nn.Module; this workload is a function.")
    if scope == "regions":
        for part in regions_of(strategy):
            _compile_blocks(_scoped(target, part.scope, ()), compile_arguments(part), apart=True)
        return target
    if scope == "nested":
        _mark_regions(repeated(target, built.regions))
        nested: Callable[..., Any] = torch.compile(target, **arguments)
        return nested
    _compile_blocks(_scoped(target, scope, built.regions), arguments)
    return target


def regions_of(strategy: Strategy) -> list[Strategy]:
    """One strategy for each of its regions: with mode or options of its own it has not those of the whole."""
    parts = []
    for path, own in strategy.regions.items():
        inherited: dict[str, Any] = (
            {"mode": None} if own.get("options") else {"options": {}} if own.get("mode") else {}
        )
        parts.append(replace(strategy, **inherited | own, scope=_SUBMODULE + path, regions={}))
    return parts


def _compile_blocks(blocks: list[torch.nn.Module], arguments: dict[str, Any], *, apart: bool = False) -> None:
    """In place. Blocks of torch's own classes share what is compiled for one, unless they are `apart`:
    of different classes one would be a recompilation of the other.
    """
    for block in blocks:
        if type(block).__module__.startswith("torch."):
            forward = _inlined(block.forward)
            if apart:
                forward.__code__ = forward.__code__.replace()
            block.forward = torch.compile(forward, **arguments)
        else:
            block.compile(**arguments)


def _inlined(forward: Callable[..., Any]) -> FunctionType:
    """`forward` of one of torch's own modules, called from here: Dynamo passes over it otherwise."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    assert isinstance(call, FunctionType)
    return call


def _mark_lengths(built: Built) -> None:
    """Tell the compiler which dimension of a stream's inputs varies, where its policy is to say so."""
    stream = built.stream
    if stream is None or stream.marked_dimension is None:
        return
    for batch in stream.batches():
        for tensor in batch.inputs:
            torch._dynamo.mark_dynamic(tensor, stream.marked_dimension)


def _scoped(model: torch.nn.Module, scope: str, regions: tuple[str, ...]) -> list[torch.nn.Module]:
    if scope == "regional":
        return repeated(model, regions)
    path = scope.removeprefix(_SUBMODULE)
    try:
        return [model.get_submodule(path)]
    except AttributeError:
        raise UnsupportedCaseError(f"The model has no submodule {path!r}.") from None


def direct_submodules(built: Built) -> list[str]:
    """Paths of the parts of the model. A list of modules is never called, so its elements stand for it."""
    if not isinstance(built.model_or_fn, torch.nn.Module):
        return []

    def paths(module: torch.nn.Module, prefix: str) -> Iterator[str]:
        for name, child in module.named_children():
            if isinstance(child, (torch.nn.ModuleList, torch.nn.ModuleDict)):
                yield from paths(child, f"{prefix}{name}.")
            else:
                yield prefix + name

    return list(paths(built.model_or_fn, ""))


def repeated(model: torch.nn.Module, regions: tuple[str, ...]) -> list[torch.nn.Module]:
    """`repeated_blocks` of a model that has some. Raises UnsupportedCaseError where it has none."""
    blocks = list(repeated_blocks(model, regions))
    if not blocks:
        sought = f"of class {' or '.join(regions)} " if regions else ""
        raise UnsupportedCaseError(
            f"The model has no repeated blocks {sought}to compile; name their classes in the workload's "
            "`regions`."
        )
    return blocks


def _mark_regions(blocks: list[torch.nn.Module]) -> None:
    """Have the compiler compile blocks of one class once, within the graph of the whole model."""
    mark = getattr(torch.compiler, "nested_compile_region", None)
    if mark is None:
        raise UnsupportedCaseError(f"torch {torch.__version__} has no torch.compiler.nested_compile_region.")
    # For a class: what is the same function is compiled once. Set on one block after the other, torch 2.13.0
    # compiles it once as well, and calls every block with the weights of the first.
    kinds = {type(block) for block in blocks}
    marked = {kind: type(kind.__name__, (kind,), {"forward": mark(kind.forward)}) for kind in kinds}
    for block in blocks:
        block.__class__ = marked[type(block)]


def _aot_compiled(built: Built, strategy: Strategy, package: Path) -> Callable[..., Any]:
    """Ahead-of-time compilation by Dynamo: made by the priming process, loaded by the measured one."""
    load = getattr(torch.compiler, "load_compiled_function", None)
    if load is None:
        raise UnsupportedCaseError(f"torch {torch.__version__} has no torch.compiler.load_compiled_function.")
    if built.stream is not None:
        raise UnsupportedCaseError("aot_compile is for one batch, and this workload goes through several.")
    model = built.model_or_fn
    if not package.exists():
        lazy: Any = torch.compile(model, **compile_arguments(strategy))
        of_module = lazy.forward if isinstance(model, torch.nn.Module) else lazy
        # Compiled for the mode in which it is called.
        with grad_context(built):
            of_module.aot_compile((built.inputs, dict(built.keywords))).save_compiled_function(str(package))
    with package.open("rb") as file:
        loaded: Callable[..., Any] = load(file)
    return partial(loaded, model) if isinstance(model, torch.nn.Module) else loaded


def _exported(built: Built) -> Callable[..., Any]:
    module: Callable[..., Any] = _program(built, "torch.export").module()
    return module


def _program(built: Built, what: str) -> torch.export.ExportedProgram:
    """The model as one graph of its own inputs' shapes."""
    return torch.export.export(exportable(built, what), built.inputs, dict(built.keywords))


def _packaged(built: Built, strategy: Strategy, package: Path) -> Callable[..., Any]:
    """Ahead-of-time compilation: made by the priming process, loaded by the measured one."""
    from torch import _inductor

    if not package.exists():
        program = _program(built, "An ahead-of-time package")
        _inductor.aoti_compile_and_package(
            program, package_path=str(package), inductor_configs=of_compile(strategy.options)
        )
    loaded: Callable[..., Any] = _inductor.aoti_load_package(str(package))
    return loaded


def uses_cudagraphs(strategy: Strategy, device: str) -> bool:
    """Whether the strategy asks for CUDA graphs, so that each step must be marked as one."""
    if device == "cpu" or strategy.kind != "compile":
        return False
    if strategy.regions:
        return any(uses_cudagraphs(part, device) for part in regions_of(strategy))
    requested = strategy.options.get("triton.cudagraphs", False)
    return bool(requested) or strategy.mode in ("reduce-overhead", "max-autotune")


def compiled_variant(
    built: Built,
    strategy: Strategy,
    artifacts: Path,
    device: torch.device,
    optimizer: torch.optim.Optimizer | None = None,
) -> Variant:
    """The workload as `strategy` executes it, compiled at its first call. Raises as `apply`."""
    call = apply(built, strategy, artifacts)
    if uses_cudagraphs(strategy, device.type):
        call = _marked(call)
    return make_variant(built, call, optimizer_compiler(strategy), optimizer)


def _marked(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call` preceded by the mark that lets a CUDA graph reuse the memory of the call before."""

    def marked_call(*arguments: Any, **keywords: Any) -> Any:
        mark_step()
        return call(*arguments, **keywords)

    return marked_call


Results = Callable[[list[torch.Tensor]], Any]
_NEEDED = ("onnx", "onnxscript", "onnxruntime")


def session_of(built: Built) -> Callable[..., Any]:
    """Export the model with `torch.onnx.export(dynamo=True)` and return what executes it.

    As many threads as torch; on a GPU with the CUDA provider, without copies to the host and in the order of
    torch's stream. Raises UnsupportedCaseError where a package, the provider, or a dtype is missing.
    """
    model = exportable(built, "ONNX Runtime")
    missing = next((name for name in _NEEDED if find_spec(name) is None), None)
    if missing is not None:
        raise UnsupportedCaseError(f"{missing} is not installed here.")
    if built.keywords:
        raise UnsupportedCaseError("ONNX Runtime gets inputs by position, and this model takes some by name.")
    device = next((tensor.device for tensor in tensors_of(built.inputs)), torch.device("cpu"))
    # Not torch's default stream: its handle is 0, which the provider takes for none (onnxruntime, #19619).
    stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
    session, results = _session(model, built.inputs, device, stream)
    names = [each.name for each in session.get_inputs()]
    if len(names) != len(list(tensors_of(built.inputs))):
        raise UnsupportedCaseError("The exported model takes other inputs than the model.")
    if stream is None:
        return _through_arrays(session, names, results)
    with torch.no_grad():
        outputs = [torch.empty_like(tensor) for tensor in tensors_of(model(*built.inputs))]
    return _bound(session, names, outputs, results, stream)


def _session(
    model: torch.nn.Module, inputs: tuple[Any, ...], device: torch.device, stream: torch.cuda.Stream | None
) -> tuple[Any, Results]:
    """The session, and what makes the model's own result of its outputs."""
    import onnxruntime

    provider = "CPUExecutionProvider" if device.type == "cpu" else "CUDAExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        raise UnsupportedCaseError(f"This onnxruntime has no {provider}; onnxruntime-gpu has it.")
    place = (
        {}
        if stream is None
        else {"device_id": device.index or 0, "user_compute_stream": str(stream.cuda_stream)}
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "model.onnx")
        program = torch.onnx.export(model, inputs, dynamo=True, verbose=False)
        assert program is not None
        program.save(file)
        session = onnxruntime.InferenceSession(str(file), options, providers=[(provider, place)])
    exported = program.exported_program
    structure = None if exported is None else exported.call_spec.out_spec
    if structure is None or structure.num_leaves != len(session.get_outputs()):
        return session, _one_or_all
    return session, structure.unflatten


def _array(tensor: torch.Tensor) -> Any:
    """The tensor's memory as an array of numpy, which has no bfloat16."""
    if tensor.dtype is torch.bfloat16:
        raise UnsupportedCaseError("ONNX Runtime takes no bfloat16 from Python.")
    return tensor.detach().contiguous().numpy()


def _through_arrays(session: Any, names: list[str], results: Results) -> Callable[..., Any]:
    def call(*inputs: Any) -> Any:
        arrays = dict(zip(names, map(_array, tensors_of(inputs)), strict=True))
        return results([torch.from_numpy(array) for array in session.run(None, arrays)])

    return call


def _bound(
    session: Any,
    names: list[str],
    outputs: list[torch.Tensor],
    results: Results,
    stream: torch.cuda.Stream,
) -> Callable[..., Any]:
    """Inputs and outputs stay on the GPU; every call writes the same outputs and waits for nothing."""
    import onnxruntime

    outputs_by_name = zip((each.name for each in session.get_outputs()), outputs, strict=True)
    binding = session.io_binding()
    for name, tensor in outputs_by_name:
        binding.bind_output(*_place(name, tensor))
    options = onnxruntime.RunOptions()
    # Else every call waits for the GPU (onnxruntime_run_options_config_keys.h).
    options.add_run_config_entry("disable_synchronize_execution_providers", "1")

    def call(*inputs: Any) -> Any:
        dense = [tensor.contiguous() for tensor in tensors_of(inputs)]
        for name, tensor in zip(names, dense, strict=True):
            binding.bind_input(*_place(name, tensor))
        # The events that time a call are on torch's stream.
        current = torch.cuda.current_stream(stream.device)
        stream.wait_stream(current)
        session.run_with_iobinding(binding, options)
        current.wait_stream(stream)
        return results(outputs)

    return call


def _place(name: str, tensor: torch.Tensor) -> tuple[Any, ...]:
    kind = _array(torch.empty(0, dtype=tensor.dtype)).dtype
    return name, "cuda", tensor.device.index or 0, kind, tuple(tensor.shape), tensor.data_ptr()


def _one_or_all(outputs: list[torch.Tensor]) -> Any:
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _portable(strategy: Strategy, name: str) -> Any:
    """The function of `torch.compiler` that moves caches; from release 2.7."""
    if strategy.cache != "portable":
        return None
    function = getattr(torch.compiler, name, None)
    if function is None:
        raise UnsupportedCaseError(
            f"torch {torch.__version__} has no torch.compiler.{name}; portable caches need 2.7."
        )
    return function


def save(strategy: Strategy, artifacts: Path) -> None:
    """Write the caches of this process to `artifacts`, where the strategy's cache state is portable."""
    save_artifacts = _portable(strategy, "save_cache_artifacts")
    if save_artifacts is None:
        return
    saved = save_artifacts()
    if saved is None:
        raise UnsupportedCaseError("Nothing was compiled, so there is no cache to carry.")
    artifacts.write_bytes(saved[0])


def load(strategy: Strategy, artifacts: Path) -> None:
    """Fill the empty caches of this process from `artifacts`, before anything is compiled."""
    load_artifacts = _portable(strategy, "load_cache_artifacts")
    if load_artifacts is not None:
        load_artifacts(artifacts.read_bytes())
