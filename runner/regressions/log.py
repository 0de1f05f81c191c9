"""From judged runs to what is remembered of them: regressions, their confirmations, and messages."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.compare.confirmation import plan_confirmation
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.results import Comparison
from compilewatch.db.queries import facets
from compilewatch.db.queries.run_parts import run_parts
from compilewatch.db.service.recording import Recorded, record_comparison, record_confirmation
from compilewatch.db.verdicts import gateway
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.regressions.confirmation import (
    are_confirmation,
    fresh_comparisons,
    request_confirmation,
)
from compilewatch.runner.regressions.notify import Notified, notify

_LOG = logging.getLogger("compilewatch.regressions")


@dataclass(frozen=True)
class Logged:
    """What a run added to the record, and which messages went out for it."""

    recorded: Recorded
    messages: Notified


def log_run(
    database: Database,
    comparison: Comparison,
    settings: Settings,
    *,
    request_confirmations: bool = False,
    fresh: bool = False,
    found_on: str | None = None,
) -> Logged:
    """Record the regressions of a comparison, confirm those that wait for it, notify of the sure ones.

    With `request_confirmations` new suspicions are queued to be measured again. `fresh` and `found_on` are as
    `log_builds` takes them. A second call adds and sends nothing.
    """
    return log_builds(
        *(database, comparison.head.run_ids, settings),
        comparisons=[comparison],
        request_confirmations=request_confirmations,
        fresh=fresh,
        found_on=found_on,
    )


def log_builds(
    database: Database,
    run_ids: Sequence[str],
    settings: Settings,
    *,
    comparisons: Sequence[Comparison] | None = None,
    request_confirmations: bool = False,
    fresh: bool = False,
    with_messages: bool = True,
    found_on: str | None = None,
) -> Logged:
    """The same for the runs of several builds that took turns: each release against the one before it, or
    by `comparisons`.

    `fresh`: the runs were measured because something was suspected, or by turns until it was decided, so what
    they show is confirmed by them. `found_on` is the pull request or branch.
    A single run is judged by nothing here, and still confirms what waits for its build. Not `with_messages`
    is what another message says.
    """
    if comparisons is None:
        fresh = fresh or are_confirmation(database, run_ids)
        comparisons = list(compare_runs(database, run_ids, settings))
    recorded = Recorded()
    channels = [channel.name for channel in settings.channel if with_messages]
    for again, regressions in fresh_comparisons(database, run_ids, settings.policy):
        recorded += record_confirmation(database, again, regressions, at=datetime.now(UTC), channels=channels)
    for comparison in comparisons:
        recorded += record_comparison(
            *(database, comparison),
            at=datetime.now(UTC),
            channels=channels,
            fresh=fresh,
            found_on=found_on,
        )
    if request_confirmations and not fresh:
        _request_confirmations(database, comparisons, settings)
    return Logged(recorded, notify(database, settings.channel, settings.notify))


def compare_runs(database: Database, run_ids: Sequence[str], settings: Settings) -> Iterator[Comparison]:
    """Each run against that of the release before it; of one release, against the one named before it."""
    order = {build: rank for rank, build in enumerate(facets.builds(database)["build_id"])}
    parts = run_parts(database, run_ids)
    builds = parts.groupby("run_id")["build_id"].first().map(order)
    builds = builds[[run for run in run_ids if run in builds.index]].sort_values(kind="stable")
    for base, head in itertools.pairwise(str(run) for run in builds.index):
        before, after = (Selection(name=run, run_ids=(run,)) for run in (base, head))
        try:
            yield gateway.compare(database, before, after, policy=settings.policy)
        except VerdictError:
            # All trials of one of them were cut short: it has nothing to be judged by.
            continue


def _request_confirmations(database: Database, comparisons: Sequence[Comparison], settings: Settings) -> None:
    """Ask to confirm what is suspected, on the builds of this host; where they are gone, say so.

    In a fleet the builds are on the workers' hosts, which look themselves.
    """
    # Builds are looked after by what measures, which a gate that only judges does not import.
    from compilewatch.runner.plan.host_stacks import HostStacks, MissingBuildError

    suspicious = [each for each in comparisons if plan_confirmation(each, settings.policy)]
    host = HostStacks.read(settings) if suspicious and not settings.fleet.queues else None
    for comparison in suspicious:
        try:
            request = request_confirmation(database, comparison, settings.policy, host, at=datetime.now(UTC))
        except MissingBuildError as error:
            _LOG.warning("%s", error)
            continue
        if request is not None:
            _LOG.info("Confirmation queued as %s: %d cases.", request.request_id, len(request.spec.cases))
