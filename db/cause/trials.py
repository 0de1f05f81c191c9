"""What a profile says in words: what compiling changed, what the time is bound by, what is left to gain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from db.columns.metrics import METRICS
from db.metrics.device_times import bound_of
from db.metrics.throughput import items_of, per_second
from db.records.marks import UNGATED_MEANS, bound_word
from db.records.sampling import Gate, Profile, ProfileSide, SamplingFacts, TimingSide
from db.records.streams import StreamFacts
from db.records.trial import StrategyKind, Summary, TimingMethod, Trial, timing_method_of
from db.units import MISSING, count, duration, percent, plural, rate, ratio, significant, size, words

BUSY = 0.9
"""From here on a GPU has next to nothing to wait for."""
HOST_FIRST = 0.7
"""Below it a GPU waits for the host more than anything in the kernels can bring."""
LISTED = 10
"""So many kernels of a profile are shown."""
BOUND = 0.6
"""A share from which on the whole cannot become much faster while this part stays."""
NOTABLE = 0.05
"""A difference of kernel times that profiles of a few steps can tell."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """What a step of a trial takes where nothing profiles it, in nanoseconds: the strategy's and eager's.

    Pipelined wall time where a GPU was timed so, else latency; None where it is not known.
    """

    own_ns: float | None
    eager_ns: float | None


def step_times(trial: Trial) -> StepTimes:
    """Medians over the samples, else what the source states."""
    own = _median(trial.wall_pipelined_ns) or _median(trial.latency_samples_ns)
    eager = _median(trial.control_wall_pipelined_ns) or _median(trial.control_latency_samples_ns)
    if trial.summary is not None:
        own, eager = own or trial.summary.latency_ns, eager or trial.summary.control_latency_ns
    return StepTimes(own, own if trial.strategy.kind is StrategyKind.EAGER else eager)


def _median(samples: Sequence[int]) -> float | None:
    return float(median(samples)) if len(samples) else None


def eager_before(trial: Trial) -> tuple[str, str] | None:
    """Eager's latency before anything was compiled and what it is made of: all that is known of a trial that
    was not sampled; None of another.
    """
    cold, is_eager = trial.cold_start, trial.strategy.kind is StrategyKind.EAGER
    if is_eager or trial.latency_samples_ns or trial.control_latency_samples_ns:
        return None
    if calls := trial.control_warmup_ns:
        return duration(median(calls)), f"median of {plural(len(calls), 'call')} before anything was compiled"
    first_ns = None if cold is None else cold.eager_first_ns
    return None if first_ns is None else (duration(first_ns), "its first call")


def compile_cost_text(trial: Trial) -> str | None:
    """What compiling cost, and in how many calls; None where the trial was not steady."""
    cold, latency_ns = trial.cold_start, _median(trial.latency_samples_ns)
    if cold is None or cold.until_steady_ns is None or cold.calls_until_steady is None:
        return None
    calls = cold.calls_until_steady
    if calls == 0:
        return f"{duration(cold.until_steady_ns)} as stated"
    if latency_ns is None or trial.strategy.kind is StrategyKind.EAGER:
        return None
    cost_ns = cold.until_steady_ns - calls * latency_ns
    return f"{duration(cost_ns)}, in {plural(calls, 'call')} until steady"


def throughput_figures(trial: Trial) -> list[tuple[str, str]]:
    """Items per second at the latency, and at eager's beside it; nothing where no latency is known."""
    stated = trial.summary or Summary()
    own = _median(trial.latency_samples_ns) or stated.latency_ns
    eager = _median(trial.control_latency_samples_ns) or stated.control_latency_ns
    items, item = items_of(vars(trial.workload))
    sides = {"throughput": own, "eager throughput": eager if own else None}
    return [(name, rate(per_second(items, latency), item)) for name, latency in sides.items() if latency]


def kernels_ns(side: ProfileSide) -> float | None:
    """How long the GPU works in a step: profiling slows down the host and leaves kernels as they are."""
    return None if side.device_busy_fraction is None else side.device_busy_fraction * side.step_ns


