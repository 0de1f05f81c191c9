"""What the compiler takes of a workload, in words."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from compilewatch.db.units import MISSING, count, first_of, plural
from compilewatch.runner.output.tables import plain_table
from compilewatch.runner.process.explanation import Explanation

_MOST = 12
_HEADINGS = ("function", "begins at", "operations", "guards")


def headline(explained: Explanation) -> str:
    """Graphs, breaks, operations and those that are left to ATen, in one line."""
    compiler = explained.compiler
    breaks = sum(event.count for event in compiler.graph_breaks or ())
    left = sum(explained.fallbacks.values())
    said = [
        plural(compiler.graphs or 0, "graph"),
        plural(breaks, "graph break"),
        plural(compiler.ops_captured or 0, "operation"),
        f"{count(left)} left to ATen",
    ]
    if not compiler.graphs:
        return "Nothing compiles: the compiler takes no graph."
    return ", ".join(said)


def break_lines(explained: Explanation) -> Iterator[str]:
    """Each break with its place and reason, what torch proposes below it; then what is compiled again."""
    hints = explained.compiler.break_hints or []
    for event in explained.compiler.graph_breaks or ():
        where = event.location or MISSING
        yield f"break at {where}, {count(event.count)} x: {event.reason}"
        yield from (f"  {hint.removeprefix(where + ': ')}" for hint in hints if hint.startswith(f"{where}: "))
    for event in explained.compiler.recompiles or ():
        yield f"recompiles at {event.location or MISSING}, {count(event.count)} x: {event.reason}"
    for frame in explained.compiler.skipped_frames or ():
        yield f"left to Python: {frame}"


def frame_table(explained: Explanation) -> Table:
    """The captured functions, the largest graphs first."""
    largest = sorted(explained.frames, key=lambda frame: -frame.operations)
    rows = [
        (frame.function, frame.location, count(frame.operations), count(frame.guards))
        for frame in largest[:_MOST]
    ]
    return plain_table(_HEADINGS, rows, right=_HEADINGS[2:], folds=True)


def operation_lines(explained: Explanation) -> Iterator[str]:
    """The most frequent operations as Inductor gets them, and those that it leaves to ATen."""
    for title, counted in (("Decomposed", explained.operations), ("Left to ATen", explained.fallbacks)):
        if counted:
            named = [f"{name} {count(number)}" for name, number in counted.items()]
            yield f"{title}: {first_of(named, _MOST)}"
