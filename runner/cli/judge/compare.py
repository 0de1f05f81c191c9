"""`compilewatch compare`: two builds, judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer
from pandas import DataFrame
from pydantic import ValidationError

from compilewatch.db.cells import plain, table_row
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, NotFoundError
from compilewatch.db.judge.compare.strategies import (
    compare_strategies,
    left_out_parts,
    workloads_of_both,
)
from compilewatch.db.judge.compare.whole import sentences
from compilewatch.db.judge.policy import Policy
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.queries.named import machines_named, require_stored
from compilewatch.db.queries.run_parts import of_newest_builds
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.stored_cases import stored_cases
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.strategies import EAGER, WITHOUT
from compilewatch.db.units import first_of
from compilewatch.db.verdicts.case_view import case_texts, case_view
from compilewatch.db.verdicts.machines import SideBySide, cells, side_by_side
from compilewatch.db.verdicts.machines import sentences as machine_sentences
from compilewatch.db.verdicts.sides import LATEST, PREVIOUS, resolve_sides
from compilewatch.runner.cli import options
from compilewatch.runner.cli.judge.judging import (
    ComparisonReport,
    exit_code,
    judge,
    print_comparison,
    print_undecided,
)
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    MachineOption,
    MarkdownOption,
    StrategiesOption,
    WorkloadsOption,
    database_of,
    machine_named,
    only,
    settings_of,
)
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.parts import (
    LEFT_OUT,
    left_out_cells,
    left_out_lines,
    left_out_rows,
    left_out_table,
)
from compilewatch.runner.output.tables import console, plain_table, print_lines, print_markdown
from compilewatch.runner.regressions.judged_runs import machine_here

_STRATEGY, _MACHINE = "strategy=", "machine="


def compare(
    base: Annotated[
        str,
        typer.Argument(
            help="torch=2.12.0, driver=570.86, a label, a build or run id, previous.",
            autocompletion=options.sides,
        ),
    ],
    head: Annotated[
        str, typer.Argument(help="The other side, such as latest.", autocompletion=options.sides)
    ],
    workload: WorkloadsOption = None,
    strategy: StrategiesOption = None,
    machine: MachineOption = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MACHINE=AMOUNT",
            help="What an hour of a machine costs: the price of a million items. Repeatable.",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Minimum effect on latency and speedup: 0.02 is 2 %."),
    ] = None,
    json_: JsonOption = False,
    markdown_: MarkdownOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Compare two builds or runs: slower and faster cases, and who moved.

    Example: compilewatch compare torch=2.12.1 torch=2.13.0

    strategy=default strategy=max-autotune compares two strategies of the newest build of one machine: this
    one, else the one with most workloads of both. Eager is the one within each compiled trial.
    strategy=default strategy=default+without lists what each part does that `run --leave-out` left out.
    machine=A machine=B sets two machines side by side: the newest figures of the cases that both measured,
    without a verdict.
    latest is the build measured last, previous the one before it, on this machine where it measured, else on
    that of the newest run. Imported builds count only where nothing is measured. Exits 1 when a case
    regresses, 2 when nothing can be decided.
    """
    settings = settings_of(config, db)
    machines = [side.removeprefix(_MACHINE) for side in (base, head) if side.startswith(_MACHINE)]
    if machines:
        if len(machines) != 2:
            raise ConfigError("A machine is compared with a machine.", "Write machine=NAME for both sides.")
        filters = Filters(workloads=tuple(workload or ()), strategies=tuple(strategy or ()))
        with database_of(settings, migrate=False) as database:
            found = _of_machines(database, filters, machines, price or ())
        _print_machines(found, as_json=json_, as_markdown=markdown_)
        return 0
    if price:
        raise ConfigError("--price goes with two machines.", "Write machine=A machine=B for the sides.")
    policy = settings.policy if margin is None else _with_margin(settings.policy, margin)
    filters = Filters(workloads=tuple(workload or ()), strategies=tuple(strategy or ()))
    strategies = [side.removeprefix(_STRATEGY) for side in (base, head) if side.startswith(_STRATEGY)]
    if strategies:
        if len(strategies) != 2:
            raise ConfigError(
                "A strategy is compared with a strategy.", "Write strategy=NAME for both sides."
            )
        with database_of(settings, migrate=False) as database:
            mine = only(machine_named(database, machine))
            filters = Filters(workloads=tuple(workload or ()), machines=mine)
            if strategies[1] == strategies[0] + WITHOUT:
                _print_left_out(_left_out(database, filters, strategies[0], policy), json_, markdown_)
                return 0
            report = _of_strategies(database, filters, strategies, policy)
        print_comparison(report, as_json=json_, as_markdown=markdown_)
        print_undecided(report.comparison.verdict, report)
        return exit_code(report.comparison.verdict)
    with database_of(settings, migrate=False) as database:
        require_stored(database, filters)
        here = machine_here(database) if {base, head} & {LATEST, PREVIOUS} else None
        sides = resolve_sides(base, head, database, machine_named(database, machine) or here)
        report = judge(
            database,
            sides.base,
            sides.head,
            settings,
            policy=policy,
            filters=filters,
            machine=sides.machine_id,
            remarks=sides.remarks,
        )
    print_comparison(report, as_json=json_, as_markdown=markdown_)
    print_undecided(report.comparison.verdict, report)
    return exit_code(report.comparison.verdict)