def busy_fraction(side: ProfileSide, step_ns: float | None) -> float | None:
    """Share of a timed step in which the GPU works; None where one of both is not known."""
    kernels = kernels_ns(side)
    return None if kernels is None or not step_ns else min(1.0, kernels / step_ns)


def host_sentence(side: ProfileSide, step_ns: float | None) -> str:
    """That the host is where to look; empty where the GPU is busy enough, or its share is not known."""
    busy = busy_fraction(side, step_ns)
    if busy is None or busy >= HOST_FIRST:
        return ""
    return f"The GPU is busy {_percent(busy)} of the step: look at the host."


def why(profile: Profile, times: StepTimes) -> str:
    """One to four sentences; empty where the profile knows too little for any."""
    sentences = (_change(profile), _kernels(profile, times), _verdict(profile, times), _python(profile))
    return " ".join(filter(None, sentences))


def _change(profile: Profile) -> str:
    """ "412 launches per step became 61." """
    for name in ("launches", "operators"):
        own, eager = getattr(profile.own, name), getattr(profile.control, name, None)
        if own is None:
            continue
        if eager is None:
            return f"{_amount(own)} {name} per step."
        became = ", unchanged." if eager == own else f" became {_amount(own)}."
        return f"{_amount(eager)} {name} per step{became}"
    return ""


def _kernels(profile: Profile, times: StepTimes) -> str:
    """ "Kernels take 227 us of a step of 327 us; eager's take 221 us of 235 us." """
    own, eager = kernels_ns(profile.own), profile.control and kernels_ns(profile.control)
    if own is None:
        return ""
    of_step = f" of a step of {duration(times.own_ns)}" if times.own_ns else ""
    sentence = f"Kernels take {duration(own)}{of_step}"
    if eager:
        sentence += f"; eager's take {duration(eager)}"
        sentence += f" of {duration(times.eager_ns)}" if times.eager_ns else ""
    return f"{sentence}."


def _verdict(profile: Profile, times: StepTimes) -> str:
    own, matrix = profile.own, profile.own.matrix_fraction
    busy, longer = busy_fraction(own, times.own_ns), _longer(profile)
    if host_first := host_sentence(own, times.own_ns):
        return host_first
    if busy is not None and busy < BUSY:
        return f"The GPU waits for the host {_percent(1 - busy)} of the step."
    if longer >= NOTABLE:
        return f"Compiled kernels take {_percent(longer)} longer than eager's."
    if matrix is not None and matrix >= BOUND:
        return f"Bound by matrix products, {_percent(matrix)} of the work: little is left to gain."
    if busy is not None:
        return "Little is left to gain from fewer launches; the rest is in the kernels themselves."
    return ""


def _longer(profile: Profile) -> float:
    """By how much the kernels of the strategy take longer than eager's; 0 where that is not known."""
    own, eager = kernels_ns(profile.own), profile.control and kernels_ns(profile.control)
    return own / eager - 1 if own and eager else 0.0


def _python(profile: Profile) -> str:
    """Only where it is much: on a CPU the host is what computes."""
    own = profile.own
    if own.device_busy_fraction is not None or own.python_ns is None or own.step_ns == 0:
        return ""
    share = own.python_ns / own.step_ns
    return f"Python and guards take {_percent(share)} of a profiled step." if share >= 1 - BUSY else ""


def profile_rows(profile: Profile, times: StepTimes) -> list[tuple[str, str, str]]:
    """Figure, its text of eager (of the only side where that is eager), its text of the strategy."""
    texts: list[tuple[str, Callable[[ProfileSide, float | None], str | None]]] = [
        ("launches per step", lambda side, _: _known(side.launches, _amount)),
        ("kernels per step", lambda side, _: _known(side.kernels, _amount)),
        ("operators per step", lambda side, _: _known(side.operators, _amount)),
        ("kernel time per step", lambda side, _: _known(kernels_ns(side), duration)),
        ("step, as timed", lambda _, step_ns: _known(step_ns, duration)),
        ("GPU busy", lambda side, step_ns: _known(busy_fraction(side, step_ns), _percent)),
        ("host time in launches", lambda side, _: _known(side.launch_ns, duration)),
        ("Python and guards", lambda side, _: _known(side.python_ns, duration)),
        ("in matrix products", lambda side, _: _known(side.matrix_fraction, _percent)),
        ("step, while profiled", lambda side, _: duration(side.step_ns)),
    ]
    eager, own = (profile.control or profile.own), (profile.own if profile.control else None)
    rows = [
        (name, text(eager, times.eager_ns), text(own, times.own_ns) if own else None) for name, text in texts
    ]
    return [(name, first or MISSING, then or MISSING) for name, first, then in rows if first or then]


