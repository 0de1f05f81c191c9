"""Every strategy on matched sets: geometric mean speedups, and what keeps a model out of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import Folded, TableColumn
from compilewatch.db import units
from compilewatch.db.metrics.eligibility import Excluded
from compilewatch.db.metrics.geomean import BOUNDED, NEEDED, geomeans_by_strategy
from compilewatch.db.metrics.groups import row_dicts

# Of the ninety columns of cases those that a mean needs.
_OF_CASES = ["task", "workload_id", "strategy_id", *NEEDED, "speedup", *BOUNDED]
_MEANS = {
    "task": TableColumn("Task"),
    "strategy": TableColumn("Strategy"),
    **parts.numbers({"matched": "Matched set (cases)", "naive": "Own set (cases)"}),
    "left_out": TableColumn("Left out of the matched set", wide=True),
}


def by_strategy(cases: pd.DataFrame) -> pd.DataFrame:
    """Geometric mean per task and strategy over the workloads that passed with every strategy of the task."""
    rows = [
        {
            "task": task,
            "strategy": name,
            "matched": mean.matched,
            "matched_interval": mean.matched_interval,
            "matched_cases": means.matched_cases,
            "naive": mean.naive,
            "naive_interval": mean.naive_interval,
            "naive_cases": mean.naive_cases,
            "left_out": _outside(means.left_out),
        }
        for task, means in geomeans_by_strategy(row_dicts(cases[_OF_CASES]))
        for name, mean in means.sides.items()
    ]
    return pd.DataFrame(rows)


def _outside(left_out: Iterable[Excluded]) -> str:
    """Every workload outside a matched set of strategies, with the strategies that keep it out and why."""
    sides_by_reason: dict[str, dict[str, list[str]]] = {}
    for case in left_out:
        sides_by_reason.setdefault(case.workload, {}).setdefault(case.reason, []).append(str(case.side))
    reasons_of = {
        workload: "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        for workload, reasons in sides_by_reason.items()
    }
    return ", ".join(f"{workload} ({why})" for workload, why in reasons_of.items())


def strategy_means(cases: pd.DataFrame) -> tuple[Folded, ...]:
    """`by_strategy` as a table for whoever opens it; nothing where no compiled case has a speedup."""
    means = by_strategy(cases)
    if means.empty:
        return ()
    texts: dict[str, Any] = {
        name: [
            f"{_mean_text(mean, ends)} ({units.count(n)})" if n else units.MISSING
            for mean, ends, n in zip(
                *(means[column] for column in (name, f"{name}_interval", f"{name}_cases")), strict=True
            )
        ]
        for name in ("matched", "naive")
    }
    frame = means.assign(**texts, left_out=means["left_out"].replace({"": "none"}))
    note = (
        "Matched: workloads that passed with every strategy of the task. Own set: whatever each strategy "
        "passed; it rises when slow cases fail. In brackets the 95 % interval over the trials of these cases."
    )
    alt = "Geometric mean speedup per task and strategy, on the matched set and on each strategy's own set"
    title = "Geometric mean speedup by strategy"
    return parts.folded(parts.table("overview-geomeans", alt, frame, _MEANS, title=title, note=note))


def _mean_text(mean: float, ends: tuple[float, float] | None) -> str:
    bounds = f" [{units.interval(*ends, units.ratio)}]" if ends else ""
    return f"{units.ratio(mean)}{bounds}"
