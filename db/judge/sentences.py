"""Verdicts in words: one sentence per row, and a few for the whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from compilewatch.db import units
from compilewatch.db.columns.metrics import BY_COLUMN, METRICS, SPEEDUPS
from compilewatch.db.judge.results import Row, Tally
from compilewatch.db.judge.targets import AT_LEAST, TargetCheck
from compilewatch.db.judge.who_moved import Clock
from compilewatch.db.records.identity import component_name
from compilewatch.db.records.vocabulary import CauseClass, Design, Metric, Verdict, WhoMoved

_LATENCIES = (Metric.LATENCY, Metric.DEVICE_TIME)


def change_text(change: float) -> str:
    """A relative change, signed: "+4.9 %"."""
    return units.percent(change, signed=True)


def whole_percent(share: float) -> str:
    """A share that somebody chose, as it was chosen: "5 %"."""
    return f"{100.0 * share:g} %"


def range_text(low: float, high: float) -> str:
    """Both ends of a relative change, signed: "-1.20 % to +3.40 %"."""
    return f"{change_text(low)} to {change_text(high)}"


def moved(
    metric: Metric, change: float, who: WhoMoved | None, eager: float | None, compiled: float | None
) -> str:
    """Why a measured metric changed, as far as the parts say. Changes are relative latency changes."""
    name = METRICS[metric].name
    verb = "rose" if change > 0 else "fell"
    if metric in SPEEDUPS and who is not None and eager is not None and compiled is not None:
        return f"{name} {verb} {_because(who, eager, compiled)}."
    if metric in _LATENCIES and who is WhoMoved.BOTH and eager is not None:
        return f"{name} {verb} by {_size(change)}; eager moved too ({change_text(eager)})."
    if metric in _LATENCIES and who is WhoMoved.COMPILED:
        return f"{name} {verb} by {_size(change)}; eager did not move."
    return f"{name} {verb} by {_size(change)}."


def moved_without_ratio(metric: Metric, base: float, head: float) -> str:
    """Why a metric changed that is 0 on a side, where no percentage says by how much."""
    verb = "rose" if head > base else "fell"
    return f"{METRICS[metric].name} {verb} {from_to(metric, base, head)}, beyond what its trials vary by."


def open_without_ratio(metric: Metric, base: float, head: float) -> str:
    """The same where its trials vary by as much."""
    return (
        f"Cannot tell: {METRICS[metric].word} {from_to(metric, base, head)}, and its trials vary by as much."
    )


def unchanged_without_ratio(margin: float) -> str:
    """Why it is unchanged. `margin`: a share of the largest value."""
    return f"Shown to differ by less than {units.percent(margin)} of the largest value."


def not_measured(metric: Metric, base: float, head: float) -> str:
    """Why a time or a size that is 0 on a side is not judged."""
    return f"{METRICS[metric].name} {from_to(metric, base, head)}: 0 was not measured."


def from_to(metric: Metric, base: float, head: float) -> str:
    """Both values: "from 3.50 requests/s to 0 requests/s"."""
    write = METRICS[metric].write
    return f"from {write(base)} to {write(head)}"


def _because(who: WhoMoved, eager: float, compiled: float) -> str:
    alone = {WhoMoved.EAGER: eager, WhoMoved.COMPILED: compiled}.get(who)
    if alone is not None:
        return f"because {who.value} got {'slower' if alone > 0 else 'faster'}"
    parts = f"eager {change_text(eager)}, compiled {change_text(compiled)} in latency"
    return f"because both moved: {parts}" if who is WhoMoved.BOTH else f"({parts}; neither is sure alone)"


def _size(change: float) -> str:
    return units.percent(abs(change))


def unchanged(interval: tuple[float, float], margin: float) -> str:
    """Why a row is unchanged. `interval` and `margin` are relative changes."""
    return f"Shown to be within {units.percent(margin)}: {range_text(*interval)}."


IDENTICAL = "Every trial of both sides has this value."
"""Why a row is unchanged whatever its noise."""
RANKED = "Judged by ranks: the case has two modes."
"""How a case with two modes is judged."""


def device_and_host(device: Clock, issue: Clock) -> str:
    """What the two clocks say of a step whose wall time moved, the one that did not move first."""
    clocks = [("the host", issue), ("the device", device)]
    clocks.sort(key=lambda part: part[1].moved)
    (first, still), (second, moved_one) = clocks
    if still.moved:
        sentence = f"{first} moved ({_of(still)}), and so did {second} ({_of(moved_one)})"
    elif moved_one.moved:
        sentence = f"{first} {_at_rest(still)} ({_of(still)}), {second} did ({_of(moved_one)})"
    else:
        sentence = (
            f"{second} {_at_rest(moved_one)} ({_of(moved_one)}), {first} {_at_rest(still)} ({_of(still)})"
        )
    return f"{units.capitalized(sentence)}."


def _at_rest(clock: Clock) -> str:
    return "did not move" if clock.same else "did not surely move"


def _of(clock: Clock) -> str:
    return change_text(math.expm1(clock.change))


def in_cycles(cycles: float, clock: float) -> str:
    """Device time where the SM clock moved; relative changes of the time in cycles and of the clock."""
    return f"In cycles {change_text(cycles)}: the SM clock changed by {change_text(clock)}."


def few_and_noisy(trials: tuple[int, int], needed: int) -> str:
    """Why a change that few trials show is not announced."""
    shown = f"Suspected: shown by {units.plural(min(trials), 'trial')} a side"
    return f"{shown}, and cases like this are noisy; {needed} a side, or a confirmation, decide."


def not_reproduced(trials: tuple[int, int], reason: str) -> str:
    """Why fresh trials, of base and head, do not confirm a suspicion."""
    return f"{trials[0]} and {units.plural(trials[1], 'fresh trial')} do not show it: {reason}"


def timed_by_two(compiled: str, eager: str) -> str:
    """Why a side has no device speedup though both its device times are known."""
    return f"Device time was taken by two methods ({compiled} compiled, {eager} eager)."


def inconclusive(
    interval: tuple[float, float] | None,
    more_trials: int | None,
    unseen: int | None = None,
    effect: float = 0.05,
) -> str:
    """Why a row is open. `interval` is None where no noise is known; `more_trials` a side would show a change
    of `effect`, or `unseen` ones, which are too many.
    """
    if interval is None:
        return "The noise of this case is unknown; measure both sides with more trials."
    wanted = ""
    if more_trials is not None:
        more = units.plural(more_trials, "more trial")
        wanted = f"; about {more} a side would show {whole_percent(effect)}"
    if unseen is not None:
        clock = f"this clock cannot show {whole_percent(effect)} here"
        wanted = f"; {clock}: that takes about {units.plural(unseen, 'trial')} a side"
    return f"Cannot tell: {range_text(*interval)}{wanted}."


def too_few(trials: tuple[int, int], needed: int, *, suspected: bool) -> str:
    """Why a row has no verdict: `trials` of base and head, `needed` a side."""
    fewest = min(trials)
    counted = f"{units.plural(fewest, 'trial')} on the smaller side {'is' if fewest == 1 else 'are'}"
    suspicion = " Suspected: the change is beyond the noise of its own history." if suspected else ""
    return f"{counted} never a verdict; {needed} a side are needed.{suspicion}"


def confounded(components: tuple[str, ...]) -> str:
    """Several parts of the build changed at once: say so, name none."""
    names = [component_name(name) for name in components]
    return f"{', '.join(names[:-1])} and {names[-1]} changed at once, so their effects cannot be told apart."


def changed_alone(component: str, base: str | None, head: str | None) -> str:
    """The one part of the build that differs, with what each side has of it."""
    return f"Only {component_name(component)} changed: {base or 'unknown'} to {head or 'unknown'}."


def overall(verdict: Verdict, tally: Tally, *, matched: int, total: int) -> str:
    """What became of the cases, each counted once."""
    coverage = f"Compared {units.count(matched)} of {units.plural(total, 'case')}"
    if verdict is Verdict.NOT_COMPARABLE:
        return f"{coverage}: nothing can be compared."
    return f"{coverage}: {tallied(tally)}."


def tallied(tally: Tally) -> str:
    """ "latency 2 slower, 1 faster, 4 unchanged, 1 undecided": the same words wherever cases are counted."""
    groups = [
        f"{units.count(tally.slower)} slower",
        f"{units.count(tally.faster)} faster",
        f"{units.count(tally.unchanged)} unchanged",
        f"{units.count(tally.undecided)} undecided",
    ]
    rare = ((tally.set_aside, "set aside, machine"), (tally.failing, "failing"), (tally.missing, "missing"))
    counted = ", ".join(groups + [f"{units.count(number)} {word}" for number, word in rare if number])
    return counted if tally.metric is None else f"{METRICS[tally.metric].word} {counted}"


def moved_in(tally: Tally, metric: Metric) -> str:
    """The cases that moved in `metric`: "2 slower, 1 faster" in latency, "1 worse" in another; empty where
    none did.
    """
    worse, better = ("slower", "faster") if metric is Metric.LATENCY else ("worse", "better")
    ways = ((tally.slower_by.get(metric, 0), worse), (tally.faster_by.get(metric, 0), better))
    return ", ".join(f"{units.count(number)} {word}" for number, word in ways if number)


def besides(tally: Tally) -> str:
    """The cases that moved in other metrics than that of the tally, by metric: "speedup 1 worse; compile cost
    2 worse, 1 better"; empty where none did.
    """
    moved = {
        metric: moved_in(tally, metric)
        for metric in dict.fromkeys((*Metric, *tally.slower_by, *tally.faster_by))
        if metric != tally.metric
    }
    return "; ".join(f"{METRICS[metric].word} {words}" for metric, words in moved.items() if words)


def worse_besides(tally: Tally) -> str:
    """ "speedup 1 worse, compile cost 2 worse": of other metrics than that of the tally; empty where none
    did.
    """
    others = {metric: number for metric, number in tally.slower_by.items() if metric is not tally.metric}
    return ", ".join(
        f"{METRICS[metric].word} {units.count(number)} worse" for metric, number in others.items()
    )


def other_metrics(tally: Tally) -> tuple[str, ...]:
    """The line of what moved in other metrics; nothing where nothing did."""
    moved = besides(tally)
    return (f"Other metrics: {moved}.",) if moved else ()


def largest(rows: Sequence[Row], cases: int, effect: float) -> str:
    """The largest changes by name, of `cases` cases that changed by `effect` or more."""
    named = [
        f"{row.workload} / {row.strategy} {METRICS[row.metric].word} {change_text(row.change or 0.0)}"
        f"{_standing(row)}"
        for row in rows
    ]
    rest = cases - len(rows)
    more = f"; and {units.plural(rest, 'more case')} by {whole_percent(effect)} or more" if rest else ""
    return f"Largest: {'; '.join(named)}{more}."


def _standing(row: Row) -> str:
    """How sure a change is, after a comma; nothing where it is decided."""
    if row.cause is CauseClass.MACHINE:
        return ", set aside, machine"
    if row.verdict is not Verdict.INCONCLUSIVE:
        return ""
    fewest = min(row.trials)
    if row.design is Design.SEPARATE_RUNS:
        return f", not decided: separate runs, {units.plural(fewest, 'trial')} a side"
    return f", not decided: {units.plural(fewest, 'trial')} a side"


def from_one_run(visible: float, others: int | None = None, *, advise: bool = True) -> str:
    """What separate runs cannot tell. `visible`: the smallest relative change that they can; `others`: of so
    many cases, where some are decided. With `advise` also what would tell.
    """
    of = "" if others is None else f" in latency of {units.plural(others, 'other case')}"
    sentence = (
        f"Cannot tell from separate runs{of}: a change below {units.percent(visible)} may be the machine."
    )
    if not advise:
        return sentence
    return (
        f"{sentence} Pull request: `compilewatch gate --confirm run`, or more trials. "
        "Bench: both sides in one run."
    )


def headline(tally: Tally, *, compared: int, is_open: bool, visible: float | None, accepted: int = 0) -> str:
    """What became of `compared` cases, in a title: what is slower, else that nothing is shown to be or that
    it cannot be told (`is_open`). `visible`: the smallest relative change that separate runs can tell, where
    some are undecided; `accepted` cases, which are not in `tally`, are worse as somebody accepted.
    """
    if not compared:
        return "nothing can be compared"
    ways = ((tally.slower, "slower"), (tally.failing, "failing"))
    worse = [f"{units.count(number)} {word}" for number, word in ways if number]
    better = [f"{units.count(tally.faster)} faster"] if tally.faster else []
    if worse:
        return f"{', '.join([*worse, *better])} of {units.plural(compared, 'case')}"
    others = [worse_besides(tally)] if worse_besides(tally) else []
    undecided = f"cannot tell, {units.count(tally.undecided)} of {units.plural(compared, 'case')} undecided"
    parts = [undecided if is_open else "no slowdown shown", *better, *others]
    parts += [f"{units.count(accepted)} accepted"] if accepted else []
    parts += [f"{units.count(tally.set_aside)} set aside, machine"] if tally.set_aside else []
    if visible is not None:
        where = " elsewhere" if tally.faster else ""
        parts.append(f"changes below {units.percent(visible)} not visible{where}")
    return ", ".join(parts)


@dataclass(frozen=True)
class MovedCases:
    """Of `cases` cases, how many got `slower` or `faster`, are shown to be `unchanged`, or are `undecided`.

    What is left is put down to the machine.
    """

    cases: int
    slower: int
    faster: int
    unchanged: int
    undecided: int

    @property
    def any(self) -> bool:
        return self.slower + self.faster > 0


def latency_moved(compiled: MovedCases, eager: MovedCases, confirmed: int | None = None) -> str:
    """Latency alone, and who moved: compiled, eager, both or neither.

    `confirmed`: how many of the slower cases are recorded as confirmed; None where that was not looked up.
    """
    slower, faster = compiled.slower + eager.slower, compiled.faster + eager.faster
    cases = units.plural(compiled.cases + eager.cases, "case")
    sentence = f"{units.count(slower)} of {cases} slower" if slower else f"no slowdown shown in {cases}"
    if slower and confirmed is not None:
        sentence += f", {units.count(confirmed)} confirmed" if confirmed else ", not confirmed yet"
    sentence += f", {units.count(faster)} faster" if faster else ""
    return " ".join(filter(None, (f"Latency: {sentence}.", _moved_side(compiled, eager))))


def _moved_side(compiled: MovedCases, eager: MovedCases) -> str:
    """Whose latency moved; empty where none did or only one of the two was measured."""
    if not (compiled.cases and eager.cases and (compiled.any or eager.any)):
        return ""
    if compiled.any and eager.any:
        return "Compiled and eager code moved."
    moved = compiled if compiled.any else eager
    verb = "moved" if moved.slower and moved.faster else "slowed" if moved.slower else "got faster"
    return f"Only {'compiled' if compiled.any else 'eager'} code {verb}."


def geometric_mean(base: float, head: float, cases: int) -> str:
    """How the geometric mean of the speedups, above 1 is faster, went from `base` to `head`."""
    change = change_text(math.expm1(math.log(head / base)))
    values = f"{units.ratio(base)} to {units.ratio(head)} ({change})"
    return f"Geomean speedup over {units.plural(cases, 'matched case')}: {values}."


def weighted_mean(
    name: str, change: float, interval: tuple[float, float] | None, cases: int, confidence: float
) -> str:
    """The change of a metric over all cases, each weighted by its precision."""
    shown = _with_interval(change, interval, confidence)
    return f"{name} of {units.plural(cases, 'case')}, weighted by precision: {shown}."


def _with_interval(change: float, interval: tuple[float, float] | None, confidence: float) -> str:
    reach = f" ({units.level(confidence)} interval {range_text(*interval)})" if interval else ""
    return f"{change_text(change)}{reach}"


def clocks_moved(device: MovedCases, issue: MovedCases) -> str:
    """Of a GPU's cases, what is known of the device and what of the host."""
    cases = units.plural(device.cases, "case")
    return f"Device time of {cases}: {_how_many(device)}. Host issue time: {_how_many(issue)}."