def longest_rows(profile: Profile, times: StepTimes) -> list[tuple[str, str, str, str]]:
    """Name, calls, self time and share of a step of what takes longest. Kernels are set against the timed
    step; operators, which profiling slows down as the step, against the profiled one.
    """
    step_ns = profile.own.step_ns if profile.own.device_busy_fraction is None else times.own_ns
    rows = []
    for each in profile.own.top[:LISTED]:
        share = _percent(each.self_ns / step_ns) if step_ns else MISSING
        rows.append((each.name, _amount(each.calls), duration(each.self_ns), share))
    return rows


def work_text(profile: Profile, times: StepTimes) -> str:
    """Operations and bytes of an eager step, and the rates at eager's time; empty where neither is known."""
    parts = []
    if profile.flops:
        parts.append(f"{_flops(profile.flops)} per step{_rate(profile.flops, times.eager_ns, _flops)}")
    if profile.bytes:
        moved = f"{size(profile.bytes)} read and written by its operators"
        parts.append(moved + _rate(profile.bytes, times.eager_ns, size))
    return "; ".join(parts)


def _rate(amount: int, latency_ns: float | None, formatter: Callable[[float], str]) -> str:
    return f" ({formatter(amount / latency_ns * 1e9)}/s)" if latency_ns else ""


def _flops(operations: float) -> str:
    units = ("", "k", "M", "G", "T", "P", "E")
    power = 0
    while operations >= 1000 and power < len(units) - 1:
        operations, power = operations / 1000, power + 1
    return f"{significant(operations)} {units[power]}FLOP"


def _known(value: float | None, formatter: Callable[[float], str]) -> str | None:
    return None if value is None else formatter(value)


def _amount(value: float) -> str:
    return count(value) if float(value).is_integer() else significant(value)


def _percent(fraction: float) -> str:
    return f"{round(100 * fraction)} %"


# How samples were taken, in words.

_ENDED_BY = {
    "interval": "which was enough",
    "samples": "at the limit of {max_samples} samples",
    "time": "at the limit of time",
    "deadline": "as the deadline of the trial was near",
    "disturbed": "with other work on the host in too many blocks",
}
_FLUSHED = {True: "L2 cache flushed before each", False: "L2 cache not flushed"}


def sample_count_text(sampling: SamplingFacts) -> str:
    """How well the median is known, what ended sampling and warm-up: "median known to ±1.10 %, ..." """
    known = "too few samples for an interval of the median"
    if sampling.reached_interval is not None:
        target = f" (target: ±{percent(sampling.relative_interval)})" if sampling.relative_interval else ""
        known = f"median known to ±{percent(sampling.reached_interval)}{target}"
    ended = _ENDED_BY.get(sampling.ended_by, "ended by {ended_by}")
    parts = [known, ended.format(max_samples=count(sampling.max_samples), ended_by=sampling.ended_by)]
    if sampling.flush_l2 is not None:
        parts.append(_FLUSHED[sampling.flush_l2])
    if sampling.warmup_ended_by not in (None, "steady"):
        parts.append("latency had not settled")
    return ", ".join(parts)


# What a source states of a trial instead of samples, and the times of a GPU, as names and texts.


def main_figures(summary: Summary) -> list[tuple[str, str]]:
    """Latency with how many measurements it is made of, eager's, and the speedup; those that are stated."""
    latency, eager = summary.latency_ns, summary.control_latency_ns
    figures: list[tuple[str, str]] = []
    if latency is not None:
        figures.append(("latency", f"{duration(latency)} as stated, {measurements(summary)}"))
    if eager is not None:
        figures.append(("eager control", duration(eager)))
    if latency and eager is not None:
        figures.append(("speedup", ratio(eager / latency)))
    return figures


