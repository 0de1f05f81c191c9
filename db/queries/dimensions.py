"""What rows of trials and of run cases have from other tables: their series, builds and settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from sqlalchemy import ColumnElement, Connection, Table, select

from compilewatch.db.columns.column import Holder
from compilewatch.db.columns.trial import TRIAL
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.frames import arrays_of, matched
from compilewatch.db.queries.selection import CASES, dtypes, matching_series, selected
from compilewatch.db.tables.trials import BUILD, CONDITIONS, MACHINE, SERIES, STRATEGY, WORKLOAD

_MOST_NAMED = 2_000


def _held(holder: Holder, table: Table) -> list[ColumnElement[Any]]:
    names = {each.column: each.at for each in TRIAL if each.holder is holder}
    return selected(table, **names)


_SERIES = select(
    *selected(SERIES, "series_id"),
    *_held(Holder.SERIES, SERIES),
    *_held(Holder.MACHINE, MACHINE),
    *_held(Holder.WORKLOAD, WORKLOAD),
    *_held(Holder.STRATEGY, STRATEGY),
).select_from(CASES)
_BUILDS = select(*selected(BUILD, "build_id"), *_held(Holder.BUILD, BUILD))
_SERIES_DTYPES, _BUILDS_DTYPES = dtypes(_SERIES), dtypes(_BUILDS)
_CONDITIONS = select(*selected(CONDITIONS, "conditions_id"), *_held(Holder.CONDITIONS, CONDITIONS))


def of_series(connection: Connection, filters: Filters, series_ids: Sequence[str]) -> dict[str, Any]:
    """The columns of machine, workload and strategy, a row for each of `series_ids`, which are among those
    that `filters` let through.
    """
    wanted = list(dict.fromkeys(series_ids))
    these = [SERIES.c.series_id.in_(wanted)] if len(wanted) <= _MOST_NAMED else matching_series(filters)
    found = arrays_of(connection.execute(_SERIES.where(*these)), _SERIES_DTYPES)
    return matched(found, "series_id", series_ids)


def of_builds(connection: Connection, build_ids: Sequence[str]) -> dict[str, Any]:
    """The columns of a build, a row for each of `build_ids`."""
    these = _named(BUILD.c.build_id, build_ids)
    found = arrays_of(connection.execute(_BUILDS.where(*these)), _BUILDS_DTYPES)
    return matched(found, "build_id", build_ids)


def of_conditions(connection: Connection, conditions_ids: Sequence[str | None]) -> dict[str, Any]:
    """The settings, a row for each of `conditions_ids`, one object for all that share them."""
    these = _named(CONDITIONS.c.conditions_id, filter(None, conditions_ids))
    settings: dict[str | None, dict[str, Any]] = dict(connection.execute(_CONDITIONS.where(*these)).all())
    nothing: dict[str, Any] = {}
    return {
        "settings": pd.Series([settings.get(each, nothing) for each in conditions_ids], dtype="object").array
    }


def _named(key: ColumnElement[Any], ids: Iterable[str | None]) -> list[ColumnElement[bool]]:
    """All rows where they are too many to name."""
    wanted = list(dict.fromkeys(ids))
    return [key.in_(wanted)] if len(wanted) <= _MOST_NAMED else []
