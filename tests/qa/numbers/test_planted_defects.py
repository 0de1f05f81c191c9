"""Each contradiction that was seen once, planted anew at one door: the question to all doors finds it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import compilewatch.dashboard.api.badge
import compilewatch.dashboard.api.comparisons
import compilewatch.dashboard.api.stored
import compilewatch.dashboard.pages.break_even.content
import compilewatch.dashboard.pages.cold_start.content
import compilewatch.dashboard.pages.modes.content
import compilewatch.dashboard.pages.overview.headline
import compilewatch.dashboard.pages.overview.look_first
import compilewatch.dashboard.pages.regressions.content
import compilewatch.dashboard.read.data
import compilewatch.dashboard.server.charts
import compilewatch.dashboard.verdicts.headlines
import compilewatch.db.queries.comparison
import compilewatch.db.service.recording
import compilewatch.db.verdicts.case_view
import compilewatch.runner.cli.judge.compare
import compilewatch.runner.cli.judge.gate
import compilewatch.runner.cli.judge.judging
import compilewatch.runner.cli.stored.break_even
import compilewatch.runner.output.comparison_text
import compilewatch.runner.regressions.notify
from compilewatch.dashboard.parts.parts import PageHeadline
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.records.vocabulary import CauseClass, Metric, Verdict
from tests.qa.numbers.test_every_door import check

MOST = 40
"""In so many histories at most a defect is looked for."""


def changed(door: Any, name: str, change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """What `door` gets from its function `name`, changed."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        function = getattr(door, name)
        patch.setattr(door, name, lambda *args, **named: change(function(*args, **named)))

    return plant


def with_rows(change: Callable[[Row], dict[str, Any]]) -> Callable[[Comparison], Comparison]:
    """A comparison each of whose rows has something else."""

    def other(comparison: Comparison) -> Comparison:
        rows = tuple(row.model_copy(update=change(row)) for row in comparison.rows)
        return comparison.model_copy(update={"rows": rows})

    return other


def _blamed(row: Row) -> dict[str, Any]:
    moved = row.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)
    return {"verdict": Verdict.INCONCLUSIVE, "cause": CauseClass.MACHINE} if moved else {}


def _stretched(metric: Metric) -> Callable[[Row], dict[str, Any]]:
    def change(row: Row) -> dict[str, Any]:
        is_number = isinstance(row.head, float) and row.change is not None
        return (
            {"head": 1.02 * row.head, "change": 1.02 * (1 + row.change) - 1}
            # type: ignore[operator]
            if (row.metric is metric and is_number)
            else {}
        )

    return change


def _column(name: str) -> Callable[[Any], Any]:
    return lambda frame: frame.assign(**{name: frame[name] * 1.02}) if len(frame) else frame


def _other_speedups(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**case, "speedup": case["speedup"] * 1.02} for case in cases]


def _without_largest(comparison: Comparison) -> Comparison:
    said = tuple(each for each in comparison.sentences if not each.startswith("Largest: "))
    return comparison.model_copy(update={"sentences": said})


def _slower_too(text: str) -> str:
    return text.replace("0 slower", "2 slower")


def _turned_around(patch: pytest.MonkeyPatch) -> None:
    resolve = compilewatch.runner.cli.judge.compare.resolve_sides

    def other(base: str, head: str, *where: Any) -> Any:
        named = (head, base) if (base, head) == ("previous", "latest") else (base, head)
        return resolve(*named, *where)

    patch.setattr(compilewatch.runner.cli.judge.compare, "resolve_sides", other)


def _one_more(headline: PageHeadline) -> PageHeadline:
    text = re.sub(r"(?<= )(\d+)(?=,|$)", lambda found: str(int(found[1]) + 1), headline.text)
    return dataclasses.replace(headline, text=text)


def _of_all_caches(starts: Any) -> Any:
    if starts.cold_ns is None or starts.filled_ns is None:
        return starts
    return dataclasses.replace(starts, cold_ns=(starts.cold_ns * starts.filled_ns) ** 0.5)


def _never_chosen(document: dict[str, Any]) -> dict[str, Any]:
    return document | {"rows": [row | {"chosen": False} for row in document["rows"]]}


def _one_row_less(document: dict[str, Any]) -> dict[str, Any]:
    return document | {"rows": document["rows"][:-1]}


def _newest_instead(patch: pytest.MonkeyPatch) -> None:
    resolve = compilewatch.dashboard.server.charts.resolved_link

    def other(*args: Any) -> Any:
        link, _, more = resolve(*args)
        return link, (), more

    patch.setattr(compilewatch.dashboard.server.charts, "resolved_link", other)


def _one_more_open(patch: pytest.MonkeyPatch) -> None:
    headline = compilewatch.dashboard.pages.overview.headline
    counted = headline.counted

    def other(*args: Any, changes: int, **named: Any) -> Any:
        return counted(*args, changes=changes + 1, **named)

    patch.setattr(headline, "counted", other)


def _never_later(_database: Any, states: Any, *_: Any, **__: Any) -> Any:
    return tuple(states)


def _without_now(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        dataclasses.replace(part, lines=part.lines[:1]) if part.key == "regression-about" else part
        for part in parts
    )


def _all_unowned(headline: PageHeadline) -> PageHeadline:
    return dataclasses.replace(headline, text=re.sub(r"looks? fixed", "need an owner", headline.text))


