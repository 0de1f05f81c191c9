"""The two builds of an attribution, as this host has them, and the cases that moved between them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.judge.bisection import has_moved
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Row
from compilewatch.db.queries import facets
from compilewatch.db.queries.named import recorded_builds
from compilewatch.db.queries.run_parts import run_parts
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.ids import build_identity
from compilewatch.db.records.trial import Build
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.verdicts import gateway
from compilewatch.db.verdicts.sides import resolve_side
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan.builds import known_builds
from compilewatch.runner.plan.durations import Case
from compilewatch.runner.plan.host_stacks import HostStacks, MissingBuildError

FIXED = ("driver", "os", "compiler")
"""Parts of a recorded build that one host has at one version only."""


@dataclass(frozen=True)
class Side:
    """A build of this host. `stored` are its trials, `recorded` what they were measured with; None where no
    trial is stored.
    """

    name: str
    build: BuildSettings
    stored: Selection | None
    recorded: Build | None


def side_of(name: str, settings: Settings, host: HostStacks, database: Database) -> Side:
    """The build of `host` that `name` stands for: one of `builds list`, else a side of `compare`.

    Raises NotFoundError for an unknown name, MissingBuildError where no build here has that software.
    """
    known = known_builds(settings)
    if name in known:
        mine = _stored_ids(known[name], host, database)
        of_build = recorded_builds(database, mine)
        of_name = Selection(name=name, build_ids=mine) if mine else None
        return Side(name, known[name], of_name, of_build[0] if of_build else None)
    stored = resolve_side(name, database)
    ids = stored.build_ids or tuple(map(str, run_parts(database, stored.run_ids)["build_id"].unique()))
    recorded = recorded_builds(database, ids)
    return Side(name, host.build_like(recorded[0], but=FIXED), stored, recorded[0])


def _stored_ids(build: BuildSettings, host: HostStacks, database: Database) -> tuple[str, ...]:
    """The recorded builds that this build of the host is, with today's driver, kernel and compiler."""
    ids = []
    for build_id in facets.builds(database)["build_id"]:
        for recorded in recorded_builds(database, [str(build_id)]):
            try:
                counterpart = host.build_like(recorded)
            except MissingBuildError:
                continue
            if counterpart.name == build.name:
                ids.append(str(build_id))
    return tuple(ids)


def fixed_differences(base: Side, head: Side) -> list[str]:
    """What differs between the stored trials and cannot be swapped on one host, as "driver 570 to 580"."""
    if base.recorded is None or head.recorded is None:
        return []
    pairs = ((part, getattr(base.recorded, part), getattr(head.recorded, part)) for part in FIXED)
    return [f"{part} {old} to {new}" for part, old, new in pairs if old and new and old != new]


@dataclass(frozen=True)
class FixedShare:
    """What changed in one case with the parts that one host cannot swap, by stored trials of `build`, the
    rest of which both sides share.
    """

    build: Build
    row: Row


def fixed_shares(
    database: Database, base: Side, head: Side, metric: Metric, policy: Policy, cases: Collection[Case] = ()
) -> list[FixedShare]:
    """The verdicts on stored trials of one build with the base's driver, kernel and compiler, and with the
    head's: of the base's other parts, then of the head's. Of `cases`, all of them where none is named. Empty
    where nobody measured either build with both, on hosts of the same hardware.
    """
    if base.recorded is None or head.recorded is None:
        return []
    builds = [base.recorded, head.recorded]
    shares: list[FixedShare] = []
    for build in builds[: 1 if _without_fixed(builds[0]) == _without_fixed(builds[1]) else 2]:
        ids = [build_identity(_with_fixed(build, side)) for side in builds]
        if len(recorded_builds(database, ids)) == len(set(ids)):
            first, last = (
                Selection(name=side.name, build_ids=(mine,))
                for side, mine in zip((base, head), ids, strict=True)
            )
            rows = _rows(database, first, last, metric, policy, cases)
            shares += [FixedShare(build, row) for row in rows]
    return shares


def _with_fixed(build: Build, of: Build) -> Build:
    return build.model_copy(update={part: getattr(of, part) for part in FIXED})


def _without_fixed(build: Build) -> Build:
    """And without what people call it."""
    return build.model_copy(update=dict.fromkeys((*FIXED, "label")))


def _rows(
    database: Database,
    first: Selection,
    last: Selection,
    metric: Metric,
    policy: Policy,
    cases: Collection[Case],
) -> list[Row]:
    try:
        comparison = gateway.compare(database, first, last, policy=policy)
    except VerdictError:
        # Measured on hosts of other hardware, or with no case in common.
        return []
    rows = [row for row in comparison.rows if row.metric is metric]
    return [row for row in rows if not cases or (row.workload, row.strategy) in cases]


def moved_cases(
    database: Database, base: Side, head: Side, metric: Metric, policy: Policy, strategies: Sequence[str]
) -> list[Case]:
    """The cases that moved between what is stored of both, of these strategies where named.

    Raises CompilewatchError where nothing is stored or nothing moved.
    """
    if base.stored is None or head.stored is None:
        missing = base if base.stored is None else head
        raise CompilewatchError(
            f"No trial of {missing.name} is stored, so nobody knows which cases moved.",
            "Name the cases with -w and -s, or measure both with `compilewatch run --build`.",
        )
    filters = Filters(strategies=tuple(strategies))
    comparison = gateway.compare(database, base.stored, head.stored, filters, policy=policy)
    moved = [
        (row.workload, row.strategy) for row in comparison.rows if row.metric is metric and has_moved(row)
    ]
    if not moved:
        raise CompilewatchError(
            f"{METRICS[metric].name} moved in no stored case between {base.name} and {head.name}.",
            "Name a case with -w and -s to measure it anyway.",
        )
    return moved
