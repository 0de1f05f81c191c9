"""What compiled while somebody waited, and the inputs that a warm-up left out."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Sequence
from pprint import pformat
from typing import Any

from compilewatch.db.records.evidence import (
    AfterReady,
    CompileAfterReady,
    CompiledInput,
    CompileKind,
    RequestInput,
)
from compilewatch.db.units import count, duration, plural, words

_NAMED = 3
_RESUMED = "torch_dynamo_resume_in_"
_STEP = re.compile(r"\['([^']*)'\]|\[(\d+)\]")
_DTYPE = re.compile(r"[a-z][a-z0-9_]{1,30}")
_ANSWERS = "what answers a request"
_UNMADE = object()
_WITH_INPUTS = (CompileKind.COMPILATION, CompileKind.RECOMPILATION)


def after_ready_sentence(facts: AfterReady) -> str:
    """How many compilations after ready, their time of that watched, and for which inputs."""
    watched = "" if facts.watched_ns is None else f" in {duration(facts.watched_ns)}"
    if facts.count == 0:
        return f"Nothing compiled after ready{watched}."
    said = f"{plural(facts.count, 'compilation')} after ready cost {duration(facts.cost_ns)}{watched}"
    inputs = list(dict.fromkeys(text for each in facts.compiles if (text := _inputs_text(each))))
    if not inputs:
        return f"{said}."
    more = f" and {count(len(inputs) - _NAMED)} more" if len(inputs) > _NAMED else ""
    return (
        f"{said}: never warmed up {'were' if len(inputs) > 1 else 'was'} {'; '.join(inputs[:_NAMED])}{more}."
    )


def after_ready_rows(facts: AfterReady) -> list[dict[str, Any]]:
    """A row for each compilation: when, how long, what, for which request and inputs, why."""
    return [
        {
            "after": each.after_ns,
            "cost": each.cost_ns,
            "kind": words(each.kind.value),
            "function": each.function,
            "request": each.request,
            "inputs": _inputs_text(each) or None,
            "reason": each.reason,
        }
        for each in facts.compiles
    ]


def after_ready_texts(facts: AfterReady) -> list[tuple[str, str]]:
    """The sentence, and a line for each compilation, named by how long after ready it began."""
    return [("after ready", after_ready_sentence(facts)), *(_line(each) for each in facts.compiles)]


def _line(each: CompileAfterReady) -> tuple[str, str]:
    of = f" of {each.function}" if each.function else ""
    waiting = f", request {each.request}" if each.request else ""
    why = "; ".join(filter(None, (_inputs_text(each), each.reason)))
    text = f"{duration(each.cost_ns)}, {words(each.kind.value)}{of}{waiting}" + (f": {why}" if why else "")
    return f"  after {duration(each.after_ns)}", text


def _inputs_text(each: CompileAfterReady) -> str:
    if each.request_inputs:
        return ", ".join(map(_request_input_text, each.request_inputs))
    return ", ".join(_input_text(tensor) for tensor in each.inputs or ())


def _input_text(tensor: CompiledInput) -> str:
    return f"{_name(tensor.source)} {_size_text(tensor.size)} {tensor.dtype}"


def _request_input_text(told: RequestInput) -> str:
    if told.size is not None:
        return f"{_name(told.source)} {_size_text(told.size)} {told.dtype}"
    return f"{_name(told.source)} {told.literal or told.made_of}"


def _size_text(size: Sequence[int]) -> str:
    return " x ".join(map(str, size)) or "a number"


def _name(source: str) -> str:
    """`L['batch']['ids']` is batch.ids."""
    return ".".join(step[0] or step[1] for step in _STEP.findall(source)) or source


# The warm-up that was missing. What a record says goes into it as literals alone.
_SCRIPT = '''"""By compilewatch: inputs that a job compiled for after it was ready, and a call with each.

