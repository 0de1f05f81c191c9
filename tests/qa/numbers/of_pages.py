"""What pages tell: tables, charts, sentences, on the screen and frozen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from compilewatch.dashboard.links.links import Page
from compilewatch.dashboard.parts.parts import Chart, Figures, Lines, PageContent, Table, flat, named
from compilewatch.db.metrics.geomean import geomean
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.units import MISSING
from tests.qa.numbers.figures import Case, Figure, number, of_which, read, steps_told, tallies
from tests.qa.numbers.of_comparisons import BY_NAME, as_number

_OF_CASES = {
    "speedup": "speedup",
    "steps": "break-even",
    "cost": "compile cost",
    "latency": "latency",
    "memory": "peak memory",
    "first": "time to first result",
}
"""Columns of tables of cases, and what they hold."""
_OF_CHARTS = {"overview-models": "speedup_text", "models-speedups": "speedup_text", "modes-map": "text"}
NOT_A_CASE = ("no difference shown", "eager", MISSING)


def of_page(content: PageContent, machine: str, build: str, steps: int) -> Iterator[Figure]:
    """Figures of cases of one build."""
    page = content.link.page.value or "overview"
    cards = {
        each.title: each.text for part in content.parts if isinstance(part, Figures) for each in part.figures
    }
    filtered = (machine, build, *content.link.workload, str(content.link.suite))
    for part in flat((*content.parts, *content.appendix())):
        door = f"page {page}, {part.key}"
        if (
            isinstance(part, Table)
            and part.key == "cases"
            and not (content.link.workload or content.link.suite)
        ):
            cases = ((row["workload"], row["strategy"]) for row in part.frame.to_dict("records"))
            yield of_which(cases, (machine, build), door)
        if isinstance(part, Table) and part.key == "modes-best" and content.link.goal == "latency":
            yield from _of_fastest(content.headline, part.frame, filtered)
        if isinstance(part, Table) and part.key == "cold-start-table" and "First result, cold" in cards:
            yield from _of_starts(cards, part.frame, filtered)
        if isinstance(part, Table) and part.key == "break-even-table" and "Fastest overall" in cards:
            for strategy in set(part.frame["strategy"]) - {"eager"}:
                case = (str(content.link.focus), strategy)
                chosen = str(cards["Fastest overall"] == strategy)
                yield Figure(f"chosen at {steps} steps", case, (machine, build), f"page {page}, card", chosen)
        if isinstance(part, Table) and "strategy" in part.frame and part.key != "trial-table":
            for row in part.frame.to_dict("records"):
                case = (str(row.get("workload", content.link.focus)), row["strategy"])
                if case[1] not in NOT_A_CASE:
                    yield from _of_row(row, part, case, (machine, build), door, steps)
        if isinstance(part, Chart) and part.key in _OF_CHARTS:
            drawn = part.chart.frames.get("main", pd.DataFrame())
            # Where builds can be compared Today draws changes.
            for row in drawn.to_dict("records") if _OF_CHARTS[part.key] in drawn else ():
                case = (row["workload"], row["strategy"])
                shown = read(row[_OF_CHARTS[part.key]])
                if case[1] not in NOT_A_CASE and not isinstance(shown, str):
                    yield Figure("speedup", case, (machine, build), door, shown)


_FASTEST_ON = re.compile(r"(?<=[:,] )([\w+-]+|no difference shown) (\d+)(?=,|$)")


def _of_fastest(headline: str, best: pd.DataFrame, where: Case) -> Iterator[Figure]:
    """On how many workloads a strategy is the fastest, by the title of Modes and by its table."""
    counted = Counter(best.loc[best["options"] > 1, "strategy"])
    for strategy, said in _FASTEST_ON.findall(headline):
        for door, value in (("title", float(said)), ("table", float(counted[strategy]))):
            yield Figure("workloads where fastest", (strategy,), where, f"page modes, {door}", value)


def _of_starts(cards: Mapping[str, str], table: pd.DataFrame, where: Case) -> Iterator[Figure]:
    """The mean first result with an empty cache and with a filled one, by card and by table: of the cases
    that were started both ways, where there are any.
    """
    compiled = table[(table["strategy"] != "eager") & table["first"].notna()]
    of_cache = {
        cache: {
            (row["workload"], row["strategy"].removesuffix("+warm")): number(row["first"])
            for row in compiled[compiled["cache"] == cache].to_dict("records")
        }
        for cache in ("cold", "warm")
    }
    both = of_cache["cold"].keys() & of_cache["warm"].keys()
    for cache, firsts in of_cache.items():
        mean = geomean(first for case, first in firsts.items() if case in both or not both)
        if (card := cards.get(f"First result, {cache}")) is not None:
            for door, value in (("card", read(card)), ("table", mean)):
                yield Figure(f"mean first result, {cache}", (), where, f"page cold start, {door}", value)


def _of_row(
    row: Mapping[str, Any], table: Table, case: Case, where: Case, door: str, steps: int
) -> Iterator[Figure]:
    for column, quantity in _OF_CASES.items():
        if column not in row or column not in table.columns:
            continue
        if table.columns[column].unit:
            known = number(row[column])
            if quantity == "break-even" and str(row.get("pays_off")).startswith(("never", "at best")):
                known = row["pays_off"]
            if quantity != "break-even" or known is not None:
                yield Figure(quantity, case, where, door, known)
        elif table.key == "cold-start-table":
            yield Figure(quantity, case, where, door, read(row[column]))
    if table.key == "break-even-table":
        yield Figure(f"total of {steps} steps", case, where, door, number(row["day"]))


def of_comparison(content: PageContent, selection: Case) -> Iterator[Figure]:
    """Upgrade, and what Today says of the same two builds."""
    page = content.link.page.value or "overview"
    every = flat((*content.parts, *content.appendix()))
    lines = [line for part in every if isinstance(part, Lines) for line in part.lines]
    metric = content.link.metric if content.link.page is Page.UPGRADE else "latency"
    yield from tallies([*lines, content.headline], selection, f"page {page}", metric)
    for part in flat((*content.parts, *content.appendix())):
        door = f"page {page}, {part.key}"
        if isinstance(part, Table) and part.key in ("upgrade-cases", "verdicts-moved", "verdicts-still"):
            for row in part.frame.to_dict("records"):
                yield from _of_verdict(row, selection, door)
        if isinstance(part, Chart) and part.key == "overview-models":
            drawn = part.chart.frames.get("main", pd.DataFrame())
            for row in drawn.to_dict("records") if "change" in drawn else ():
                case = (row["workload"], row["strategy"])
                yield Figure("change of latency", case, selection, door, number(row["change"]))
        if isinstance(part, Chart) and part.key == "upgrade-forest":
            metric = content.link.metric
            drawn = part.chart.frames.get("main")
            for row in [] if drawn is None else drawn.to_dict("records"):
                # What stands there of a case that fails is that it fails.
                if row["group"] == "failing":
                    continue
                case = (row["workload"], row["strategy"])
                yield Figure(f"change of {metric}", case, selection, door, number(row["change"]))
                yield Figure(f"verdict on {metric}", case, selection, door, row["verdict"])


def of_values(content: PageContent, selection: Case) -> Iterator[Figure]:
    """The numbers of Upgrade, where some strategies are chosen: verdicts and tally are of these."""
    for figure in of_comparison(content, selection):
        if figure.quantity.startswith("change of ") or figure.quantity.endswith((" the base", " the head")):
            yield figure._replace(door=f"{figure.door} of a strategy")


def _of_verdict(row: Mapping[str, Any], selection: Case, door: str) -> Iterator[Figure]:
    case, metric = (row["workload"], row["strategy"]), BY_NAME[row["metric"]]
    for quantity, cell in (
        (f"{metric} of the base", row["base"]),
        (f"{metric} of the head", row["head"]),
        (f"change of {metric}", row["change"]),
    ):
        shown = as_number(read(cell)) if quantity.startswith("change") else read(cell)
        # A table of numbers has the words of what passed in the reason.
        if metric is Metric.NUMERICS and shown is None:
            continue
        yield Figure(quantity, case, selection, door, shown)
    yield Figure(f"verdict on {metric}", case, selection, door, row["tone"])


def of_steps(content: PageContent, machine: str) -> Iterator[Figure]:
    """How many steps the history of a machine shows."""
    lines = [line for part in flat(content.parts) if isinstance(part, Lines) for line in part.lines]
    yield from steps_told(lines, machine, f"page {content.link.page.value or 'overview'}")


_OF_CHANGES = re.compile(r"(\d+)(?: changes?)? (needs? an owner|ha(?:s|ve) an owner|looks? fixed)")


def of_inbox(content: PageContent) -> Iterator[Figure]:
    """The inbox: what later builds say of each regression; by its title how many changes wait for somebody
    and how many look fixed.
    """
    for part in flat(content.parts):
        if isinstance(part, Table) and part.key.startswith("inbox-"):
            for row in part.frame.to_dict("records"):
                case, where = (row["workload"], row["strategy"]), (row["machine"], row["metric"])
                said = read(row["now"])
                yield Figure("what a later build says", case, (*where, row["from"], row["to"]), "inbox", said)
    said = Counter({words: int(number) for number, words in _OF_CHANGES.findall(content.headline)})
    machines = tuple(filter(None, [content.link.machine]))
    fixed = said.pop("looks fixed", 0) + said.pop("look fixed", 0)
    yield Figure("changes that wait", (), machines, "title of the inbox", float(said.total()))
    yield Figure("changes that look fixed", (), machines, "title of the inbox", float(fixed))


def of_regression(content: PageContent, regression: str, case: Case) -> Iterator[Figure]:
    """What a later build says of a regression that a link chooses, and that it asks to be closed then."""
    about = named(content.parts, "regression-about")
    lines = [line for part in about if isinstance(part, Lines) for line in part.lines]
    found = next((_NOW.match(line) for line in lines if _NOW.match(line)), None)
    now = found[1] if found else None
    yield Figure("what a later build says", case, (regression,), "page of a regression", now)


_NOW = re.compile(r"It is ((?:gone|still there) with .+?)\.(?: Close it as fixed\.)?$")


def of_first_changes(content: PageContent, machine: str) -> Iterator[Figure]:
    """Today: how many changes of a machine are open, and how many look fixed, where it shows all."""
    (tally,) = (part for part in flat(content.parts) if isinstance(part, Lines) and part.key == "tally")
    (waiting,) = re.findall(r"([\d,]+) open changes?\b", " ".join(tally.lines))
    yield Figure("changes that wait", (), (machine,), "Today", read(waiting))
    table = next((part for part in flat(content.parts) if part.key == "overview-first"), None)
    if table is None:
        yield Figure("changes that look fixed", (), (machine,), "Today", 0.0)
    elif isinstance(table, Table) and "more in the inbox" not in (table.note or ""):
        fixed = sum(since.endswith(", close?") for since in table.frame["since"])
        yield Figure("changes that look fixed", (), (machine,), "Today", float(fixed))


def of_trend(content: PageContent, case: Case, selection: Case) -> Iterator[Figure]:
    """The steps marked on the chart of one case, and those to never, which a sentence beside it tells."""
    (chart,) = (part.chart for part in content.parts if isinstance(part, Chart) and part.key == "trend")
    changes = chart.frames.get("changes")
    says = [] if changes is None else changes["says"].tolist()
    marked = sum(each.startswith(f"{case[1]} ") for each in says)
    marked += sum(f": {case[1]} never, " in note for note in chart.notes)
    yield Figure("changes", case, (*selection, content.link.axis), "page trends", marked)


def of_trials(content: PageContent) -> Iterator[Figure]:
    """The list of trials."""
    for part in flat(content.parts):
        if isinstance(part, Table) and part.key == "trial-table":
            for row in part.frame.to_dict("records"):
                for column in ("latency", "speedup"):
                    quantity = f"{column} of a trial"
                    yield Figure(quantity, (), (row["trial"],), "page trial", read(row[column]))
