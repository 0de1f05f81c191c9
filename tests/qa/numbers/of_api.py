"""What the API and badges tell."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette

from tests.dashboard import asking
from tests.qa.numbers.figures import Case, Figure, number, read, steps_told, tallies
from tests.qa.numbers.of_commands import (
    of_break_even_rows,
    of_listed_cases,
    of_listed_trials,
    of_recorded,
    of_recorded_changes,
)
from tests.qa.numbers.of_comparisons import of_document

API = "/api/v1"
_clients = count()
_SVG = "{http://www.w3.org/2000/svg}"


def ask(app: Starlette, path: str, query: dict[str, Any] | None = None) -> asking.Reply:
    """Each time as another client: how often one may ask is no matter here."""
    number = next(_clients)
    return asking.ask(app, path, query, client=f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")


def of_compare(app: Starlette, base: str, head: str, machine: str) -> Iterator[Figure]:
    reply = ask(app, f"{API}/compare", {"base": base, "head": head, "machine": machine})
    if reply.status == 200:
        yield from of_document(reply.json, "API compare")


def of_break_even(app: Starlette, steps: int) -> Iterator[Figure]:
    rows = ask(app, f"{API}/break-even", {"steps": steps}).json["rows"]
    yield from of_break_even_rows(rows, "API break-even", steps)


def of_points(app: Starlette, machine: str) -> Iterator[Figure]:
    """A case of each build, as a series by build has it."""
    for series in ask(app, f"{API}/series", {"machine": machine, "limit": 1000}).json["rows"]:
        case = (series["workload"], series["strategy"])
        address = f"{API}/series/{series['series_id']}"
        for run in ask(app, address).json["rows"]:
            for metric, column in _OF_RUNS.items():
                known = number(run[column])
                if known is not None:
                    where = (machine, run["run_id"], metric)
                    yield Figure("a run's value", case, where, "API points", known)
        points = ask(app, address, {"by": "build"}).json["rows"]
        for point in points:
            where = (machine, point["build_id"])
            yield Figure("latency", case, where, "API points", number(point["latency_ns"]))
            if series["strategy"] != "eager":
                yield Figure("speedup", case, where, "API points", number(point["speedup"]))
                yield Figure("compile cost", case, where, "API points", number(point["compile_cost_ns"]))
                steps = "never" if point["break_even"] == "never" else number(point["break_even_steps"])
                # Of one trial, or of suspect ones alone, a point is drawn and marked, and a case has none.
                if steps is not None and not (point["first_look"] or point["point_suspect"]):
                    yield Figure("break-even, estimated", case, where, "API points", steps)


_OF_RUNS = {
    "latency": "latency_ns",
    "speedup": "speedup",
    "compile_cost": "compile_cost_ns",
    "break_even": "break_even_steps",
}
"""What one run says of a case."""


def of_cases(app: Starlette, machine: str) -> Iterator[Figure]:
    """What all runs of each build say of a case, and each trial of it."""
    query = {"machine": machine, "limit": 1000}
    yield from of_listed_cases(ask(app, f"{API}/cases", query).json["rows"], "API cases")
    yield from of_listed_trials(ask(app, f"{API}/trials", query).json["rows"], "API trials")


def of_changes(app: Starlette, machine: str) -> Iterator[Figure]:
    """How many steps the history of a machine shows."""
    reply = ask(app, f"{API}/changes", {"machine": machine})
    if reply.status == 200:
        yield from steps_told([reply.json["sentence"]], machine, "API changes")


def of_regressions(app: Starlette) -> Iterator[Figure]:
    query = {"limit": 1000}
    yield from of_recorded(ask(app, f"{API}/regressions", query).json["rows"], "API regressions")
    changes = ask(app, f"{API}/recorded-changes", query).json["rows"]
    yield from of_recorded_changes(changes, "API recorded changes")


def of_regression(app: Starlette, regression: str, case: Case) -> Iterator[Figure]:
    """One of them by its id."""
    document = ask(app, f"{API}/regressions/{regression}").json
    yield Figure("recorded state", case, (regression,), "API regression", document["state"])
    yield Figure("what a later build says", case, (regression,), "API regression", document["now"])


def of_badges(app: Starlette, cases: Iterable[Case], machine: str, build: str) -> Iterator[Figure]:
    """Both badges of each compiled case."""
    for workload, strategy in cases:
        for metric, quantity in (("speedup", "speedup"), ("break_even", "break-even")):
            query = {"machine": machine, "build": build, "metric": metric}
            text = _badge(app, f"{quote(workload)}/{quote(strategy)}.svg", query)
            if text not in ("no data", "failed", "first look"):
                found = read(text.removesuffix(" (first look)").removesuffix(" (not shown)"))
                yield Figure(quantity, (workload, strategy), (machine, build), "badge", found)


def of_tally_badge(app: Starlette, machine: str, build: str, selection: Case) -> Iterator[Figure]:
    """The badge of all cases of a build."""
    yield from tallies([_badge(app, "tally.svg", {"machine": machine, "build": build})], selection, "badge")


def _badge(app: Starlette, path: str, query: dict[str, Any]) -> str:
    """What it says on its right."""
    reply = ask(app, f"/badge/{path}", query)
    return [each.text or "" for each in ET.fromstring(reply.body).iter(f"{_SVG}text")][1]
