"""`compilewatch attribute`: which component of a build carries a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, ConfigError
from compilewatch.db.judge.bisection import has_moved
from compilewatch.db.judge.compare.attribution import CaseAttribution, Effect, hybrids_of
from compilewatch.db.judge.results import Row
from compilewatch.db.judge.sentences import change_text, range_text, whole_percent
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.units import MISSING, count, duration, plural
from compilewatch.runner.cli.front import EXIT_CANNOT, EXIT_INTERRUPTED
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    DeviceOption,
    JsonOption,
    StrategiesOption,
    WorkloadsOption,
    database_of,
    settings_of,
)
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.host import require_space
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.progress import UnderWay
from compilewatch.runner.output.tables import console, plain_table, print_lines
from compilewatch.runner.plan.builds import interpreter_facts
from compilewatch.runner.plan.durations import Case, plan_s
from compilewatch.runner.plan.host_stacks import HostStacks
from compilewatch.runner.plan.selection import refuse_code, resolve_device, select
from compilewatch.runner.search.attribution import (
    FixedShare,
    Measurer,
    Question,
    Side,
    State,
    fixed_differences,
    fixed_shares,
    moved_cases,
    side_of,
)
from compilewatch.runner.search.components import components_between, environment_of
from compilewatch.runner.search.environments import (
    MeasuringInterruptedError,
    announce,
    disk_words,
    plan_interleaved,
)

SCHEMA = "compilewatch.attribute/1"
_METRICS = (Metric.LATENCY, Metric.DEVICE_TIME, Metric.COMPILE_COST, Metric.PEAK_MEMORY, Metric.SPEEDUP)


def attribute_command(
    base: Annotated[str, typer.Argument(help="A build of `builds list`, or a side as `compare` names it.")],
    head: Annotated[str, typer.Argument(help="The other one.")],
    workload: WorkloadsOption = None,
    strategy: StrategiesOption = None,
    metric: Annotated[Metric, typer.Option("--metric", help="What moved.")] = Metric.LATENCY,
    trials: Annotated[int, typer.Option(min=3, help="Trials a build before anything is judged.")] = 4,
    max_trials: Annotated[int, typer.Option(min=3, help="Trials a build at most.")] = 12,
    device: DeviceOption = "auto",
    index_url: Annotated[str | None, typer.Option(help="A package index; default: pip's.")] = None,
    discard: Annotated[
        bool, typer.Option("--discard", help="Remove the environments made for this at the end.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be installed and measured.")
    ] = False,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Tell which component of a build carries a change: torch, transformers, Python, other packages.

    Example: compilewatch attribute torch-2.12.1 torch-2.13.0

    Installs builds that mix both, as `builds create` does, and measures all by turns, the cases that moved
    alone. Killed, the same command goes on. Exits 2 where no component is named.
    """
    settings = settings_of(config, db)
    if max_trials < trials:
        raise ConfigError("--max-trials is less than --trials.", "Leave one of them out.")
    if metric not in _METRICS:
        raise ConfigError(f"{METRICS[metric].name} cannot be split.", f"Name one of {', '.join(_METRICS)}.")
    if workload:
        select(settings, suite=None, workloads=workload, strategies=strategy or ())
    with database_of(settings) as database:
        host = HostStacks.read(settings)
        sides = side_of(base, settings, host, database), side_of(head, settings, host, database)
        old, new = (environment_of(side.build, settings) for side in sides)
        components = components_between(old, new)
        if not components:
            cases = _named_cases(settings, workload, strategy or ()) if workload else []
            return _only_fixed(settings, database, sides, metric, cases, as_json=json_)
        settings.limits.require("builds", len(hybrids_of([each.name for each in components])))
        if workload:
            cases = _named_cases(settings, workload, strategy or ())
        else:
            # Those that moved between what is stored, whose names are data.
            cases = moved_cases(database, *sides, metric, settings.policy, strategy or ())
            refuse_code(settings, [name for name, _ in cases], [name for _, name in cases])
        with UnderWay("asking each interpreter for its torch"):
            facts = interpreter_facts([side.build for side in sides])
        question = Question(
            base={name: each.version for name, each in sorted(old.packages.items())},
            head={name: each.version for name, each in sorted(new.packages.items())},
            builds=(sides[0].build.name, sides[1].build.name),
            cases=tuple(cases),
            metric=metric.value,
            device=resolve_device(settings, facts, device),
            workloads=select(settings, workloads=list(dict(cases))).workload_ids,
        )
        state = State.load(question, settings.data_dir)
        measurer = Measurer(database, settings, state, old, new, components, index_url, trials, max_trials)
        if dry_run:
            document = _plan(measurer)
        else:
            require_space(settings.data_dir)
            for line in _plan(measurer)["sentences"]:
                announce(line)
            try:
                document = _report(measurer, sides)
            except MeasuringInterruptedError:
                return EXIT_INTERRUPTED
            if discard:
                measurer.remove_made()
    _print(document, as_json=json_)
    if dry_run:
        return 0
    return 0 if document["cases"] and all(each["named"] for each in document["cases"]) else EXIT_CANNOT