def other_figures(summary: Summary) -> list[tuple[str, str]]:
    """Throughput, then what has no field of its own, by the source's names and in its units."""
    rate_s = summary.throughput_per_s
    known = [] if rate_s is None else [("throughput as stated", rate(rate_s))]
    return [*known, *((name, f"{value:.10g}") for name, value in sorted(summary.metrics.items()))]


def measurements(summary: Summary) -> str:
    """Of how many measurements it was made: "n = 30", "n unknown"."""
    return "n unknown" if summary.n is None else f"n = {count(summary.n)}"


@dataclass(frozen=True, slots=True)
class TimeOfSides:
    """One of the times of a GPU, as texts: medians, eager over this side, and how many samples each has."""

    name: str
    own: str
    eager: str
    speedup: str
    samples: str


def device_times(trial: Trial) -> list[TimeOfSides]:
    """Every time that was taken of a GPU's steps; none of another trial.

    Version 1 has CUDA events without a gate, and steps of the same blocks on the host's clock.
    """
    method = timing_method_of(trial)
    if method in (None, TimingMethod.HOST):
        return []
    entries = [METRICS[key] for key in ("device_time", "issue_time", "wall_sync", "wall_pipelined")]
    fields = {entry.column: entry.name for entry in entries}
    fields |= {"samples_ns": "Events without a gate", "host_samples_ns": "Host clock, synchronised"}
    return [
        _of_sides(name, getattr(trial, field), getattr(trial, f"control_{field}"))
        for field, name in fields.items()
        if len(getattr(trial, field))
    ]


def _of_sides(name: str, own: Sequence[int], eager: Sequence[int]) -> TimeOfSides:
    alike = len(own) == len(eager) or not len(eager)
    samples = count(len(own)) if alike else f"{count(len(own))} (eager {count(len(eager))})"
    if not len(eager):
        return TimeOfSides(name, duration(median(own)), MISSING, MISSING, samples)
    medians = median(own), median(eager)
    speedup = ratio(medians[1] / medians[0]) if medians[0] else MISSING
    return TimeOfSides(name, duration(medians[0]), duration(medians[1]), speedup, samples)


def timing_finding(trial: Trial) -> str:
    """What the times say: "Host-bound: a pipelined step takes 1.3 ms, the device needs 830 us of it"."""
    method, bound = timing_method_of(trial), trial_bound(trial)
    if bound is None:
        return "Ungated times of a step" if method is TimingMethod.UNGATED else ""
    wall, device = duration(median(trial.wall_pipelined_ns)), duration(_loop_device_ns(trial))
    word = bound_word(bound).capitalize()
    return f"{word}: a pipelined step takes {wall}, of which the device needs {device}"


def trial_bound(trial: Trial) -> str | None:
    """`host` or `device`: what bounds this trial, by `db.metrics.device_times.bound_of`."""
    wall = median(trial.wall_pipelined_ns) if len(trial.wall_pipelined_ns) else None
    return bound_of(timing_method_of(trial), _loop_device_ns(trial), wall)


def _loop_device_ns(trial: Trial) -> float | None:
    """As `db.metrics.device_times.loop_device_ns`."""
    unflushed = trial.timing.side.unflushed_ns if trial.timing else None
    return unflushed or (median(trial.device_ns) if len(trial.device_ns) else None)


def timing_facts(side: TimingSide) -> dict[str, str]:
    """How one side was timed, by name; a dash for what is not known."""
    gate = side.gate
    inside = {True: "yes", False: "no", None: MISSING}
    clock = side.sm_clock_mhz
    return {
        "Method": str(side.method),
        "Gate": f"{words(gate.kind)}, {plural(gate.steps, 'step')}" if gate else MISSING,
        "Verified samples": _verified(gate) if gate else MISSING,
        "Retries": count(gate.retries) if gate else MISSING,
        "Launches per step": MISSING if side.launches is None else f"{side.launches:g}",
        "Synchronises inside": inside[side.synchronises],
        "Streams": count(side.streams),
        "Device time without a flush": duration(side.unflushed_ns),
        "Traced steps": _traced(side),
        "Steps per synchronisation": count(side.pipelined_steps),
        "SM clock (MHz)": MISSING if clock is None else " · ".join(f"{value:g}" for value in clock),
        "Clock limited by": ", ".join(side.throttle_reasons) or "nothing",
    }


