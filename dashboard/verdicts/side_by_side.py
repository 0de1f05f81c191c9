"""Both builds of a case side by side: cold start by phase, kernels by family, memory and what it is held for,
breaks, recompiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from compilewatch.dashboard.charts import cold_start
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.column_units import UnitCell, quantity
from compilewatch.dashboard.parts.parts import Table, TableColumn
from compilewatch.dashboard.read.data import read_trial, read_trials, starts_of
from compilewatch.dashboard.verdicts.evidence import side_trials
from compilewatch.dashboard.verdicts.tables import SIDES
from compilewatch.db.cause.families import classify
from compilewatch.db.cause.memory_change import LISTED, named, on_both_sides
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.results import BuildSide, CaseKey, Row
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.sampling_facts import Profile
from compilewatch.db.records.trial import Memory, Trial
from compilewatch.db.records.vocabulary import Metric

_LOOKED_AT = 5
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
    newest = [_newest(trials) for trials in of_sides]
    families = [_families(records) for records in newest]
    shown = [
        *_compared("Cold start", *phases),
        *_compared("Kernels", *families),
        *_judged(rows),
        *_saved(*(_memory(records) for records in newest)),
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


def _newest(trials: pd.DataFrame) -> list[Trial]:
    newest = trials.sort_values("started_at", ascending=False)["trial_id"].head(_LOOKED_AT)
    return [read_trial(str(trial_id)) for trial_id in newest]


def _memory(records: Sequence[Trial]) -> Memory | None:
    """The newest that says what is saved for backward."""
    return next((each.memory for each in records if each.memory and each.memory.saved), None)


def _saved(
    base: Memory | None, head: Memory | None
) -> Iterator[tuple[str, float | None, UnitCell, UnitCell, str]]:
    """What forward passes save: how much, compiled and eager, then what differs most."""
    if base is None or head is None or base.saved is None or head.saved is None:
        return
    totals = [("Saved for backward", base.saved, head.saved)]
    if base.control_saved and head.control_saved:
        totals.append(("Saved by eager", base.control_saved, head.control_saved))
    for what, before, after in totals:
        yield _sized(f"{what} ({before.count} → {after.count} tensors)", before.size_bytes, after.size_bytes)
    for each in on_both_sides(base.saved.largest, head.saved.largest)[:LISTED]:
        what = named(each.tensor, each.place, max(each.before, each.after))
        yield _sized(what, each.before_bytes, each.after_bytes)


def _sized(
    what: str, before_bytes: int, after_bytes: int
) -> tuple[str, float | None, UnitCell, UnitCell, str]:
    change = after_bytes / before_bytes - 1 if before_bytes else None
    return what, change, UnitCell(before_bytes, "bytes"), UnitCell(after_bytes, "bytes"), "Memory"


def _families(records: Sequence[Trial]) -> dict[str, float]:
    """Family of kernels -> nanoseconds of a step, by the newest profile."""
    profile: Profile | None = next(filter(None, (each.profile for each in records)), None)
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
