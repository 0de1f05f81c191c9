"""Recorded regressions: a verdict frozen with its sides, and what follows when the next verdict arrives."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from db.columns.metrics import COUNTED_METRICS
from db.judge.compare.sides import CODE
from db.judge.compare.whole import counts_as_regression
from db.judge.policy import Policy
from db.judge.results import BuildSide, Comparison, Result, Row
from db.judge.words.sentences import not_reproduced
from db.records.fields import Name, Text, UtcDatetime
from db.records.ids import identity
from db.records.triage import TriageState
from db.records.vocabulary import CauseClass, Verdict
from db.units import plural, words


class TriageEvent(Result):
    """What somebody said of a regression. `url` becomes a link, so it can only lead to the web."""

    state: TriageState
    author: Name
    at: UtcDatetime
    note: Text | None = None
    url: Annotated[str, Field(max_length=2000, pattern=r"^https?://[^\s\x00-\x1f]+$")] | None = None


class Regression(Result):
    """One recorded verdict on one metric of one series, as it was then.

    `base_key` and `head_key` come from `side_keys`. A verdict that replaces another counts up `revision` and
    names the old one in `revises`; its verdict may be that nothing changed.
    """

    regression_id: str
    series_id: str
    machine_id: str | None
    machine: str | None
    base_key: str
    head_key: str
    base: BuildSide
    head: BuildSide
    changed_components: tuple[str, ...]
    row: Row
    revision: int
    revises: str | None
    recorded_at: UtcDatetime

    @property
    def subject(self) -> tuple[str, str, str]:
        """The case and metric it speaks of."""
        return row_subject(self.row)


class FollowUp(StrEnum):
    """What a verdict on a case means for what is recorded about it."""

    RECORD = "record"
    REVISE = "revise"
    CONFIRM = "confirm"


def row_subject(row: Row) -> tuple[str, str, str]:
    """Which case and metric a row is about: workload id, strategy id, metric."""
    return *row.case.ids, row.metric.value


def side_keys(comparison: Comparison) -> tuple[str, str]:
    """What was compared: builds and code of each side, or its runs where both sides are of the same.

    So the next run of the same build and code does not raise the same regression once more.
    """
    base, head = comparison.base, comparison.head
    if set(base.build_ids) != set(head.build_ids) or CODE in comparison.changed_components:
        return _side_key(base), _side_key(head)
    return identity({"runs": sorted(base.run_ids)}), identity({"runs": sorted(head.run_ids)})


def _side_key(side: BuildSide) -> str:
    code = side.components.get(CODE)
    return identity({"builds": sorted(side.build_ids), **({"code": code} if code else {})})


def freeze(
    comparison: Comparison,
    row: Row,
    series_id: str,
    recorded_at: datetime,
    *,
    revised: Regression | None = None,
) -> Regression:
    """The verdict of `row` as it is recorded, as the successor of `revised` where one is given."""
    base_key, head_key = (revised.base_key, revised.head_key) if revised else side_keys(comparison)
    revision = revised.revision + 1 if revised else 0
    unique = {
        "series": series_id,
        "metric": row.metric.value,
        "base": base_key,
        "head": head_key,
        "revision": revision,
    }
    return Regression(
        regression_id=identity(unique),
        series_id=series_id,
        machine_id=comparison.machine_id,
        machine=comparison.machine,
        base_key=base_key,
        head_key=head_key,
        base=comparison.base,
        head=comparison.head,
        changed_components=comparison.changed_components,
        row=row,
        revision=revision,
        revises=revised.regression_id if revised else None,
        recorded_at=recorded_at,
    )


def follow_up(row: Row, comparison: Comparison, standing: Regression | None) -> FollowUp | None:
    """What the verdict `row` means, given the newest recorded one about the same case and sides.

    What the machine explains, or an eager that got faster, is no regression of the build and is not recorded.
    A verdict is revised only by another that is decided, or by one that cannot tell although it rests on more
    trials: a quick comparison never revises a thorough one. It is confirmed by head trials of
    other runs than those it was found in.
    """
    regressed = counts_as_regression(row)
    if standing is None:
        return FollowUp.RECORD if regressed else None
    if standing.row.verdict is not Verdict.REGRESSED:
        return FollowUp.REVISE if regressed else None
    if regressed:
        fresh = set(comparison.head.run_ids).isdisjoint(standing.head.run_ids)
        return FollowUp.CONFIRM if fresh else None
    decided = row.verdict in (Verdict.UNCHANGED, Verdict.IMPROVED)
    open_again = row.verdict is Verdict.INCONCLUSIVE and _rests_on_more(row, standing.row)
    return FollowUp.REVISE if decided or open_again else None


def confirmation_of(row: Row, policy: Policy) -> tuple[FollowUp, Row] | None:
    """What `row`, judged on fresh trials alone, means for a suspected regression; None with too few of them.

    What the fresh trials do not show is not reproduced, and its cause is noise.
    """
    if counts_as_regression(row):
        return FollowUp.CONFIRM, row
    is_comparable = row.verdict in (Verdict.UNCHANGED, Verdict.IMPROVED, Verdict.INCONCLUSIVE)
    if not is_comparable or min(row.trials) < policy.minimum_trials:
        return None
    reason = not_reproduced(row.trials, row.reason)
    return FollowUp.REVISE, row.model_copy(update={"cause": CauseClass.NOISE, "reason": reason})


def _rests_on_more(row: Row, than: Row) -> bool:
    return row.trials != than.trials and all(
        new >= old for new, old in zip(row.trials, than.trials, strict=True)
    )


def needs_no_confirmation(row: Row) -> bool:
    """Counts that are the same in every trial of a side are facts, not estimates."""
    return row.metric in COUNTED_METRICS and not row.suspected


def side_title(side: BuildSide, changed_components: tuple[str, ...]) -> str:
    """What a side is, in the parts that differ: "torch 2.13.0, triton 3.6.0"; its runs where none does."""
    named = [name for name in changed_components if side.components.get(name)]
    if named:
        return ", ".join(f"{words(name)} {side.components[name]}" for name in named)
    runs = side.run_ids
    return f"run {runs[-1]}" if len(runs) == 1 else f"{plural(len(runs), 'run')} up to {runs[-1]}"