def _how_many(moved: MovedCases) -> str:
    known = moved.slower + moved.faster + moved.unchanged + moved.undecided
    counted = (
        (moved.slower, "slower"),
        (moved.faster, "faster"),
        (moved.unchanged, "unchanged"),
        (moved.undecided, "undecided"),
        (moved.cases - known, "put down to the machine"),
    )
    return ", ".join(f"{units.count(number)} {word}" for number, word in counted if number)


def timed_by(methods: tuple[str, ...]) -> str:
    """How a GPU's times were taken, where that limits what they say."""
    if methods == ("ungated",):
        return "Ungated: these times hold what the GPU waited for the host."
    return f"Device time was taken by several methods: {', '.join(methods)}."


def not_testable(metric: Metric) -> str:
    """A side has a value to show, but no trial that can be tested."""
    if metric in (*SPEEDUPS, Metric.BREAK_EVEN):
        return "No trial of one side has eager measured in the same process; measure both sides again."
    return "No trial of one side can be tested; measure both sides again."


def never(base: bool, head: bool, *, sure: bool) -> str:
    """A break-even that is never on the base side, the head side or both."""
    if base and head:
        return "Compilation never pays off, on either side."
    sentence = "Compilation no longer pays off" if head else "Compilation pays off now"
    return f"{sentence}." if sure else f"{sentence}, but the change of speedup behind it is not sure."


