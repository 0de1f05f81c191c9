"""A comparison as a table for the terminal and as Markdown for a pull request."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from compilewatch.db.cells import escaped_text, table_row
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.compare.comparable import condition_name
from compilewatch.db.judge.compare.recorded_regressions import events_of_rows, side_title
from compilewatch.db.judge.compare.sides import CODE
from compilewatch.db.judge.compare.whole import Outlook, headline, still_open
from compilewatch.db.judge.decide import MOVED, counts_as_regression, is_surely_worse
from compilewatch.db.judge.policy import Policy, policy_entries
from compilewatch.db.judge.results import BuildSide, Comparison, LeftOut, Row
from compilewatch.db.judge.sentences import target_text
from compilewatch.db.judge.targets import TargetCheck
from compilewatch.db.judge.verdict_marks import by_reason, row_verdict, workload_name, worst_first
from compilewatch.db.records.identity import component_name
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.vocabulary import Design, Metric, Verdict
from compilewatch.db.service.regressions import RegressionState
from compilewatch.db.units import (
    MISSING,
    TWO_TRIALS,
    count,
    duration,
    level,
    percent,
    plural,
    ratio,
    words,
)
from compilewatch.runner.output.tables import plain_table

# Targets in words: which are missed, which cannot be checked.


def target_lines(checks: Sequence[TargetCheck]) -> Iterator[str]:
    """One line per target that is missed or cannot be checked; nothing for those met."""
    for check in checks:
        if not check.met:
            state = "not checked" if check.met is None else "missed"
            yield f"Target {state}: {check.workload} / {check.strategy}: {target_text(check)}."


_STYLES = {Verdict.REGRESSED: "red", Verdict.IMPROVED: "green", Verdict.UNCHANGED: "dim"}
_NAMED_CASES, _NAMED_REASONS = 3, 6
_OTHERWISE_ROWS = 20
_NAMED_OPEN = 5
_NAMED_PARTS = 3
BESIDE = (Metric.LATENCY_P95, Metric.LATENCY_P99, Metric.TIME_TO_FIRST_RESULT)
"""What is tested beside the verdict."""
_TELLS = (Metric.LATENCY, Metric.COMPILE_COST)
POLICY_PAGE = "https://github.com/compilewatch/compilewatch/blob/main/docs/reference/policy.md"
_NUMBERS = ("base", "head", "change", "q")


def summary_lines(comparison: Comparison) -> Iterator[str]:
    """The sentences, the naive geomeans where they mislead, and what was not compared."""
    yield from comparison.sentences
    mean = comparison.geomean
    own = (mean.naive_base_cases, mean.naive_head_cases)
    if any(own) and own != (mean.cases, mean.cases):
        base, head = (
            f"{ratio(naive)} of {plural(cases, 'case')}" if naive else "nothing"
            for naive, cases in (
                (mean.naive_base, mean.naive_base_cases),
                (mean.naive_head, mean.naive_head_cases),
            )
        )
        yield f"Each side on its own set, the geomean would read {base} and {head}."
    yield from _left_out_lines(comparison.left_out)


def worse_beside_lines(comparison: Comparison, beside: Iterable[Row]) -> Iterator[str]:
    """What surely got worse in `BESIDE` and is no part of the verdict: rare slow steps, which a median passes
    over, and the start of a process. A case whose latency or compile cost regressed says so by those.
    """
    regressed = {
        row.case.ids for row in comparison.rows if counts_as_regression(row) and row.metric in _TELLS
    }
    worse = (
        row for row in beside if is_surely_worse(row, comparison.policy) and row.case.ids not in regressed
    )
    named = [
        f"{workload_name(row.case)} / {row.strategy} {METRICS[row.metric].word} "
        f"{_values(row)} ({_change(row)})"
        for row in worst_first(worse)
    ]
    if named:
        rest = len(named) - _NAMED_OPEN
        more = f"; and {count(rest)} more" if rest > 0 else ""
        first = "; ".join(named[:_NAMED_OPEN])
        yield f"Worse besides, which fails no gate without a target: {first}{more}."


def decided_lines(comparison: Comparison, outlooks: Sequence[Outlook]) -> Iterator[str]:
    """How many cases are decided, then each one that is open, with what one more hour would show of it."""
    rows = [row for row in comparison.rows if row.metric is Metric.LATENCY]
    open_rows = {row.case.ids: row for row in still_open(comparison)}
    moved = Counter(row.moved or "the same" for row in rows if row.case.ids not in open_rows)
    named = ", ".join(f"{count(number)} {name}" for name, number in moved.items())
    decided = f"{count(moved.total())} of {plural(len(rows), 'case')}"
    yield f"Decided: {decided}{f', {named}' if named else ''}."
    known = {each.row.case.ids: each for each in outlooks}
    for row in list(open_rows.values())[:_NAMED_OPEN]:
        change, trials = _change(row), plural(min(row.trials), "trial")
        line = f"Open: {workload_name(row.case)} / {row.strategy}: {METRICS[row.metric].word} {change}"
        yield f"{line} after {trials} a side."
        if (outlook := known.get(row.case.ids)) is not None:
            yield from (f"  {line}" for line in _outlook_lines(outlook))
        elif row.design is Design.SEPARATE_RUNS:
            yield "  More trials of one side leave what the machine differs by from run to run."
    if (rest := len(open_rows) - _NAMED_OPEN) > 0:
        yield f"Open: {plural(rest, 'more case')}."


def _outlook_lines(outlook: Outlook) -> Iterator[str]:
    more = f"about {plural(outlook.more, 'more trial')} a side"
    yield f"One more hour, {more}, shows changes from {percent(outlook.visible)} on."
    if outlook.equal_after is not None and outlook.more:
        hours = (outlook.equal_after - min(outlook.row.trials)) / outlook.more
        same = f"the same within {percent(outlook.margin)}"
        yield f"That both are {same} takes about {duration(3600e9 * hours)}."


def tally(states: Iterable[TriageState]) -> dict[str, int]:
    """How many recorded regressions are in each state; one that nobody looked at again is `suspected`."""
    return dict(Counter("suspected" if state is TriageState.NEW else state.value for state in states))


def recorded_lines(recorded: Collection[RegressionState]) -> Iterator[str]:
    """What became of the regressions that are recorded between these sides; nothing where none is."""
    if recorded:
        cases = {each.regression.subject[:2] for each in recorded}
        states = ", ".join(
            f"{count(number)} {state}"
            for state, number in sorted(tally(each.state for each in recorded).items())
        )
        yield f"Recorded for {plural(len(cases), 'case')}: {states}."


def _left_out_lines(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """One line per reason, with the first cases by name; thousands may share one."""
    groups = by_reason(left_out)
    for cases in groups[:_NAMED_REASONS]:
        names = Counter(f"{workload_name(case)} / {case.strategy}" for case in cases)
        first = names.most_common(_NAMED_CASES)
        named = ", ".join(
            name if times == 1 else f"{name} ({plural(times, 'case')})" for name, times in first
        )
        rest = len(cases) - sum(times for _, times in first)
        more = f" and {count(rest)} more" if rest else ""
        yield f"Left out, {cases[0].verdict.value}: {named}{more}: {cases[0].reason}"
    if rest := sum(map(len, groups[_NAMED_REASONS:])):
        yield f"Left out for other reasons: {plural(rest, 'case')}; --json names each."


def comparison_table(rows: Sequence[Row], policy: Policy, left_out: Sequence[LeftOut] = ()) -> Table:
    """One row per case and metric, the worst verdicts first, then one per case whose conditions differ."""
    headings = _headings(policy)
    table = plain_table(headings, right=[each for each in headings if each.startswith(_NUMBERS)])
    for row in worst_first(rows):
        table.add_row(*(Text(cell) for cell in _cells(row)), style=_STYLES.get(row.verdict, ""))
    for cells in _otherwise_measured(left_out):
        table.add_row(*map(Text, cells))
    return table


def _otherwise_measured(left_out: Sequence[LeftOut]) -> Iterator[tuple[str, ...]]:
    """A row for each of the first cases that were measured under other conditions, and which."""
    otherwise = [case for case in left_out if case.fields]
    for case in otherwise[:_OTHERWISE_ROWS]:
        conditions = ", ".join(map(condition_name, case.fields))
        verb = "differs" if len(case.fields) == 1 else "differ"
        verdict = f"{case.verdict.value}: {conditions} {verb}"
        yield workload_name(case), case.strategy, *([MISSING] * 5), verdict, MISSING


def markdown(
    comparison: Comparison,
    targets: Sequence[TargetCheck] = (),
    sentences: Sequence[str] | None = None,
    title: str | None = None,
) -> str:
    """For a pull request: sentences and title (those given, else of the comparison), a table of what changed
    or looks like it, the rest folded, how it is judged.
    """
    lines = [f"### compilewatch: {escaped_text(title or verdict_line(comparison, comparison.verdict))}", ""]
    lines += [
        f"- {escaped_text(line)}"
        for line in (*(sentences or summary_lines(comparison)), *target_lines(targets))
    ]
    shown = math.log1p(comparison.policy.open_change)
    changed = [
        row for row in worst_first(comparison.rows) if row.verdict in MOVED or abs(row.log_change) >= shown
    ]
    others = [row for row in worst_first(comparison.rows) if row not in changed]
    if changed:
        lines += ["", *_markdown_table(changed, comparison.policy)]
    otherwise = [*_otherwise_measured(comparison.left_out)]
    if others or otherwise:
        lines += ["", f"<details><summary>{plural(len(others) + len(otherwise), 'more row')}</summary>", ""]
        lines += _markdown_table(others, comparison.policy)
        lines += [table_row(*cells) for cells in otherwise]
        lines += ["", "</details>"]
    return (
        "\n".join([*lines, "", f"[How it is judged]({POLICY_PAGE}){_own_policy(comparison.policy)}."]) + "\n"
    )


def _own_policy(policy: Policy) -> str:
    """The constants that are set here to something else than by default."""
    default = {entry.name: entry.value for entry in policy_entries(Policy())}
    own = [
        f"{entry.name} {entry.value}"
        for entry in policy_entries(policy)
        if default.get(entry.name) != entry.value
    ]
    return escaped_text(f"; set here: {', '.join(own)}") if own else ""


def verdict_line(comparison: Comparison, verdict: Verdict, accepted: Collection[tuple[str, str]] = ()) -> str:
    """The sides and what became of the cases, in one line; of what is slower the worst case, its factor, and
    what differs. `verdict` is that of the whole where the cases `accepted`, by workload and strategy id,
    count no more.
    """
    sides = (_side_name(side, comparison.changed_components) for side in (comparison.base, comparison.head))
    title = f"{' → '.join(sides)}: {headline(comparison, verdict, accepted)}"
    slower = (row for row in comparison.rows if row.moved == "slower" and row.case.ids not in accepted)
    events = events_of_rows(slower)
    if not events or verdict is not Verdict.REGRESSED:
        return title
    worst = worst_first(rows[0] for rows in events.values())[0]
    factor = "" if worst.change is None else f" {ratio(1.0 + worst.change)}"
    named = f"{workload_name(worst.case)} / {worst.strategy} {METRICS[worst.metric].word}{factor}"
    return f"{title}, worst {named}{changed_line(comparison)}"


def _side_name(side: BuildSide, changed: tuple[str, ...]) -> str:
    """What people call a side: its commit, the name that was given, or its parts that differ; no run's id."""
    if side.name.startswith("commit="):
        return side.name.removeprefix("commit=")
    if side.name not in (*side.run_ids, *side.build_ids):
        return side.name.replace("=", " ", 1)
    if any(side.components.get(name) for name in changed):
        return side_title(side, changed[:_NAMED_PARTS])
    torch = side.components.get("torch")
    return f"a run with torch {torch}" if torch else "a run"


