"""What documents and tables of a comparison tell: `compare`, `gate`, the API, a pull request's comment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from db.columns.metrics import METRIC_NAMES
from db.judge.results import Tally
from db.judge.words.sentences import tallied
from db.records.vocabulary import Metric
from tests.numbers.figures import Case, Figure, Value, number, read, tallies

_OF_CASES = {
    Metric.LATENCY: "latency",
    Metric.SPEEDUP: "speedup",
    Metric.COMPILE_COST: "compile cost",
    Metric.BREAK_EVEN: "break-even",
    Metric.TIME_TO_FIRST_RESULT: "time to first result",
    Metric.PEAK_MEMORY: "peak memory",
}
BY_NAME = {name: metric for metric, name in METRIC_NAMES.items()}


def selection_of(document: Mapping[str, Any]) -> Case:
    """The machine and the runs of both sides."""
    sides = ("+".join(sorted(document[side]["run_ids"])) for side in ("base", "head"))
    return (document["machine_id"], *sides)


def of_document(document: Mapping[str, Any], door: str) -> Iterator[Figure]:
    """Every number of every row, verdicts, the tally; values also as those of the builds compared."""
    selection = selection_of(document)
    for row in document["rows"]:
        case, metric = (row["workload"], row["strategy"]), Metric(row["metric"])
        yield Figure(f"change of {metric}", case, selection, door, number(row["change"]))
        yield Figure(f"verdict on {metric}", case, selection, door, row["verdict"])
        for side in ("base", "head"):
            yield Figure(f"{metric} of the {side}", case, selection, door, number(row[side]))
            builds = document[side]["build_ids"]
            if metric in _OF_CASES and len(builds) == 1:
                where = (document["machine_id"], *builds)
                yield Figure(_OF_CASES[metric], case, where, f"{door}, {side}", _of_case(metric, row[side]))
    tally = tallied(Tally.model_validate(document["tally"]))
    yield Figure("tally", (), selection, f"{door}, counted", tally)
    yield from tallies(document["sentences"], selection, f"{door}, sentences")


def of_markdown(text: str, selection: Case, door: str) -> Iterator[Figure]:
    """The tables and the tally of a comment."""
    rows = [
        [cell.strip().replace("\\", "") for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith("| ") and " --- " not in line
    ]
    for workload, strategy, name, base, head, change, _, verdict, _ in (
        each for each in rows if len(each) == 9
    ):
        if name not in BY_NAME:
            continue
        case, metric = (workload.removesuffix(" (ungated)"), strategy), BY_NAME[name]
        yield Figure(f"{metric} of the base", case, selection, door, read(base), written=True)
        yield Figure(f"{metric} of the head", case, selection, door, read(head), written=True)
        shown = as_number(read(change.partition(" [")[0]))
        yield Figure(f"change of {metric}", case, selection, door, shown, written=True)
        yield Figure(f"verdict on {metric}", case, selection, door, _verdict(verdict))
    yield from tallies(text.replace("\\", "").splitlines(), selection, door)


def _of_case(metric: Metric, cell: float | str | None) -> Value:
    """A value of a side as that of its build: a row has break-even before it is rounded up."""
    value = number(cell)
    return float(ceil(value - 1e-6)) if metric is Metric.BREAK_EVEN and isinstance(value, float) else value


def as_number(shown: Value) -> float | None:
    """A change; where there is no number a text says in words what became of what."""
    return None if isinstance(shown, str) else shown


def _verdict(text: str) -> str:
    """The word behind its mark: a suspicion is what is not decided."""
    word = re.sub(r"^\W+", "", text).partition(",")[0]
    return "inconclusive" if word == "suspected" else word
