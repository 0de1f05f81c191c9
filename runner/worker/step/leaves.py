"""Values and their parts: walked, copied and compared leaf by leaf."""

from __future__ import annotations

import contextlib
import copy
import math
import sys
import types
from collections import UserDict, UserList, deque
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from enum import Enum
from typing import Any

import torch

from compilewatch.runner.workloads.built import Built

Leaves = dict[str, Any]
"""Values without parts by their path: "output 0", "buffer running_mean", "attribute calls"."""

_PLAIN = (
    *(type(None), bool, int, float, complex, str, bytes, Enum),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size),
)
NOT_THE_USERS = frozenset(sys.stdlib_module_names) | {"torch", "numpy"}
"""Packages whose objects are no data of the user's."""
MOST_PARTS = 100_000
_HOLD_ATTRIBUTES = (types.SimpleNamespace, UserDict, UserList, torch.distributions.Distribution)
_BY_IDENTITY: Any = object.__eq__
_PIECE = 1 << 20
_SPARSE_PARTS = 3
"""Values and, for each, an index in two dimensions."""


def _holds_attributes(value: Any) -> bool:
    """Whether the attributes of `value` are data of the user's: not those of a library's or a function's."""
    closed = isinstance(value, (torch.nn.Module, torch.Tensor, type, *_PLAIN))
    if closed or not (hasattr(value, "__dict__") or any(map(_slots_of, type(value).__mro__))):
        return False
    if is_dataclass(value) or isinstance(value, _HOLD_ATTRIBUTES):
        return True
    return not callable(value) and type(value).__module__.partition(".")[0] not in NOT_THE_USERS