Call `warm_up(model)` before the job is ready, under its own `torch.no_grad()`, autocast and device. Of
several functions name one for each entry of INPUTS, in that order.
"""

import torch

JOB = {job}

# Of each function its calls: arguments by name; a tensor is its size and type, and what it is filled with.
# "{answers}" is the function that answers a request, where the job tells what it calls that with.
INPUTS = {inputs}

# What no call with other sizes warms up.
LEFT_OUT = {left_out}


def warm_up(*functions, device=None):
    """Call each function with every input that it had not seen."""
    for function, calls in zip(functions, INPUTS.values(), strict=True):
        for arguments in calls:
            made = _made(arguments, device)
            positional, named = made.pop("args", []), made.pop("kwargs", {{}})
            function(*positional, **named, **made)


def _made(part, device):
    if isinstance(part, tuple):
        size, dtype, *filled_with = part
        tensor = torch.zeros(size, dtype=getattr(torch, dtype), device=device)
        return tensor.fill_(*filled_with) if filled_with else tensor
    if not isinstance(part, dict) or not part:
        return part
    if all(isinstance(name, int) for name in part):
        return [_made(part[index], device) for index in sorted(part)]
    return {{name: _made(entry, device) for name, entry in part.items()}}
'''


def warm_up_script(job: str, processes: Iterable[AfterReady]) -> str | None:
    """A Python module that calls what the processes of a job compiled for after ready; None where none of
    that has inputs to call with.
    """
    calls: dict[str, list[dict[str, Any]]] = {}
    left_out: list[str] = []
    for each in (each for facts in processes for each in facts.compiles):
        function, arguments = _call(each)
        if arguments:
            of_function = calls.setdefault(function, [])
            if arguments not in of_function:
                of_function.append(arguments)
        elif each.request_inputs or not (each.function or "").startswith(_RESUMED):
            text = ": ".join(filter(None, (words(each.kind.value), each.function, _unmade(each))))
            left_out += [text] if text not in left_out else []
    if not calls:
        return None
    return _SCRIPT.format(
        job=repr(job),
        answers=_ANSWERS,
        inputs=_literal(calls, "INPUTS = "),
        left_out=_literal(left_out, "LEFT_OUT = "),
    )


def _literal(value: Any, behind: str) -> str:
    return pformat(value, width=100, sort_dicts=False).replace("\n", "\n" + " " * len(behind))


def _unmade(each: CompileAfterReady) -> str | None:
    """Why nothing calls what was compiled, where its arguments tell."""
    if each.request_inputs:
        unmade = (told for told in each.request_inputs if told.made_of)
        return "; ".join(f"{_name(told.source)} is a {told.made_of}" for told in unmade)
    if each.objects:
        names = ", ".join(map(_name, each.objects))
        return f"{names}: more than tensors, name the inputs of `record.request`"
    return each.reason


def _call(each: CompileAfterReady) -> tuple[str, dict[str, Any]]:
    """The function to call with which arguments by name, nested as it has them; none where they cannot be
    made.

    The rest of a function after a graph break is called by the function itself.
    """
    if each.request_inputs:
        return _ANSWERS, _nested((told.source, _of_request(told)) for told in each.request_inputs)
    if each.kind not in _WITH_INPUTS or (each.function or "").startswith(_RESUMED) or each.objects:
        return "", {}
    tensors = ((tensor.source, _tensor(tensor.size, tensor.dtype)) for tensor in each.inputs or ())
    return each.function or "the function", _nested(tensors)


def _tensor(size: Sequence[int], dtype: str | None, *filled_with: int) -> Any:
    return (list(size), dtype, *filled_with) if _DTYPE.fullmatch(dtype or "") else _UNMADE


def _of_request(told: RequestInput) -> Any:
    if told.size is not None:
        return _tensor(told.size, told.dtype, *([] if told.filled_with is None else [told.filled_with]))
    try:
        value = json.loads(told.literal or "", parse_constant=lambda _: _UNMADE)
    except ValueError:
        return _UNMADE
    # What is not empty comes entry by entry.
    return _UNMADE if isinstance(value, list | dict) and value else value


def _nested(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Values by argument, list index and key, as `L['batch']['ids']` says; none where one cannot be made."""
    arguments: dict[Any, Any] = {}
    for source, value in values:
        steps = [name or int(index) for name, index in _STEP.findall(source)]
        if value is _UNMADE or not steps or not _is_argument(steps[0]):
            return {}
        *folders, last = steps
        place: Any = arguments
        for step in folders:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                return {}
        place[last] = value
    return arguments


def _is_argument(name: str | int) -> bool:
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
