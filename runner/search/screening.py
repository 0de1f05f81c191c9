"""A look at each model of a suite before any is compiled: where its time goes, what compiling may gain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from compilewatch.db.cause.trial_words import step_times
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.judge.statistics.screen import FEWEST, Screened, features, speedup_range
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries
from compilewatch.db.queries.records import trial_record
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import newest_profiled, trials_frame
from compilewatch.db.records.sampling_facts import ProfileSide
from compilewatch.db.records.strategies import EAGER
from compilewatch.runner.output.progress import UnderWay
from compilewatch.runner.plan.durations import TimeBudget
from compilewatch.runner.plan.jobs import Job
from compilewatch.runner.plan.trial_spec import TrialSpec
from compilewatch.runner.process.supervise import run_explained

_DEFAULT = "default"


@dataclass(frozen=True)
class Look:
    """Shares of eager's time, graph breaks, and the range of the speedup of `default` by models that are
    known here; None for what is not known. `known` counts those models.
    """

    matrix_fraction: float | None
    busy_fraction: float | None
    breaks: int | None
    known: int
    range: Screened | None

    @property
    def side(self) -> int:
        """1 where the whole range is above eager, -1 where it is below, 0 where it crosses 1 or unknown."""
        return 0 if self.range is None else (self.range.low > 1.0) - (self.range.high < 1.0)

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self) | {"range": self.range and self.range._asdict()}


class Screening:
    """The models of a suite as they are looked at: eager alone, profiled, in the one run `run_id`."""

    def __init__(self, database: Database, run_id: str) -> None:
        self._database, self._run_id = database, run_id
        self._machine_id: str | None = None
        self._profiled: set[str] = set()

    def wanted(self, job: Job, *, budget: TimeBudget) -> bool:
        """Whether the trial has to be measured: the first tells on which machine this is, and what is
        profiled there already is not profiled again.
        """
        if self._machine_id is None and (machine_id := self.machine_id) is not None:
            self._profiled = set(
                profiled_models(self._database, machine_id, cases_of_machine(self._database, machine_id))
            )
        return job.specs[0].workload.name not in self._profiled and budget.admits(job)

    @property
    def machine_id(self) -> str | None:
        """Where the run is measured; None before its first trial."""
        if self._machine_id is None:
            machines = trials_frame(self._database, Filters(runs=(self._run_id,)))["machine_id"]
            self._machine_id = None if machines.empty else str(machines.iloc[0])
        return self._machine_id

    def looks(self, specs: Iterable[TrialSpec], interpreter: str) -> dict[str, Look]:
        """By workload what is known of those whose eager was profiled here; `specs` are of `default`."""
        if self.machine_id is None:
            return {}
        cases = cases_of_machine(self._database, self.machine_id)
        profiled = profiled_models(self._database, self.machine_id, cases)
        return screened(
            profiled, cases, {spec.workload.name: partial(_breaks, spec, interpreter) for spec in specs}
        )


def _breaks(spec: TrialSpec, interpreter: str) -> int | None:
    """Graph breaks of a model, found without generating code; None where it cannot be captured."""
    with UnderWay(f"capturing {spec.workload.name} without generating code"):
        try:
            compiler = run_explained(spec, interpreter).compiler
        except CompilewatchError:
            return None
    return sum(event.count for event in compiler.graph_breaks or ())


def cases_of_machine(database: Database, machine_id: str) -> list[dict[Any, Any]]:
    """Rows of `summarize_cases` of eager and `default`."""
    chosen = Filters(machines=(machine_id,), strategies=(EAGER.name, _DEFAULT))
    frame = without_canaries(trials_frame(database, chosen))
    return list(summarize_cases(frame).to_dict("records"))


def screened(
    profiled: Mapping[str, tuple[ProfileSide, float]],
    cases: Sequence[Mapping[Any, Any]],
    breaks: Mapping[str, Callable[[], int | None]],
) -> dict[str, Look]:
    """A look at each model of `breaks` that is profiled. Its graph breaks are asked for where the others
    allow a range and no case of it knows them.
    """
    known, counted = {}, {}
    for row in cases:
        name = row["workload"]
        if name not in profiled or row["strategy"] != _DEFAULT or pd.isna(row["speedup"]):
            continue
        counted[name] = 0 if pd.isna(row["graph_breaks"]) else int(row["graph_breaks"])
        own = features(*profiled[name], counted[name])
        if own is not None:
            known[name] = own, float(row["speedup"])
    found = {}
    for name, find in breaks.items():
        if name in profiled:
            others = [each for other, each in known.items() if other != name]
            count = counted.get(name) if name in counted or len(others) < FEWEST else find()
            found[name] = _look(*profiled[name], count, others)
    return found


def profiled_models(
    database: Database, machine_id: str, cases: Sequence[Mapping[Any, Any]]
) -> dict[str, tuple[ProfileSide, float]]:
    """By workload eager's side of the newest profile, and eager's step outside of it in ns."""
    names = {(row["workload_id"], row["strategy_id"]): row["workload"] for row in cases}
    found = newest_profiled(database, machine_id, names)
    sides: dict[str, tuple[ProfileSide, float]] = {}
    for case, trial_id in sorted(found.items(), key=itemgetter(1)):
        trial = trial_record(database, trial_id)
        latency_ns = step_times(trial).eager_ns
        if trial.profile is not None and latency_ns:
            sides[names[case]] = trial.profile.control or trial.profile.own, latency_ns
    return sides


def _look(
    eager: ProfileSide,
    latency_ns: float,
    breaks: int | None,
    known: Sequence[tuple[tuple[float, ...], float]],
) -> Look:
    own, found = features(eager, latency_ns, breaks or 0), None
    if own is not None and known:
        columns = np.array([each for each, _ in known]), np.array([speedup for _, speedup in known])
        found = speedup_range(*columns, np.array(own))
    return Look(eager.matrix_fraction, eager.device_busy_fraction, breaks, len(known), found)
