"""What the commands tell, as documents and as texts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.numbers.figures import Case, Figure, number, read, tallies
from tests.numbers.of_comparisons import of_document, of_markdown, selection_of
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


def of_compare(commands: Commands, base: str, head: str, machine: str) -> Iterator[Figure]:
    """`compare` of two sides by name: document, text and Markdown, and how it ends."""
    arguments = ("compare", base, head, "--machine", machine)
    code, document = commands.document(*arguments)
    if document is None:
        return
    selection = selection_of(document)
    yield from of_document(document, "compare")
    yield Figure("exit", (), selection, "compare", code)
    yield Figure("exit", (), selection, "its verdict", DECIDED[document["verdict"]])
    _, text, _ = commands.typed(*arguments)
    yield from tallies(text.splitlines(), selection, "compare, text")
    _, comment, _ = commands.typed(*arguments, "--markdown")
    yield from of_markdown(comment, selection, "compare, Markdown")


def of_gate(commands: Commands) -> Iterator[Figure]:
    """`gate` as document, text and comment, and `compare` of the same two sides."""
    code, document = commands.document("gate")
    if document is None or not document["rows"]:
        return
    selection = selection_of(document)
    yield from of_document(document, "gate")
    yield Figure("exit", (), selection, "gate", code)
    again, text, beside = commands.typed("gate")
    yield Figure("exit", (), selection, "gate, text", again)
    yield from tallies(beside.splitlines(), selection, "gate, text")
    yield from _first_lines(text, selection)
    _, comment, _ = commands.typed("gate", "--markdown")
    yield from of_markdown(comment, selection, "gate, comment")
    sides = [document[side]["run_ids"] for side in ("base", "head")]
    if all(len(runs) == 1 for runs in sides):
        yield from of_compare(commands, sides[0][0], sides[1][0], document["machine_id"])


_LINE = re.compile(r"^(\S+)(?: \(ungated\))? / (\S+): latency (.+?) -> (.+?) \(([\d.]+)x, ([+-][\d.,]+ %)")


def _first_lines(text: str, selection: Case) -> Iterator[Figure]:
    """The lines of what regressed in latency."""
    for line in text.splitlines():
        if found := _LINE.match(line):
            workload, strategy, base, head, factor, change = found.groups()
            case, door = (workload, strategy), "gate, line"
            yield Figure("latency of the base", case, selection, door, read(base), written=True)
            yield Figure("latency of the head", case, selection, door, read(head), written=True)
            yield Figure("change of latency", case, selection, door, read(change), written=True)
            yield Figure("factor of latency", case, selection, door, float(factor), written=True)
            yield Figure(
                "factor of latency",
                case,
                selection,
                f"{door}, change",
                1 + float(str(read(change))),
                written=True,
            )


def of_history(commands: Commands, machine: str, cases: list[tuple[str, str]]) -> Iterator[Figure]:
    """Changes that `history` of a machine counts, and that `history` of each case finds."""
    _, document = commands.document("history", "--machine", machine)
    if document is None:
        return
    found: Counter[tuple[str, str, str]] = Counter(
        (event["workload"], event["strategy"], event["metric"])
        for group in document["groups"]
        for event in group["events"]
    )
    for workload, strategy in cases:
        for metric in ("latency", "speedup"):
            of_case = ("--workload", workload, "--strategy", strategy, "--metric", metric)
            ended, series = commands.document("history", "--machine", machine, *of_case)
            if series is None:
                continue
            case, selection = (workload, strategy), (machine, metric)
            verdicts = [step["row"]["verdict"] for step in series["releases"]]
            steps = [verdict for verdict in verdicts if verdict in ("regressed", "improved")]
            events = series["events"] or steps
            yield Figure("changes", case, selection, "history of the case", len(events))
            counted = found[workload, strategy, metric]
            yield Figure("changes", case, selection, "history of the machine", counted)
            if verdicts:
                yield Figure("exit", case, selection, "history", ended)
                yield Figure("exit", case, selection, "its last step", DECIDED[verdicts[-1]])


def of_break_even(commands: Commands, steps: int) -> Iterator[Figure]:
    """`break-even` as document and as table, of the newest build of each machine."""
    _, document = commands.document("break-even", "--steps", str(steps))
    if document is None:
        return
    for row in document["rows"]:
        yield from of_break_even_row(row, "break-even", steps)


def of_break_even_row(row: dict[str, Any], door: str, steps: int) -> Iterator[Figure]:
    """One row of the command's document or of the API's."""
    if row["strategy"] == "eager" or row["total_ns"] is None:
        return
    case, where = (row["workload"], row["strategy"]), (row["machine_id"], row["build_id"])
    yield Figure("break-even", case, where, door, number(row["break_even_steps"]))
    yield Figure(f"total of {steps} steps", case, where, door, number(row["total_ns"]))
    yield Figure(f"chosen at {steps} steps", case, where, door, str(row["chosen"]))


def of_geomean(commands: Commands) -> Iterator[Figure]:
    """`geomean`: the mean of each strategy over what it passed."""
    _, document = commands.document("geomean")
    for row in document["rows"] if document else ():
        where, case = (row["machine_id"], row["build_id"]), (row["task"], row["strategy"])
        yield Figure("geomean speedup", case, where, "geomean", number(row["speedup"]))


def of_regressions(commands: Commands) -> Iterator[Figure]:
    """`list regressions`, by id."""
    _, document = commands.document("list", "regressions")
    for row in document["rows"] if document else ():
        case, where = (row["workload"], row["strategy"]), (row["regression_id"],)
        yield Figure("recorded change", case, where, "list regressions", number(row["change"]))
        yield Figure("recorded state", case, where, "list regressions", row["state"])


def of_trial(commands: Commands, trial: str) -> Iterator[Figure]:
    """`show`, of its text."""
    _, text, _ = commands.typed("show", trial)
    for line in text.splitlines():
        if found := re.match(r"^\s*(latency|eager|speedup)\b\s+(\S+(?: \S+)?)", line):
            yield Figure(
                f"{found[1]} of a trial", (), (trial,), "show", read(found[2].rstrip(",")), written=True
            )
