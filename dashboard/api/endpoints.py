"""Every route of the API: its path, what it takes, what answers, and the shape of the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from compilewatch.dashboard.api import comparisons, jobs, queries, stored, written
from compilewatch.dashboard.api.queries import Query, Values
from compilewatch.dashboard.api.representation import Answer
from compilewatch.dashboard.api.stored import Listing
from compilewatch.dashboard.document.content import Content
from compilewatch.dashboard.links.values import JsonSchema
from compilewatch.db.engine.session import Database
from compilewatch.db.records.trial import Trial
from compilewatch.db.service.reports import reports_revision

PREFIX = "/api/v1"


@dataclass(frozen=True)
class Endpoint:
    """`path` may hold `{name}`, which arrives among the values under that name."""

    path: str
    summary: str
    query: type[Query]
    answer: Callable[[Database, Values], Answer]
    schema: Callable[[Database], JsonSchema]
    # What it may say besides 200, 304, 400, 429 and 503.
    refusals: tuple[int, ...] = (404,)
    # What the answer depends on beside the data version.
    freshness: Callable[[Database], object] | None = None
    # False for what must not outlive its revocation in a browser or a proxy.
    is_cacheable: bool = True

    @property
    def ids(self) -> list[str]:
        """The names in its path."""
        return re.findall(r"{(\w+)}", self.path)

    @property
    def name(self) -> str:
        """The path as an identifier: `trials_trial` for `/trials/{trial}`."""
        return "_".join(part.strip("{}") for part in self.path.strip("/").replace("-", "_").split("/"))


def _listing(
    listing: Listing,
    summary: str,
    query: type[Query],
    *,
    freshness: Callable[[Database], object] | None = None,
) -> Endpoint:
    path = f"/{listing.name}"
    return Endpoint(path, summary, query, listing.answer, listing.schema, freshness=freshness)


_MACHINES, _BUILDS, _WORKLOADS, _RUNS = stored.LISTINGS

ENDPOINTS: tuple[Endpoint, ...] = (
    _listing(
        _MACHINES, "Machines with their hardware and how much was measured there", queries.MachinesQuery
    ),
    _listing(_BUILDS, "Builds in the order of their versions", queries.BuildsQuery),
    _listing(_WORKLOADS, "Workloads with their sizes", queries.WorkloadsQuery),
    _listing(_RUNS, "Runs, newest first", queries.RunsQuery),
    Endpoint(
        "/trials",
        "Trials with their figures, oldest first",
        queries.TrialsQuery,
        stored.trials,
        stored.trials_schema,
    ),
    Endpoint(
        "/trials/{trial}",
        "One trial whole, with its samples; as CSV only these",
        queries.Represented,
        stored.trial,
        lambda _: Trial.model_json_schema(mode="serialization"),
    ),
    Endpoint(
        "/cases",
        "Cases of builds with their figures, over all trials that the filters let through: "
        "the rows of `compilewatch list cases --json`",
        queries.CasesQuery,
        stored.cases,
        stored.cases_schema,
    ),
    Endpoint(
        "/series",
        "Series: which case on which machine, and how much of it there is",
        queries.SeriesQuery,
        stored.series,
        lambda database: stored.page_schema("series", stored.series_row_schema(database)),
    ),
    Endpoint(
        "/series/{series}",
        "The history of one series, a point per run or per build, oldest first",
        queries.PointsQuery,
        stored.points,
        stored.points_schema,
    ),
    Endpoint(
        "/compare",
        "The verdict between two builds: `compilewatch compare --json` without targets and what it recorded",
        queries.CompareQuery,
        comparisons.compare,
        comparisons.compare_schema,
        (404, 409),
    ),
    Endpoint(
        "/changes",
        "Every step in the history of a machine: the document of `compilewatch history --json`",
        queries.ChangesQuery,
        comparisons.changes,
        comparisons.changes_schema,
    ),
    Endpoint(
        "/break-even",
        "Break-even and mode choice: the document of `compilewatch break-even --json`",
        queries.BreakEvenQuery,
        comparisons.break_even,
        comparisons.break_even_schema,
    ),
    _listing(
        stored.CHANGES,
        "Recorded regressions by the step of the build that brought them, a row each, the dearest first",
        queries.RecordedQuery,
    ),
    _listing(
        stored.REGRESSIONS,
        "Recorded regressions that no later verdict replaced, newest first",
        queries.RegressionsQuery,
    ),
    Endpoint(
        "/regressions/{regression}",
        "One regression whole: the verdict with both sides, and its triage",
        queries.Represented,
        stored.regression,
        lambda _: stored.RegressionAnswer.model_json_schema(mode="serialization"),
    ),
    _listing(
        written.REQUESTS,
        "Run requests, newest first, with why nobody takes one that waits",
        queries.RequestsQuery,
        freshness=written.freshness,
    ),
    _listing(
        jobs.JOBS,
        "Processes of running jobs, as they said last how they are",
        queries.ReportsQuery,
        freshness=jobs.freshness,
    ),
    _listing(
        stored.ANNOTATIONS,
        "What somebody wrote at a day or at a build, newest first",
        queries.MachinesQuery,
    ),
    _listing(
        stored.REPORTS,
        "Frozen reports, newest first, without their ids",
        queries.ReportsQuery,
        freshness=reports_revision,
    ),
    Endpoint(
        "/reports/{report}",
        "One frozen report whole, by its id; as CSV the cells of its tables",
        queries.Represented,
        stored.report,
        lambda _: Content.model_json_schema(mode="serialization"),
        (404, 410),
        freshness=reports_revision,
        is_cacheable=False,
    ),
)
