"""The result table that `run` prints: one row per case, figures in the units people read; and failed trials
as sentences.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.errors import ConfigError, did_you_mean, one_line, printable
from compilewatch.db.metrics.break_even import is_shown, repaid_words
from compilewatch.db.metrics.trial_times import Control
from compilewatch.db.records.trial import CacheState, Status, StrategyKind
from compilewatch.db.units import MISSING, count, plural, words
from compilewatch.db.verdicts.case_view import CELLS, DOORS, Cell, Door, case_texts, remarks

if TYPE_CHECKING:
    from pandas import DataFrame

    from compilewatch.runner.plan.plan import NotApplicable


# Narrower than this, the figures that decide stand alone; the rest stands below.
_WIDE_COLUMNS = 170
# A pipe has no width of its own.
_PIPE_COLUMNS = 190
# Blanks between columns where there is room, and where there is little.
_WIDE_GAP, _GAP = 3, 2
# No column is cut to fewer characters.
_SHORTEST = 8


class PlainConsole(Console):
    """Prints no control character but its own: texts of records come from whoever may import."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does, with U+FFFD for what a terminal would obey."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(printable(text), style)


def console() -> Console:
    """Standard output: the terminal's own width and colours; plain in a pipe, as wide as COLUMNS says."""
    if sys.stdout.isatty():
        return PlainConsole()
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else _PIPE_COLUMNS
    return PlainConsole(width=width, no_color=True, highlight=False)


def print_lines(lines: Iterable[str]) -> None:
    """Sentences on standard output; what has no space, such as an address, is never broken."""
    out = console()
    for line in lines:
        for text in wrap(line, out.width, break_long_words=False, break_on_hyphens=False) or [""]:
            out.print(text, markup=False, highlight=False, soft_wrap=True)


def print_markdown(rows: Iterable[str]) -> None:
    """A row a line, however long: a broken row is no table."""
    sys.stdout.write("".join(f"{printable(row)}\n" for row in rows))


class FittedTable(Table):
    """Texts under their headings in whatever width there is, without a word that is broken.

    Cells go on in the next line at a space. Where even the longest words do not fit, columns of `optional`
    go, in their order, and the line below names them; where none is left, a cell ends with "…".
    """

    def __init__(self, optional: Sequence[str]) -> None:
        super().__init__(box=box.SIMPLE_HEAD, pad_edge=False)
        self._optional = optional

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        columns = [_Fitted(column) for column in self.columns]
        may_go = [each for name in self._optional for each in columns if each.heading == name]
        left_out: list[str] = []
        widths = _widths(columns, options.max_width)
        while widths is None and may_go:
            columns.remove(may_go[0])
            left_out.append(may_go.pop(0).heading)
            widths = _widths(columns, options.max_width)
        widths = widths or _cut(columns, options.max_width)
        tight = sum(widths) > _room(columns, options.max_width, _WIDE_GAP)
        table = Table(box=self.box, pad_edge=False, collapse_padding=tight, caption=self.caption)
        for each, width in zip(columns, widths, strict=True):
            justify = each.column.justify
            table.add_column(each.heading, justify=justify, width=width, overflow="ellipsis")
        for row, cells in zip(self.rows, zip(*(each.cells for each in columns), strict=True), strict=True):
            table.add_row(*cells, style=row.style)
        yield table
        if left_out:
            names = [str(each.header) for each in self.columns if each.header in left_out]
            yield Text(f"Not shown in {options.max_width} columns: {', '.join(names)}.")


class _Fitted:
    """A column with what it needs: `whole` for each text in one line, `word` for the longest word."""

    def __init__(self, column: Column) -> None:
        self.column, self.heading = column, str(column.header)
        self.cells = [each if isinstance(each, Text) else Text(str(each)) for each in column.cells]
        texts = [self.heading, *(each.plain for each in self.cells)]
        self.whole = max(cell_len(line) for text in texts for line in text.splitlines() or [""])
        self.word = max(cell_len(word) for text in texts for word in text.split() or [""])


def _room(columns: Sequence[_Fitted], most: int, gap: int) -> int:
    """What is left for texts beside an edge on both sides and so many blanks between columns."""
    return most - 2 - gap * (len(columns) - 1)


def _widths(columns: Sequence[_Fitted], most: int) -> list[int] | None:
    """The widths of columns of whole words, the widest folded first; None where they do not fit."""
    whole = [each.whole for each in columns]
    if sum(whole) <= _room(columns, most, _WIDE_GAP):
        return whole
    for widest in range(max(whole), 0, -1):
        widths = [max(each.word, min(each.whole, widest)) for each in columns]
        if sum(widths) <= _room(columns, most, _GAP):
            return widths
    return None


def _cut(columns: Sequence[_Fitted], most: int) -> list[int]:
    """Widths of columns some of whose words do not fit: those of the widest are cut."""
    for widest in range(max(each.whole for each in columns), _SHORTEST, -1):
        widths = [min(each.whole, widest) for each in columns]
        if sum(widths) <= _room(columns, most, _GAP):
            return widths
    return [min(each.whole, _SHORTEST) for each in columns]


