"""What was compared and what was not: no regression is not the same as never compared."""

from __future__ import annotations

from pandas import DataFrame

from db.verdicts.results import Comparison, LeftOut, Result
from db.verdicts.vocabulary import Verdict

CASE = ["workload", "strategy"]


class Coverage(Result):
    """`compared` of `total` cases, and everything that was left out, each with its reason."""

    compared: int
    total: int
    left_out: tuple[LeftOut, ...]

    @property
    def missing(self) -> tuple[LeftOut, ...]:
        """Cases that ran before and did not run now."""
        return tuple(case for case in self.left_out if case.verdict is Verdict.MISSING)

    @property
    def sentence(self) -> str:
        said = f"Compared {self.compared} of {self.total} cases"
        if self.missing:
            said += f"; {len(self.missing)} that ran before did not run now"
        return said + "."


def coverage_of(comparison: Comparison) -> Coverage:
    return Coverage(compared=comparison.matched, total=comparison.total, left_out=comparison.left_out)


def coverage_of_run(newest: DataFrame, earlier: DataFrame) -> Coverage:
    """Cases of a run against those of the runs before it, on the same machine and suite.

    Both are trials frames. A case counts as run when it has a trial, failed or not: a failure is a result.
    `compared` are the cases that ran in both.
    """
    now, before = _cases(newest), _cases(earlier)
    gone = tuple(
        LeftOut(
            workload=workload,
            strategy=strategy,
            verdict=Verdict.MISSING,
            reason="ran before, has no trial in this run",
        )
        for workload, strategy in sorted(before - now)
    )
    new = tuple(
        LeftOut(
            workload=workload,
            strategy=strategy,
            verdict=Verdict.NOT_COMPARABLE,
            reason="new: never ran before on this machine",
        )
        for workload, strategy in sorted(now - before)
    )
    return Coverage(compared=len(now & before), total=len(now | before), left_out=gone + new)


def _cases(trials: DataFrame) -> set[tuple[str, str]]:
    names = trials[CASE].drop_duplicates()
    return set(zip(names["workload"].astype("str"), names["strategy"].astype("str"), strict=True))
