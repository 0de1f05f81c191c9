"""Private names of torch, looked up, and listeners around private methods."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
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
def _replaced(owner: Any, method: str, listener: Callable[..., Any]) -> Iterator[None]:
    original = getattr(owner, method)
    setattr(owner, method, listener)
    try:
        yield
    finally:
        setattr(owner, method, original)


def before(owner: Any, method: str, call: Callable[[str], None]) -> AbstractContextManager[None]:
    """Call `call(event_name)` before a method that takes an event's name first."""
    original = getattr(owner, method)

    def listener(self: Any, event_name: str, *arguments: Any, **options: Any) -> Any:
        call(event_name)
        return original(self, event_name, *arguments, **options)

    return _replaced(owner, method, listener)


def around(
    owner: Any, method: str, name: str, begin: Callable[[str], None], end: Callable[[str], None]
) -> AbstractContextManager[None]:
    """Call `begin(name)` before a method and `end(name)` after it, however it ends."""
    original = getattr(owner, method)

    def listener(*arguments: Any, **options: Any) -> Any:
        begin(name)
        try:
            return original(*arguments, **options)
        finally:
            end(name)

    return _replaced(owner, method, listener)


def after(owner: Any, method: str, note: Callable[[Any, Any], None]) -> AbstractContextManager[None]:
    """Call `note(self, result)` after a method, where its class is there and has it."""
    original = getattr(owner, method, None)
    if not callable(original):
        return contextlib.nullcontext()

    def wrapper(self: Any, *arguments: Any, **options: Any) -> Any:
        result = original(self, *arguments, **options)
        note(self, result)
        return result

    return _replaced(owner, method, wrapper)
