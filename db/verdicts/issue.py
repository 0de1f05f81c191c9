"""A case as an issue for people who cannot reach this database: one text, in Markdown, for every door."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from compilewatch.db.cause.compiler_change import replay_line
from compilewatch.db.cause.sentences import short_name
from compilewatch.db.cells import escaped_text, table_row
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.repository import Repository
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import ISSUE_SCRIPT
from compilewatch.db.errors import NotFoundError
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.judge.verdict_marks import row_verdict, worst_first
from compilewatch.db.queries.causes import causes_between, explained_case, moved_of
from compilewatch.db.queries.run_parts import measured_builds
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_record, trials_frame
from compilewatch.db.records.ids import (
    build_identity,
    machine_identity,
    series_identity,
    strategy_identity,
    workload_identity,
)
from compilewatch.db.records.people import IssueScript, ScriptRun, issue_id_of
from compilewatch.db.records.strategies import compile_arguments
from compilewatch.db.records.trial import Build, Trial
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.units import MISSING, duration, level, percent, plural, ratio, words

ISSUE_SCRIPTS = Repository(IssueScript, ISSUE_SCRIPT, is_data=True)
"""As they were last made for a case between two builds."""
_KERNELS = 8
_SHOWN = 0.5
"""The share of the recorded change, as a logarithm, that a script must show to show it."""
_STACK = (
    "torch",
    "torch_variant",
    "torch_git",
    "cuda",
    "cudnn",
    "triton",
    "driver",
    "python",
    "os",
    "compiler",
)


@dataclass(frozen=True)
class IssueSides:
    """The newest trial of a case with each of two builds; without a base the head's alone."""

    base: Trial | None
    head: Trial

    @property
    def case(self) -> tuple[str, str]:
        """Ids of workload and strategy."""
        return workload_identity(self.head.workload), strategy_identity(self.head.strategy)

    @property
    def issue_id(self) -> str:
        base = None if self.base is None else build_identity(self.base.build)
        return issue_id_of(
            machine_identity(self.head.machine), *self.case, base, build_identity(self.head.build)
        )


def issue_sides(database: Database, trial_id: str, base: str | None = None) -> IssueSides:
    """The trial and the newest of its case with the build `base`, by default that of its recorded regression,
    else the build measured before its own. Raises NotFoundError for a trial or a base that is not stored.
    """
    head = trial_record(database, trial_id)
    machine, build = machine_identity(head.machine), build_identity(head.build)
    case = (workload_identity(head.workload), strategy_identity(head.strategy))
    of_case = Filters(machines=(machine,), workloads=(head.workload.name,), strategies=(head.strategy.name,))
    chosen = base or _recorded_base(database, machine, case, build) or _before(database, of_case, build)
    if chosen is None:
        return IssueSides(None, head)
    trials = trials_frame(database, replace(of_case, builds=(chosen,)))
    mine = trials[trials["series_id"] == series_identity(head)]
    if mine.empty and base is None:
        return IssueSides(None, head)
    if mine.empty:
        raise NotFoundError(
            f"Build {chosen} has no trial of {head.workload.name} with {head.strategy.name}.",
            "Name another with --base; see `compilewatch list builds`.",
        )
    return IssueSides(trial_record(database, str(mine["trial_id"].iloc[-1])), head)


def _recorded_base(database: Database, machine: str, case: tuple[str, str], build: str) -> str | None:
    for each in reversed(standing_regressions(database, machine_id=machine)):
        regression = each.regression
        if (
            regression.row.case.ids == case
            and build in regression.head.build_ids
            and regression.base.build_ids
        ):
            return regression.base.build_ids[-1]
    return None


def _before(database: Database, of_case: Filters, build: str) -> str | None:
    builds = [str(each) for each in measured_builds(database, of_case)]
    later = builds[builds.index(build) + 1 :] if build in builds else builds
    return later[0] if later else None


Compare = Callable[[Selection, Selection, str], Comparison]
"""Judges base and head on a machine, over all cases, so that every door says the same of one."""


