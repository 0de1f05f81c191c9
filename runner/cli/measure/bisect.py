"""`compilewatch bisect`: which release of torch changed a case."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.errors import ConfigError
from compilewatch.db.judge.bisection import Bracket, ReleasePlace, most_builds, place_of, search
from compilewatch.db.judge.results import Row
from compilewatch.db.judge.sentences import change_text, range_text
from compilewatch.db.queries.causes import causes
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.units import MISSING, count, duration, plural
from compilewatch.runner.cli.front import EXIT_CANNOT, EXIT_INTERRUPTED
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    DeviceOption,
    JsonOption,
    database_of,
    settings_of,
)
from compilewatch.runner.config.settings import BuildSettings
from compilewatch.runner.device.host import require_space
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.progress import UnderWay
from compilewatch.runner.output.tables import console, plain_table, print_lines
from compilewatch.runner.plan.builds import parsed_release
from compilewatch.runner.plan.durations import plan_s
from compilewatch.runner.plan.interpreter import check_interpreter
from compilewatch.runner.plan.selection import resolve_device, select
from compilewatch.runner.search.bisection import Measurer, Question, State, releases_between
from compilewatch.runner.search.environments import (
    MeasuringInterruptedError,
    announce,
    disk_words,
    plan_interleaved,
)

SCHEMA = "compilewatch.bisect/1"


def bisect(
    good: Annotated[
        str, typer.Option("--good", metavar="torch==RELEASE", help="A release before the change.")
    ],
    bad: Annotated[
        str, typer.Option("--bad", metavar="torch==RELEASE", help="One after it, or an older one.")
    ],
    workload: Annotated[
        str, typer.Option("--workload", "-w", metavar="W", help="The workload that changed.")
    ],
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", metavar="S", help="The strategy that changed.")
    ] = "default",
    metric: Annotated[
        Metric | None, typer.Option("--metric", help="What changed; unset: what moved between both ends.")
    ] = None,
    package: Annotated[
        list[str] | None,
        typer.Option("--package", metavar="P", help="What the workload imports besides. Repeatable."),
    ] = None,
    trials: Annotated[int, typer.Option(min=3, help="Trials a side before a release is judged.")] = 3,
    max_trials: Annotated[int, typer.Option(min=3, help="Trials a side of a release at most.")] = 12,
    device: DeviceOption = "auto",
    index_url: Annotated[
        str | None, typer.Option(help="A package index, as of nightlies; default: pip's.")
    ] = None,
    pre: Annotated[bool, typer.Option("--pre", help="Nightlies and release candidates too.")] = False,
    profile: Annotated[bool, typer.Option("--profile", help="Profile each release, to say why.")] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Remove each environment made for this once it is judged.")
    ] = False,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Find the release of torch that changed a case: halve the releases, measure each by turns with one end.

    Example: compilewatch bisect --good torch==2.6.0 --bad torch==2.8.0 -w elementwise -s default

    Environments are made as by `builds create`. Killed, the same command goes on where it was. Exits 2 where
    no change is shown between both ends.
    """
    settings = settings_of(config, db)
    chosen = select(settings, suite=None, workloads=[workload], strategies=[strategy])
    if max_trials < trials:
        raise ConfigError("--max-trials is less than --trials.", "Leave one of them out.")
    ends = parsed_release(good), parsed_release(bad)
    releases = releases_between(good, bad, index_url=index_url, early=pre)
    require_space(settings.data_dir)
    with UnderWay("asking the interpreter for its torch"):
        facts = check_interpreter()
    question = Question(
        good=ends[0],
        bad=ends[1],
        packages=tuple(package or ()),
        workload=workload,
        strategy=strategy,
        metric=metric.value if metric else None,
        device=resolve_device(settings, [facts], device),
        workloads=chosen.workload_ids,
    )
    with database_of(settings) as database:
        state = State.load(question, settings.data_dir)
        measurer = Measurer(database, settings, state, index_url, trials, max_trials, profile, discard)
        for line in _before(
            measurer, len(releases), (trials, max_trials), device=question.device, discard=discard
        ):
            announce(line)
        try:
            whole = measurer.whole()
            bracket = search(
                releases, lambda release: measurer.place(release, whole), known=frozenset(state.measured)
            )
        except MeasuringInterruptedError:
            return EXIT_INTERRUPTED
        measurer.remove_ends()
        report = _report(measurer, releases, whole, bracket)
    if json_:
        print_document({"schema": SCHEMA, **report})
    else:
        _print(report, whole)
    return 0 if not report["between"] else EXIT_CANNOT


