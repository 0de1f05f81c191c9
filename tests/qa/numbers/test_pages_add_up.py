"""Over random histories no page contradicts itself: ratios are quotients of what stands beside them, totals
sums of their parts, points of charts those of their tables, and headlines count what tables show.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.break_even import content as break_even
from compilewatch.dashboard.pages.cold_start import content as cold_start
from compilewatch.dashboard.pages.modes import content as modes
from compilewatch.dashboard.pages.overview import content as overview
from compilewatch.dashboard.pages.registry import CONTENTS
from compilewatch.dashboard.pages.upgrade import content as upgrade
from compilewatch.dashboard.pages.workload import history as trends
from compilewatch.dashboard.parts.parts import (
    Chart,
    Lines,
    PageContent,
    PageHeadline,
    Pairs,
    Part,
    Table,
    flat,
    named,
)
from compilewatch.dashboard.read.data import filters_of, newest_build, read_builds, read_choices
from compilewatch.dashboard.read.database import close_databases
from compilewatch.dashboard.verdicts.pair import with_builds
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.judge import decide
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.metrics.geomean import geomean
from compilewatch.db.records.ids import build_identity
from compilewatch.db.records.people import TriageState
from compilewatch.db.service.recording import record_comparison, triage
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.verdicts.gateway import compare
from tests.builders import MS, START
from tests.dashboard.conftest import DATABASE
from tests.qa.numbers.histories import History, numbered, store
from tests.qa.numbers.page_numbers import (
    DIGITS,
    agree,
    charts,
    figures,
    first_numbers,
    pairs,
    rows,
    tables,
    value,
)

PAGES: dict[Page, Callable[[Link], PageContent]] = {
    Page.OVERVIEW: overview.page,
    Page.UPGRADE: upgrade.page,
    Page.MODES: modes.page,
    Page.BREAK_EVEN: break_even.page,
    Page.COLD_START: cold_start.page,
    Page.WORKLOAD: trends.page,
}
PASSING = ("pass", "ran, numbers not checked")


def quotients(page: PageContent) -> Iterator[tuple[str, float, float]]:
    """Every ratio beside what it is a quotient of: where it stands, what is shown, what it must be."""
    for key, frame in tables(page).items():
        for row in rows(frame):
            found = {name: value(text) for name, text in row.items()}
            for ratio, above, below in (
                ("speedup", "eager", "latency"),
                ("ratio", "eager", "value"),
                ("speedup", "eager", "own"),
            ):
                known = [found.get(name) for name in (ratio, above, below)]
                if all(known):
                    yield key, known[0], known[1] / known[2]  # type: ignore[misc,operator]
            base, head, change = (found.get(name) for name in ("base", "head", "change"))
            if base and head and change is not None:
                # As changes: a fall of 99.4 % has few digits left of what remains.
                off = abs(change - (head / base - 1))
                assert off <= 3 * DIGITS * (abs(change) + head / base), f"{key}: {row}"
            sides = [value(each) for each in str(row.get("speedup", "")).split(" → ")]
            ratios = found.get("eager_ratio"), found.get("compiled_ratio")
            if len(sides) == 2 and all(sides) and all(ratios):
                yield f"{key} sides", sides[1] / sides[0], ratios[0] / ratios[1]  # type: ignore[operator]


def check_quotients(page: PageContent) -> None:
    for where, shown, quotient in quotients(page):
        assert agree(shown, quotient), f"{page.link.page} {where}: {shown} is not {quotient}"


def check_today(page: PageContent, other: PageContent | None, trials: History) -> None:
    """`other` is Upgrade between the same builds, in latency."""
    parts = list(flat(page.parts))
    said = parts[0]
    assert isinstance(said, PageHeadline)
    cases = tables(page)["cases"]
    mine = [each for each in trials if build_identity(each.build) == page.link.build]
    last = max(mine, key=lambda each: (each.started_at, each.run_id)).run_id
    failed = {
        (each.workload.name, each.strategy.name)
        for each in mine
        if each.run_id == last and each.failure is not None
    }
    listed = [part for part in parts if isinstance(part, Table) and part.key == "overview-failed"]
    more = sum(int(found[1]) for part in listed if (found := re.match(r"(\d+) more", part.note)))
    assert sum(len(part.frame) for part in listed) + more == len(failed)
    # Of each model the largest speedup, of eager 1, by task.
    fastest: dict[str, dict[str, float]] = {}
    for case in page.data()["cases"]:
        if case["strategy"] != "eager" and case["speedup"] is not None:
            of_task = fastest.setdefault(case["task"], {})
            of_task[case["workload_id"]] = max(of_task.get(case["workload_id"], 1.0), case["speedup"])
    paid = [part for part in parts if isinstance(part, Pairs) and part.key == "overview-pays"]
    shown = {
        name.partition(",")[0]: value(str(text).partition(",")[0])
        for part in paid
        for name, text in part.pairs.items()
    }
    assert shown.keys() - {"slower than eager"} == fastest.keys()
    for task, speedups in fastest.items():
        assert agree(shown[task] or 0.0, geomean(speedups.values()) or 0.0), task
    drawn = charts(page)["overview-models"].get("main", pd.DataFrame())
    if "speedup_text" in drawn:
        compiled = [row for row in rows(cases) if row["strategy"] != "eager" and value(row["speedup"])]
        assert {(row["workload"], row["strategy"], row["speedup_text"]) for row in rows(drawn)} == {
            (row["workload"], row["strategy"], row["speedup"]) for row in compiled
        }
    (tally,) = (part for part in parts if isinstance(part, Lines) and part.key == "tally")
    groups = grouped(other) if other is not None else Counter[str]()
    if not groups:
        assert not any(re.search(r"\d+ slower", line) for line in (*tally.lines, said.text)), tally.lines
    else:
        counted = _counted(tally.lines[1])
        assert {name: counted.get(name, 0) for name in GROUPS} == {name: groups[name] for name in GROUPS}
        of_models = _counted(tally.lines[0])
        assert of_models["slower"] <= groups["slower"]
        assert bool(of_models["slower"]) is bool(groups["slower"])
        assert Counter(drawn["group"])["slower"] == of_models["slower"]
        if first := re.match(r"(\d+) models? slower", said.text):
            assert int(first[1]) == of_models["slower"]


def _counted(line: str) -> dict[str, int]:
    return {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", line)}


GROUPS = ("slower", "faster", "unchanged", "undecided")


def grouped(upgrade_page: PageContent) -> Counter[str]:
    """Cases by what became of them in latency; counted here once more."""
    verdicts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key in ("verdicts-moved", "verdicts-still"):
        for row in rows(tables(upgrade_page).get(key, pd.DataFrame())):
            verdicts.setdefault((row["workload"], row["strategy"]), []).append(row)
    return Counter(_group(each) for each in verdicts.values())


def _group(verdicts: list[dict[str, Any]]) -> str:
    if any(row["metric"] == "Numerics" and not row["head"].startswith(PASSING) for row in verdicts):
        return "failing"
    ways = {"regressed": "slower", "improved": "faster", "unchanged": "unchanged"}
    tones = [row["tone"] for row in verdicts if row["metric"] == METRICS["latency"].name]
    return ways.get(tones[0], "undecided") if tones else "undecided"


def check_upgrade(page: PageContent) -> None:
    (said,) = named(page.parts, "verdict")
    assert isinstance(said, PageHeadline)
    every = tables(page)
    compared, total = map(int, re.findall(r"\d+", figures(page)["Cases compared"]))
    left_out = len(every["left-out"]) if "left-out" in every else 0
    assert total == compared + left_out
    if "upgrade-cases" not in every:
        return
    table, drawn = every["upgrade-cases"], charts(page)["upgrade-forest"].get("main", pd.DataFrame())
    points = {(row["workload"], row["strategy"]): row["change_text"] for row in rows(drawn)}
    listed = {(row["workload"], row["strategy"]): row["change"] for row in rows(table)}
    assert all(text == listed[case] for case, text in points.items() if value(text) is not None)
    # A model has a row, by one of its cases; the table has them all.
    assert sum(row["cases"] for row in rows(drawn)) == len(listed)
    known = [row for row in rows(table) if value(row["change"]) is not None]
    summary = rows(every["upgrade-summary"]) if "upgrade-summary" in every else []
    assert sum(int(row["cases"]) for row in summary) == len(known)
    for row in summary:
        mine = [1 + (value(each["change"]) or 0) for each in known if each["tone"] == row["tone"]]
        assert int(row["cases"]) == len(mine)
        assert (geomean(mine) or 1) - 1 == pytest.approx(value(row["mean"]), abs=0.01)


def check_break_even(page: PageContent) -> None:
    plan = {row["strategy"]: row for row in rows(tables(page).get("break-even-table", pd.DataFrame()))}
    shown = figures(page)
    if not plan or "Total per day" not in shown:
        return
    steps, processes = page.link.steps, page.link.restarts + 1
    for name, row in plan.items():
        step, day, cost, against = (value(row[key]) for key in ("step", "day", "cost", "against"))
        if day and step:
            total = processes * ((cost or 0.0) + steps * step)
            assert math.isclose(day, total, rel_tol=4 * DIGITS), f"{name}: {day} is not {total}"
            eager = value(plan["eager"]["day"]) if "eager" in plan else None
            if against and eager:
                assert abs(against - (day - eager)) <= 4 * DIGITS * (eager + day), f"{name}: {against}"
    # Where eager was measured beside compiled code alone, it has no row.
    if best := plan.get(shown["Fastest overall"]):
        assert shown["Total per day"] == best["day"]
        assert best["strategy"] == "eager" or best["strategy"] in page.headline


def check_modes(page: PageContent) -> None:
    drawn = charts(page)["modes-map"].get("main", pd.DataFrame())
    cells = {(row["workload"], row["strategy"]): row for row in rows(drawn)}
    cases = {(row["workload"], row["strategy"]): row for row in rows(tables(page)["cases"])}
    for case, row in cases.items():
        if case in cells and value(row["speedup"]) and row["strategy"] != "eager":
            assert cells[case]["text"] == row["speedup"]


def check_cold_start(page: PageContent) -> None:
    frames = charts(page)["cold-start-bars"]
    if not len(frames.get("main", ())):
        return
    main = frames["main"]
    sums = (main["right"] - main["left"]).groupby([main["row"], main["start"]]).sum().to_dict()
    for row in rows(frames["ends"]):
        assert math.isclose(sums[row["row"], row["start"]], row["seconds"], rel_tol=0.02), row


def check_trends(page: PageContent) -> None:
    points = charts(page)["trend"].get("main", pd.DataFrame())
    table = tables(page).get("trend-points", pd.DataFrame())
    assert sorted(points.get("value_text", [])) == sorted(table.get("value", []))


def check_trials(page: PageContent, trials: History) -> None:
    """The list of trials."""
    table = tables(page)["trial-table"]
    assert first_numbers(page.headline) == [len(table), sum(table["status"] == "failed")]
    assert sorted(table["trial"]) == sorted(each.trial_id for each in trials)
    assert table["started"].is_monotonic_decreasing


def check_trial(page: PageContent, row: dict[str, Any]) -> None:
    """One trial, and its `row` in the list."""
    shown = figures(page)
    if row["status"] == "failed":
        assert row["why"].startswith(page.headline.split(": ", 1)[1])
        return
    assert shown["Latency (p50)"] == row["latency"]
    assert row["latency"] in page.headline
    assert shown.get("Speedup", units.MISSING) == row["speedup"]
    assert shown.get("Eager control (p50)", units.MISSING) == row["eager"]
    assert shown.get("Speedup", "") in page.headline
    assert (shown["First result after"], shown["Peak memory"]) == (row["first"], row["peak"])
    if "Speedup" in shown:
        speedup, eager, own = (
            value(shown[name]) for name in ("Speedup", "Eager control (p50)", "Latency (p50)")
        )
        assert agree(speedup or 0, (eager or 0) / (own or 1))
    frames = charts(page)
    samples, medians = frames["trial-samples"]["main"], frames["trial-samples"]["medians"]
    for name, text in ((row["strategy"], row["latency"]), ("eager", row["eager"])):
        mine = samples.loc[samples["strategy"] == name, "ms"]
        if len(mine) and text != units.MISSING:
            drawn = float(medians.loc[medians["strategy"] == name, "ms"].iloc[0])
            assert drawn == pytest.approx(mine.median())
            assert agree(value(text) or 0, drawn * MS)
    shares = frames["trial-distribution"]["main"].groupby("strategy")["share"].sum()
    assert shares.to_list() == pytest.approx([1.0] * len(shares))
    phases = tables(page)["trial-phases"]
    times = [value(text) or 0 for text in phases["time"]]
    assert phases["share"].sum() == pytest.approx(100)
    assert math.isclose(sum(times), value(shown["First result after"]) or 0, rel_tol=3 * DIGITS)
    for took, share in zip(times, phases["share"], strict=True):
        assert share == pytest.approx(100 * took / sum(times), abs=0.3)
    memory = {name: value(text) for name, text in pairs(page, "Memory").items()}
    ratio, eager = memory["Memory ratio (eager / this)"], memory["Peak of eager"]
    if ratio and eager:
        assert agree(ratio, eager / (memory["Peak while running"] or 1))


def check_runs(page: PageContent, trials: History) -> None:
    every = tables(page)
    runs, machines = every["runs-table"], every["runs-machines"]
    running = int(sum(runs["state"] == "▶ running"))
    assert first_numbers(page.headline) == ([running] if running else [])
    lines = [
        line for part in named(page.parts, "runs-progress") if isinstance(part, Lines) for line in part.lines
    ]
    assert len(lines) == running
    assert runs["trials"].sum() == machines["trials"].sum() == len(trials)
    assert (
        runs["failed"].sum() == machines["failed"].sum() == sum(each.failure is not None for each in trials)
    )
    for row in rows(runs):
        if row["planned"] == row["planned"] and row["planned"] is not None:
            assert row["progress"] == pytest.approx(min(100, 100 * row["trials"] / row["planned"]))
        assert row["started_at"] == min(each.started_at for each in trials if each.run_id == row["run_id"])


_OF_CHANGES = re.compile(r"(\d+)(?: changes?)? (need|ha|look|is closed|are closed)")


def check_regressions(page: PageContent) -> None:
    """What is recorded, else what the judge says of the newest run."""
    every = tables(page)
    said = page.parts[0]
    key = next((key for key in every if key.startswith("inbox-")), None)
    if key is None:
        if isinstance(said, PageHeadline) and "regressions-now" in every:
            assert first_numbers(said.text) == [len(every["regressions-now"])]
        elif isinstance(said, PageHeadline):
            assert not re.match(r"[1-9]", said.text), "what regressed has a table"
        return
    cases, changes = every[key], next(table for name, table in every.items() if name.startswith("changes-"))
    states = Counter(text.split(" ", 1)[1] for text in cases["state"])
    (counted,) = (
        line for part in named(page.parts, "counted") if isinstance(part, Lines) for line in part.lines
    )
    assert first_numbers(counted)[:2] == [len(cases), len(changes)]
    assert {state: int(number) for number, state in re.findall(r"(\d+) (\w+)(?:, |\.$)", counted)} == states
    assert changes["cases"].map(int).sum() == len(cases)
    said = {word: int(number) for number, word in _OF_CHANGES.findall(page.headline)}
    assert sum(said.values()) == len(changes)
    assert said.get("need", 0) == (changes["owner"] == "nobody").sum()
    waits = [text.split(" ", 1)[1] in ("new", "confirmed", "acknowledged") for text in cases["state"]]
    is_gone = [now.startswith("gone") for now in cases["now"]]
    is_open = [wait and not gone for wait, gone in zip(waits, is_gone, strict=True)]
    assert any(is_open) == bool({"need", "ha"} & said.keys())
    assert any(wait and gone for wait, gone in zip(waits, is_gone, strict=True)) >= ("look" in said)
    if "regression-case-numbers" in every:
        check_evidence(page)


def check_evidence(page: PageContent) -> None:
    """The points of the strip are the trials that the numbers are of. A failed one has a status for its
    numerics and no point: it is counted below the strip.
    """
    numbers = tables(page)["regression-case-numbers"].iloc[0]
    strip = next(iter(named(page.parts, "regression-case-strip")), None)
    if not isinstance(strip, Chart):
        return
    drawn = strip.chart.frames["main"]
    eager = drawn["lane"].str.endswith("· eager")
    lanes = drawn.loc[eager if eager.all() else ~eager, "lane"]
    counts = [int(lanes.str.startswith(f"{side} ").sum()) for side in ("base", "head")]
    compared = first_numbers(numbers["trials"])[:2]
    if numbers["metric"] != METRICS["numerics"].name:
        assert compared == counts, numbers.to_dict()
        means = strip.chart.frames["middles"].set_index("lane")["value"]
        for side in ("base", "head") if numbers["metric"] == METRICS["latency"].name else ():
            (mean,) = (
                each for lane, each in means.items() if lane.startswith(f"{side} ") and lane in {*lanes}
            )
            assert agree(1e6 * mean, value(numbers[side]) or 0.0), numbers.to_dict()
        return
    (left_out,) = first_numbers(" ".join(strip.chart.notes)) or [0]
    assert sum(compared) <= sum(counts) + left_out, numbers.to_dict()
    assert all(point <= trial for point, trial in zip(counts, compared, strict=True)), numbers.to_dict()


def record(database: Database, machine: str) -> bool:
    """Record what the judge says of the newest build against the one before; whether anything regressed."""
    keys = list(read_builds(filters_of(Link(machine=machine))))
    if len(keys) < 2:
        return False
    base, head = (Selection(name=key, build_ids=(key,)) for key in keys[-2:])
    comparison = compare(database, base, head, machine_id=machine)
    record_comparison(database, comparison, at=START)
    standing = standing_regressions(database)
    for each, state in zip(standing, (TriageState.ACKNOWLEDGED, TriageState.EXPECTED), strict=False):
        triage(database, each.regression.regression_id, TriageEvent(state=state, author="ann", at=START))
    return bool(standing)


def check(template: Path, trials: History, folder: Path, number: int) -> None:
    """Every page over `trials`."""
    path = folder / f"{number}.db"
    url = store(trials, template, path)
    with pytest.MonkeyPatch.context() as patch, open_database(url) as database:
        patch.setenv(DATABASE, url)
        machine = read_choices().newest_machine
        build = newest_build(filters_of(Link(machine=machine)))
        found: dict[Page, PageContent] = {}
        for page, content_of in PAGES.items():
            link = Link(page=page, machine=machine, build=None if page is Page.WORKLOAD else build)
            if page is Page.UPGRADE:
                pair = with_builds(
                    Link(page=page, machine=machine, head=build, metric="latency", group=decide.GROUPS)
                )
                if not (pair.base and pair.head):
                    continue
                link = pair
            found[page] = content_of(link)
            check_quotients(found[page])
        check_today(found[Page.OVERVIEW], found.get(Page.UPGRADE), trials)
        if Page.UPGRADE in found:
            check_upgrade(found[Page.UPGRADE])
        check_others(database, trials, str(machine))
        for page, more in (
            (Page.BREAK_EVEN, check_break_even),
            (Page.MODES, check_modes),
            (Page.COLD_START, check_cold_start),
            (Page.WORKLOAD, check_trends),
        ):
            parts: tuple[Part, ...] = found[page].parts
            if any(isinstance(part, Table | Chart) for part in parts):
                more(found[page])
        close_databases()
    path.unlink()


def check_others(database: Database, trials: History, machine: str) -> None:
    """The pages Trial, Runs and Regressions."""

    def shown(page: Page, **more: Any) -> PageContent:
        content = CONTENTS[page](Link(page=page, machine=machine, **more))
        check_quotients(content)
        return content

    every = shown(Page.TRIAL)
    check_trials(every, trials)
    for row in tables(every)["trial-table"].groupby(["strategy", "status"]).head(1).to_dict("records"):
        check_trial(shown(Page.TRIAL, trial=row["trial"]), row)
    check_runs(shown(Page.RUNS), trials)
    check_regressions(shown(Page.REGRESSIONS))
    if record(database, machine):
        for each in standing_regressions(database)[:3]:
            check_regressions(shown(Page.REGRESSIONS, regression=(each.regression.regression_id,)))
        check_regressions(shown(Page.REGRESSIONS, state=("new",)))


@pytest.mark.parametrize(
    "numbers", [range(2), pytest.param(range(2, 500), marks=[pytest.mark.slow, pytest.mark.timeout(7200)])]
)
def test_numbers_add_up(template: Path, tmp_path: Path, numbers: range) -> None:
    for number in numbers:
        if trials := numbered(number, machines=1):
            check(template, trials, tmp_path, number)
