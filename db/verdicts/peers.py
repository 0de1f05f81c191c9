"""Cases as `list cases` and `/api/v1/cases` have them: each with what others of its machine and build say of
it, what its trials say of themselves, and what people wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compilewatch.db.engine.session import Database
from compilewatch.db.json_rows import plain
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.metrics.scaling import OF_WORKLOAD_BUT_RANKS
from compilewatch.db.people.annotations import notes_beside
from compilewatch.db.queries.cases.stored_cases import cases_and_peers, changes_of_strategies
from compilewatch.db.queries.filters import Filters
from compilewatch.db.records.identity import FLOAT32
from compilewatch.db.verdicts.case_view import Case, reasons_of, remarks


def listed_cases(
    database: Database, filters: Filters, *, after: str | None = None, limit: int | None = None
) -> list[dict[str, Any]]:
    """The rows of `stored_cases`, which says what the arguments are, with all that `with_peers` adds; what a
    case is set against is there whatever `filters` and `limit` leave out.
    """
    cases, every = cases_and_peers(database, filters, after=after, limit=limit)
    if limit is not None:
        builds, workloads = (tuple(cases[name].unique()) for name in ("build_id", "workload"))
        filters = replace(filters, builds=builds, workloads=workloads)
    notes = notes_beside(database, filters)
    return with_peers(row_dicts(cases), row_dicts(every), changes_of_strategies(database), notes)


def with_peers(
    cases: Sequence[Case],
    every: Sequence[Case],
    changes: Mapping[str, str],
    notes: Callable[[Case], Sequence[str]],
) -> list[dict[str, Any]]:
    """`cases` with what others among `every`, of the same machine, build and workload, say of them: `whole`,
    the case that compiles as a whole what this compiles by regions, `default`, that of the strategy default,
    `float32`, that of a variant's model in float32 with the same strategy, `one_rank`, that of one rank.
    `changes` by strategy id and `notes` become columns.
    """
    known = {(*_place(case), case["strategy"]): case for case in every}
    in_float32 = {_variant_of(case, FLOAT32): case for case in every if case["variant"] == FLOAT32}
    return [
        {
            **case,
            "changes": changes.get(case["strategy_id"]),
            "notes": [*filter(None, (remarks(case),)), *notes(case), *reasons_of((case,))],
            "whole": _peer(known, case, case["strategy"].replace("+regional", "")),
            "default": _peer(known, case, "default"),
            "float32": in_float32.get(_variant_of(case, FLOAT32)),
        }
        for case in with_one_rank(cases, every)
    ]


def with_one_rank(cases: Sequence[Case], every: Sequence[Case]) -> list[dict[str, Any]]:
    """`cases` with `one_rank`, that among `every` of one rank and alike else, None where there is none."""
    of_one = {_without_ranks(case): case for case in every if plain(case["ranks"]) == 1}
    return [{**case, "one_rank": of_one.get(_without_ranks(case))} for case in cases]


def _without_ranks(case: Case) -> tuple[str, ...]:
    """What a case shares with that of one rank; eager beside a strategy has no strategy of its own."""
    strategy = plain(case["strategy_id"]) or case["strategy"]
    return strategy, *(str(plain(case[name])) for name in OF_WORKLOAD_BUT_RANKS)


def _variant_of(case: Case, variant: str) -> tuple[Any, ...]:
    """Where the case of this strategy and another `variant` of its model stands."""
    own = case["variant"]
    name = case["workload"] if plain(own) is None else case["workload"].removesuffix(own) + variant
    return case["machine_id"], case["build_id"], name, case["strategy"]


def _place(case: Case) -> tuple[Any, ...]:
    return case["machine_id"], case["build_id"], case["workload_id"]


def _peer(known: Mapping[tuple[Any, ...], Case], case: Case, strategy: str) -> Case | None:
    return None if strategy == case["strategy"] else known.get((*_place(case), strategy))
