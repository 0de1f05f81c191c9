"""Every route of the API: its path, what it takes, what answers, and the shape of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.api import judged, stored
from dashboard.api.parameters import (
    CURSOR,
    FILTERS,
    FORMAT,
    LIMIT,
    MACHINE,
    SINCE,
    STRATEGY,
    SUITE,
    TASK,
    UNTIL,
    WORKLOAD,
    Decimal,
    Parameter,
    Text,
    Whole,
    Word,
)
from dashboard.api.representation import Answer
from db.session import Database

Values = Mapping[str, Any]
PREFIX = "/api/v1"


@dataclass(frozen=True)
class Endpoint:
    """`path` may hold `{name}`, which arrives among the values under that name."""

    path: str
    summary: str
    parameters: tuple[Parameter, ...]
    answer: Callable[[Database, Values], Answer]
    schema: Callable[[Database], dict[str, Any]]
    # What it may say besides 200, 304, 400, 429 and 503.
    refusals: tuple[int, ...] = ()
    path_parameters: tuple[Parameter, ...] = ()

    @property
    def name(self) -> str:
        return "_".join(part.strip("{}") for part in self.path.strip("/").replace("-", "_").split("/"))


def _listing(name: str, summary: str, *filters: Parameter) -> Endpoint:
    key, read = stored.LISTINGS[name]
    return Endpoint(
        f"/{name}",
        summary,
        (*filters, LIMIT, CURSOR, FORMAT),
        stored.listing(name, key, read),
        stored.listing_schema(name, read),
        (404,),
    )


def _id(name: str, what: str) -> tuple[Parameter, ...]:
    return (Parameter(name, Text(), f"The id of a {what}.", required=True),)


_BUILD, _RUN = (parameter for parameter in FILTERS if parameter.name in {"build", "run"})
_SIDE = "Name torch=2.13.0, driver=580.95, a stack label, a build or run id, latest or previous."

ENDPOINTS: tuple[Endpoint, ...] = (
    _listing("machines", "Machines with their hardware and how much was measured there", MACHINE),
    _listing("builds", "Builds in the order of their versions", _BUILD),
    _listing("workloads", "Workloads with their sizes", WORKLOAD, TASK),
    _listing("runs", "Runs, newest first", _RUN, SUITE, SINCE, UNTIL),
    Endpoint(
        "/trials",
        "Trials with their figures, oldest first",
        (*FILTERS, LIMIT, CURSOR, FORMAT),
        stored.trials,
        stored.trials_schema,
        (404,),
    ),
    Endpoint(
        "/trials/{trial}",
        "One trial whole, with its samples; as CSV only these",
        (FORMAT,),
        stored.trial,
        stored.trial_schema,
        (404,),
        _id("trial", "trial"),
    ),
    Endpoint(
        "/series",
        "Series: which case on which machine, and how much of it there is",
        (WORKLOAD, STRATEGY, MACHINE, TASK, LIMIT, CURSOR, FORMAT),
        stored.series,
        lambda database: stored.page_schema("series", stored.series_row_schema(database)),
        (404,),
    ),
    Endpoint(
        "/series/{series}",
        "The history of one series, a point per run or per build, oldest first",
        (
            Parameter("by", Word(("run", "build")), "A point per run, or per build.", default="run"),
            SINCE,
            UNTIL,
            FORMAT,
        ),
        stored.points,
        stored.points_schema,
        (404,),
        _id("series", "series"),
    ),
    Endpoint(
        "/compare",
        "The verdict between two builds: `compilewatch compare --json` without its targets",
        (
            Parameter("base", Text(), _SIDE, required=True, example="previous"),
            Parameter("head", Text(), _SIDE, required=True, example="latest"),
            WORKLOAD,
            STRATEGY,
            Parameter("machine", Text(), "A machine's id; default: the one with most matched cases."),
            FORMAT,
        ),
        judged.compare,
        judged.compare_schema,
        (404, 409),
    ),
    Endpoint(
        "/break-even",
        "Break-even and mode choice: the document of `compilewatch break-even --json`",
        (
            WORKLOAD,
            MACHINE,
            SUITE,
            TASK,
            Parameter("steps", Whole(1, 1_000_000_000), "Steps per process.", default=10_000),
            Parameter("restarts", Whole(0, 10_000), "Restarts per day.", default=0),
            Parameter("price", Decimal(0, 10_000), "Price of the device per hour; without it no money."),
            FORMAT,
        ),
        judged.break_even,
        judged.break_even_schema,
    ),
)
