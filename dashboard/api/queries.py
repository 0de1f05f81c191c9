"""What each route of the API takes: models of query strings, whose values are those of links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from compilewatch.dashboard.http.errors import SEE_DOCUMENT, ParameterError
from compilewatch.dashboard.links.links import PRICE, RESTARTS, STEPS, Names
from compilewatch.dashboard.links.resolution import Names as NamesOfIds
from compilewatch.dashboard.links.resolution import the_one, why_unknown
from compilewatch.dashboard.links.values import Decimal, Moment, One, Several, Text, Whole, Word, quoted
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, NotFoundError
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.queries.named import former_machine_names, machine_names, require_stored
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.requests import RequestState
from compilewatch.db.records.trial import SourceKind, Status, Task
from compilewatch.db.verdicts.sides import LATEST, PREVIOUS, builds_of_side, resolve_one, resolve_side

Values = Mapping[str, Any]
"""Those of a route's query and path, by name."""
A_MACHINE = "A machine's id, or its name where only one is called so."
A_BUILD = "A build: its id, torch=2.13.0, a label, commit=abc1234, a day, latest or previous."
_SIDE = "Name torch=2.13.0, driver=580.95, a stack label, a build or run id, latest or previous."

Name = Annotated[str | None, One(Text())]
Workloads = Annotated[Names, Field(description="A workload by name.")]
Strategies = Annotated[Names, Field(description="A strategy by name.")]
Machines = Annotated[Names, Field(description=A_MACHINE)]
Builds = Annotated[Names, Field(description=A_BUILD)]
Suites = Annotated[Names, Field(description="A suite by name.")]
Runs = Annotated[Names, Field(description="A run's id.")]
Tasks = Annotated[tuple[str, ...], Several(Word(tuple(Task))), Field(description="What is measured.")]
Side = Annotated[str, One(Text()), Field(description=_SIDE)]


