"""What running jobs compile while somebody waits: which rank, since when, on how many hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from compilewatch.db.records.hosts import JobEvent, JobState
from compilewatch.db.units import count, duration, plural

_NS_PER_S = 1_000_000_000
_NAMED = 4


def jobs_of(states: Iterable[JobState]) -> dict[str, list[JobState]]:
    """The processes of each job."""
    jobs: dict[str, list[JobState]] = defaultdict(list)
    for each in states:
        jobs[each.job].append(each)
    return dict(jobs)


def compiled_sentence(job: Sequence[JobState]) -> str | None:
    """On how many of its hosts a job compiled after it was ready; None where on none."""
    late = [each for each in job if each.compiles_after_ready]
    if not late:
        return None
    compiles, cost_ns = (
        sum(each.compiles_after_ready for each in late),
        sum(each.cost_after_ready_ns for each in late),
    )
    hosts, all_hosts = len({each.host for each in late}), len({each.host for each in job})
    return (
        f"compiled after ready on {count(hosts)} of {plural(all_hosts, 'host')}: "
        f"{plural(compiles, 'compilation')}, {duration(cost_ns)}"
    )


def compiled_lines(job: Sequence[JobState]) -> list[str]:
    """What processes compiled last after they were ready, those of the same in one line, the most expensive
    first.
    """
    alike: dict[Any, list[JobState]] = defaultdict(list)
    for each in job:
        if each.compiles_after_ready:
            newest = _newest(each)
            alike[newest and (newest.what, newest.request, newest.reason)].append(each)
    for together in alike.values():
        together.sort(key=lambda each: -each.cost_after_ready_ns)
    groups = sorted(alike.values(), key=lambda together: -_cost_ns(together))
    left_out = sum(map(len, groups[_NAMED:]))
    return [
        *map(_compiled_line, groups[:_NAMED]),
        *([f"and {plural(left_out, 'process')} more"] if left_out else []),
    ]


def _compiled_line(together: Sequence[JobState]) -> str:
    first, *others = together
    compiles = sum(each.compiles_after_ready for each in together)
    more = f" and {plural(len(others), 'other')}" if others else ""
    newest = f"; {text}" if (text := newest_text(first)) else ""
    cost = duration(_cost_ns(together))
    return f"{_place(first)}{more}: {plural(compiles, 'compilation')}, {cost}{newest}"


def _cost_ns(states: Sequence[JobState]) -> int:
    return sum(each.cost_after_ready_ns for each in states)


def _newest(state: JobState) -> JobEvent | None:
    return max(state.events, key=lambda each: each.number, default=None)


def newest_text(state: JobState) -> str | None:
    """What a process compiled last after it was ready."""
    newest = _newest(state)
    if newest is None:
        return None
    waiting = f", request {newest.request}" if newest.request else ""
    why = f": {newest.reason}" if newest.reason else ""
    return f"{newest.what or 'a function'}, {duration(newest.cost_ns)}{waiting}{why}"


def waiting_sentences(job: Sequence[JobState], now: datetime) -> list[str]:
    """Which process compiles now, since when, and how many ranks of its launch have ended as many steps.

    By steps and not by moments: a rank may end the step before after another began to compile the next.
    """
    return [
        f"{_place(each)} has compiled {each.compiling or 'a function'} for "
        f"{duration(_since_ns(each.compiling_since, now))}{_others(each, job, now)}"
        for each in job
        if each.is_live(now) and each.compiling_since is not None
    ]


def _others(compiling: JobState, job: Sequence[JobState], now: datetime) -> str:
    since = compiling.compiling_since
    if compiling.rank is None or since is None:
        return ""
    ranks = [
        each
        for each in job
        if each.launch == compiling.launch and each.rank is not None and each.process != compiling.process
    ]
    waiting = [
        each
        for each in ranks
        if each.is_live(now)
        and each.compiling_since is None
        and each.seen_at > since
        and each.steps == compiling.steps
    ]
    if not waiting:
        return ""
    return f" while {plural(len(waiting), 'rank')} {'wait' if len(waiting) > 1 else 'waits'}"


def job_rows(states: Sequence[JobState], now: datetime) -> list[dict[str, Any]]:
    """A row for each process: whether it runs, what it compiles now and what it compiled after ready."""
    return [
        {
            "job": each.job,
            "host": each.host,
            "rank": each.rank,
            "state": state_word(each, now),
            "compiling": each.compiling if each.is_live(now) else None,
            "since": _since_ns(each.compiling_since, now) if each.is_live(now) else None,
            "steps": each.steps,
            "compiles": each.compiles_after_ready,
            "cost": each.cost_after_ready_ns or None,
            "newest": newest_text(each),
            "hits": each.cache_hits,
            "misses": each.cache_misses,
            "bypasses": each.cache_bypasses,
            "dropped": each.dropped,
            "seen_at": each.seen_at,
        }
        for each in states
    ]


def state_word(state: JobState, now: datetime) -> str:
    """How a process is, by what it said last and when."""
    if state.ended:
        return "ended"
    if not state.is_live(now):
        return f"silent for {duration((now - state.seen_at).total_seconds() * _NS_PER_S)}"
    if state.compiling_since is not None:
        return "compiles"
    return "ready" if state.ready else "not ready yet"


def _place(state: JobState) -> str:
    return state.host if state.rank is None else f"rank {state.rank} on {state.host}"


def _since_ns(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else max(0.0, (now - since).total_seconds()) * _NS_PER_S