def _only_fixed(
    settings: Settings,
    database: Database,
    sides: tuple[Side, Side],
    metric: Metric,
    cases: Sequence[Case],
    *,
    as_json: bool,
) -> int:
    """Both builds have the same packages: stored trials tell what driver, kernel and compiler carry."""
    base, head = sides
    fixed = fixed_differences(base, head)
    if not fixed:
        raise CompilewatchError(
            f"{base.build.name} and {head.build.name} have the same versions of everything.",
            "Name two builds that differ; see `compilewatch builds list`.",
        )
    shares = fixed_shares(database, base, head, metric, settings.policy, cases)
    if not shares:
        raise CompilewatchError(
            f"Only what one host cannot swap differs: {', '.join(fixed)}.",
            "Measure the same build with each, on hosts that have them, and compare those runs.",
        )
    document = {
        **{"base": base.name, "head": head.name, "metric": metric.value},
        **{name: [] for name in ("components", "cases", "unmoved", "skipped")},
        **_fixed_document(shares, fixed, []),
    }
    _print(document, as_json=as_json)
    return 0 if any(has_moved(each.row) for each in shares) else EXIT_CANNOT


def _fixed_document(
    shares: Sequence[FixedShare], fixed: Sequence[str], sentences_before: Sequence[str]
) -> dict[str, Any]:
    rows = [
        {
            "workload": each.row.workload,
            "strategy": each.row.strategy,
            "torch": each.build.torch,
            "change": each.row.change,
            "interval": each.row.interval,
            "verdict": each.row.verdict.value,
        }
        for each in shares
    ]
    lines = [*sentences_before, *_share_sentences(shares, fixed)]
    return {"fixed": fixed, "fixed_shares": rows, "sentences": lines}


def _share_sentences(shares: Sequence[FixedShare], fixed: Sequence[str]) -> list[str]:
    """What stored trials say of parts that one host has at one version only."""
    lines = []
    what = " and ".join(fixed)
    for each in shares:
        row = each.row
        where = f"{row.workload} / {row.strategy}, by stored trials of torch {each.build.torch}"
        if has_moved(row) and row.change is not None:
            size = _size(row.change, row.interval)
            lines.append(f"{where}: {what} carries {size}.")
        elif row.verdict is Verdict.UNCHANGED:
            lines.append(f"{where}: {what} changes nothing.")
        else:
            lines.append(f"{where}: what {what} carries is undecided.")
    return lines


def _named_cases(settings: Settings, workloads: Sequence[str], strategies: Sequence[str]) -> list[Case]:
    chosen = select(settings, workloads=workloads, strategies=strategies or ("default",))
    return [(each.name, strategy.name) for each in chosen.workloads for strategy in chosen.strategies]


def _plan(measurer: Measurer) -> dict[str, Any]:
    """What would be made and measured."""
    mixed = hybrids_of(measurer.names)[1:-1]
    cases = measurer.state.question.cases
    builds = [measurer.base.build] * (2 + len(mixed)) if len(measurer.names) > 1 else []
    ends = [measurer.base.build, measurer.head.build]
    minutes = []
    for rounds in (measurer.at_once, measurer.most_trials):
        seconds = 0.0
        for side in (ends, builds):
            if side:
                plan = plan_interleaved(
                    measurer.settings, side, cases, trials=rounds, device=measurer.state.question.device
                )
                seconds += plan_s(measurer.database, plan)
        minutes.append(seconds / 60)
    environments = [measurer.title(each) for each in mixed] if len(measurer.names) > 1 else []
    lines = [
        f"{plural(len(measurer.components), 'component')} differ: {', '.join(_titles(measurer))}.",
        f"{plural(len(environments), 'environment')} to install, {plural(len(cases), 'case')} to measure.",
        f"About {duration(round(minutes[0] * 60) * 1e9)} of trials, at most "
        f"{duration(round(minutes[1] * 60) * 1e9)}; installing comes on top.",
        disk_words(len(environments), measurer.head.build.python, measurer.settings),
    ]
    return {
        "plan": True,
        "components": _titles(measurer),
        "environments": environments,
        "minutes": minutes[0],
        "minutes_at_most": minutes[1],
        "cases": [{"workload": workload, "strategy": strategy} for workload, strategy in cases],
        "sentences": lines,
    }


def _titles(measurer: Measurer) -> list[str]:
    return [each.title(measurer.base, measurer.head) for each in measurer.components]