def machine_moved(canary_change: float | None, cases: int) -> str:
    """What is put down to the machine. `canary_change`: the relative one of its canary's latency; None where
    there is no canary.
    """
    canary = "" if canary_change is None else f" (its canary {change_text(canary_change)})"
    aside = f"{units.plural(cases, 'case')} set aside, machine{canary}"
    return f"{aside}. Measure again before blaming a build."


def wild(trials: int) -> str:
    """That trials are set aside by `db.metrics.eligibility`."""
    return f"{units.plural(trials, 'trial')} set aside, wild: far from all others of the case and run."


def set_aside(metric: Metric, change: float, canary: float | None, *, interleaved: bool) -> str:
    """Why a change is the machine's. `canary`: the relative change of its canary that explains it; None where
    something else does.
    """
    name, verb = METRICS[metric].name, "rose" if change > 0 else "fell"
    sentence = f"{name} {verb} by {_size(change)}"
    if canary is not None and not interleaved:
        return f"{sentence}, and the machine's canary moved too ({change_text(canary)}): set aside."
    return f"{sentence}; build and code are the same on both sides, or only a clock moved: set aside."


def between_runs(visible: float | None) -> str:
    """Why a change that its trials show is open. `visible`: the smallest relative change that can be told."""
    below = "a change" if visible is None else f"a change below {units.percent(visible)}"
    return f"Cannot tell from one run a side: {below} may be the machine."


