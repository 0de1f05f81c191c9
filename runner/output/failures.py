"""Failed trials as sentences: what became of each case, and the command that shows more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from compilewatch.db.errors import one_line
from compilewatch.db.records.trial import Status
from compilewatch.db.units import words

if TYPE_CHECKING:
    from pandas import DataFrame

LONGEST_MESSAGE = 300
"""Of an exception's message, which may hold a whole tensor, in a line: `show` has more."""

BuildCase = tuple[str, str, str]
"""Ids of build, names of workload and strategy."""


def newest_failures(trials: DataFrame) -> dict[BuildCase, dict[str, Any]]:
    """The newest failure of each case of `trials`, oldest first: its kind, first line and trial."""
    failed = trials[trials["status"] == Status.FAILED.value]
    return {
        (str(row.build_id), str(row.workload), str(row.strategy)): {
            "kind": str(row.failure_kind),
            "message": str(row.failure_message).split("\n", 1)[0],
            "trial_id": str(row.trial_id),
        }
        for row in failed.itertuples()
    }


def failure_lines(failures: Mapping[BuildCase, Mapping[str, Any]]) -> Iterator[str]:
    """One for each case."""
    for (_, workload, strategy), failure in failures.items():
        text = f"{words(failure['kind'])}: {one_line(failure['message'], LONGEST_MESSAGE).removesuffix('.')}"
        yield f"{workload} / {strategy}: {text}. {more_of(failure['trial_id'])}"


def more_of(trial_id: str) -> str:
    """Where all that is known of a trial is shown."""
    return f"Its log: `compilewatch show {trial_id}`."