def _report(measurer: Measurer, sides: tuple[Side, Side]) -> dict[str, Any]:
    """Measures what is missing; the document of what is known then."""
    moved = {(row.workload, row.strategy): row for row in measurer.moved()}
    attributions = measurer.attributions(list(moved)) if moved else []
    cases = [_case(measurer, each, moved[each.workload, each.strategy]) for each in attributions]
    name = METRICS[Metric(measurer.state.question.metric)].name
    unmoved = [case for case in measurer.state.question.cases if case not in moved]
    lines = [line for case in cases for line in case["sentences"]]
    if unmoved:
        which = ", ".join(f"{workload} / {strategy}" for workload, strategy in unmoved)
        lines.append(f"{name} is not shown to move in {which}: there is nothing to attribute.")
    fixed, shares = fixed_differences(*sides), []
    if fixed:
        question = measurer.state.question
        metric, policy = Metric(question.metric), measurer.settings.policy
        shares = fixed_shares(measurer.database, *sides, metric, policy, question.cases)
        unknown = "" if shares else ": what that carries is unknown"
        lines.append(f"Stored trials also differ in {', '.join(fixed)}, which one host cannot swap{unknown}.")
    return {
        "base": measurer.base.build.name,
        "head": measurer.head.build.name,
        "metric": measurer.state.question.metric,
        "components": _titles(measurer),
        "cases": cases,
        "unmoved": [{"workload": workload, "strategy": strategy} for workload, strategy in unmoved],
        "skipped": [
            {"hybrid": measurer.title(frozenset(each.hybrid)), "reason": each.reason}
            for each in measurer.state.skipped
        ],
        **_fixed_document(shares, fixed, lines),
    }


def _case(measurer: Measurer, attribution: CaseAttribution, moved: Row) -> dict[str, Any]:
    case = attribution.workload, attribution.strategy
    failures = measurer.failures(case) if len(measurer.components) > 1 else {}
    missing = {frozenset(each.hybrid): each.reason for each in measurer.state.skipped} | failures
    by_title = {measurer.title(hybrid): reason for hybrid, reason in missing.items()}
    lines = sentences(attribution, moved, by_title, measurer)
    named, undecided = list(attribution.named), list(attribution.undecided)
    return {**attribution.model_dump(mode="json"), "named": named, "undecided": undecided, "sentences": lines}


def sentences(
    attribution: CaseAttribution, moved: Row, missing: dict[str, str], measurer: Measurer
) -> list[str]:
    """What is known of a case, in words."""
    name = METRICS[moved.metric].name
    case = f"{attribution.workload} / {attribution.strategy}"
    effect = attribution.whole
    change = f" by {_change(effect)}" if effect else ""
    lines = [f"{case}: {name} changed{change} from {measurer.base.build.name} to {measurer.head.build.name}."]
    carried = {each.components[0]: each for each in attribution.carried}
    titles = {each.name: each.title(measurer.base, measurer.head) for each in measurer.components}
    lines += [f"{titles[each]} carries {_change(carried[each])}." for each in attribution.named]
    lines += [
        f"What {titles[each]} carries is undecided after {plural(attribution.rounds, 'round')}: "
        f"{_change(carried[each])}."
        for each in attribution.undecided
    ]
    if not attribution.named:
        limit = measurer.settings.policy.for_case(
            attribution.workload, attribution.strategy, moved.metric
        ).minimum_effect
        lines.append(f"No component is shown to carry {whole_percent(limit)} or more.")
    alone = {each.components[0] for each in attribution.alone if each.real}
    for each in attribution.together:
        if each.real and len(each.components) > 1:
            only = "" if alone & set(each.components) else ", and neither of them alone changes it"
            lines.append(f"{' and '.join(each.components)} together add {_change(each)}{only}.")
        elif each.real:
            lines.append(f"{each.components[0]} adds {_change(each)} more where the others changed too.")
    lines += [f"{hybrid} cannot be measured: {reason.rstrip('.')}." for hybrid, reason in missing.items()]
    if attribution.unknown:
        lines.append(f"What {' and '.join(titles[each] for each in attribution.unknown)} carries is unknown.")
    elif missing:
        lines.append("What components do together is unknown without it.")
    return lines


def _change(effect: Effect) -> str:
    return _size(effect.change, effect.interval)


def _size(change: float, interval: tuple[float, float] | None) -> str:
    text = change_text(change)
    return text if interval is None else f"{text} [{range_text(*interval)}]"


def _print(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_document({"schema": SCHEMA, **document})
        return
    print_lines(document["sentences"])
    if "plan" in document or not document["cases"]:
        return
    rows = []
    for case in document["cases"]:
        alone = {each["components"][0]: each for each in case["alone"]}
        for each in case["carried"]:
            component = each["components"][0]
            cells = f"{case['workload']} / {case['strategy']}", component, _text(each)
            rows.append((*cells, _text(alone.get(component)), count(case["rounds"])))
    console().print(plain_table(("case", "component", "carries", "alone", "rounds"), rows))


def _text(effect: dict[str, Any] | None) -> str:
    return MISSING if effect is None else _change(Effect.model_validate(effect))