def plain_table(
    headings: Iterable[str],
    rows: Iterable[Iterable[str]] = (),
    *,
    right: Collection[str] = (),
    optional: Sequence[str] = (),
) -> FittedTable:
    """Texts as they are, under their headings; columns of `right` hold figures. Those of `optional` are left
    out where there is no room for them, the first of them first.
    """
    table = FittedTable(optional)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Names and what they stand for, without a heading."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in facts:
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def result_table(
    cases: Sequence[Mapping[Any, Any]],
    not_applicable: Sequence[NotApplicable],
    verdicts: Mapping[tuple[str, str], str],
    *,
    builds: Mapping[str, str],
    notes: Mapping[tuple[str, str, str], Sequence[str]],
    chosen: Sequence[Cell] | None = None,
) -> Table:
    """One row per case. `cases` are rows of a frame of cases; `verdicts` by workload and strategy. `builds`
    has the names of several builds by id; they stand where torch does not tell them apart. Of `notes`
    (`db.queries.case_parts`) the first is said. `chosen` figures stand in place of the usual ones.

    Column eager is what speedup is taken against: the median of eager in the compiled case's own processes.
    """
    apart = _eager_rows(cases)
    named = len({row["torch"] for row in cases}) < len(builds)
    of_build = [*(["build"] if named else []), *(["torch"] if builds else [])]
    against = ["against base"] if verdicts else []
    cells = DOORS[Door.RUN] if chosen is None else (DOORS[Door.RUN][0], *chosen)
    figures = [each.heading for each in cells]
    table = plain_table(("workload", "strategy", *of_build, *figures, *against, "note"), right=figures)
    for row in cases:
        sides = {"build": builds.get(row["build_id"], MISSING), "torch": str(row["torch"])}
        verdict_cells = [verdicts.get((row["workload"], row["strategy"]), MISSING)] if verdicts else []
        names = (row["workload"], row["strategy"], *(sides[heading] for heading in of_build))
        table.add_row(
            *map(Text, (*names, *case_texts(row, cells), *verdict_cells, _notes(row, apart, notes)))
        )
    for case in not_applicable:
        blanks = [MISSING] * (len(of_build) + len(figures) + len(against))
        table.add_row(Text(case.workload), Text(case.strategy), *blanks, Text("not applicable"), style="dim")
    return table


def result_parts(
    cases: Sequence[Mapping[Any, Any]],
    not_applicable: Sequence[NotApplicable],
    verdicts: Mapping[tuple[str, str], str],
    *,
    builds: Mapping[str, str],
    notes: Mapping[tuple[str, str, str], Sequence[str]],
    columns: int,
) -> tuple[Table, list[str]]:
    """`result_table` in so many `columns`, and the lines below it: in a narrow terminal the figures that
    decide, and of each case what else is to be known of it.
    """
    whole = result_table(cases, not_applicable, verdicts, builds=builds, notes=notes)
    if columns >= _WIDE_COLUMNS:
        return whole, []
    cells = DOORS[Door.RUN_NARROW]
    figures = [cell.heading for cell in cells]
    headings = ("workload", "strategy", *(["torch"] if builds else []), *figures)
    table = plain_table(headings, right=figures)
    apart = _eager_rows(cases)
    below = []
    for row in cases:
        torch = [str(row["torch"])] if builds else []
        shown = (row["workload"], row["strategy"], *torch, *case_texts(row, cells))
        table.add_row(*map(Text, shown))
        verdict = verdicts.get((row["workload"], row["strategy"]))
        text = "; ".join(filter(None, (verdict and f"{verdict} against base", _notes(row, apart, notes))))
        below += [f"{row['workload']} / {row['strategy']}: {text}."] if text else []
    trials = sorted({int(row["counted_trials"]) for row in cases})
    each = f"{trials[0]} to {trials[-1]} trials" if len(trials) > 1 else plural((trials or [0])[0], "trial")
    return table, [
        *below,
        f"{each} a case. Throughput, memory and graph breaks: --json, --columns, a wider terminal.",
    ]


def _eager_rows(cases: Iterable[Mapping[Any, Any]]) -> dict[Any, Mapping[Any, Any]]:
    return {
        (row["build_id"], row["workload_id"]): row
        for row in cases
        if row["strategy_kind"] == StrategyKind.EAGER
    }


