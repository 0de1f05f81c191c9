"""Both builds of a case side by side: cold start by phase, kernels by family, memory, breaks, recompiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from dashboard.charts import cold_start
from dashboard.parts import parts
from dashboard.parts.column_units import UnitCell, quantity
from dashboard.parts.parts import Table, TableColumn
from dashboard.read.data import read_trial, read_trials, starts_of
from dashboard.verdicts.evidence_charts import side_trials
from dashboard.verdicts.tables import SIDES
from db.cause.families import classify
from db.columns.metrics import METRICS
from db.judge.results import BuildSide, CaseKey, Row
from db.queries.filters import Filters
from db.records.sampling import Profile
from db.records.vocabulary import Metric

_PROFILES_AMONG = 5
_COUNTED = (Metric.PEAK_MEMORY, Metric.GRAPH_BREAKS, Metric.RECOMPILES)
_COLUMNS = {
    "what": TableColumn("What", pinned=True),
    "change": TableColumn("Change", numeric=True, unit="change"),
    **SIDES,
    "of": TableColumn("Of"),
}
_NOTE = "Phases: means over passed trials. Kernels: a step's longest by family, where it was profiled."


def side_by_side(
    filters: Filters, sides: Sequence[BuildSide], case: CaseKey, rows: Sequence[Row]
) -> tuple[Table, ...]:
    """What base and head of `case` consist of, a row per part, the largest first within each kind. `rows` are
    the verdicts on it, `filters` let both sides through; nothing where no part is known.
    """
    trials = read_trials(filters)
    of_sides = [side_trials(trials, side, case) for side in sides]
    phases = [_phases(trials) for trials in of_sides]
    families = [_families(trials) for trials in of_sides]
    shown = [
        *_compared("Cold start", *phases),
        *_compared("Kernels", *families),
        *_judged(rows),
    ]
    alt = "Cold start by phase, kernels by family, memory, graph breaks and recompiles of base and head"
    frame = pd.DataFrame(shown, columns=list(_COLUMNS))
    return parts.table(
        "upgrade-side-by-side", alt, frame, _COLUMNS, title="Both builds side by side", note=_NOTE
    )


def _phases(trials: pd.DataFrame) -> dict[str, float]:
    """Phase -> nanoseconds."""
    starts = starts_of(trials)
    bars = cold_start.frame(starts, {str(key): str(key) for key in trials["workload_id"]})
    return dict(zip(bars["phase"].tolist(), bars["mean_ns"].tolist(), strict=True))


def _families(trials: pd.DataFrame) -> dict[str, float]:
    """Family of kernels -> nanoseconds of a step, by the newest profile among the newest trials."""
    newest = trials.sort_values("started_at", ascending=False)["trial_id"].head(_PROFILES_AMONG)
    profiles = (read_trial(str(trial_id)).profile for trial_id in newest)
    profile: Profile | None = next(filter(None, profiles), None)
    spent: Counter[str] = Counter()
    for entry in profile.own.top if profile else ():
        spent[classify(entry.name).family.value] += entry.self_ns
    return dict(spent)


def _compared(
    of: str, base: Mapping[str, float], head: Mapping[str, float]
) -> Iterator[tuple[str, float | None, UnitCell, UnitCell, str]]:
    """A row per part of either side; where one side has none at all, its cells are empty."""
    order = sorted({*base, *head}, key=lambda part: -max(base.get(part, 0.0), head.get(part, 0.0)))
    for part in order:
        before, after = (side.get(part, 0.0) if side else None for side in (base, head))
        change = after / before - 1 if before and after is not None else None
        yield part, change, UnitCell(before, "ns"), UnitCell(after, "ns"), of


def _judged(rows: Sequence[Row]) -> Iterator[tuple[str, float | None, UnitCell, UnitCell, str]]:
    """As they were compared."""
    for row in rows:
        if row.metric in _COUNTED:
            of = "Memory" if row.metric is Metric.PEAK_MEMORY else "Compiler"
            base, head = (quantity(row.metric, value) for value in (row.base, row.head))
            yield METRICS[row.metric].name, row.change, base, head, of
