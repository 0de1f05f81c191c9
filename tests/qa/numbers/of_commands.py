"""What the commands tell, as documents and as texts."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from math import log1p
from pathlib import Path
from typing import Any

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.units import NEVER, at_best
from tests.qa.numbers.figures import Case, Figure, number, of_which, read, steps_told, tallies
from tests.qa.numbers.histories import MACHINES, RELEASES
from tests.qa.numbers.of_comparisons import of_document, of_markdown, of_values, selection_of
from tests.qa.numbers.page_numbers import Shown
from tests.runner.terminal import in_this_process

DECIDED = {"regressed": 1, "improved": 0, "unchanged": 0, "inconclusive": 2, "not comparable": 2}


@dataclass(frozen=True)
class Commands:
    """Commands typed in an empty folder over one database."""

    folder: Path
    url: str

    def typed(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, output, and what went to standard error."""
        done = in_this_process(*arguments, cwd=self.folder, COMPILEWATCH_DATABASE_URL=self.url, COLUMNS="400")
        return done.returncode, done.stdout, done.stderr

    def document(self, *arguments: str) -> tuple[int, dict[str, Any] | None]:
        """Exit code and document; None where the command says in a sentence why there is none."""
        code, said, _ = self.typed(*arguments, "--json")
        return code, json.loads(said) if said.strip() else None


def of_compare(
    commands: Commands, base: str, head: str, machine: str, *, as_comment: bool
) -> Iterator[Figure]:
    """`compare` of two sides by name: its document, its text or its comment, and how it ends."""
    arguments = ("compare", base, head, "--machine", machine)
    code, document = commands.document(*arguments)
    if document is None:
        return
    selection = selection_of(document)
    yield from of_document(document, "compare")
    yield Figure("exit", (), selection, "compare", code)
    yield Figure("exit", (), selection, "its verdict", DECIDED[document["verdict"]])
    strategies = sorted({row["strategy"] for row in document["rows"]} - {"eager"})
    for strategy in strategies:
        _, of_one = commands.document(*arguments, "--strategy", strategy)
        yield from of_values(of_one, selection, "compare of a strategy") if of_one else ()
    _, text, _ = commands.typed(*arguments, *(("--markdown",) if as_comment else ()))
    if as_comment:
        yield from of_markdown(text, selection, "compare, Markdown")
    else:
        yield from tallies(text.splitlines(), selection, "compare, text")


def of_gate(commands: Commands, machine: str, *, as_comment: bool) -> Iterator[Figure]:
    """`gate` of a machine as document, text and comment, and `compare` of the same two sides."""
    gate = ("gate", "--machine", machine)
    code, document = commands.document(*gate)
    if document is None or not document["rows"]:
        return
    selection = selection_of(document)
    yield from of_document(document, "gate")
    yield Figure("exit", (), selection, "gate", code)
    again, text, beside = commands.typed(*gate)
    yield Figure("exit", (), selection, "gate, text", again)
    yield from tallies(beside.splitlines(), selection, "gate, text")
    yield from _first_lines(text, selection)
    yield from _of_the_newest(commands, selection)
    _, comment, _ = commands.typed(*gate, "--markdown")
    yield from of_markdown(comment, selection, "gate, comment")
    sides = [document[side]["run_ids"] for side in ("base", "head")]
    if all(len(runs) == 1 for runs in sides):
        both = (sides[0][0], sides[1][0])
        yield from of_compare(commands, *both, document["machine_id"], as_comment=as_comment)
    judged = [document[side]["components"]["torch"] for side in ("base", "head")]
    yield from _of_events(commands, machine, next(each for each in RELEASES if each not in judged))


