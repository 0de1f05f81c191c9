"""Stored cases over builds and machines, each summed up over all its trials, with what changes a strategy."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from sqlalchemy import select

from compilewatch.db.columns.case import CASE_COLUMNS
from compilewatch.db.engine.session import Database
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.strategies import compile_arguments, sort_key
from compilewatch.db.records.trial import Strategy
from compilewatch.db.records.versions import version_key
from compilewatch.db.tables.trials import STRATEGY

LISTED_COLUMNS: dict[str, str] = {"case_id": "str", **CASE_COLUMNS}
"""Name -> pandas dtype of `stored_cases`."""


def stored_cases(db: Database, filters: Filters) -> pd.DataFrame:
    """One row per case and build, by workload, machine, version of torch and strategy; columns are
    `LISTED_COLUMNS`, `case_id` is unique.

    A case is summed up over all its trials that `filters` let through. Its strategies choose rows: the eager
    that a row is set against is there whatever is chosen.
    """
    trials = trials_frame(db, replace(filters, strategies=()))
    cases = summarize_cases(trials if filters.workloads else without_canaries(trials))
    if filters.strategies:
        cases = cases[cases["strategy"].isin(filters.strategies)]
    cases.insert(0, "case_id", cases["build_id"] + "-" + cases["series_id"])
    names = ("workload", "machine", "torch", "build_id", "strategy", "case_id")
    keys = [
        (workload, machine, version_key(str(torch)), build, sort_key(strategy), case)
        for workload, machine, torch, build, strategy, case in cases[list(names)].itertuples(
            index=False, name=None
        )
    ]
    order = sorted(range(len(cases)), key=keys.__getitem__)
    return cases.iloc[order].reset_index(drop=True)


def changes_of_strategies(db: Database) -> dict[str, str]:
    """By strategy id what it gives torch.compile beside its defaults, its scope and its caches, in words."""
    columns = [STRATEGY.c[name] for name in ("strategy_id", *Strategy.model_fields)]
    with db.read() as connection:
        rows = [dict(row) for row in connection.execute(select(*columns)).mappings()]
    return {row.pop("strategy_id"): _changes(Strategy.model_validate(row)) for row in rows}


def _changes(strategy: Strategy) -> str:
    given = compile_arguments(strategy)
    options = given.pop("options", {})
    usual = {"backend": "inductor", "mode": "default"}
    named = [f"{name} {value}" for name, value in given.items() if usual.get(name) != value]
    scope = [] if strategy.scope == "full" else [f"scope {strategy.scope}"]
    cache = [f"cache {strategy.cache}"] if strategy.cache in ("warm", "portable", "packaged") else []
    return ", ".join([*named, *(f"{name} {value}" for name, value in options.items()), *scope, *cache])