class Query(BaseModel):
    """The query string of a route; a key that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def read(cls, query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """The value of every parameter, defaults included. Raises ParameterError."""
        try:
            return dict(cls.model_validate({name: list(values) for name, values in query.items()}))
        except ValidationError as error:
            wrong = error.errors()[0]
        name = str(wrong["loc"][0])
        if wrong["type"] == "extra_forbidden":
            known = ", ".join(cls.model_fields)
            takes = f"It takes {known}." if known else "It takes no parameter."
            raise ParameterError(f"This route has no parameter {quoted(name)}.", f"{takes} {SEE_DOCUMENT}")
        what = "is missing" if wrong["type"] == "missing" else wrong["msg"]
        raise ParameterError(
            f"The parameter {name} {what}.", cls.model_fields[name].description or SEE_DOCUMENT
        )


def query_of(request: Request) -> dict[str, list[str]]:
    """The parameters of an address, each with all its values."""
    return {name: request.query_params.getlist(name) for name in request.query_params}


class Represented(Query):
    """A document that is JSON or a table."""

    format: Annotated[
        str | None,
        One(Word(("json", "csv"))),
        Field(description="json or csv; without it the Accept header decides."),
    ] = None


class Paged(Represented):
    """Rows, so many at a time."""

    limit: Annotated[int, One(Whole(1, 1000)), Field(description="At most this many rows.")] = 100
    cursor: Annotated[Name, Field(description="The `next` of the page before: the id of its last row.")] = (
        None
    )


class Period(Query):
    """Of what began within a time."""

    since: Annotated[
        datetime | None,
        One(Moment()),
        Field(description="Started at or after this day or time (UTC)."),
    ] = None
    until: Annotated[
        datetime | None,
        One(Moment(ends=True)),
        Field(description="Started at or before this day or time (UTC)."),
    ] = None


class MachinesQuery(Paged):
    machine: Machines = ()


class BuildsQuery(Paged):
    build: Builds = ()


class WorkloadsQuery(Paged):
    workload: Workloads = ()
    task: Tasks = ()


class RunsQuery(Paged, Period):
    run: Runs = ()
    suite: Suites = ()


class TrialsQuery(Paged, Period):
    workload: Workloads = ()
    strategy: Strategies = ()
    machine: Machines = ()
    build: Builds = ()
    suite: Suites = ()
    run: Runs = ()
    task: Tasks = ()
    status: Annotated[
        tuple[str, ...], Several(Word(tuple(Status))), Field(description="How the trial ended.")
    ] = ()
    source: Annotated[
        tuple[str, ...], Several(Word(tuple(SourceKind))), Field(description="Measured here, or imported.")
    ] = ()


class CasesQuery(TrialsQuery): ...


class SeriesQuery(Paged):
    workload: Workloads = ()
    strategy: Strategies = ()
    machine: Machines = ()
    task: Tasks = ()


class PointsQuery(Represented, Period):
    by: Annotated[str, One(Word(("run", "build"))), Field(description="A point per run, or per build.")] = (
        "run"
    )


class CompareQuery(Represented):
    base: Annotated[Side, Field(examples=["previous"])]
    head: Annotated[Side, Field(examples=["latest"])]
    workload: Workloads = ()
    strategy: Strategies = ()
    machine: Annotated[Name, Field(description=f"{A_MACHINE} Default: the one with most matched cases.")] = (
        None
    )


class ChangesQuery(Represented):
    workload: Workloads = ()
    strategy: Strategies = ()
    machine: Annotated[Name, Field(description=f"{A_MACHINE} Default: the one with most runs.")] = None


class BreakEvenQuery(Represented):
    workload: Workloads = ()
    strategy: Strategies = ()
    machine: Machines = ()
    build: Annotated[Names, Field(description=f"{A_BUILD} Default: each machine's newest.")] = ()
    suite: Suites = ()
    task: Tasks = ()
    steps: Annotated[int, One(STEPS), Field(description="Steps per process.")] = STEPS.default
    restarts: Annotated[int, One(RESTARTS), Field(description="Restarts per day.")] = RESTARTS.default
    price: Annotated[
        float | None,
        One(Decimal(PRICE.low, PRICE.high)),
        Field(description="Price of the device per hour; without it no money."),
    ] = None


class RecordedQuery(Paged, Period):
    pass


class RegressionsQuery(Paged, Period):
    workload: Workloads = ()
    strategy: Strategies = ()
    machine: Machines = ()
    task: Tasks = ()
    state: Annotated[
        tuple[str, ...], Several(Word(tuple(TriageState))), Field(description="What people said it is.")
    ] = ()


class RequestsQuery(Paged, Period):
    state: Annotated[
        tuple[str, ...], Several(Word(tuple(RequestState))), Field(description="How the request stands.")
    ] = ()


class ReportsQuery(Paged, Period): ...


class TallyBadgeQuery(Query):
    machine: Annotated[Name, Field(description=f"{A_MACHINE} Default: the one measured last.")] = None
    build: Annotated[Name, Field(description=f"{A_BUILD} Default: the newest of that machine.")] = None


class BadgeQuery(TallyBadgeQuery):
    metric: Annotated[
        str,
        One(Word(("speedup", "break_even", "throughput"))),
        Field(description="speedup, break_even or throughput."),
    ] = "speedup"


_NAMED = ("workload", "strategy", "suite", "run")


def with_ids(database: Database, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` of parameters with ids for names of machines and builds, and all else as it is.

    A machine that was renamed answers to its old name too. A build is named as for `compilewatch compare`; a
    name of several stands for all of them where several may be given. Where it is that of runs, as of a
    commit or a day, `build_run` has them. Raises NotFoundError for what is not there, whatever it is a name
    of: nothing would pass for an answer.
    """
    found = dict(values)
    require_stored(database, filters_in({key: found.get(key, ()) for key in _NAMED}))
    if machines := values.get("machine"):
        names = machine_names(database)
        found["machine"] = _each(machines, lambda name: _machine(database, name, names))
    if builds := values.get("build"):
        alone = isinstance(builds, str)
        where = found.get("machine") if alone else None
        sides = [_side(database, name, where, alone=alone) for name in ([builds] if alone else builds)]
        ids = tuple(dict.fromkeys(build for side in sides for build in builds_of_side(side, database)))
        found["build"] = ids[0] if alone else ids
        of_runs = [side for side in sides if side.name not in (LATEST, PREVIOUS)]
        found["build_run"] = tuple(run for side in of_runs for run in side.run_ids)
    return found


def _each(value: str | tuple[str, ...], read: Callable[[str], str]) -> str | tuple[str, ...]:
    return read(value) if isinstance(value, str) else tuple(dict.fromkeys(map(read, value)))


def _machine(database: Database, name: str, names: NamesOfIds) -> str:
    known = [each for _, each in names]
    found = the_one(name, known, names) or the_one(name, (), former_machine_names(database))
    if found is None:
        raise NotFoundError(why_unknown("machine", name, known, names), "Correct the address.")
    return found


def _side(database: Database, name: str, machine: str | None, *, alone: bool) -> Selection:
    """All that `name` stands for, or `alone` the one of it with most cases, on the `machine`."""
    try:
        return resolve_one(name, database, machine).side if alone else resolve_side(name, database)
    except ConfigError as error:
        raise NotFoundError(error.message, error.next_step) from error


def filters_in(values: Mapping[str, Any]) -> Filters:
    """The filters among `values`; those that a route does not take leave their subject open."""
    return Filters(
        workloads=values.get("workload", ()),
        strategies=values.get("strategy", ()),
        machines=values.get("machine", ()),
        builds=values.get("build", ()),
        suites=values.get("suite", ()),
        runs=(*values.get("run", ()), *values.get("build_run", ())),
        tasks=tuple(Task(task) for task in values.get("task", ())),
        since=values.get("since"),
        until=values.get("until"),
        statuses=tuple(Status(status) for status in values.get("status", ())),
        sources=tuple(SourceKind(kind) for kind in values.get("source", ())),
    )