def _of_events(commands: Commands, machine: str, third: str) -> Iterator[Figure]:
    """`gate` against a third build: what both find of a case is one event, and one regression, unless from
    there it is half as large again.
    """
    commands.typed("gate", "--machine", machine, "--against", f"torch={third}")
    _, recorded = commands.document("list", "regressions")
    rows = [row for row in (recorded["rows"] if recorded else ()) if row["change"] is not None]
    first: dict[Case, float] = {}
    for row in sorted(rows, key=lambda row: (row["recorded_at"], row["regression_id"])):
        event = (row["workload"], row["strategy"], row["metric"], row["machine_id"], row["head"])
        size = abs(log1p(row["change"]))
        again = size <= 1.5 * first.get(event, -1.0)
        first.setdefault(event, size)
        yield Figure("event", event[:2], (row["regression_id"],), "list regressions", str(again))
        yield Figure("event", event[:2], (row["regression_id"],), "one regression of one event", str(False))


def _of_the_newest(commands: Commands, selection: Case) -> Iterator[Figure]:
    """`compare previous latest` asks what `gate` answers."""
    _, newest = commands.document("compare", "previous", "latest")
    yield Figure("the newest two", (), (), "gate", " ".join(selection))
    yield Figure(
        "the newest two",
        (),
        (),
        "compare previous latest",
        " ".join(selection_of(newest)) if newest else None,
    )


_LINE = re.compile(
    r"^(\S+)(?: \(ungated\))? / (\S+): latency (.+?) -> (.+?) \(([\d.,]+x), ([+\u2212-][\d.,]+ %)"
)


def _first_lines(text: str, selection: Case) -> Iterator[Figure]:
    """The lines of what regressed in latency."""
    for line in text.splitlines():
        if found := _LINE.match(line):
            workload, strategy, base, head, factor, change = found.groups()
            case, door = (workload, strategy), "gate, line"
            yield Figure("latency of the base", case, selection, door, read(base))
            yield Figure("latency of the head", case, selection, door, read(head))
            yield Figure("change of latency", case, selection, door, read(change))
            yield Figure("factor of latency", case, selection, door, read(factor))
            share = read(change)
            if isinstance(share, Shown):
                share = Shown(1.0 + share, share.half)
            yield Figure("factor of latency", case, selection, f"{door}, change", share)


def of_history(
    commands: Commands, machine: str, cases: list[tuple[str, str]], metric: str
) -> Iterator[Figure]:
    """Changes that `history` of a machine counts, and that `history` of each case finds."""
    _, document = commands.document("history", "--machine", machine)
    if document is None:
        return
    yield from steps_told([document["sentence"]], machine, "history")
    found: Counter[tuple[str, str, str]] = Counter(
        (event["workload"], event["strategy"], event["metric"])
        for group in document["groups"]
        for event in group["events"]
    )
    for workload, strategy in cases:
        of_case = ("--workload", workload, "--strategy", strategy, "--metric", metric)
        ended, series = commands.document("history", "--machine", machine, *of_case)
        if series is None:
            continue
        for point in series["points"]:
            where = (machine, point["run_id"], metric)
            yield Figure("a run's value", (workload, strategy), where, "history", number(point["value"]))
        verdicts = [step["row"]["verdict"] for step in series["releases"]]
        # From build to build it may have changed where it shows no change in time yet.
        over = "torch" if verdicts and not series["events"] else "time"
        case, selection = (workload, strategy), (machine, metric, over)
        told = [event["verdict"] for event in series["events"]] or verdicts
        changes = sum(verdict in ("regressed", "improved") for verdict in told)
        yield Figure("changes", case, selection, "history of the case", changes)
        # Break-even follows from cost and speedup: the machine's history counts those.
        if metric != "break_even":
            counted = found[workload, strategy, metric]
            yield Figure("changes", case, selection, "history of the machine", counted)
        if verdicts:
            yield Figure("exit", case, selection, "history", ended)
            yield Figure("exit", case, selection, "its last step", DECIDED[verdicts[-1]])


_CELLS = re.compile(r"\s{2,}")
_OF_BUILD = re.compile(r"^Newest build of (\S+): torch \S+, build (\S+), all its runs$")


