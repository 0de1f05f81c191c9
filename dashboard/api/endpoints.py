"""Every route of the API: its path, what it takes, what answers, and the shape of the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dashboard.api import comparisons, recorded, stored
from dashboard.api.parameters import (
    A_BUILD,
    A_MACHINE,
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
    JsonSchema,
    Parameter,
    Text,
    Values,
    Whole,
    Word,
)
from dashboard.api.representation import Answer
from dashboard.api.stored import Listing
from db.engine.session import Database
from db.queries.reports import reports_revision
from db.records.triage import TriageState

PREFIX = "/api/v1"


@dataclass(frozen=True)
class Endpoint:
    """`path` may hold `{name}`, which arrives among the values under that name."""

    path: str
    summary: str
    parameters: tuple[Parameter, ...]
    answer: Callable[[Database, Values], Answer]
    schema: Callable[[Database], JsonSchema]
    # What it may say besides 200, 304, 400, 429 and 503.
    refusals: tuple[int, ...] = ()
    path_parameters: tuple[Parameter, ...] = ()
    # What the answer depends on beside the data version.
    freshness: Callable[[Database], object] | None = None
    # False for what must not outlive its revocation in a browser or a proxy.
    is_cacheable: bool = True

    @property
    def name(self) -> str:
        """The path as an identifier: `trials_trial` for `/trials/{trial}`."""
        return "_".join(part.strip("{}") for part in self.path.strip("/").replace("-", "_").split("/"))


def _listing(
    listing: Listing,
    summary: str,
    *filters: Parameter,
    freshness: Callable[[Database], object] | None = None,
) -> Endpoint:
    return Endpoint(
        f"/{listing.name}",
        summary,
        (*filters, LIMIT, CURSOR, FORMAT),
        listing.answer,
        listing.schema,
        (404,),
        freshness=freshness,
    )


def _id(name: str, what: str) -> tuple[Parameter, ...]:
    return (Parameter(name, Text(), f"The id of a {what}.", required=True),)


_BUILD, _RUN = (parameter for parameter in FILTERS if parameter.name in {"build", "run"})
_SIDE = "Name torch=2.13.0, driver=580.95, a stack label, a build or run id, latest or previous."

_STATE = Parameter("state", Word(tuple(TriageState)), "What people said it is.", several=True)
_MACHINES, _BUILDS, _WORKLOADS, _RUNS = stored.LISTINGS

ENDPOINTS: tuple[Endpoint, ...] = (
    _listing(_MACHINES, "Machines with their hardware and how much was measured there", MACHINE),
    _listing(_BUILDS, "Builds in the order of their versions", _BUILD),
    _listing(_WORKLOADS, "Workloads with their sizes", WORKLOAD, TASK),
    _listing(_RUNS, "Runs, newest first", _RUN, SUITE, SINCE, UNTIL),
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
        "The verdict between two builds: `compilewatch compare --json` without targets and what it recorded",
        (
            Parameter("base", Text(), _SIDE, required=True, example="previous"),
            Parameter("head", Text(), _SIDE, required=True, example="latest"),
            WORKLOAD,
            STRATEGY,
            Parameter("machine", Text(), f"{A_MACHINE} Default: the one with most matched cases."),
            FORMAT,
        ),
        comparisons.compare,
        comparisons.compare_schema,
        (404, 409),
    ),
    Endpoint(
        "/break-even",
        "Break-even and mode choice: the document of `compilewatch break-even --json`",
        (
            WORKLOAD,
            STRATEGY,
            MACHINE,
            Parameter("build", Text(), f"{A_BUILD} Default: each machine's newest.", several=True),
            SUITE,
            TASK,
            Parameter("steps", Whole(1, 1_000_000_000), "Steps per process.", default=10_000),
            Parameter("restarts", Whole(0, 10_000), "Restarts per day.", default=0),
            Parameter("price", Decimal(0, 10_000), "Price of the device per hour; without it no money."),
            FORMAT,
        ),
        comparisons.break_even,
        comparisons.break_even_schema,
    ),
    _listing(
        recorded.REGRESSIONS,
        "Recorded regressions that no later verdict replaced, newest first",
        *(WORKLOAD, STRATEGY, MACHINE, TASK, SINCE, UNTIL, _STATE),
    ),
    Endpoint(
        "/regressions/{regression}",
        "One regression whole: the verdict with both sides, and its triage",
        (FORMAT,),
        recorded.regression,
        recorded.regression_schema,
        (404,),
        _id("regression", "regression"),
    ),
    _listing(
        recorded.REPORTS,
        "Frozen reports, newest first, without their ids",
        *(SINCE, UNTIL),
        freshness=reports_revision,
    ),
    Endpoint(
        "/reports/{report}",
        "One frozen report whole, by its id; as CSV the cells of its tables",
        (FORMAT,),
        recorded.report,
        recorded.report_schema,
        (404, 410),
        _id("report", "report"),
        freshness=reports_revision,
        is_cacheable=False,
    ),
)
