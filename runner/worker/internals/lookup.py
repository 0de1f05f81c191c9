"""Private names of torch, looked up, and listeners around private methods."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any


def attribute(module: str, name: str) -> Any:
    """`module.name`, or None where either does not exist in this release."""
    try:
        value: Any = importlib.import_module(module)
    except ImportError:
        return None
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


@contextlib.contextmanager
def before(owner: Any, method: str, call: Callable[[str], None]) -> Iterator[None]:
    original = getattr(owner, method)

    def listener(self: Any, event_name: str, *arguments: Any, **options: Any) -> Any:
        call(event_name)
        return original(self, event_name, *arguments, **options)

    setattr(owner, method, listener)
    try:
        yield
    finally:
        setattr(owner, method, original)


@contextlib.contextmanager
def around(
    owner: Any, method: str, name: str, begin: Callable[[str], None], end: Callable[[str], None]
) -> Iterator[None]:
    original = getattr(owner, method)

    def listener(*arguments: Any, **options: Any) -> Any:
        begin(name)
        try:
            return original(*arguments, **options)
        finally:
            end(name)

    setattr(owner, method, listener)
    try:
        yield
    finally:
        setattr(owner, method, original)


@contextlib.contextmanager
def after(owner: Any, method: str, note: Callable[[Any, Any], None]) -> Iterator[None]:
    """Call `note(self, result)` after a method, where its class is there and has it."""
    original = getattr(owner, method, None)
    if not callable(original):
        yield
        return

    def wrapper(self: Any, *arguments: Any, **options: Any) -> Any:
        result = original(self, *arguments, **options)
        note(self, result)
        return result

    setattr(owner, method, wrapper)
    try:
        yield
    finally:
        setattr(owner, method, original)