def issue_text(database: Database, sides: IssueSides, compare: Compare) -> str:
    """The verdict with its interval, both software stacks, what fails, the kernels that differ, and the
    script that the host ran, as far as each is known.
    """
    comparison = _compared(sides, compare)
    rows = _rows(comparison, sides)
    script = ISSUE_SCRIPTS.get(database, sides.issue_id)
    parts = [
        [f"### {_title(sides, rows)}"],
        [f"- {escaped_text(each)}" for each in _verdict(comparison, rows, sides)],
        [f"- {escaped_text(each)}" for each in _failure(sides.head)],
        [f"- {escaped_text(each)}" for each in _why(database, comparison, rows)],
        list(_kernels(database, comparison, rows, sides)),
        list(_stack(sides)),
        [f"- {escaped_text(each)}" for each in _subject(sides.head)],
        list(_script(script, sides, rows)),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _compared(sides: IssueSides, compare: Compare) -> Comparison | None:
    if sides.base is None:
        return None
    base, head = (
        Selection(name=f"torch {each.build.torch}", build_ids=(build_identity(each.build),))
        for each in (sides.base, sides.head)
    )
    try:
        return compare(base, head, machine_identity(sides.head.machine))
    except VerdictError:
        return None


def _rows(comparison: Comparison | None, sides: IssueSides) -> list[Row]:
    """What changed or looks like it, else latency and speedup."""
    mine = [row for row in comparison.rows if row.case.ids == sides.case] if comparison else []
    changed = [row for row in mine if row.verdict in MOVED or row.suspected]
    plain = [row for row in mine if row.metric in (Metric.LATENCY, Metric.SPEEDUP)]
    return worst_first(changed or plain)


def _title(sides: IssueSides, rows: Sequence[Row]) -> str:
    head, base = sides.head, sides.base
    case = escaped_text(f"{head.workload.name} with {head.strategy.name}")
    if head.failure is not None:
        return f"{case}: {words(head.failure.kind.value)} with torch {escaped_text(head.build.torch)}"
    releases = f"torch {escaped_text(head.build.torch)}"
    if base is not None:
        releases = f"torch {escaped_text(base.build.torch)} to {escaped_text(head.build.torch)}"
    first = next((row for row in rows if row.change is not None), None)
    if first is None or first.change is None:
        return f"{case}: {releases}"
    return f"{case}: {METRICS[first.metric].word} {percent(first.change, signed=True)}, {releases}"


def _verdict(comparison: Comparison | None, rows: Sequence[Row], sides: IssueSides) -> Iterator[str]:
    if sides.base is None:
        yield "No other build of this case is stored to compare with."
    elif comparison is None or not rows:
        left_out = comparison.left_out if comparison else ()
        names = (sides.head.workload.name, sides.head.strategy.name)
        reasons = [each.reason for each in left_out if (each.workload, each.strategy) == names]
        yield f"Not compared: {reasons[0] if reasons else 'no trial of both builds fits together'}"
    else:
        confidence = level(comparison.policy.confidence)
        yield from (_row_text(row, confidence) for row in rows)


def _row_text(row: Row, confidence: str) -> str:
    column = METRICS[row.metric]
    values = [MISSING if each is None else words(column.write(each)) for each in (row.base, row.head)]
    text = f"{column.name}: {values[0]} became {values[1]}"
    if row.change is not None:
        text += f", {percent(row.change, signed=True)}"
    if row.interval is not None:
        low, high = (percent(each, signed=True) for each in row.interval)
        text += f" ({confidence} interval {low} to {high})"
    trials = f"{row.trials[0]} and {plural(row.trials[1], 'trial')}"
    return f"{text}, {trials}, {row_verdict(row)}. {row.reason}"


def _failure(head: Trial) -> Iterator[str]:
    """How it failed, with what bisection named."""
    failure = head.failure
    if failure is None:
        return
    yield f"{words(failure.kind.value).capitalize()}: {failure.message.partition(chr(10))[0]}"
    line = replay_line(failure.bisection) if failure.bisection else None
    if line:
        yield line


def _why(database: Database, comparison: Comparison | None, rows: Sequence[Row]) -> list[str]:
    if comparison is None:
        return []
    return explained_case(database, comparison.base, comparison.head, comparison.machine_id, rows)


def _kernels(
    database: Database, comparison: Comparison | None, rows: Sequence[Row], sides: IssueSides
) -> Iterator[str]:
    """The kernels that differ most, by profiles of both sides."""
    moved = next(filter(None, map(moved_of, rows)), None)
    if comparison is None or moved is None:
        return
    both = (comparison.base, comparison.head)
    cause = causes_between(database, *both, comparison.machine_id, {sides.case: moved}).get(sides.case)
    if cause is None:
        return
    yield from ("| kernel, self time a step | base | head |", "| --- | --- | --- |")
    for each in cause.change.kernels[:_KERNELS]:
        times = [duration(time) if time else MISSING for time in (each.before_ns, each.after_ns)]
        yield table_row(short_name(each.name), *times)


def _stack(sides: IssueSides) -> Iterator[str]:
    """Both builds, what differs in bold; of packages only what differs."""
    head = _components(sides.head.build)
    base = _components(sides.base.build) if sides.base is not None else {}
    yield from ("| | base | head |", "| --- | --- | --- |")
    for name in dict.fromkeys((*head, *base)):
        values = [each.get(name) or MISSING for each in (base, head)]
        if name not in _STACK and values[0] == values[1]:
            continue
        cells = [escaped_text(each) for each in values]
        if base and values[0] != values[1]:
            cells = [f"**{each}**" for each in cells]
        yield f"| {escaped_text(words(name))} | {cells[0]} | {cells[1]} |"
    devices = [each.machine.device_name if each else MISSING for each in (sides.base, sides.head)]
    yield table_row("device", *devices)


def _components(build: Build) -> dict[str, str]:
    known = {name: getattr(build, name) for name in _STACK}
    return {name: value for name, value in known.items() if value} | dict(build.packages)


def _subject(head: Trial) -> Iterator[str]:
    """What was executed, from the record: sizes and arguments, no code."""
    workload, strategy = head.workload, head.strategy
    sizes = {**({"batch_size": workload.batch_size} if workload.batch_size else {}), **workload.shape}
    given = ", ".join(f"{name} {value}" for name, value in sizes.items()) or "its own sizes"
    yield f"Workload: {workload.name}, {workload.task.value}, {workload.dtype}, {given}."
    arguments = ", ".join(f"{name}={value!r}" for name, value in compile_arguments(strategy).items())
    threads = f", {plural(head.machine.threads, 'thread')}" if head.machine.threads else ""
    yield f"Compiled with: {strategy.name} ({arguments or 'no argument'}){threads}."


# The script: what it printed where, whether it shows the change, its code.


def _script(script: IssueScript | None, sides: IssueSides, rows: Sequence[Row]) -> Iterator[str]:
    if script is None:
        base = "" if sides.base is None else f" --base {build_identity(sides.base.build)}"
        yield "No script was run yet. On the host that measures it:"
        yield from ("", f"    compilewatch reproduce {sides.head.trial_id} --issue{base}")
        return
    if script.problem is not None:
        yield f"No script of a few lines: {escaped_text(script.problem)}"
        return
    yield f"The script {'below ' if script.script else ''}{script_finding(script, rows)}"
    yield ""
    yield from (f"- {escaped_text(_run_text(each))}" for each in script.runs)
    yield ""
    if script.script is None:
        yield "The model is private: the script stays on its host, and sizes and kernels stand above."
    else:
        # Longer than any fence that the code itself may have.
        yield from ("`````python", script.script.rstrip("\n"), "`````")


def _run_text(run: ScriptRun) -> str:
    if run.eager_ns is None or run.compiled_ns is None:
        return f"torch {run.torch}: {run.problem or 'no times'}"
    speedup = ratio(run.eager_ns / run.compiled_ns)
    times = f"eager {duration(run.eager_ns)}, compiled {duration(run.compiled_ns)}"
    return f"torch {run.torch}: {times}, speedup {speedup}"


def script_finding(script: IssueScript, rows: Sequence[Row]) -> str:
    """Whether it shows what was recorded: "shows it: compiled code over eager is 2.50x that of the base"."""
    timed = [each for each in script.runs if each.eager_ns and each.compiled_ns]
    if len(script.runs) == 1:
        return f"ran under torch {script.runs[0].torch}, of which alone there are trials."
    if len(timed) < 2:
        missing = " and ".join(f"torch {each.torch}" for each in script.runs if each not in timed)
        where = f"ran under torch {timed[0].torch} only" if timed else "ran under no build"
        return f"{where}; not under {missing}. Whether it shows the change is not known."
    shares = [each.compiled_ns / each.eager_ns for each in timed if each.compiled_ns and each.eager_ns]
    now = shares[1] / shares[0]
    judged = _judged(rows)
    text = f"compiled code over eager is {ratio(now)} that of the base"
    if judged is None:
        return f"ran under both: {text}."
    row, recorded = judged
    if row.verdict not in MOVED and not row.suspected:
        return f"ran under both: {text} (recorded: {ratio(recorded)}, {row.verdict.value})."
    both = math.log(now), math.log(recorded)
    shows = both[0] * both[1] > 0 and abs(both[0]) >= _SHOWN * abs(both[1])
    return f"{'shows it' if shows else 'does not show it'}: {text} (recorded: {ratio(recorded)})."


def _judged(rows: Sequence[Row]) -> tuple[Row, float] | None:
    """The row that says how compiled over eager moved, and head over base by it."""
    for metric, sign in ((Metric.SPEEDUP, -1), (Metric.LATENCY, 1)):
        for row in rows:
            if row.metric is metric and row.change is not None:
                return row, math.exp(sign * math.log1p(row.change))
    return None
