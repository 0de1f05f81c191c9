"""What a step may change beside its result: inputs, weights, buffers, attributes, a function's variables.
Kept as it was, put back, compared.
"""

from __future__ import annotations

import contextlib
import functools
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from compilewatch.runner.worker.step.host import has_room_for
from compilewatch.runner.worker.step.leaves import (
    MOST_PARTS,
    NOT_THE_USERS,
    Leaves,
    as_tensor,
    attributes_of,
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
# Compiling a part in place sets them (torch/nn/modules/module.py, `Module.compile`): to put back what they
# were would be to run the part as it was written.
_SET_BY_COMPILING = frozenset(("_compiled_call_impl", "forward"))
_MOST_ELEMENTS = 1_000
_OPTIMIZER = "optimizer"
_LARGE_BYTES = 1 << 20
"""From here on it is looked up whether there is memory for a copy."""


@dataclass
class _Saved:
    """A value, the content of a tensor, and the parts of a container."""

    value: Any
    content: torch.Tensor | None = None
    parts: list[tuple[Any, _Saved]] | None = None


def _keep(value: Any, visited: dict[int, _Saved], *, saves_large: bool) -> _Saved:
    if id(value) in visited:
        return visited[id(value)]
    saved = _Saved(value)
    if isinstance(tensor := as_tensor(value), torch.Tensor):
        # Held by the host, so that it takes no memory of the device.
        with contextlib.suppress(RuntimeError, NotImplementedError, TypeError):
            if saves_large or size_bytes(tensor) < _LARGE_BYTES:
                saved.content = copy_of(tensor) if tensor.device.type == "cpu" else tensor.detach().cpu()
    elif (inner := parts_of(value)) is not None and len(visited) < MOST_PARTS:
        visited[id(value)] = saved
        saved.parts = [(key, _keep(each, visited, saves_large=saves_large)) for key, each in inner]
    return saved


def _content(saved: _Saved) -> Any:
    return saved.value if saved.content is None else saved.content


def _put_back(saved: _Saved) -> Any:
    """The value as it was: tensors and containers in place."""
    value = saved.value
    if saved.content is not None:
        tensor = as_tensor(value)
        if not same(saved.content, tensor):
            with contextlib.suppress(RuntimeError, NotImplementedError):
                tensor.detach().copy_(saved.content)
        return value
    if saved.parts is None:
        return value
    parts, saved.parts = saved.parts, None
    was = {key: _put_back(part) for key, part in parts}
    saved.parts = parts
    now = dict(parts_of(value) or ())
    if list(was) == list(now) and all(was[key] is now[key] for key in was):
        return value
    # What refuses to be changed is found not to be put back.
    with contextlib.suppress(Exception):
        _refill(value, was)
    return value


def _refill(value: Any, parts: dict[Any, Any]) -> None:
    """Let a container have `parts` again."""
    if isinstance(value, list):
        value[:] = parts.values()
    elif isinstance(value, deque):
        value.clear()
        value.extend(parts.values())
    elif isinstance(value, set):
        value.clear()
        value.update(parts.values())
    elif isinstance(value, dict):
        value.clear()
        value.update(parts)
    elif not isinstance(value, tuple):
        for name in attributes_of(value).keys() - parts.keys():
            object.__delattr__(value, name)
        for name, each in parts.items():
            object.__setattr__(value, name, each)


@dataclass
class _Place:
    """Values that may change, by name: read and written together."""

    name: str
    read: Callable[[], Any]
    write: Callable[[dict[Any, Any]], None]
    owner: str = ""
    """Whose they are, for people."""
    saved: _Saved = field(init=False)

    def keep(self, *, saves_large: bool) -> None:
        self.saved = _keep(self.read(), {}, saves_large=saves_large)

    def saved_leaves(self) -> Leaves:
        return leaves(self.name, self.saved, lambda saved: saved.parts, _content)

    def restore(self) -> None:
        was = {key: _put_back(part) for key, part in self.saved.parts or ()}
        now = dict(parts_of(self.read()) or ())
        if list(was) != list(now) or any(was[key] is not now[key] for key in was):
            self.write(was)


@dataclass(frozen=True)
class Census:
    """How long everything of a state is after some calls: containers in entries, tensors in elements."""

    entries: Mapping[str, int]
    elements: Mapping[str, int]
    size_bytes: int
    """Of all storages of tensors, each counted once."""


class State:
    """A workload's inputs and state as they are now. Of a stream the inputs are left out: it makes its own.

    The weights of a model in inference are left out too until `keep_written` finds that calls write to them:
    they may be most of the memory. Where there is no room for copies of all large tensors, the content of
    none of them is saved.
    """

    def __init__(self, built: Built) -> None:
        self._built = built
        self.weights_change = _weights_change(built)
        """Whether a step writes to the weights by an optimizer, or may."""
        self._prints = {} if self.weights_change else _prints_of_weights(built)
        self._places = list(_places(built, weights=self.weights_change))
        found = (leaf for place in self._places for leaf in leaves(place.name, place.read()).values())
        sizes = {id(leaf): size_bytes(leaf) for leaf in found if isinstance(leaf, torch.Tensor)}
        large = sum(size for size in sizes.values() if size >= _LARGE_BYTES)
        self.is_complete = not large or has_room_for(large)
        """Whether the content of large tensors is saved too."""
        for place in self._places:
            place.keep(saves_large=self.is_complete)
        self._gradients = {
            id(leaf): (leaf, leaf.grad, copied(leaf.grad))
            for _, leaf in self._derived()
            if leaf.grad is not None
        }

    def _derived(self) -> Iterator[tuple[str, torch.Tensor]]:
        """What a function that calls `backward()` leaves gradients on, by name; nothing of other steps."""
        if not self._built.with_gradients or self._built.task == TRAINING:
            return
        for place in self._places:
            for name, leaf in leaves(place.name, place.read()).items():
                if isinstance(leaf, torch.Tensor) and leaf.is_leaf and leaf.requires_grad:
                    yield name, leaf

    def gradients(self) -> Leaves:
        """Copies of the gradients that a function has left, by what they are of."""
        found = ((name, leaf.grad) for name, leaf in self._derived())
        return {f"gradient of {name}": copied(grad) for name, grad in found if grad is not None}

    def keep_written(self) -> list[str]:
        """Which weights were written since the state was taken, by calls that no optimizer belongs to, as of
        a momentum encoder or a codebook. They are part of the state from now on, as they are now.
        """
        now = _prints_of_weights(self._built)
        names = [name for name, print_ in self._prints.items() if now.get(name, print_) != print_]
        model = self._built.model_or_fn
        if not names or not isinstance(model, torch.nn.Module):
            return []
        place = _Place("weight", lambda: {name: model.get_parameter(name) for name in names}, lambda _: None)
        size = sum(size_bytes(each) for each in place.read().values())
        place.keep(saves_large=self.is_complete and has_room_for(size))
        self._places.append(place)
        self._prints = {}
        return names

    def census(self) -> Census:
        """How long everything is now. Nothing is copied."""
        entries: dict[str, int] = {}
        elements: dict[str, int] = {}
        storages: dict[int, int] = {}

        def walk(path: str, value: Any, visited: set[int]) -> None:
            part = as_tensor(value)
            if isinstance(part, torch.Tensor):
                with contextlib.suppress(RuntimeError, NotImplementedError):
                    elements[path] = part.numel()
                    storage = part.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
                return
            inner = parts_of(value)
            if inner is None or id(value) in visited or len(entries) + len(elements) >= MOST_PARTS:
                return
            entries[path] = len(inner)
            below = visited | {id(value)}
            for key, each in inner:
                walk(f"{path}.{key}", each, below)

        for place in self._places:
            values = dict(parts_of(place.read()) or ())
            # Of the place itself: an attribute or a buffer more with each call.
            own = f"{place.name}s of {place.owner}" if place.owner else f"{place.name}s"
            entries[own] = entries.get(own, 0) + len(values)
            for key, each in values.items():
                walk(f"{place.name} {key}", each, set())
        return Census(entries, elements, sum(storages.values()))

    def changes(self) -> Leaves:
        """Copies of the leaves that are not what they were; None for those that are gone."""
        return {name: copied(value) for name, value in self._changed()}

    def changed_names(self) -> list[str]:
        """Of those leaves; nothing is copied."""
        return [name for name, _ in self._changed()]

    def changes_of_python(self) -> bool:
        """Whether anything is not what it was that is no tensor, or there is another number of tensors:
        compiled code may be for one value of it.
        """
        return any(
            value is None or not isinstance(value, torch.Tensor) or name not in self._saved_names()
            for name, value in self._changed()
            if not name.startswith(("setting", _OPTIMIZER))
        )

    def _saved_names(self) -> set[str]:
        return {name for place in self._places for name in place.saved_leaves()}

    def _changed(self) -> Iterator[tuple[str, Any]]:
        for place in self._places:
            before, now = place.saved_leaves(), leaves(place.name, place.read())
            for name, value in now.items():
                if name not in before or not (same(before[name], value) or not is_comparable(value)):
                    yield name, value
            yield from ((name, None) for name in before if name not in now)

    def restore(self, *, optimizers: bool = True, weights: bool = True) -> None:
        """Put everything back: tensors and containers in place, so that what refers to them still does. What
        is compiled for an optimizer with moments is compiled anew for one without, so they may be left; and
        so may `weights` that an optimizer writes, which change no length.
        """
        with torch.no_grad():
            for place in self._places:
                if (optimizers or place.name != _OPTIMIZER) and (weights or place.name != "weight"):
                    place.restore()
            for _, leaf in self._derived():
                _, gradient, content = self._gradients.get(id(leaf), (leaf, None, None))
                if gradient is not None and content is not None:
                    gradient.copy_(content)
                leaf.grad = gradient


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


def _weights_change(built: Built) -> bool:
    """Whether a step writes to the weights, as one with an optimizer does."""
    return built.task == TRAINING or built.with_gradients


def _prints_of_weights(built: Built) -> dict[str, str]:
    """What is another once a weight was written: how often it was, where it lies, and, since a write through
    `.data` is not counted, its sum.
    """
    model = built.model_or_fn
    if not isinstance(model, torch.nn.Module):
        return {}
    found = {}
    for name, weight in model.named_parameters():
        with contextlib.suppress(RuntimeError, NotImplementedError, ValueError):
            total = weight.detach().sum().item()
            found[name] = f"{weight._version} {weight.data_ptr()} {total!r}"
    return found


def tensors_held(built: Built) -> Iterator[torch.Tensor]:
    """Every tensor that is there between two steps, with its gradient: inputs, weights, what modules, the
    variables and objects of functions, and optimizers hold. Some may come twice.
    """
    for place in _places(built, weights=True):
        for leaf in leaves(place.name, place.read()).values():
            if isinstance(leaf, torch.Tensor):
                yield leaf
                if leaf.is_leaf and leaf.grad is not None:
                    yield leaf.grad


def _places(built: Built, *, weights: bool) -> Iterator[_Place]:
    yield _Place("setting", lambda: {name: read() for name, (read, _) in _SETTINGS.items()}, _set_settings)
    if built.stream is None:
        yield _Place("input", lambda: dict(enumerate(built.inputs)) | dict(built.keywords), lambda _: None)
    yield from _Walk(weights=weights).of(built.model_or_fn)


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class _Walk:
    """Goes through all that a step reaches: modules, functions and what they close over or name, the objects
    of methods, hooks, optimizers; each once.
    """

    def __init__(self, *, weights: bool) -> None:
        self._weights = weights
        self._visited: dict[int, Any] = {}

    def _is_new(self, value: Any) -> bool:
        # Kept, so that no other value gets its id.
        return len(self._visited) < MOST_PARTS and self._visited.setdefault(id(value), value) is value

    def of(self, value: Any) -> Iterator[_Place]:
        """What a step that calls `value` reaches."""
        if isinstance(value, types.MethodType):
            yield from self._of_object(value.__self__)
            value = value.__func__
        is_object = not isinstance(value, _CALLABLES) and not _holds_state(value)
        if is_object:
            if callable(value) and _is_the_users(value):
                yield from self._of_object(value)
                yield from self.of(type(value).__call__)
        elif id(value) in self._visited or not self._is_new(value):
            return
        elif isinstance(value, torch.nn.Module):
            yield from self._of_module(value)
        elif isinstance(value, functools.partial):
            yield _Place("argument", lambda: {"args": value.args, **value.keywords}, lambda _: None)
            yield from self._inside([*value.args, *value.keywords.values()])
            yield from self.of(value.func)
        elif isinstance(value, types.FunctionType):
            yield from self._of_function(value)
        elif _holds_state(value):
            yield _Place(_OPTIMIZER, value.state_dict, value.load_state_dict)

    def _of_object(self, owner: Any) -> Iterator[_Place]:
        """The attributes of an object whose method is called."""
        if isinstance(owner, (torch.nn.Module, type)):
            if isinstance(owner, torch.nn.Module):
                yield from self.of(owner)
            return
        if owner is None or isinstance(owner, types.ModuleType) or id(owner) in self._visited:
            return
        if hasattr(owner, "__dict__") and self._is_new(owner):
            attributes = vars(owner)
            yield _Place(
                "attribute",
                functools.partial(dict, attributes),
                _writer(attributes, ""),
                type(owner).__name__,
            )
            yield from self._inside(attributes.values())

    def _inside(self, values: Iterable[Any]) -> Iterator[_Place]:
        """What can be called, or keeps state of its own, among `values` and their parts."""
        for value in list(values)[:_MOST_ELEMENTS]:
            if isinstance(value, torch.Tensor):
                continue
            if isinstance(value, torch.nn.Module) or _holds_state(value):
                yield from self.of(value)
            elif (parts := parts_of(value)) is not None:
                if id(value) not in self._visited and self._is_new(value):
                    yield from self._inside(each for _, each in parts)
            elif _is_called(value) and _is_the_users(value):
                yield from self.of(value)

    def _of_module(self, model: torch.nn.Module) -> Iterator[_Place]:
        """Buffers, attributes, those of its class too, hooks, and, if wanted, weights of every module below;
        and what the methods that `forward` reaches close over and name.
        """
        kinds: set[type] = set()
        for path, module in model.named_modules():
            self._visited[id(module)] = module
            prefix = f"{path}." if path else ""
            owner = type(module).__name__
            for name, table in (("weight", module._parameters), ("buffer", module._buffers)):
                if table and (self._weights or name == "buffer"):
                    yield _Place(
                        name, functools.partial(_prefixed, table, prefix), _writer(table, prefix), owner
                    )
            kind = type(module)
            if kind not in kinds and _is_the_users(kind):
                kinds.add(kind)
                yield _Place(
                    "class attribute",
                    functools.partial(_data_of, kind),
                    functools.partial(_set_on, kind),
                    owner,
                )
                yield from self._of_class(kind)
            attributes = vars(module)
            yield _Place(
                "attribute", functools.partial(_own, attributes, prefix), _writer(attributes, prefix), owner
            )
            reached = (value for name, value in attributes.items() if name not in _ATTRIBUTES_OF_TORCH)
            yield from self._inside(reached)
            yield from self._inside(hook for name in _HOOKS for hook in getattr(module, name, {}).values())

    def _of_class(self, kind: type) -> Iterator[_Place]:
        """Of its methods that `forward` reaches, those that are not installed: a library's name half of
        it.
        """
        methods = [
            (each, name, value)
            for each in filter(_is_the_users, kind.__mro__[:-1])
            for name, value in _callables(vars(each))
        ]
        reached = _reached_by_forward(methods)
        for _, name, value in methods:
            plain = getattr(value, "_torchdynamo_orig_callable", getattr(value, "__func__", value))
            if name in reached and isinstance(plain, types.FunctionType) and not _is_installed(plain):
                yield from self.of(plain)

    def _of_function(self, plain: types.FunctionType) -> Iterator[_Place]:
        """Variables that it closes over and globals that it names, and what is called through them."""
        if not _is_the_users(plain):
            return
        cells = dict(zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True))
        yield _Place(
            "variable", functools.partial(_contents, cells), functools.partial(_fill, cells), plain.__name__
        )
        named = sorted(_names_in(plain.__code__))
        globals_ = plain.__globals__
        modules = [globals_[name] for name in named if isinstance(globals_.get(name), types.ModuleType)]
        for table in (globals_, *(vars(each) for each in modules if _is_users_module(each))):
            names = [name for name in named if name in table and _is_data(table[name])]
            if names:
                yield _Place(
                    "variable", functools.partial(_named, table, names), table.update, plain.__name__
                )
            yield from self._inside(table[name] for name in named if name in table)
        yield from self._inside(_contents(cells).values())
        # Defaults of parameters are saved between calls.
        defaults = dict(enumerate(plain.__defaults__ or ())) | (plain.__kwdefaults__ or {})
        if any(parts_of(each) is not None or isinstance(each, torch.Tensor) for each in defaults.values()):
            yield _Place("default", functools.partial(dict, defaults), lambda _: None, plain.__name__)