def _traced(side: TimingSide) -> str:
    """Sessions of the device's own tracing: "8 of 10 whole", and why there is no time."""
    found = side.tracing
    if found is None:
        return MISSING
    problem = f": {found.problem}" if found.problem else ""
    return f"{count(found.whole)} of {count(found.sessions)} whole{problem}"


def _verified(gate: Gate) -> str:
    share = f" ({percent(gate.verified / gate.samples)})" if gate.samples else ""
    return f"{count(gate.verified)} of {count(gate.samples)}{share}"


def device_time_figures(trial: Trial) -> list[tuple[str, str]]:
    """How a GPU's steps were timed: method, gate, each time with eager's beside it, what bounds the trial."""
    times = device_times(trial)
    if not times:
        return []
    ungated = timing_method_of(trial) is TimingMethod.UNGATED
    figures = [("timing", UNGATED_MEANS if ungated else str(timing_method_of(trial)))]
    figures += [(each.name.lower(), _beside_eager(each)) for each in times]
    if trial_bound(trial):
        figures.append(("bound", bound_word(trial_bound(trial))))
    if trial.timing is not None:
        own = timing_facts(trial.timing.side)
        eager = timing_facts(trial.timing.control) if trial.timing.control else own
        for name in (
            *("Gate", "Verified samples", "Retries"),
            *("Launches per step", "SM clock (MHz)", "Clock limited by"),
        ):
            beside = "" if eager[name] == own[name] else f" (eager {eager[name]})"
            figures += [(f"  {name}", own[name] + beside)] if own[name] != MISSING else []
    return figures


def _beside_eager(time: TimeOfSides) -> str:
    beside = "" if time.eager == MISSING else f" (eager {time.eager}, {time.speedup})"
    return f"{time.own}{beside}, n = {time.samples}"


# What `show` and the Trial page say of a workload of several batches: names and texts, in order.


def stream_texts(facts: StreamFacts) -> list[tuple[str, str]]:
    """The figures of a stream, those that are known."""
    texts = [("batches per iteration", f"{count(facts.batches)} of {plural(facts.shapes, 'shape')}")]
    if facts.policy is not None:
        texts.append(("bucket policy", facts.policy))
    if facts.tokens is not None:
        texts.append(("tokens per iteration", count(facts.tokens)))
    if facts.padding_fraction is not None:
        computed = f"{count(facts.padded_tokens)} computed"
        texts.append(("padding waste", f"{percent(facts.padding_fraction)} of {computed}"))
    if facts.latency_per_token_ns is not None:
        own, eager = facts.latency_per_token_ns, facts.control_latency_per_token_ns
        texts.append(("latency per token", _streams_beside_eager(own, eager)))
    if len(facts.first_batches_ns) == facts.batches:
        eager_ns = sum(facts.control_first_batches_ns) or None
        texts.append(("first iteration", _streams_beside_eager(sum(facts.first_batches_ns), eager_ns)))
    if facts.compiles is not None:
        spent = sum(each.took_ns for each in facts.compiles)
        texts.append(("compilations in it", f"{count(len(facts.compiles))}, {duration(spent)} together"))
    return texts


def _streams_beside_eager(own_ns: float, eager_ns: float | None) -> str:
    return duration(own_ns) + (f" (eager {duration(eager_ns)})" if eager_ns else "")


def compile_texts(facts: StreamFacts) -> list[tuple[str, str]]:
    """Where and why something was compiled, a row for each time."""
    of = count(facts.batches)
    rows = []
    for each in facts.compiles or ():
        reason = f": {each.reason}" if each.reason else ""
        text = f"{each.part or MISSING}, {duration(each.took_ns)}{reason}"
        rows.append((f"batch {count(each.batch)} of {of}", text))
    return rows