def regression_line(row: Row, also: Sequence[Row] = ()) -> str:
    """One regression in one line, for a log; `also` are other metrics that show it."""
    workload, strategy, metric, base, head, change, _, _, who = _cells(row)
    moved = f", {who} moved" if who != MISSING else ""
    factor = "" if row.change is None else f"{ratio(1.0 + row.change)}, "
    others = "".join(f", {METRICS[each.metric].word} {_step(each)}" for each in also)
    return f"{workload} / {strategy}: {metric.lower()} {base} -> {head} ({factor}{change}{moved}){others}"


def _step(row: Row) -> str:
    """The change; of what has none, as a break-even that was never reached, the values of both sides."""
    return _values(row) if row.change is None else _change(row)


def _values(row: Row) -> str:
    return f"{_figure(row.metric, row.base)} -> {_figure(row.metric, row.head)}"


def changed_line(comparison: Comparison) -> str:
    """What differs between the sides, ", code 1f2e3d4 -> 5d6c7b8" or ", torch 2.12.1 -> 2.13.0"; one's own
    code first, nothing where nothing does.
    """
    parts = sorted(comparison.changed_components, key=lambda name: name != CODE)
    sides = (comparison.base.components, comparison.head.components)
    named = [
        f", {component_name(name)} {' -> '.join(side.get(name) or MISSING for side in sides)}"
        for name in parts[:_NAMED_PARTS]
    ]
    rest = len(parts) - _NAMED_PARTS
    return "".join(named) + (f" and {plural(rest, 'more part')}" if rest > 0 else "")