def of_break_even(commands: Commands, steps: int) -> Iterator[Figure]:
    """`break-even` as document and as table, of the newest build of each machine."""
    _, document = commands.document("break-even", "--steps", str(steps))
    if document is None:
        return
    yield from of_break_even_rows(document["rows"], "break-even", steps)
    ids = {row["machine"]: row["machine_id"] for row in document["rows"]}
    where: Case = ()
    for line in commands.typed("break-even", "--steps", str(steps))[1].splitlines():
        cells = _CELLS.split(line.strip())
        if found := _OF_BUILD.match(line):
            where = (ids[found[1]], found[2])
        elif len(cells) >= _OF_A_CASE and cells[0] != "workload" and cells[2] != "eager":
            case, door = (cells[0].removesuffix(" (ungated)"), cells[2]), "break-even, text"
            total = read(cells[6])
            if total is not None:
                yield Figure("break-even", case, where, door, read(cells[4]))
                yield Figure(f"total of {steps} steps", case, where, door, total)
                chosen = str(cells[-1].startswith("← choose"))
                yield Figure(f"chosen at {steps} steps", case, where, door, chosen)


_OF_A_CASE = 8
"""Cells of a row of `break-even` at least."""


def of_break_even_rows(rows: list[dict[str, Any]], door: str, steps: int) -> Iterator[Figure]:
    """The command's document or the API's: which cases it tells of, and each of them."""
    of_build: dict[Case, list[Case]] = {}
    for row in rows:
        of_build.setdefault((row["machine_id"], row["build_id"]), []).append(
            (row["workload"], row["strategy"])
        )
        yield from _of_break_even_row(row, door, steps)
    yield from (of_which(cases, where, door) for where, cases in of_build.items())


def _of_break_even_row(row: dict[str, Any], door: str, steps: int) -> Iterator[Figure]:
    if row["strategy"] == "eager" or row["total_ns"] is None:
        return
    case, where = (row["workload"], row["strategy"]), (row["machine_id"], row["build_id"])
    steps_of = number(row["break_even_steps"])
    is_open = row["break_even_interval"] == "open"
    said = at_best(row["break_even_low_steps"]) if is_open else steps_of
    yield Figure("break-even", case, where, door, said)
    yield Figure("break-even, estimated", case, where, door, steps_of)
    yield Figure(f"total of {steps} steps", case, where, door, number(row["total_ns"]))
    yield Figure(f"chosen at {steps} steps", case, where, door, str(row["chosen"]))


def of_geomean(commands: Commands) -> Iterator[Figure]:
    """`geomean` as document and as table: the mean of each strategy over what passed with all strategies of
    its task, and over what it passed itself.
    """
    _, document = commands.document("geomean")
    rows = document["rows"] if document else []
    for row in rows:
        where, case = (row["machine"], row["build_id"]), (row["task"], row["strategy"])
        for name, column in _MEANS.items():
            yield Figure(f"geomean speedup, {name}", case, where, "geomean", number(row[column]))
    headings: list[str] = []
    for line in commands.typed("geomean")[1].splitlines() if rows else ():
        cells = _CELLS.split(line.strip())
        if {"task", "strategy", "left out"} <= {*cells}:
            headings = cells
        elif headings and len(cells) == len(headings):
            row = dict(zip(headings, cells, strict=True))
            where = (row.get("machine", rows[0]["machine"]), row.get("build", rows[0]["build_id"]))
            for name in _MEANS:
                # Where the two sets are one, the table has it once.
                mean = row.get(f"{name} [95 %]", row["matched set [95 %]"]).partition(" [")[0]
                case = (row["task"], row["strategy"])
                yield Figure(f"geomean speedup, {name}", case, where, "geomean, text", read(mean))


_MEANS = {"matched set": "matched_speedup", "own set": "speedup"}


def record_earlier(commands: Commands) -> None:
    """Let `gate` record what an older build of each machine slowed, of which a later one then tells."""
    for machine, (base, head) in product(MACHINES, pairwise(RELEASES[:-1])):
        commands.typed("gate", "--run", f"run-{machine}-{head}", "--since", f"run-{machine}-{base}")