def _before(
    measurer: Measurer, releases: int, rounds: tuple[int, int], *, device: str, discard: bool
) -> list[str]:
    """What the search may take, before it begins: builds, time of trials, disk."""
    question, settings = measurer.question, measurer.settings
    builds = most_builds(releases)
    here = BuildSettings(name="here", python=Path(sys.executable))
    cases = [(question.workload, question.strategy)]
    plan = plan_interleaved(settings, [here], cases, trials=1, device=device)
    # Each release is measured by turns with the first: two sides.
    trial_s = plan_s(measurer.database, plan)
    low, high = (2 * (builds - 1) * each * trial_s for each in rounds)
    return [
        f"At most {builds} of {plural(releases, 'release')} are installed and measured: "
        f"{duration(round(low) * 1e9)} to {duration(round(high) * 1e9)} of trials; installing comes on top.",
        disk_words(min(builds, 2) if discard else builds, Path(sys.executable), settings),
    ]


def _report(measurer: Measurer, releases: Sequence[str], whole: Row, bracket: Bracket) -> dict[str, Any]:
    """The document: what was found, and every release with what is known of it."""
    question = measurer.question
    comparison = measurer.comparison(bracket.first_after)
    why = causes(measurer.database, comparison) if comparison else {}
    return {
        "workload": question.workload,
        "strategy": question.strategy,
        "metric": whole.metric.value,
        "last_before": bracket.last_before,
        "first_after": bracket.first_after,
        "between": list(bracket.between),
        "cause": next((each.sentence for each in why.values()), None),
        "builds_measured": 1 + len(measurer.state.measured),
        "builds_at_most": most_builds(len(releases)),
        "releases": [_release(measurer, release, whole) for release in releases],
    }


def _release(measurer: Measurer, release: str, whole: Row) -> dict[str, Any]:
    if release == measurer.question.good:
        first = {"place": ReleasePlace.BEFORE.value, "value": whole.base, "trials": whole.trials[0]}
        return {"release": release, **first, "change": None, "interval": None, "skipped": None}
    step = measurer.state.steps.get(release)
    row = next(iter(measurer.rows(release, whole.metric)), None) if step else None
    place = None if row is None else place_of(row, whole).value
    return {
        "release": release,
        "place": ReleasePlace.SKIPPED.value if step and step.skipped else place,
        "value": row.head if row else None,
        "trials": row.trials[1] if row else 0,
        "change": row.change if row else None,
        "interval": row.interval if row else None,
        "skipped": step.skipped if step else None,
    }


def _print(report: dict[str, Any], whole: Row) -> None:
    print_lines(sentences(report, whole))
    rows = []
    for each in report["releases"]:
        change = MISSING if each["change"] is None else change_text(each["change"])
        if each["interval"] is not None:
            change += f" [{range_text(*each['interval'])}]"
        value = MISSING if each["value"] is None else METRICS[whole.metric].write(each["value"])
        stands = f"{each['place']} the change" if each["place"] in ("before", "after") else each["place"]
        rows.append((each["release"], stands or MISSING, value, change, count(each["trials"])))
    headings = ("torch", "stands", METRICS[whole.metric].name, "against the first", "trials")
    console().print(plain_table(headings, rows))


def sentences(report: dict[str, Any], whole: Row) -> list[str]:
    """What was found, in words."""
    case = f"{report['workload']} / {report['strategy']}"
    name = METRICS[whole.metric].name
    before, after, between = report["last_before"], report["first_after"], report["between"]
    step = next(each for each in report["releases"] if each["release"] == after)
    moved = f"went from {whole.base} to {step['value']}"
    if step["change"] is not None:
        moved = f"changed by {change_text(step['change'])} against torch {report['releases'][0]['release']}"
    lines = [f"{case}: {name} {moved}, between {before} and {after}."]
    if between:
        undecided = plural(len(between), "release")
        lines.append(f"{undecided} between them could not be decided: {', '.join(between)}.")
    if report["cause"]:
        lines.append(report["cause"])
    measured = plural(report["builds_measured"], "build")
    lines.append(f"{measured} of {count(len(report['releases']))} releases measured.")
    return lines
