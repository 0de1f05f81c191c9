"""Whether a workload's state grows with its calls or runs full: found by a few eager calls, exactly."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from compilewatch.runner.worker.step import host
from compilewatch.runner.worker.step.state import Census, State

_COUNTS = (3, 6)
_COUNTS_OF_LONG = (2, 3)
_LONG_NS = 2_000_000_000
MOST_LOOKED = 12
"""Of a step's own time, for all of it."""
_FEWEST_CALLS = 4
"""A step that fails sooner cannot be timed."""
_MOST_TRIED = 1_000
# Of tensors that grow. glibc takes blocks from the heap once as large a one was freed, and there one larger
# each time finds no room: a script that empties a list and fills it again three times, 8 KiB a call, has 1.9
# GiB resident where it calls a thousand times between, and 8 MiB with 200.
_MOST_GROWN = 200
_LEAST_TRIED = 16
_TRIED_NS = 1_000_000_000


@dataclass(frozen=True)
class Growth:
    """What of a state grew between two counts of calls."""

    name: str
    unit: str
    """`entries` of a container, `elements` of a tensor."""
    calls: tuple[int, int]
    lengths: tuple[int, int]
    before: int
    """Its length before any call."""

    def at(self, call: int) -> int:
        """Its length after so many calls."""
        (first, last), (short, long) = self.calls, self.lengths
        return round(short + (long - short) * (call - first) / (last - first))

    def is_left_in(self, census: Census) -> bool:
        """Whether it is longer than before any call."""
        lengths = census.entries if self.unit == "entries" else census.elements
        return lengths.get(self.name, 0) > self.before

    def text(self) -> str:
        """Name and both lengths, for a sentence."""
        (first, last), (short, long) = self.calls, self.lengths
        return f"{self.name} has {short:,} {self.unit} after {first} calls and {long:,} after {last}"


def grown(before: Census, earlier: Census, later: Census, calls: tuple[int, int]) -> Growth | None:
    """The outermost part that grew from `before` to `earlier` and on to `later`, which were taken after
    `calls`; None where nothing did.
    """
    for unit in ("entries", "elements"):
        was, then, now = (getattr(each, unit) for each in (before, earlier, later))
        names = [name for name in now if name in then and was.get(name, 0) < then[name] < now[name]]
        if names:
            name = min(names, key=lambda each: (each.count("."), each))
            return Growth(name, unit, calls, (then[name], now[name]), was.get(name, 0))
    return None


@dataclass(frozen=True)
class Found:
    """What eager calls do to the state."""

    changes: tuple[str, ...] = ()
    """What is not as it was, by name, but for what an optimizer writes: it changes no length."""
    of_python: bool = False
    """Whether a number, or how many there are, is among it."""
    growth: Growth | None = None
    bytes_per_call: float | None = None
    """By how much its tensors grow; None where they do not."""
    most_calls: int | None = None
    """So many calls from the state as it was built are known to work; None where nobody tried."""
    fails_at: int | None = None
    """The first call at which eager fails: what it fills is full."""


def look(state: State, before: Census, call: Callable[[], object], first_ns: int) -> Found:
    """What eager calls after the first, which took `first_ns`, do to `state`; `before` is its census before
    any call. What a call raises passes through where it is one of the first three.
    """
    early, late = _COUNTS if first_ns < _LONG_NS else _COUNTS_OF_LONG
    censuses: dict[int, Census] = {}
    for number in range(2, late + 1):
        try:
            call()
        except Exception:
            if number < _FEWEST_CALLS:
                raise
            return replace(_changed(state), most_calls=number - 1, fails_at=number)
        if number in (early, late):
            censuses[number] = state.census()
    growth = grown(before, censuses[early], censuses[late], (early, late))
    added = (censuses[late].size_bytes - censuses[early].size_bytes) / (late - early)
    bytes_per_call = added if growth is not None and added > 0 else None
    return replace(_changed(state), growth=growth, bytes_per_call=bytes_per_call, most_calls=late)


def _changed(state: State) -> Found:
    left_out = ("setting", "optimizer", "weight") if state.weights_change else ("setting", "optimizer")
    names = tuple(name for name in state.changed_names() if not name.startswith(left_out))
    return Found(names, of_python=bool(names) and state.changes_of_python())


def try_further(found: Found, call: Callable[[], object], put_back: Callable[[], None]) -> Found:
    """`found` with how many calls eager manages from the state as it was built: a thousand at most, 200 where
    tensors grow, and a second of them. What is tried here, neither side is called for more often before it is
    put back.
    """
    most, known = _MOST_TRIED, found.most_calls or 0
    if found.bytes_per_call and (free := host.available_memory_bytes()) is not None:
        most = max(_LEAST_TRIED, min(_MOST_GROWN, int(free / 10 / found.bytes_per_call)))
    put_back()
    count, ends = 0, time.monotonic_ns() + _TRIED_NS
    while count < most and (time.monotonic_ns() < ends or count < known):
        try:
            call()
        except Exception:  # noqa: BLE001 - whatever it is, nothing is called so often
            return replace(found, most_calls=count, fails_at=count + 1)
        count += 1
    return replace(found, most_calls=count)
