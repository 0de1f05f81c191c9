"""What a step may change beside its result: inputs, weights, buffers, attributes, a function's variables.
Kept as it was, put back, compared.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any

import torch

from compilewatch.runner.worker.host.free_memory import has_room_for
from compilewatch.runner.worker.step.leaves import (
    MOST_PARTS,
    NOT_THE_USERS,
    Leaves,
    copied,
    copy_of,
    is_comparable,
    leaves,
    parts_of,
    same,
    size_bytes,
)
from compilewatch.runner.workloads.built import TRAINING, Built

_ATTRIBUTES_OF_TORCH = frozenset(vars(torch.nn.Module()))
_MOST_ELEMENTS = 1_000
_OPTIMIZER = "optimizer"
_LARGE_BYTES = 1 << 20
"""From here on it is looked up whether there is memory for a copy."""


@dataclass
class _Kept:
    """A value, the content of a tensor, and the parts of a container."""

    value: Any
    content: torch.Tensor | None = None
    parts: list[tuple[Any, _Kept]] | None = None


def _keep(value: Any, visited: dict[int, _Kept], *, is_large_kept: bool) -> _Kept:
    if id(value) in visited:
        return visited[id(value)]
    kept = _Kept(value)
    if isinstance(value, torch.Tensor):
        # Held by the host, so that it takes no memory of the device.
        with contextlib.suppress(RuntimeError, NotImplementedError, TypeError):
            if is_large_kept or size_bytes(value) < _LARGE_BYTES:
                kept.content = copy_of(value) if value.device.type == "cpu" else value.detach().cpu()
    elif (inner := parts_of(value)) is not None and len(visited) < MOST_PARTS:
        visited[id(value)] = kept
        kept.parts = [(key, _keep(each, visited, is_large_kept=is_large_kept)) for key, each in inner]
    return kept


def _content(kept: _Kept) -> Any:
    return kept.value if kept.content is None else kept.content


def _put_back(kept: _Kept) -> Any:
    """The value as it was: tensors and containers in place."""
    value = kept.value
    if kept.content is not None:
        if not same(kept.content, value):
            with contextlib.suppress(RuntimeError, NotImplementedError):
                value.detach().copy_(kept.content)
        return value
    if kept.parts is None:
        return value
    parts, kept.parts = kept.parts, None
    was = {key: _put_back(part) for key, part in parts}
    kept.parts = parts
    now = dict(parts_of(value) or ())
    if list(was) == list(now) and all(was[key] is now[key] for key in was):
        return value
    if isinstance(value, list):
        value[:] = was.values()
    elif isinstance(value, dict):
        value.clear()
        value.update(was)
    elif not isinstance(value, tuple):
        vars(value).clear()
        vars(value).update(was)
    return value


@dataclass
class _Place:
    """Values that may change, by name: read and written together."""

    name: str
    read: Callable[[], Any]
    write: Callable[[dict[Any, Any]], None]
    kept: _Kept = field(init=False)

    def keep(self, *, is_large_kept: bool) -> None:
        self.kept = _keep(self.read(), {}, is_large_kept=is_large_kept)

    def leaves_kept(self) -> Leaves:
        return leaves(self.name, self.kept, lambda kept: kept.parts, _content)

    def restore(self) -> None:
        was = {key: _put_back(part) for key, part in self.kept.parts or ()}
        now = dict(parts_of(self.read()) or ())
        if list(was) != list(now) or any(was[key] is not now[key] for key in was):
            self.write(was)


class State:
    """A workload's inputs and state as they are now. Of a stream the inputs are left out: it makes its own.

    The weights of a model in inference are left out too: no step writes to them, and they may be most of the
    memory. Where there is no room for copies of all large tensors, the content of none of them is kept.
    """

    def __init__(self, built: Built) -> None:
        self._places = list(_places(built))
        found = (leaf for place in self._places for leaf in leaves(place.name, place.read()).values())
        sizes = {id(leaf): size_bytes(leaf) for leaf in found if isinstance(leaf, torch.Tensor)}
        large = sum(size for size in sizes.values() if size >= _LARGE_BYTES)
        self.is_complete = not large or has_room_for(large)
        """Whether the content of large tensors is kept too."""
        for place in self._places:
            place.keep(is_large_kept=self.is_complete)

    def changes(self) -> Leaves:
        """Copies of the leaves that are not what they were; None for those that are gone."""
        return {name: copied(value) for name, value in self._changed()}

    def changed_names(self) -> list[str]:
        """Of those leaves; nothing is copied."""
        return [name for name, _ in self._changed()]

    def _changed(self) -> Iterator[tuple[str, Any]]:
        for place in self._places:
            before, now = place.leaves_kept(), leaves(place.name, place.read())
            for name, value in now.items():
                if name not in before or not (same(before[name], value) or not is_comparable(value)):
                    yield name, value
            yield from ((name, None) for name in before if name not in now)

    def restore(self, *, optimizers: bool = True) -> None:
        """Put everything back: tensors and containers in place, so that what refers to them still does. What
        is compiled for an optimizer with moments is compiled anew for one without, so they may be left.
        """
        with torch.no_grad():
            for place in self._places:
                if optimizers or place.name != _OPTIMIZER:
                    place.restore()


_SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "threads": (torch.get_num_threads, torch.set_num_threads),
    "deterministic algorithms": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
}
"""Of torch, for the whole process: how each is read and set."""


def _set_settings(values: dict[Any, Any]) -> None:
    for name, value in values.items():
        _SETTINGS[name][1](value)


def _places(built: Built) -> Iterator[_Place]:
    yield _Place("setting", lambda: {name: read() for name, (read, _) in _SETTINGS.items()}, _set_settings)
    if built.stream is None:
        yield _Place("input", lambda: dict(enumerate(built.inputs)) | dict(built.keywords), lambda _: None)
    model = built.model_or_fn
    if isinstance(model, torch.nn.Module):
        yield from _of_module(model, weights=built.task == TRAINING or built.with_gradients)
    else:
        yield from _of_function(model, set(), weights=built.with_gradients)


def _of_module(model: torch.nn.Module, *, weights: bool) -> Iterator[_Place]:
    """Buffers, attributes, those of its class too, and, if wanted, `weights` of every module below."""
    kinds: set[type] = set()
    for path, module in model.named_modules():
        prefix = f"{path}." if path else ""
        for name, table in (("weight", module._parameters), ("buffer", module._buffers)):
            if table and (weights or name == "buffer"):
                yield _Place(name, functools.partial(_prefixed, table, prefix), _writer(table, prefix))
        kind = type(module)
        if kind not in kinds and _is_the_users(kind):
            kinds.add(kind)
            yield _Place(
                "class attribute", functools.partial(_data_of, kind), functools.partial(_set_on, kind)
            )
        attributes = vars(module)
        yield _Place("attribute", functools.partial(_own, attributes, prefix), _writer(attributes, prefix))


def functions_of(built: Built) -> Iterator[tuple[str, Any]]:
    """What a step may call, by name: the modules, the functions of their classes, and on from a function the
    user's functions and modules that it closes over or names.
    """
    waiting: list[tuple[str, Any]] = [("", built.model_or_fn)]
    visited: set[int] = set()
    while waiting:
        path, value = waiting.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        yield path, value
        if isinstance(value, torch.nn.Module):
            kinds = list(filter(_is_the_users, type(value).__mro__[:-1]))
            methods = [(kind, name, each) for kind in kinds for name, each in _callables(vars(kind))]
            reached = _reached_by_forward(methods)
            waiting += [(f"{kind.__name__}.{name}", each) for kind, name, each in methods if name in reached]
            waiting += [(f"{path}.{name}" if path else name, each) for name, each in _callables(vars(value))]
            waiting += [(f"{path}.{name}" if path else name, each) for name, each in value.named_children()]
        plain = getattr(value, "_torchdynamo_orig_callable", getattr(value, "__func__", value))
        if isinstance(plain, types.FunctionType) and _is_the_users(plain):
            cells = dict(zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True))
            named = {name: plain.__globals__.get(name) for name in plain.__code__.co_names}
            waiting += _callables(named | _contents(cells))


def _reached_by_forward(methods: list[tuple[type, str, Any]]) -> set[str]:
    """The names among `methods` that `forward` names, or one that it names, and so on: a step calls no other,
    as that of a library's model which compiles it for generation.
    """
    named: dict[str, set[str]] = {}
    for _, name, each in methods:
        plain = getattr(each, "_torchdynamo_orig_callable", getattr(each, "__func__", each))
        named.setdefault(name, set()).update(_names_in(getattr(plain, "__code__", None)))
    reached, waiting = set(), ["forward", "__call__"]
    while waiting:
        name = waiting.pop()
        if name in named and name not in reached:
            reached.add(name)
            waiting += named[name]
    return reached


def _names_in(code: types.CodeType | None) -> set[str]:
    """What a function's code names, functions inside it included."""
    if code is None:
        return set()
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _callables(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What can be called among `values` and the elements of their lists, tuples and mappings."""
    for name, value in values.items():
        if name in _ATTRIBUTES_OF_TORCH:
            continue
        if isinstance(value, (list, tuple, dict)):
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            yield from (
                (f"{name}.{key}", each) for key, each in list(inner)[:_MOST_ELEMENTS] if callable(each)
            )
        elif callable(value):
            yield name, value


def _prefixed(table: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {prefix + name: value for name, value in table.items()}


def _data_of(kind: type) -> dict[str, Any]:
    return {f"{kind.__name__}.{name}": each for name, each in vars(kind).items() if _is_counted(name, each)}


def _is_counted(name: str, value: Any) -> bool:
    return not name.startswith("__") and name not in _ATTRIBUTES_OF_TORCH and _is_data(value)


def _set_on(kind: type, values: dict[Any, Any]) -> None:
    for name, value in values.items():
        setattr(kind, name.rpartition(".")[2], value)


def _own(attributes: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {prefix + name: each for name, each in attributes.items() if name not in _ATTRIBUTES_OF_TORCH}


def _writer(table: dict[str, Any], prefix: str) -> Callable[[dict[Any, Any]], None]:
    def write(values: dict[Any, Any]) -> None:
        was = {name.removeprefix(prefix): value for name, value in values.items()}
        for name in [name for name in table if name not in was and name not in _ATTRIBUTES_OF_TORCH]:
            del table[name]
        table.update(was)

    return write


def _of_function(function: Any, visited: set[int], *, weights: bool) -> Iterator[_Place]:
    """Variables that a function closes over, globals that it names, the object that it is a method of, and so
    on for the functions and modules among them.
    """
    if id(function) in visited:
        return
    visited.add(id(function))
    if isinstance(function, functools.partial):
        yield _Place("argument", lambda: {"args": function.args, **function.keywords}, lambda _: None)
        yield from _of_function(function.func, visited, weights=weights)
        return
    owner = getattr(function, "__self__", None)
    plain = getattr(function, "__func__", function)
    reached: list[Any] = [] if owner is None or isinstance(owner, types.ModuleType) else [owner]
    if isinstance(plain, types.FunctionType):
        cells = dict(zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True))
        yield _Place("variable", functools.partial(_contents, cells), functools.partial(_fill, cells))
        names = {name for name in plain.__code__.co_names if _is_data(plain.__globals__.get(name))}
        table = plain.__globals__
        yield _Place(
            "variable", lambda: {name: table[name] for name in sorted(names) if name in table}, table.update
        )
        reached += [*_contents(cells).values(), *(table.get(name) for name in plain.__code__.co_names)]
    elif not isinstance(function, torch.nn.Module) and _is_the_users(function):
        reached.append(function)
    for value in reached:
        if _holds_state(value) and id(value) not in visited:
            visited.add(id(value))
            yield _Place(_OPTIMIZER, value.state_dict, value.load_state_dict)
        elif isinstance(value, torch.nn.Module):
            if id(value) not in visited:
                visited.add(id(value))
                yield from _of_module(value, weights=weights)
        elif isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
            if _is_the_users(value):
                yield from _of_function(value, visited, weights=weights)
        elif value is owner or value is function:
            attributes = vars(value) if hasattr(value, "__dict__") else {}
            yield _Place("attribute", functools.partial(dict, attributes), _writer(attributes, ""))


def _holds_state(value: Any) -> bool:
    """Whether it is an optimizer, a scheduler or a scaler of gradients."""
    of_torch = (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler, torch.amp.GradScaler)
    return isinstance(value, of_torch)


def _is_the_users(value: Any) -> bool:
    module = getattr(value, "__module__", None) or type(value).__module__
    return module.partition(".")[0] not in NOT_THE_USERS


def _is_data(value: Any) -> bool:
    """Whether a global is something that a function may change: no function, class or module."""
    return isinstance(value, (torch.Tensor, list, dict, int, float, str)) or is_dataclass(value)


def _contents(cells: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, cell in cells.items():
        # A variable that is not assigned yet has none.
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _fill(cells: dict[str, Any], values: dict[Any, Any]) -> None:
    for name, value in values.items():
        cells[name].cell_contents = value