def falls_short(canary_change: float) -> str:
    """That the canary does not explain a change. `canary_change`: the relative one of its latency."""
    return f"The machine's canary changed by {change_text(canary_change)}, which does not explain it."


def missing(cases: int) -> str:
    """How many cases only the base side has."""
    noun = "case" if cases == 1 else "cases"
    return f"{cases} {noun} of the base side did not run on the head side."


def announced(metric: Metric, change: float, components: tuple[str, ...], *, flips: bool) -> str:
    """A change of level in a history. `components`: parts of the build that changed with it."""
    step = f"{METRICS[metric].name} {'rose' if change > 0 else 'fell'} by {_size(change)}"
    if flips:
        return f"{step}, back to a level it had before: the series flips between two modes."
    if len(components) > 1:
        return f"{step}. {confounded(components)}"
    if components:
        return f"{step} with the change of {component_name(components[0])}."
    return f"{step}; no part of the build changed with it."


def counted(metric: Metric, before: float, after: float, components: tuple[str, ...]) -> str:
    """A step of a count, with what changed in the build there."""
    step = f"{METRICS[metric].name} {'rose' if after > before else 'fell'} from {units.count(before)} to"
    changed = f"; {', '.join(map(component_name, components))} changed" if components else ""
    return f"{step} {units.count(after)}{changed}."


def withdrawn(metric: Metric, change: float, points: int) -> str:
    """Why an announced step is taken back, `points` points later. `change`: what is left of it, relative."""
    more = f"{points} more point{'' if points == 1 else 's'}"
    step = f"the step in {METRICS[metric].name.lower()} is {change_text(change)}"
    return f"With {more} {step} and no longer stands."


def drifted(metric: Metric, change: float, against: str, *, real: bool) -> str:
    """How far a series is from `against` beyond its announced steps; `real` where that is significant."""
    size = f"{change_text(change)} against {against}, beyond the announced steps"
    name = METRICS[metric].name
    return f"{name} drifted by {size}." if real else f"{name} stands at {size}; that is no sure drift."


def target_text(check: TargetCheck) -> str:
    """What a case has of what a target limits, and the limit: "compiled share is 50 %, the target is at least
    95 %".
    """
    figure = BY_COLUMN[check.quantity]
    if check.met is None:
        return f"{figure.word} is unknown"
    value = units.NEVER if check.value is None else figure.write(check.value)
    side = "at least" if check.quantity in AT_LEAST else "at most"
    return f"{figure.word} is {value}, the target is {side} {figure.write(check.limit)}"