_CALLABLES = (torch.nn.Module, functools.partial, types.FunctionType, types.BuiltinFunctionType)


def _is_called(value: Any) -> bool:
    """Whether a step may call it, and it has variables of its own."""
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return True
    return callable(value) and not isinstance(value, type) and hasattr(value, "__dict__")


_INSTALLED = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


def _is_installed(function: types.FunctionType) -> bool:
    return function.__code__.co_filename.startswith(_INSTALLED)


def _is_users_module(module: types.ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return (
        file is not None
        and module.__name__.partition(".")[0] not in NOT_THE_USERS
        and not file.startswith(_INSTALLED)
    )


def _named(table: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: table[name] for name in names if name in table}


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
    without = _ATTRIBUTES_OF_TORCH | _SET_BY_COMPILING
    return {prefix + name: each for name, each in attributes.items() if name not in without}


def _writer(table: dict[str, Any], prefix: str) -> Callable[[dict[Any, Any]], None]:
    def write(values: dict[Any, Any]) -> None:
        was = {name.removeprefix(prefix): value for name, value in values.items()}
        names = was.keys() | _ATTRIBUTES_OF_TORCH | _SET_BY_COMPILING
        for name in table.keys() - names:
            del table[name]
        table.update(was)

    return write


def _holds_state(value: Any) -> bool:
    """Whether it is an optimizer, a scheduler or a scaler of gradients."""
    of_torch = (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler, torch.amp.GradScaler)
    return isinstance(value, of_torch)


def _is_the_users(value: Any) -> bool:
    module = getattr(value, "__module__", None) or type(value).__module__
    return module.partition(".")[0] not in NOT_THE_USERS


def _is_data(value: Any) -> bool:
    """Whether a global is something that a function may change: no function, class or module."""
    return isinstance(as_tensor(value), (torch.Tensor, int, float, str)) or parts_of(value) is not None


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
