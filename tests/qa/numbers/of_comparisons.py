"""What documents and tables of a comparison tell: `compare`, `gate`, the API, a pull request's comment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import log1p
from typing import Any

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.decide import RATIOS
from compilewatch.db.judge.results import PASSING, Tally
from compilewatch.db.judge.sentences import besides, tallied
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.units import percent
from tests.qa.numbers.figures import Case, Figure, Value, number, read, tallies

_OF_CASES = {
    Metric.LATENCY: "latency",
    Metric.SPEEDUP: "speedup",
    Metric.COMPILE_COST: "compile cost",
    Metric.BREAK_EVEN: "break-even, estimated",
    Metric.TIME_TO_FIRST_RESULT: "time to first result",
    Metric.PEAK_MEMORY: "peak memory",
}
BY_NAME = {METRICS[metric].name: metric for metric in Metric}


def selection_of(document: Mapping[str, Any]) -> Case:
    """The machine and the runs of both sides."""
    sides = ("+".join(sorted(document[side]["run_ids"])) for side in ("base", "head"))
    return (document["machine_id"], *sides)


def of_document(document: Mapping[str, Any], door: str) -> Iterator[Figure]:
    """Every number of every row, verdicts, the tally; values also as those of the builds compared."""
    selection = selection_of(document)
    yield from of_values(document, selection, door)
    for row in document["rows"]:
        case, metric = (row["workload"], row["strategy"]), Metric(row["metric"])
        yield Figure(f"verdict on {metric}", case, selection, door, row["verdict"])
    tally = Tally.model_validate(document["tally"])
    yield from tallies([tallied(tally)] if tally.compared else [], selection, f"{door}, counted")
    yield from tallies(document["sentences"], selection, f"{door}, sentences")
    for metric in (Metric.LATENCY, Metric.SPEEDUP):
        counted = _counted(document, metric)
        said = [tallied(counted)] if counted.compared else []
        yield from tallies(said, selection, f"{door}, its rows", metric.value)
    yield Figure(
        "other metrics", (), selection, f"{door}, its rows", besides(_counted(document, Metric.LATENCY))
    )
    told = [each for each in document["sentences"] if each.startswith("Other metrics: ")]
    for said in told or ["Other metrics: ."]:
        text = said.removeprefix("Other metrics: ").removesuffix(".")
        yield Figure("other metrics", (), selection, f"{door}, sentences", text)
    yield Figure("largest change", (), selection, f"{door}, rows", _largest(document["rows"]))
    named = (each for each in document["sentences"] if each.startswith("Largest: "))
    told = re.match(r"Largest: (\S+ / \S+ \S+ [+\u2212-][\d.,]+ %)", next(named, ""))
    yield Figure("largest change", (), selection, f"{door}, sentences", told[1] if told else None)


def _counted(document: Mapping[str, Any], metric: Metric) -> Tally:
    """The cases of a document by the verdict on one metric, counted here once more."""
    cases: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in document["rows"]:
        cases.setdefault((row["case"]["workload_id"], row["case"]["strategy_id"]), []).append(row)
    groups: Counter[str] = Counter()
    worse, better = Counter[str](), Counter[str]()
    for rows in cases.values():
        if any(row["metric"] == "numerics" and row["head"] not in PASSING for row in rows):
            groups["failing"] += 1
            continue
        moved = {row["metric"]: _moved(row) for row in rows}
        worse.update(name for name, way in moved.items() if way == "slower")
        better.update(name for name, way in moved.items() if way == "faster")
        groups[moved.get(metric.value, "undecided")] += 1
    groups["missing"] = sum(each["verdict"] == "missing" for each in document["left_out"])
    return Tally.model_validate({"metric": metric, **groups, "slower_by": worse, "faster_by": better})


_WAYS = {"regressed": "slower", "improved": "faster", "unchanged": "unchanged"}


def _moved(row: Mapping[str, Any]) -> str:
    """Which group of a tally a verdict is in; of a ratio that fell because eager got faster nobody waits."""
    if row["cause"] == "machine":
        return "set_aside"
    harmless = row["metric"] in RATIOS and row["who_moved"] == "eager"
    if harmless and row["verdict"] == "regressed":
        return "unchanged"
    return _WAYS.get(row["verdict"], "undecided")


def of_values(document: Mapping[str, Any], selection: Case, door: str) -> Iterator[Figure]:
    """The numbers of the rows, which depend on no filter: a verdict depends on how many cases are judged."""
    for row in document["rows"]:
        case, metric = (row["workload"], row["strategy"]), Metric(row["metric"])
        yield Figure(f"change of {metric}", case, selection, door, number(row["change"]))
        for side in ("base", "head"):
            yield Figure(f"{metric} of the {side}", case, selection, door, number(row[side]))
            builds = document[side]["build_ids"]
            if metric in _OF_CASES and len(builds) == 1:
                where = (document["machine_id"], *builds)
                yield Figure(_OF_CASES[metric], case, where, f"{door}, {side}", number(row[side]))


def _largest(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """The largest change of latency or speedup by a tenth or more, as a sentence names it."""
    timed = [row for row in rows if row["metric"] in ("latency", "speedup") and row["change"] is not None]
    size = {id(row): abs(log1p(row["change"])) for row in timed}
    largest = max(timed, key=lambda row: size[id(row)], default=None)
    if largest is None or size[id(largest)] < log1p(0.1):
        return None
    change = percent(largest["change"], signed=True)
    return f"{largest['workload']} / {largest['strategy']} {largest['metric']} {change}"


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
        yield Figure(f"{metric} of the base", case, selection, door, read(base))
        yield Figure(f"{metric} of the head", case, selection, door, read(head))
        shown = as_number(read(change.partition(" [")[0]))
        yield Figure(f"change of {metric}", case, selection, door, shown)
        yield Figure(f"verdict on {metric}", case, selection, door, _verdict(verdict))
    yield from tallies(text.replace("\\", "").splitlines(), selection, door)


def as_number(shown: Value) -> float | None:
    """A change; where there is no number a text says in words what became of what."""
    return None if isinstance(shown, str) else shown


def _verdict(text: str) -> str:
    """The word behind its mark: a suspicion is what is not decided."""
    word = re.sub(r"^\W+", "", text).partition(",")[0]
    return "inconclusive" if word == "suspected" else word
