"""What a reader must know of the cases of some trials, from the parts of their records that say it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sqlalchemy import select

from compilewatch.db.cause.notes import Parts, case_notes
from compilewatch.db.engine.session import Database
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.selection import matching, oldest_first
from compilewatch.db.records.evidence import CompilerFacts, Memory, Numerics
from compilewatch.db.records.sampling_facts import SamplingFacts
from compilewatch.db.records.trial import Status, StrategyKind
from compilewatch.db.tables.trials import SERIES, STRATEGY, TRIAL, TRIAL_DETAIL

MOST_TRIALS = 5_000
"""Of more, the newest."""
BuildCase = tuple[str, str, str]
"""Build, workload and strategy, by id."""

_READ: dict[str, type[CompilerFacts | Numerics | SamplingFacts | Memory]] = {
    "compiler": CompilerFacts,
    "numerics": Numerics,
    "sampling": SamplingFacts,
    "memory": Memory,
}
_PARTS = (
    select(
        *(TRIAL.c.build_id, SERIES.c.workload_id, SERIES.c.strategy_id, STRATEGY.c.cache, STRATEGY.c.kind),
        *(TRIAL_DETAIL.c[name] for name in _READ),
    )
    .join_from(TRIAL, TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
    .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
    .join(STRATEGY, STRATEGY.c.strategy_id == SERIES.c.strategy_id)
    .where(TRIAL.c.status == Status.OK)
)


def notes_of_cases(database: Database, filters: Filters) -> dict[BuildCase, list[str]]:
    """Of every case that has any, the most important first (`db.cause.notes`)."""
    newest = [column.desc() for column in oldest_first()]
    statement = _PARTS.where(*matching(filters)).order_by(*newest).limit(MOST_TRIALS)
    of_cases: dict[BuildCase, list[Parts]] = defaultdict(list)
    with database.read() as connection:
        for build, workload, strategy, cache, kind_of, *parts in connection.execute(statement):
            read: dict[str, Any] = {
                name: None if part is None else kind.model_validate(part)
                for (name, kind), part in zip(_READ.items(), parts, strict=True)
            }
            of_cases[build, workload, strategy].append(Parts(cache, **read, kind=StrategyKind(kind_of)))
    return {case: notes for case, parts in of_cases.items() if (notes := case_notes(parts))}