JUDGED, SHOWN = compilewatch.runner.cli.judge.judging.gateway, compilewatch.dashboard.read.data
PLANTED: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "gate and compare put a slowdown of one's own code down to the machine": (
        "verdict on",
        changed(JUDGED, "compare", with_rows(_blamed)),
    ),
    "compare ends otherwise than its verdict": (
        "exit of",
        changed(compilewatch.runner.cli.judge.compare, "exit_code", lambda code: 2 - code),
    ),
    "the largest change is not said": ("largest change", changed(JUDGED, "compare", _without_largest)),
    "previous and latest are turned around": ("the newest two", _turned_around),
    "Today counts other cases as slower": (
        "tally in latency of",
        changed(compilewatch.dashboard.pages.overview.headline, "tallied", _slower_too),
    ),
    "the badge counts other cases as slower": (
        "tally in latency of",
        changed(compilewatch.dashboard.api.badge, "tallied", _slower_too),
    ),
    "a subject without a tally": (
        "tally in latency of",
        changed(compilewatch.runner.regressions.notify, "between", lambda text: text.partition(": ")[0]),
    ),
    "one upgrade with two changes": (
        "change of latency",
        changed(SHOWN, "compare", with_rows(_stretched(Metric.LATENCY))),
    ),
    "a speedup of the pages that Upgrade has not": (
        "speedup of",
        changed(compilewatch.dashboard.api.stored, "points_by_build", _column("speedup")),
    ),
    "steps to break even that differ between pages and commands": (
        "break-even of",
        changed(SHOWN, "summarize_cases", _column("break_even_steps")),
    ),
    "break-even of a comparison before it is rounded": (
        "break-even, estimated of",
        changed(JUDGED, "compare", with_rows(_stretched(Metric.BREAK_EVEN))),
    ),
    "a break-even that depends on which strategies are looked at": (
        "break-even, estimated of",
        lambda patch: patch.setattr(
            compilewatch.db.queries.comparison, "with_pooled_eager", lambda trials: trials
        ),
    ),
    "a card that chooses otherwise than the table": (
        "chosen at",
        changed(compilewatch.dashboard.api.comparisons, "break_even_document", _never_chosen),
    ),
    "cases that vanish from break-even": (
        "cases of",
        changed(compilewatch.runner.cli.stored.break_even, "break_even_document", _one_row_less),
    ),
    "Upgrade's chart has another verdict than its table": (
        "verdict on latency",
        changed(SHOWN, "compare", with_rows(_blamed)),
    ),
    "pages count other steps than the history": (
        "steps of",
        changed(
            SHOWN,
            "machine_steps",
            lambda steps: type(steps)(steps.groups[1:], *list(vars(steps).values())[1:]),
        ),
    ),
    "the newest machine's chart under another name": ("status of", _newest_instead),
    "one event is two regressions where the base is named": (
        "event of",
        lambda patch: patch.setattr(compilewatch.db.service.recording, "is_same_step", lambda *_: False),
    ),
    "the title of Modes counts other workloads than its table": (
        "workloads where fastest",
        changed(compilewatch.dashboard.pages.modes.content, "_headline", _one_more),
    ),
    "a run's break-even is that of all runs of its build": (
        "a run's value of",
        changed(compilewatch.dashboard.api.stored, "points_by_run", _column("break_even_steps")),
    ),
    "the list of cases has the cases of another set of trials": (
        "speedup of",
        changed(compilewatch.dashboard.api.stored, "listed_cases", _other_speedups),
    ),
    "the API has other trials than the list": (
        "latency of a trial of",
        changed(compilewatch.dashboard.api.stored, "trials_page", _column("latency_ns")),
    ),
    "steps are told on pages where never is possible too": (
        "break-even of",
        lambda patch: patch.setattr(compilewatch.db.verdicts.case_view, "is_shown", lambda _: True),
    ),
    "what a later build took back is still there by the API": (
        "what a later build says",
        lambda patch: patch.setattr(compilewatch.dashboard.api.stored, "with_later", _never_later),
    ),
    "what a later build took back is still there on the pages": (
        "what a later build says",
        lambda patch: patch.setattr(SHOWN, "with_later", _never_later),
    ),
    "a regression by itself does not say that it is gone": (
        "what a later build says",
        changed(compilewatch.dashboard.pages.regressions.content, "_regression", _without_now),
    ),
    "the inbox waits for what looks fixed": (
        "changes that",
        changed(compilewatch.dashboard.pages.regressions.content, "_headline", _all_unowned),
    ),
    "Today counts other changes as open than the inbox": ("changes that wait", _one_more_open),
    "Today does not ask to close what looks fixed": (
        "changes that look fixed",
        changed(
            compilewatch.dashboard.pages.overview.look_first,
            "_since",
            lambda text: text.removesuffix(", close?"),
        ),
    ),
    "cold and warm starts in one mean": (
        "mean first result",
        changed(compilewatch.dashboard.pages.cold_start.content, "mean_starts", _of_all_caches),
    ),
}


def _found(template: Path, folder: Path) -> Iterator[str]:
    for number in count():
        if number == MOST:
            return
        yield from check(template, folder, number)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("defect", PLANTED)
def test_a_planted_defect_is_found(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str
) -> None:
    quantity, plant = PLANTED[defect]
    plant(monkeypatch)
    first = next((line for line in _found(template, tmp_path) if quantity in line), None)
    print(defect, "->", first)
    assert first is not None
