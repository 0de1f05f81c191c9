"""A model exported to ONNX and executed by ONNX Runtime: the strategy `onnxruntime`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from compilewatch.runner.worker.step.loading import UnsupportedCaseError, exportable
from compilewatch.runner.worker.step.steps import tensors_of
from compilewatch.runner.workloads.built import Built

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