def _of_strategies(
    database: Database, filters: Filters, strategies: Sequence[str], policy: Policy
) -> ComparisonReport:
    """Of the newest build of one machine: this one, else the one with most workloads of both, else the one
    that measured last. The others are named.
    """
    compiled = tuple(name for name in strategies if name != EAGER.name)
    require_stored(database, replace(filters, strategies=compiled or (EAGER.name,)))
    frames = [trials_frame(database, each) for each in of_newest_builds(database, filters)]
    base, head = strategies
    here = machine_here(database)

    def rank(trials: DataFrame) -> tuple[bool, int, datetime]:
        common = workloads_of_both(trials, base, head)
        return bool(common) and here in set(trials["machine_id"]), common, trials["started_at"].max()

    mine = max(frames, key=rank)
    others = [each["machine"].iloc[-1] for each in frames if each is not mine and rank(each)[1]]
    comparison = compare_strategies(mine, base, head, policy)
    if others:
        sentence = f"Of {mine['machine'].iloc[-1]}; {first_of(others, 3)} measured both too: --machine NAME."
        comparison = comparison.model_copy(update={"said": (sentence,)})
        comparison = comparison.model_copy(update={"sentences": sentences(comparison)})
    return ComparisonReport(comparison, targets=(), states={}, imported=False, explanations={})


def _left_out(database: Database, filters: Filters, whole: str, policy: Policy) -> list[dict[str, Any]]:
    """What each part that was left out of `whole` does, on the newest build of each machine."""
    frames = [trials_frame(database, each) for each in of_newest_builds(database, filters)]
    rows = [row for frame in frames for row in left_out_rows(left_out_parts(frame, policy, whole))]
    if not rows:
        raise NotFoundError(
            f"Nothing was left out of {whole}.", f"Measure it: `compilewatch run -s {whole} --leave-out`."
        )
    return rows


def _print_left_out(rows: Sequence[dict[str, Any]], as_json: bool, as_markdown: bool) -> None:
    if as_json:
        print_document({"schema": "compilewatch.left-out/1", "rows": rows})
    elif as_markdown:
        lines = [table_row(*each) for each in left_out_cells(rows)]
        print_markdown([table_row(*LEFT_OUT), "|" + " --- |" * len(LEFT_OUT), *lines])
    else:
        console().print(left_out_table(rows))
        print_lines(left_out_lines(rows))


def _of_machines(
    database: Database, filters: Filters, names: Sequence[str], prices: Sequence[str]
) -> SideBySide:
    require_stored(database, filters)
    base, head = machines_named(database, names)
    if base == head:
        raise ConfigError("Both sides are the same machine.", "See `compilewatch list machines`.")
    cases = stored_cases(database, replace(filters, machines=(base, head)))
    return side_by_side(row_dicts(cases), base, head, dict(_price(database, each) for each in prices))


def _price(database: Database, text: str) -> tuple[str, Decimal]:
    name, _, amount = text.rpartition("=")
    try:
        hourly = Decimal(amount)
    except InvalidOperation:
        hourly = Decimal("NaN")
    if not name or not hourly.is_finite() or hourly < 0:
        raise ConfigError(f"--price {text!r} is no price of a machine.", "Write --price NAME=2.50.")
    return machines_named(database, [name])[0], hourly


def _print_machines(found: SideBySide, *, as_json: bool, as_markdown: bool) -> None:
    columns = cells(found)
    if as_json:
        sides = {
            side: {name: plain(case[name]) for name in ("machine", "device", "device_name", "torch")}
            for side, case in (("base", found.base), ("head", found.head))
        }
        only = dict(zip(("base", "head"), found.alone, strict=True))
        rows = [case_view(row, columns) for row in found.rows]
        document = {"schema": "compilewatch.machines/1", **sides, "only": only, "unmatched": found.unmatched}
        print_document({**document, "rows": rows})
        return
    print_lines(machine_sentences(found))
    headings, texts = [each.heading for each in columns], [case_texts(row, columns) for row in found.rows]
    if as_markdown:
        rule = " | ".join("---:" if each.right else "---" for each in columns)
        print_markdown(["", table_row(*headings), f"| {rule} |", *(table_row(*each) for each in texts)])
    else:
        right = [each.heading for each in columns if each.right]
        console().print(plain_table(headings, texts, right=right))


def _with_margin(policy: Policy, margin: float) -> Policy:
    try:
        return policy.with_margin(margin)
    except ValidationError as error:
        raise ConfigError(
            f"--margin must be more than 0 and at most 2, not {margin:g}.", "Write 0.02 for 2 %."
        ) from error