def _slots_of(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def attributes_of(value: Any) -> dict[str, Any]:
    """The attributes of an object, those in slots too."""
    names = (name for kind in type(value).__mro__ for name in _slots_of(kind) if not name.startswith("__"))
    return dict(getattr(value, "__dict__", {})) | {
        name: getattr(value, name) for name in names if hasattr(value, name)
    }


def parts_of(value: Any) -> list[tuple[Any, Any]] | None:
    """The parts of a container by key: of a sequence, a set, a mapping, a data class or an object's
    attributes. None for what has none.
    """
    if isinstance(value, (list, tuple, deque)) and not isinstance(value, torch.Size):
        return list(enumerate(value))
    if isinstance(value, set):
        # A set that was emptied and filled again may have another order.
        named = {(repr(each) if isinstance(each, _PLAIN) else f"at {id(each)}"): each for each in value}
        return sorted(named.items())
    if isinstance(value, dict):
        return list(value.items())
    return list(attributes_of(value).items()) if _holds_attributes(value) else None


def copy_of(tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor of its own with the same content, in `dtype` if given, that requires a gradient as `tensor`
    does. Raises what torch raises where it has no copy of such a tensor.
    """
    copied = tensor.detach().clone() if dtype is None else tensor.detach().to(dtype, copy=True)
    return copied.requires_grad_(tensor.requires_grad)


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """`value` with `change` applied to every tensor in it, in containers of its own; the rest is the same."""
    visited: dict[int, Any] = {}

    def walk(part: Any) -> Any:
        if isinstance(part, torch.Tensor):
            return change(part)
        inner = parts_of(part)
        if inner is None:
            return part
        if id(part) in visited:
            return visited[id(part)]
        if isinstance(part, tuple):
            values = [walk(each) for _, each in inner]
            return type(part)(*values) if hasattr(part, "_fields") else type(part)(values)
        made = visited[id(part)] = copy.copy(part)
        if isinstance(part, set):
            made.clear()
            made.update(walk(each) for _, each in inner)
            return made
        for key, each in inner:
            if isinstance(part, (list, dict, deque)):
                made[key] = walk(each)
            else:
                object.__setattr__(made, key, walk(each))
        return made

    return walk(value)


def with_inputs(built: Built, change: Callable[[torch.Tensor], torch.Tensor]) -> Built:
    """`built` with `change` applied to every tensor of its inputs."""
    return replace(built, inputs=mapped(built.inputs, change), keywords=mapped(dict(built.keywords), change))


def leaves(
    name: str,
    value: Any,
    parts: Callable[[Any], list[tuple[Any, Any]] | None] = parts_of,
    leaf: Callable[[Any], Any] = lambda part: part,
) -> Leaves:
    """Every value without parts in `value`, tensors as they are; a single one is `name` 0.

    `parts` and `leaf` say how what is kept of a value is read.
    """
    found: Leaves = {}
    visited: set[int] = set()

    def walk(path: str, part: Any) -> None:
        inner = parts(part)
        if inner is None:
            found[path] = as_tensor(leaf(part))
        elif id(part) not in visited and len(found) < MOST_PARTS:
            visited.add(id(part))
            for key, each in inner:
                walk(f"{path}.{key}", each)
            visited.discard(id(part))

    inner = parts(value)
    for key, each in [(0, value)] if inner is None else inner:
        walk(f"{name} {key}", each)
    return found


def as_tensor(leaf: Any) -> Any:
    """An array of numpy as a tensor that shares its memory; anything else as it is."""
    if type(leaf).__module__ != "numpy" or not hasattr(leaf, "__array_interface__"):
        return leaf
    with contextlib.suppress(TypeError, ValueError, RuntimeError):
        return torch.as_tensor(leaf)
    return leaf


def dense(tensor: torch.Tensor) -> torch.Tensor | None:
    """`tensor` with one plain storage: a sparse or nested one padded with zeros, a subclass as what it stands
    for. None where that is not known.
    """
    with contextlib.suppress(RuntimeError, NotImplementedError, TypeError, AttributeError):
        if tensor.is_nested:
            padded: torch.Tensor = torch.nested.to_padded_tensor(tensor, 0.0)
            return padded
        if tensor.layout is not torch.strided:
            return tensor.to_dense()
        if type(tensor) in (torch.Tensor, torch.nn.Parameter):
            return tensor
        plain = tensor.dequantize() if hasattr(type(tensor), "__tensor_flatten__") else tensor
        made: torch.Tensor = torch.Tensor.as_subclass(plain, torch.Tensor)
        return made
    return None


def shape_of(tensor: torch.Tensor) -> torch.Size | None:
    """None of a nested tensor with strides, which has none."""
    with contextlib.suppress(RuntimeError):
        return tensor.shape
    return None


def same(one: Any, other: Any) -> bool:
    """Whether two leaves are equal, where NaN equals NaN."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one is other or _same_tensors(one, other)
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    with contextlib.suppress(Exception):
        return one is other or (type(one) is type(other) and bool(one == other))
    return False


def _same_tensors(one: torch.Tensor, other: torch.Tensor) -> bool:
    if (shape_of(one), one.dtype, one.layout) != (shape_of(other), other.dtype, other.layout):
        return False
    a, b = dense(one.detach()), dense(other.detach())
    if a is None or b is None or a.shape != b.shape:
        return False
    b = b.to(a.device)
    return torch.equal(a, b) or (a.is_floating_point() and _are_equal_but_nan(a, b))


def _are_equal_but_nan(one: torch.Tensor, other: torch.Tensor) -> bool:
    pairs = pieces(one, other)
    return all(torch.allclose(a, b, rtol=0, atol=0, equal_nan=True) for a, b in pairs)


def pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Tensors of equal shapes piece by piece, as vectors, so that comparing large ones takes little memory.
    One piece at least.
    """
    parts = (torch.split(tensor.detach().reshape(-1), _PIECE) for tensor in tensors)
    yield from zip(*parts, strict=True)


def size_bytes(tensor: torch.Tensor) -> int:
    """What its elements take, of a sparse one about; 0 where torch does not tell."""
    with contextlib.suppress(RuntimeError, NotImplementedError, TypeError, AttributeError):
        if tensor.layout in (torch.strided, torch.jagged):
            return tensor.numel() * tensor.element_size()
        return _SPARSE_PARTS * tensor._nnz() * tensor.element_size()
    return 0


def copied(leaf: Any) -> Any:
    """A copy of a tensor where torch has one; anything else as it is."""
    if isinstance(leaf, torch.Tensor):
        with contextlib.suppress(RuntimeError, NotImplementedError, TypeError):
            return leaf.detach().clone()
    return leaf


def is_comparable(leaf: Any) -> bool:
    """Whether equality says anything of a leaf: not of an object that is equal to itself alone."""
    if isinstance(leaf, (torch.Tensor, *_PLAIN)):
        return True
    with contextlib.suppress(Exception):
        return getattr(type(leaf), "__eq__", None) is not _BY_IDENTITY and isinstance(leaf == leaf, bool)  # noqa: PLR0124
    return False
