"""A build is the software stack: its settings become the conditions of each trial, and what differed in
settings alone becomes one build. Regressions of one event become one.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

_STACK = (
    *("torch", "torch_git", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os", "compiler"),
    "packages",
)
_TALLIES = ("trials", "failed_trials", "cancelled_trials")
_MOMENTS = ("first_seen_at", "last_seen_at")
_METADATA = sa.MetaData()


def _table(name: str, texts: tuple[str, ...], others: Mapping[str, Any] | None = None) -> sa.Table:
    columns = [sa.Column(each, sa.String()) for each in texts]
    return sa.Table(
        name, _METADATA, *columns, *(sa.Column(each, kind) for each, kind in (others or {}).items())
    )


_MOMENT = sa.DateTime(timezone=True)
_SEEN = dict.fromkeys(_MOMENTS, _MOMENT)
_BUILD = _table(
    "build",
    ("build_id", "label", *(each for each in _STACK if each != "packages")),
    {"packages": sa.JSON(), "settings": sa.JSON(), **dict.fromkeys(_TALLIES, sa.BigInteger()), **_SEEN},
)
_TRIAL = _table("trial", ("trial_id", "build_id", "conditions_id"))
_RUN_PART = _table("run_part", ("run_id", "machine_id", "build_id"), {"trials": sa.BigInteger(), **_SEEN})
_SIGN_OFF = _table("sign_off", ("sign_off_id", "base_build_id", "head_build_id"))
_CONDITIONS = _table("conditions", ("conditions_id",), {"settings": sa.JSON()})
_ALIAS = _table("build_alias", ("former_id", "build_id"))
_REGRESSION = _table(
    "regression",
    (
        *("regression_id", "series_id", "metric", "base_key", "head_key", "revises", "verdict"),
        "merged_into",
    ),
    {"revision": sa.BigInteger(), "document": sa.JSON()},
)
_TRIAGE = _table(
    "triage_event",
    ("regression_id", "state", "author", "note", "url"),
    {"number": sa.BigInteger(), "at": _MOMENT},
)
_NOTIFICATION = _table("notification", ("regression_id", "channel"))


def upgrade() -> None:
    op.create_table(
        "conditions",
        sa.Column("conditions_id", sa.String(), primary_key=True),
        sa.Column("settings", sa.JSON(), nullable=False),
    )
    op.create_table(
        "build_alias",
        sa.Column("former_id", sa.String(), primary_key=True),
        sa.Column("build_id", sa.String(), sa.ForeignKey("build.build_id"), nullable=False),
    )
    op.add_column("trial", sa.Column("conditions_id", sa.String(), nullable=True))
    op.add_column("regression", sa.Column("merged_into", sa.String(), nullable=True))
    connection = op.get_bind()
    called = _merge_builds(connection)
    op.drop_column("build", "settings")
    _merge_regressions(connection, called)


def _identity(content: Mapping[str, Any]) -> str:
    """As `db.records.ids.identity` at the time of this revision."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _merge_builds(connection: sa.Connection) -> dict[str, str]:
    """What each build is called now, by what it was called."""
    rows = [dict(row) for row in connection.execute(sa.select(_BUILD)).mappings()]
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    conditions: dict[str, dict[str, Any]] = {}
    for row in rows:
        stack = {name: row[name] for name in _STACK if row[name]}
        row["stack_id"] = _identity(stack)
        row["conditions_id"] = _identity({"settings": row["settings"]} if row["settings"] else {})
        conditions[row["conditions_id"]] = row["settings"]
        groups[row["stack_id"]].append(row)
    if conditions:
        connection.execute(
            sa.insert(_CONDITIONS),
            [{"conditions_id": key, "settings": settings} for key, settings in conditions.items()],
        )
    for build_id, members in groups.items():
        _merge_build(connection, build_id, members)
    called = {row["build_id"]: row["stack_id"] for row in rows}
    _merge_run_parts(connection, called)
    renamed = {old: new for old, new in called.items() if old != new}
    for column in (_SIGN_OFF.c.base_build_id, _SIGN_OFF.c.head_build_id):
        for old in set(connection.scalars(sa.select(column).distinct())) & renamed.keys():
            connection.execute(sa.update(_SIGN_OFF).where(column == old).values({column.name: renamed[old]}))
    if renamed:
        connection.execute(sa.delete(_BUILD).where(_BUILD.c.build_id.in_(list(renamed))))
        connection.execute(
            sa.insert(_ALIAS), [{"former_id": old, "build_id": new} for old, new in renamed.items()]
        )
    return called


def _merge_build(connection: sa.Connection, build_id: str, members: list[dict[str, Any]]) -> None:
    last = max(
        members, key=lambda row: (row["last_seen_at"] is not None, row["last_seen_at"], row["build_id"])
    )
    firsts = [row["first_seen_at"] for row in members if row["first_seen_at"] is not None]
    values = {name: last[name] for name in ("label", *_STACK, "settings", "last_seen_at")}
    values |= {name: sum(row[name] for row in members) for name in _TALLIES}
    values["first_seen_at"] = min(firsts, default=None)
    if build_id in {row["build_id"] for row in members}:
        connection.execute(sa.update(_BUILD).where(_BUILD.c.build_id == build_id).values(**values))
    else:
        connection.execute(sa.insert(_BUILD).values(build_id=build_id, **values))
    for row in members:
        connection.execute(
            sa.update(_TRIAL)
            .where(_TRIAL.c.build_id == row["build_id"], _TRIAL.c.conditions_id.is_(None))
            .values(build_id=build_id, conditions_id=row["conditions_id"])
        )