def _cells(row: Row) -> tuple[str, ...]:
    return (
        workload_name(row.case),
        row.strategy,
        METRICS[row.metric].name,
        _figure(row.metric, row.base),
        _figure(row.metric, row.head),
        _change(row),
        MISSING if row.q_value is None else f"{row.q_value:.2g}",
        row_verdict(row),
        MISSING if row.who_moved is None else row.who_moved.value,
    )


def _figure(metric: Metric, value: float | str | None) -> str:
    return MISSING if value is None else words(METRICS[metric].write(value))


def _change(row: Row) -> str:
    if row.change is None:
        # There is no ratio to 0.
        return "from 0" if row.base == 0 != row.head else "to 0" if row.head == 0 != row.base else MISSING
    text = percent(row.change, signed=True)
    if row.interval is not None:
        text += f" [{percent(row.interval[0], signed=True)}, {percent(row.interval[1], signed=True)}]"
    elif min(row.trials) == 2:
        text += f" [{TWO_TRIALS}]"
    return text


def _headings(policy: Policy) -> tuple[str, ...]:
    change = f"change [{level(policy.confidence)}]"
    return ("workload", "strategy", "metric", "base", "head", change, "q", "verdict", "who moved")


def _markdown_table(rows: Sequence[Row], policy: Policy) -> list[str]:
    headings = _headings(policy)
    head = f"| {' | '.join(headings)} |"
    rule = "|" + " --- |" * len(headings)
    return [head, rule, *(table_row(*_cells(row)) for row in rows)]