def of_regressions(commands: Commands) -> Iterator[Figure]:
    """`list regressions`, by id, and its tallies by the sides."""
    _, document = commands.document("list", "regressions")
    yield from of_recorded(document["rows"] if document else (), "list regressions")


def of_recorded(rows: Iterable[Mapping[str, Any]], door: str) -> Iterator[Figure]:
    """What is recorded, of a list of it; what became of it by what pages show of a regression too."""
    for row in rows:
        case, where = (row["workload"], row["strategy"]), (row["regression_id"],)
        yield Figure("recorded change", case, where, door, number(row["change"]))
        yield Figure("recorded state", case, where, door, row["state"])
        shown = (row["machine"], METRICS[Metric(row["metric"])].name, row["base"], row["head"])
        for selection in (where, shown):
            yield Figure("what a later build says", case, selection, door, row["now"])


def of_recorded_changes(rows: Iterable[Mapping[str, Any]], door: str) -> Iterator[Figure]:
    """How many changes wait for somebody, and how many a later build took back, in all."""
    rows = [*rows]
    waiting = sum(row["open"] > 0 for row in rows)
    yield Figure("changes that wait", (), (), door, float(waiting))
    looks_fixed = sum(row["open"] == 0 and row["gone"] > 0 for row in rows)
    yield Figure("changes that look fixed", (), (), door, float(looks_fixed))


_OF_LISTED = {
    "latency_ns": "latency",
    "speedup": "speedup",
    "compile_cost_ns": "compile cost",
    "peak_bytes": "peak memory",
    "time_to_first_result_ns": "time to first result",
    "break_even_steps": "break-even, estimated",
}
"""Columns of a case as lists have them, and what they hold."""


def of_cases(commands: Commands, machine: str) -> Iterator[Figure]:
    """`list cases` of a machine, as document and as CSV: of each build what all its runs say."""
    arguments = ("list", "cases", "--machine", machine)
    _, document = commands.document(*arguments)
    yield from of_listed_cases(document["rows"] if document else (), "list cases")
    text = commands.typed(*arguments, "--csv")[1]
    yield from of_listed_cases(csv.DictReader(io.StringIO(text)), "list cases, CSV")


def of_listed_cases(rows: Iterable[Mapping[str, Any]], door: str) -> Iterator[Figure]:
    """The figures of compiled cases; the cells of a CSV are texts."""
    for row in rows:
        case, where = (row["workload"], row["strategy"]), (row["machine_id"], row["build_id"])
        for column, quantity in _OF_LISTED.items() if case[1] != "eager" else ():
            value = NEVER if (column, row["break_even"]) == ("break_even_steps", NEVER) else row[column]
            told = number(float(value) if value and value != NEVER else value or None)
            if told is not None:
                yield Figure(quantity, case, where, door, told)


def of_trials(commands: Commands) -> Iterator[Figure]:
    """`list trials`."""
    _, document = commands.document("list", "trials")
    yield from of_listed_trials(document["rows"] if document else (), "list trials")


def of_listed_trials(rows: Iterable[Mapping[str, Any]], door: str) -> Iterator[Figure]:
    """The figures of trials that passed."""
    for row in rows:
        for column, quantity in (("latency_ns", "latency"), ("speedup", "speedup")):
            if column in row and (told := number(row[column])) is not None:
                yield Figure(f"{quantity} of a trial", (), (row["trial_id"],), door, told)


_FACT = re.compile(r"^(latency)\s+(\S+ \S+)")


def of_trial(commands: Commands, trial: str) -> Iterator[Figure]:
    """`show`, of its text."""
    for line in commands.typed("show", trial)[1].splitlines():
        if found := _FACT.match(line):
            yield Figure(f"{found[1]} of a trial", (), (trial,), "show", read(found[2]))