def _merge_run_parts(connection: sa.Connection, called: Mapping[str, str]) -> None:
    parts: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in connection.execute(sa.select(_RUN_PART)).mappings():
        key = (row["run_id"], row["machine_id"], called[row["build_id"]])
        known = parts.get(key)
        if known is None:
            parts[key] = {**row, "build_id": key[2]}
        else:
            known["trials"] += row["trials"]
            known["first_seen_at"] = min(known["first_seen_at"], row["first_seen_at"])
            known["last_seen_at"] = max(known["last_seen_at"], row["last_seen_at"])
    connection.execute(sa.delete(_RUN_PART))
    if parts:
        connection.execute(sa.insert(_RUN_PART), list(parts.values()))


# What a metric shows moved: `db.judge.compare.recorded_regressions.EVENT_OF` at the time of this revision.
_COMPILING = {"compile_cost", "time_to_first_result", "cold_start_cpu", "compile_cpu", "compile_instructions"}
_OTHERS = {"peak_memory": "memory", "graph_breaks": "graphs", "recompiles": "graphs", "numerics": "numerics"}
_HEADLINE = ("latency", "device_time", "speedup", "compile_cost", "numerics", "graph_breaks")
_BY_THE_JUDGE = "compilewatch"


def _merge_regressions(connection: sa.Connection, called: Mapping[str, str]) -> None:
    """By builds as they are called now; of one event the regression that people spoke of stays."""
    rows = {
        row["regression_id"]: dict(row)
        for row in connection.execute(sa.select(_REGRESSION).order_by(_REGRESSION.c.revision)).mappings()
    }
    if not rows:
        return
    said: dict[str, list[Any]] = defaultdict(list)
    for event in connection.execute(sa.select(_TRIAGE).order_by(_TRIAGE.c.number)).mappings():
        said[event["regression_id"]].append(event)
    chains: dict[str, list[str]] = {}
    for key, row in rows.items():
        first = row["revises"]
        chain = chains.pop(first) if first in chains else []
        chains[key] = [*chain, key]
    events: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for newest, chain in chains.items():
        row = rows[newest]
        keys = _keys(row["document"], called) or (row["base_key"], row["head_key"])
        moved = "compile" if row["metric"] in _COMPILING else _OTHERS.get(row["metric"], "time")
        events[row["series_id"], moved, *keys].append(newest)
        for key in chain:
            rows[key]["document"] = _renamed(rows[key]["document"], called)
    for (_, _, base_key, head_key), heads in events.items():
        standing = min(heads, key=lambda key: _rank(rows[key], said[key]))
        others = {key: chains[key] for key in heads if key != standing}
        _join(connection, rows, standing, others, said)
        for key in chains[standing]:
            connection.execute(
                sa.update(_REGRESSION)
                .where(_REGRESSION.c.regression_id == key)
                .values(
                    base_key=base_key,
                    head_key=head_key,
                    document=rows[key]["document"] | {"base_key": base_key, "head_key": head_key},
                )
            )


def _rank(row: Mapping[str, Any], said: list[Any]) -> tuple[Any, ...]:
    """Standing before taken back, spoken of by people before by nobody, then by what people pay."""
    metric = row["metric"]
    place = _HEADLINE.index(metric) if metric in _HEADLINE else len(_HEADLINE)
    by_people = [event["number"] for event in said if event["author"] != _BY_THE_JUDGE]
    return row["verdict"] != "regressed", not by_people, not said, place, row["regression_id"]


def _join(
    connection: sa.Connection,
    rows: dict[str, dict[str, Any]],
    standing: str,
    others: Mapping[str, list[str]],
    said: Mapping[str, list[Any]],
) -> None:
    document = rows[standing]["document"]
    events = list(said[standing])
    for other, chain in others.items():
        if rows[other]["verdict"] == rows[standing]["verdict"] == "regressed":
            document["also"] = [*document.get("also", []), rows[other]["document"]["row"]]
        events += [event for event in said[other] if event["author"] != _BY_THE_JUDGE]
        for key in chain:
            # Its place among the keys is free for the one that stays.
            connection.execute(
                sa.update(_REGRESSION)
                .where(_REGRESSION.c.regression_id == key)
                .values(merged_into=standing, base_key=f"merged {key}", document=rows[key]["document"])
            )
        channels = set(
            connection.scalars(
                sa.select(_NOTIFICATION.c.channel).where(_NOTIFICATION.c.regression_id == standing)
            )
        )
        connection.execute(
            sa.update(_NOTIFICATION)
            .where(_NOTIFICATION.c.regression_id == other, _NOTIFICATION.c.channel.not_in(channels))
            .values(regression_id=standing)
        )
    if len(events) > len(said[standing]):
        connection.execute(sa.delete(_TRIAGE).where(_TRIAGE.c.regression_id == standing))
        ordered = sorted(events, key=lambda event: event["at"])
        connection.execute(
            sa.insert(_TRIAGE),
            [
                {**event, "regression_id": standing, "number": number}
                for number, event in enumerate(ordered, start=1)
            ],
        )


def _keys(document: Mapping[str, Any], called: Mapping[str, str]) -> tuple[str, str] | None:
    """The keys of the sides by builds; None where both are of one build, whose runs are the keys."""
    base, head = (
        sorted({called.get(each, each) for each in document[side]["build_ids"]}) for side in ("base", "head")
    )
    if base == head:
        return None
    return _identity({"builds": base}), _identity({"builds": head})


def _renamed(document: dict[str, Any], called: Mapping[str, str]) -> dict[str, Any]:
    sides = {
        side: document[side]
        | {"build_ids": list(dict.fromkeys(called.get(each, each) for each in document[side]["build_ids"]))}
        for side in ("base", "head")
    }
    return document | sides
