"""`compilewatch request`: ask the services to measure something."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table
from ulid import ULID

from compilewatch.db.records.requests import (
    UNFINISHED,
    RequestKind,
    RequestSpec,
    RequestState,
    RunRequest,
)
from compilewatch.db.service.hosts import unserved
from compilewatch.db.service.requests import cancel_request, new_request, requests, save_request
from compilewatch.db.units import MISSING, moment
from compilewatch.runner.cli import options
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    LabelOption,
    ProfileOption,
    StacksOption,
    StrategiesOption,
    SuiteOption,
    TraceOption,
    TrialsOption,
    WorkloadsOption,
    database_of,
    settings_of,
    who_asks,
)
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.tables import console, plain_table
from compilewatch.runner.plan.builds import builds_named
from compilewatch.runner.plan.plan import require_limits
from compilewatch.runner.plan.selection import refuse_code, select

app = typer.Typer(
    help="Queue, list and cancel measurements of the services.", no_args_is_help=True, rich_markup_mode=None
)

_LISTED = 50


@app.command("create")
def create(
    suite: SuiteOption = None,
    workload: WorkloadsOption = None,
    strategy: StrategiesOption = None,
    build: StacksOption = None,
    machine: Annotated[
        str | None,
        typer.Option(
            help="Host name, machine id or device name, or a pattern; unset: any.",
            autocompletion=options.machines,
        ),
    ] = None,
    trials: TrialsOption = None,
    budget: Annotated[int | None, typer.Option(min=1, help="Trials at most, over all cases.")] = None,
    label: LabelOption = None,
    profile: ProfileOption = False,
    trace: TraceOption = False,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Queue a run for a service to measure. Example: compilewatch request create --suite smoke"""
    settings = settings_of(config, db)
    # No service runs code that a request names, whatever its configuration.
    refuse_code(settings, workload or (), (strategy or ()) if machine is None else ())
    if machine is None:
        # A machine that is named may have another configuration; for any machine, ours must know the names.
        selection = select(settings, suite=suite, workloads=workload or (), strategies=strategy or ())
        named = builds_named(build or (), settings) or settings.builds
        require_limits(settings, selection, builds=len(named), trials=trials)
    spec = RequestSpec(
        suite=suite,
        workloads=tuple(workload or ()),
        strategies=tuple(strategy or ()),
        builds=tuple(build or ()),
        machine=machine,
        trials=trials,
        budget_trials=budget,
        label=label,
        profile=profile,
        trace=trace,
    )
    settings.limits.require_request(spec)
    request = new_request(str(ULID()), RequestKind.MANUAL, spec, by=who_asks(), at=datetime.now(UTC))
    with database_of(settings) as database:
        save_request(database, request)
        waiting = unserved(database, [request], request.asked_at)
    if json_:
        print_document(_document([request], waiting))
    else:
        typer.echo(" ".join([f"Queued as {request.request_id}.", *waiting.values()]))
    return 0


@app.command("list")
def list_(
    all_: Annotated[bool, typer.Option("--all", help="With those that are done.")] = False,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Queued and running requests, newest first. Example: compilewatch request list --all"""
    states = tuple(RequestState) if all_ else UNFINISHED
    with database_of(settings_of(config, db), migrate=False) as database:
        listed = requests(database, states=states, limit=None if json_ else _LISTED)
        waiting = unserved(database, listed, datetime.now(UTC))
    if json_:
        print_document(_document(listed, waiting))
    elif listed:
        console().print(_table(listed, waiting))
    else:
        typer.echo("No requests." if all_ else "Nothing is queued or running.")
    return 0


@app.command("cancel")
def cancel(
    request_id: Annotated[str, typer.Argument(metavar="REQUEST", help="A request's id.")],
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Cancel a request, queued or running. Example: compilewatch request cancel 01KA8Z7Q3V5T2M9N4R6S8W0XYZ"""
    with database_of(settings_of(config, db), migrate=False, changes=True) as database:
        state = cancel_request(database, request_id, by=who_asks(), at=datetime.now(UTC))
    outcome = "is cancelled" if state is RequestState.CANCELLED else "ends within seconds"
    typer.echo(f"Request {request_id} {outcome}.")
    return 0


def _document(listed: list[RunRequest], waiting: Mapping[str, str]) -> dict[str, Any]:
    return {
        "schema": "compilewatch.requests/1",
        "rows": [
            request.model_dump(mode="json") | {"unserved": waiting.get(request.request_id)}
            for request in listed
        ],
    }


def _table(listed: list[RunRequest], waiting: Mapping[str, str]) -> Table:
    cells = []
    for request in listed:
        spec = request.spec
        cases = ", ".join(f"{workload} / {strategy}" for workload, strategy in spec.cases)
        what = spec.suite or cases or ", ".join(spec.workloads) or "the suite of [run]"
        notes = (request.history[-1].note if request.history else None, waiting.get(request.request_id))
        note = "; ".join(filter(None, notes))
        cells.append(
            (
                *(request.request_id, request.kind.value, what, moment(request.asked_at)),
                *(request.asked_by, request.state.value, note or MISSING),
            )
        )
    headings = ("request", "kind", "what", "asked", "by", "state", "note")
    return plain_table(headings, cells)
