"""The last weeks of cases as lines in the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from compilewatch.dashboard.charts import trend_rows
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.read.data import filters_of, read_choices_on, read_interleaved, read_points

WEEKS = 12
_FEWEST = 3
"""Two points on a scale of their own are a cliff, whatever they are."""

Ids = tuple[str, str]
"""Of workload and strategy."""


def last_weeks(
    link: Link,
    strategies: Mapping[Ids, str],
    newest: datetime,
    *,
    figure: str = "latency_ns",
    workloads: tuple[str, ...] = (),
) -> dict[Ids, list[float]]:
    """The values of `figure` of each case in the weeks before `newest`, oldest first: by run, by build where
    builds were interleaved. `strategies` names that of each case; of few, `workloads` names theirs.
    """
    weeks: dict[Ids, list[float]] = {case: [] for case in strategies}
    of_link = filters_of(replace(link, build=None, build_run=()))
    filters = replace(
        of_link,
        workloads=workloads or of_link.workloads,
        strategies=tuple(sorted(set(strategies.values()))),
        since=newest - timedelta(weeks=WEEKS),
        until=newest,
    )
    by_turns = read_interleaved(filters)
    columns = (figure, "build_id", "run_id", "last_started_at")
    points = read_points(filters, "build" if by_turns else "run", columns)
    builds = list(read_choices_on(link.machine).builds)
    points = trend_rows.in_order(points, "torch" if by_turns else "time", builds)
    known = points[points[figure].notna()]
    names = ("workload_id", "strategy_id", figure)
    for workload, strategy, value in zip(*(known[name].tolist() for name in names), strict=True):
        if (workload, strategy) in weeks:
            weeks[workload, strategy].append(float(value))
    return {case: line if len(line) >= _FEWEST else [] for case, line in weeks.items()}