def answer_lines(cases: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Whether compiling pays off by this run alone, a sentence a workload (and build): with which strategy
    and from which step on, of those that start cold, then of those that start from a filled cache.

    `cases` are rows of a frame of cases. A workload without a compiled one has no sentence.
    """
    compiled: dict[tuple[Any, ...], list[Mapping[Any, Any]]] = {}
    for row in cases:
        if row["strategy_kind"] != StrategyKind.EAGER:
            compiled.setdefault((row["build_id"], row["workload_id"]), []).append(row)
    several = len({build for build, _ in compiled}) > 1
    lines = []
    for rows in compiled.values():
        cold = [row for row in rows if row["cache"] in (CacheState.COLD, CacheState.NONE)]
        warm = [row for row in rows if row["cache"] not in (CacheState.COLD, CacheState.NONE)]
        where = f" with torch {rows[0]['torch']}" if several else ""
        clauses = [f"{name}: {_pays(some)}" for name, some in (("cold", cold), ("warm", warm)) if some]
        lines.append(f"{rows[0]['workload']}{where}, this run, {'; '.join(clauses)}.")
    return lines


def _pays(rows: Sequence[Mapping[Any, Any]]) -> str:
    known = [row for row in rows if row["break_even"] != "unknown"]
    shown = [row for row in known if is_shown(row)]
    paying = [row for row in shown if row["break_even"] == "steps"]
    if paying:
        bounded = [row for row in paying if row["break_even_interval"] != "none"]
        first = min(bounded or paying, key=lambda row: int(row["break_even_steps"]))
        when = f"from step {count(first['break_even_steps'])} on"
        if not bounded:
            return f"not shown to pay off, {first['strategy']} perhaps {when}: too few trials for an interval"
        return f"{first['strategy']} pays off {when}"
    if not_shown := [row for row in known if not is_shown(row)]:
        least = min(not_shown, key=lambda row: int(row["break_even_low"]))
        return f"not shown to pay off, {least['strategy']} {repaid_words(least)} steps"
    if shown:
        return f"{', '.join(row['strategy'] for row in shown)} never pays off"
    return f"unknown whether it pays off, {rows[0]['break_even_reason']}"


def reasons(not_applicable: Sequence[NotApplicable]) -> list[str]:
    """One line per strategy that means nothing on this device."""
    return [
        f"{strategy}: not applicable: {reason}."
        for strategy, reason in dict.fromkeys((case.strategy, case.reason) for case in not_applicable)
    ]


def _notes(
    row: Mapping[Any, Any],
    apart: Mapping[Any, Mapping[Any, Any]],
    notes: Mapping[tuple[str, str, str], Sequence[str]],
) -> str:
    eager = apart.get((row["build_id"], row["workload_id"]))
    apart_note = None if eager is None or eager is row else eager_apart(row, eager)
    of_trials = notes.get((row["build_id"], row["workload_id"], row["strategy_id"]), ())
    return "; ".join(filter(None, (remarks(row), *of_trials[:1], apart_note)))


def eager_apart(row: Mapping[Any, Any], eager: Mapping[Any, Any]) -> str | None:
    """What a reader must know where the eager case, in processes of its own, disagrees with a row's eager.

    Two medians of such processes differ by chance by sqrt(2) times the half width of one's interval, as
    logarithms. None within that, and where either is unknown.
    """
    beside, alone = row["control_latency_ns"], eager["latency_ns"]
    low, high = eager["latency_low_ns"], eager["latency_high_ns"]
    if row["control"] != Control.IN_PROCESS or any(map(_is_missing, (beside, alone, low, high))):
        return None
    if abs(math.log(alone / beside)) <= math.sqrt(2) * math.log(high / low) / 2:
        return None
    side = "above" if alone > beside else "below"
    return f"eager on its own is {abs(alone / beside - 1):.0%} {side} eager here"


def _is_missing(value: float | None) -> bool:
    return value is None or math.isnan(value)


def cells_named(names: str) -> list[Cell]:
    """The figures of a case named `NAME,NAME`. Raises ConfigError for one that there is not."""
    wanted = [each.strip() for each in names.split(",")]
    for name in wanted:
        if name not in CELLS:
            known = ", ".join(METRICS)
            raise ConfigError(
                f"--columns has no figure called {name}.",
                did_you_mean(
                    name,
                    CELLS,
                    f"Name some of {known}, or a column of `compilewatch list cases --json`.",
                    most=2,
                ),
            )
    return [CELLS[name] for name in wanted]


LONGEST_MESSAGE = 300
"""Of an exception's message, which may hold a whole tensor, in a line: `show` has more."""

BuildCase = tuple[str, str, str]
"""Ids of build, names of workload and strategy."""


def newest_failures(trials: DataFrame) -> dict[BuildCase, dict[str, Any]]:
    """The newest failure of each case of `trials`, oldest first: its kind, first line and trial."""
    failed = trials[trials["status"] == Status.FAILED.value]
    return {
        (str(row.build_id), str(row.workload), str(row.strategy)): {
            "kind": str(row.failure_kind),
            "message": str(row.failure_message).split("\n", 1)[0],
            "trial_id": str(row.trial_id),
        }
        for row in failed.itertuples()
    }


def failure_lines(failures: Mapping[BuildCase, Mapping[str, Any]]) -> Iterator[str]:
    """One for each case."""
    for (_, workload, strategy), failure in failures.items():
        text = f"{words(failure['kind'])}: {one_line(failure['message'], LONGEST_MESSAGE).removesuffix('.')}"
        yield f"{workload} / {strategy}: {text}. {more_of(failure['trial_id'])}"


def more_of(trial_id: str) -> str:
    """Where all that is known of a trial is shown."""
    return f"Its log: `compilewatch show {trial_id}`."
