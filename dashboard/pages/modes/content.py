"""What the tab Modes says: heat map, best strategy of each model, Pareto front, roofline; all of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pandas as pd

from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.pages.modes import charts
from compilewatch.dashboard.pages.modes.against import against_parts
from compilewatch.dashboard.pages.modes.roofline import roofline_parts
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import COLUMNS as FIGURES
from compilewatch.dashboard.parts.cases import (
    NO_DIFFERENCE,
    NO_FACTS,
    RATES,
    case_facts,
    case_row,
    cases_of,
    columns_of,
    floors_of,
    no_case,
    of_cases,
    row_of,
)
from compilewatch.dashboard.parts.model import facts, headline
from compilewatch.dashboard.parts.parts import (
    CASE_FACTS,
    LEFT_OUT,
    Chart,
    Folded,
    Lines,
    PageContent,
    PageHeadline,
    Part,
    Table,
    TableColumn,
    Tone,
    informative,
)
from compilewatch.dashboard.read.data import (
    filters_of,
    read_advice,
    read_profiled,
    read_rooflines,
    read_trial,
)
from compilewatch.dashboard.read.shaping import asides, labels_of, not_applicable
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.cause.sentences import why
from compilewatch.db.cause.trial_words import step_times
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.metrics.case_modes import choose_modes, fastest
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.identity import version_key
from compilewatch.db.records.sampling_facts import FEWEST_FOR_P99
from compilewatch.db.records.strategies import EAGER, sort_key
from compilewatch.db.verdicts import advice
from compilewatch.db.verdicts.case_view import Door
from compilewatch.db.verdicts.noise_floors import floor_sentence

_TOOLTIP_HAS_IT = "Where a name has no room, the tooltip has it."
GOALS = {"latency": "Latency", "steps": "A number of steps", "memory": "Memory"}
_COLUMNS: dict[str, dict[str, TableColumn]] = {
    "latency": {
        **parts.quantities("ratio", {"ratio": "Speedup"}),
        **parts.quantities("ns", {"value": "Latency"}),
        "rate": RATES["rate"],
        **parts.hidden(
            {**parts.quantities("ns", {"eager": "Eager latency"}), "eager_rate": RATES["eager_rate"]}
        ),
        "item": replace(RATES["item"], hidden=True),
    },
    "steps": parts.quantities(
        "ns", {"saved": "Saved against eager", "total": "Total time", "eager": "Eager total"}
    ),
    "memory": {
        **parts.quantities("ratio", {"ratio": "Eager peak / this peak"}),
        **parts.quantities("bytes", {"value": "Peak memory", "eager": "Eager peak"}),
    },
}
_CANDIDATES = {
    "candidate": TableColumn("Candidate", pinned=True),
    "trials": TableColumn("Trials", kind="number"),
    **parts.quantities("ratio", {"gain": "Against eager"}),
    **parts.texts({"interval": "95 % over the whole race", "stands": "Stands", "why": "Why"}),
}
_MOST_NAMED = 2
_DECIDE = ("speedup", "rate", "latency", "first", "steps")
_STRATEGIES: dict[str, TableColumn] = {
    "strategy": TableColumn("Strategy", pinned=True),
    **{name: FIGURES[name] for name in _DECIDE},
    **parts.hidden(
        {name: each for name, each in FIGURES.items() if name not in ("workload", "strategy", *_DECIDE)}
    ),
}
_NOISE_OF = {"latency": "latency", "steps": "latency", "memory": "peak_memory"}
# Per goal: the figure, the same of eager, and their ratio.
_FIGURES = {
    "latency": ("latency_ns", "control_latency_ns", "speedup"),
    "memory": ("peak_bytes", "control_peak_bytes", "memory_ratio"),
}


@cached
def page(link: Link) -> PageContent:
    """For the goal that `link` names: of all models which strategy for which, of one every strategy."""
    every, floors = cases_of(link), floors_of(link.machine)
    if every.empty:
        return of_cases((no_case(link),), every, link, floors)
    cases = every[every["workload_label"] == link.focus]
    if cases.empty:
        link = replace(link, focus=None)
    shown = _of_all(link, every, floors) if cases.empty else _of_one(link, cases, floors)
    return of_cases(shown, every if cases.empty else cases, link, floors)


def _of_all(link: Link, cases: pd.DataFrame, floors: Sequence[NoiseFloor]) -> tuple[Part, ...]:
    return (
        _headline(cases),
        _heat_map(cases, link),
        _best(cases, link, floors),
        *against_parts(link),
        *parts.folded(_percentiles(cases)),
        *_front(charts.front(cases)),
        *_roofline(link, cases),
        *parts.listed(LEFT_OUT, [str(aside) for aside in asides(cases)]),
        *_how_sure(cases, link),
    )


def _of_one(link: Link, cases: pd.DataFrame, floors: Sequence[NoiseFloor]) -> tuple[Part, ...]:
    rows = sorted(row_dicts(cases), key=lambda row: sort_key(row["strategy"]))
    return (
        *facts(link),
        headline(str(link.focus), cases),
        *parts.table(
            "modes-strategies",
            f"Every strategy on {link.focus}: speedup, throughput, latency, first result and break-even",
            pd.DataFrame([case_row(row, floors) for row in rows]),
            _STRATEGIES,
        ),
        *_advice(link, cases),
        *_front(charts.front(cases)),
        *_causes(link, rows),
        *against_parts(link),
        *parts.folded(_percentiles(cases)),
        *_roofline(link, cases),
        *parts.listed(LEFT_OUT, [str(aside) for aside in asides(cases)]),
        *parts.how_sure(*parts.notes([floor_sentence(floors) or ""])),
    )


def _advice(link: Link, cases: pd.DataFrame) -> tuple[Part, ...]:
    """What `compilewatch advise` found of the model when it last ended, whatever was measured since."""
    names = set(cases["workload"])
    found = read_advice(names.pop(), link.machine) if link.machine and len(names) == 1 else None
    if found is None or found[1].get("schema") != advice.SCHEMA:
        return ()
    began, document = found
    raced = pd.DataFrame(
        {name: row[name] for name in ("candidate", "trials", "gain", "stands")}
        | {
            "interval": advice.ends(row),
            "why": row["why"] if row["stands"] in ("worse", "wrong", "failed") else None,
        }
        for row in document["candidates"]
    )
    alt = "Every candidate that advise raced, the choice first"
    table = parts.table("modes-candidates", alt, raced, informative(_CANDIDATES, raced))
    candidates = Folded("Its candidates", lambda: table, "modes-raced")
    title = f"What advise found, {units.moment(began)}"
    return (
        *parts.listed(title, [*advice.answer(document), *advice.advice_lines(document)], key="modes-advice"),
        Lines(tuple(document["configuration"]), title="To keep it measured, in compilewatch.toml", code=True),
        candidates,
    )


def _causes(link: Link, rows: Sequence[Mapping[str, Any]]) -> tuple[Part, ...]:
    """Why each profiled strategy takes its time."""
    keys = {(row["workload_id"], row["strategy_id"]): row["strategy"] for row in rows}
    profiled = read_profiled(str(link.machine), tuple(keys)) if link.machine else {}
    lines = []
    for case, trial_id in profiled.items():
        trial = read_trial(trial_id)
        text = why(trial.profile, step_times(trial)) if trial.profile else ""
        lines += [f"{keys[case]}: {text}"] if text else []
    return parts.listed("Why it takes its time", lines, key="modes-causes")


def _heat_map(cases: pd.DataFrame, link: Link) -> Chart:
    reasons = not_applicable(cases, set(link.strategy))
    workloads = sorted(set(cases["workload_label"]), key=version_key)
    cells = charts.cells(cases, reasons, workloads)
    chart = ChartContent(
        _heat_map_finding(cases), notes=["Only eager was measured: measure a compiled strategy."]
    )
    if not cells.empty:
        chart = ChartContent(
            _heat_map_finding(cases),
            charts.spec(tuple(workloads), tuple(theme.ordered(cells["strategy"]))),
            {"main": cells},
        )
    return Chart(
        "modes-map",
        "Speedup over eager of every workload with every strategy, as numbers in cells",
        chart,
        "Speedup over eager: blue is faster, orange slower, grey has no number. *: nothing was compiled.",
    )


def _how_sure(cases: pd.DataFrame, link: Link) -> tuple[Part, ...]:
    """Which strategies mean nothing on this device."""
    reasons = not_applicable(cases, set(link.strategy)).items()
    lines = [f"{name} is not applicable on this device. {reason}." for name, reason in reasons]
    return parts.how_sure(*parts.notes(lines))


def _headline(cases: pd.DataFrame) -> PageHeadline:
    """How often each strategy is shown to be the fastest, eager among them."""
    winners = [each for each in map(fastest, _by_workload(cases).values()) if each.compared]
    if not winners:
        return PageHeadline("No compiled case has a speedup")
    labels = set(cases["workload_label"])
    every = units.plural(len(labels), "workload")
    shown = Counter(each.strategy for each in winners if not each.rivals)
    if not shown:
        return PageHeadline(f"{NO_DIFFERENCE.capitalize()} between strategies on {every}", "warning")
    wins = sorted(shown.items(), key=lambda item: (-item[1], sort_key(item[0])))
    said = [f"{name} {count}" for name, count in wins[:_MOST_NAMED]]
    others = sum(count for _, count in wins[_MOST_NAMED:])
    said += [f"others {others}"] if others else []
    open_ = len(winners) - sum(shown.values())
    said += [f"{NO_DIFFERENCE} {open_}"] if open_ else []
    silent = len(labels) - len(winners)
    said += [f"without a speedup {silent}"] if silent else []
    tone: Tone = "good" if wins[0][0] != EAGER.name else "bad"
    return PageHeadline(f"Fastest of {every}: {', '.join(said)}", tone)


def _heat_map_finding(cases: pd.DataFrame) -> str:
    """The largest of the speedups that are shown to be above eager."""
    known = cases[(cases["strategy"] != EAGER.name) & (cases["speedup_low"] > 1).fillna(False)]
    if known.empty:
        return f"Speedup over eager: {NO_DIFFERENCE}"
    top = max(row_dicts(known[["speedup", "strategy", "workload_label"]]), key=itemgetter("speedup"))
    return f"At most {units.ratio(top['speedup'])}: {top['strategy']} on {top['workload_label']}"


def _by_workload(cases: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """By label of workload, in order, the cases that passed."""
    found: dict[str, list[dict[str, Any]]] = {}
    # All rows at once: a frame for each workload costs more than all that is done with them.
    for case in row_dicts(cases[cases["status"] != "failed"]):
        found.setdefault(case["workload_label"], []).append(case)
    return dict(sorted(found.items()))


def _best(cases: pd.DataFrame, link: Link, floors: Sequence[NoiseFloor]) -> Table:
    numbers = _COLUMNS[link.goal]
    goal = units.plural(link.steps, "step") if link.goal == "steps" else GOALS[link.goal].lower()
    steps = link.steps if link.goal == "steps" else None
    frame = _best_rows(cases, link.goal) if steps is None else _best_for_steps(cases, steps)
    facts = [case_facts(fact, floors, _NOISE_OF[link.goal]) for fact in frame.pop("facts")]
    frame = pd.concat([frame, pd.DataFrame(facts, columns=list(CASE_FACTS), index=frame.index)], axis=1)
    return Table(
        "modes-best",
        f"Best strategy of every workload for {goal}, eager among them",
        frame,
        {
            "workload": parts.WORKLOAD,
            "strategy": TableColumn("Best strategy", explained="Whose interval clears all others."),
            **numbers,
            **parts.hidden(CASE_FACTS),
            "rivals": TableColumn("Not told apart from"),
            "options": TableColumn("Strategies compared", numeric=True, unit="count", hidden=True),
        },
        title=f"Best strategy for {goal}",
        note="" if len(frame) else "No case has the figures that this choice needs.",
    )


def _best_rows(cases: pd.DataFrame, goal: str) -> pd.DataFrame:
    """Per workload the compiled case with the largest ratio above 1, else eager itself."""
    value, of_eager, ratio = _FIGURES[goal]
    rows = []
    for label, mine in _by_workload(cases[cases[value].notna()]).items():
        found = fastest(mine, ratio)
        eager = next((case for case in mine if case["strategy"] == EAGER.name), None)
        if found.case is None and eager is None and not found.compared:
            continue
        # Where eager has no process of its own, it is that beside a compiled strategy.
        case = found.case or eager or mine[-1]
        own = case[value] if found.case or eager else case[of_eager]
        rows.append(
            {
                "workload": label,
                "strategy": NO_DIFFERENCE if found.rivals else found.strategy,
                "value": own,
                "eager": case[of_eager] if found.case else own,
                "ratio": case[ratio] if found.case else 1.0,
                **_rates(case, eager=found.case is None and case["strategy"] != EAGER.name),
                "rivals": ", ".join(name for name in (found.strategy, *found.rivals) if found.rivals),
                "facts": case,
                "options": found.compared + 1,
            }
        )
    return pd.DataFrame(rows, columns=["workload", "strategy", *_COLUMNS[goal], "rivals", "facts", "options"])


def _rates(case: dict[str, Any], *, eager: bool) -> dict[str, Any]:
    """Throughput of a case; with `eager` that of the eager beside it."""
    cells = row_of(case, names=RATES)
    return cells | {"rate": cells["eager_rate"], "eager_rate": None} if eager else cells


def _best_for_steps(cases: pd.DataFrame, steps: int) -> pd.DataFrame:
    chosen = choose_modes(cases, steps=steps)
    facts = dict(zip(_keys(cases), row_dicts(cases[list(NO_FACTS)]), strict=True))
    return pd.DataFrame(
        {
            "workload": chosen["workload_id"].map(labels_of(cases)),
            "strategy": chosen["strategy"].where(chosen["rivals"] == "", NO_DIFFERENCE),
            "total": chosen["total_ns"],
            "eager": chosen["eager_total_ns"],
            "saved": chosen["saved_ns"],
            "rivals": [
                f"{best}, {rivals}" if rivals else ""
                for best, rivals in zip(chosen["strategy"], chosen["rivals"], strict=True)
            ],
            "facts": [facts.get(key, NO_FACTS) for key in _keys(chosen)],
            "options": chosen["options"],
        }
    )


def _percentiles(cases: pd.DataFrame) -> tuple[Table, ...]:
    """Percentiles of a step and both spreads, a row per case."""
    known = cases[cases["latency_ns"].notna()]
    ordered = sorted(row_dicts(known), key=lambda case: (case["workload_label"], sort_key(case["strategy"])))
    frame = pd.DataFrame([row_of(case, Door.PERCENTILES) for case in ordered])
    return parts.table(
        "modes-percentiles",
        "Percentiles and spread of a step's latency of every case",
        frame,
        parts.informative(columns_of(Door.PERCENTILES), frame),
        title="Percentiles of a step, and how far it scatters",
        note=f"Of each process, over processes. No p99 below {FEWEST_FOR_P99} steps a process.",
    )


def _keys(cases: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(cases[["workload_id", "strategy"]].itertuples(index=False, name=None))


def _roofline(link: Link, cases: pd.DataFrame) -> tuple[Part, ...]:
    """Of the cases on the page, and of eager beside them."""
    frame = read_rooflines(filters_of(link))
    shown = frame["strategy"].isin([*cases["strategy"], EAGER.name])
    return roofline_parts(frame[shown], labels_of(cases))


def _front(rows: pd.DataFrame) -> tuple[Chart, ...]:
    """Compile cost against speedup; nothing where no case has both."""
    if rows.empty:
        return ()
    best = rows[rows["best"]]
    finding = "Compile cost against speedup of every case"
    log = charts.spread_out(rows)
    # Of one model a point is a strategy.
    several = rows["workload"].nunique() > 1
    names = charts.names(rows if several else rows.assign(workload=rows["strategy"]), log=log)
    named = min(map(len, names.values()))
    chart = ChartContent(
        finding,
        charts.pareto_spec(
            tuple(theme.ordered(rows["strategy"])),
            charts.ends(rows, log=log),
            log=log,
            looks=tuple(sorted(set(rows["first_look"]))),
        ),
        {"main": rows, "front": best, **names},
        [_TOOLTIP_HAS_IT] if named < len(rows) else [],
    )
    return (
        Chart(
            "modes-pareto",
            "Compile cost against speedup of every compiled case, with the Pareto front of each workload",
            chart,
            "Up and to the left is better; the line at 1x is eager. Each dashed line is the front of one "
            "workload: its strategies that are faster than eager and that no cheaper one outruns.",
        ),
    )
