"""What `advise` races, what a trial of it costs, and which trial comes next; and its look at each model of a
suite before any is compiled.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from operator import itemgetter
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from compilewatch.db.cause.trial_words import step_times
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, ConfigError, DatabaseError, one_line
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.race import Left, Race
from compilewatch.db.judge.statistics.screen import FEWEST, Screened, features, speedup_range
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import without_canaries, without_cancelled
from compilewatch.db.queries.records import trial_record
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import newest_profiled, trials_frame
from compilewatch.db.records.sampling_facts import ProfileSide
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import FailureKind, NumericsStatus, Task
from compilewatch.db.units import ratio, words
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.config.settings import Settings, StrategySettings, WorkloadSettings
from compilewatch.runner.output.progress import UnderWay
from compilewatch.runner.plan.durations import Case, Durations, TimeBudget
from compilewatch.runner.plan.selection import known_strategies
from compilewatch.runner.plan.trial_spec import Job, TrialSpec
from compilewatch.runner.process.saved_progress import SearchQuestion, SearchState
from compilewatch.runner.process.supervise import run_explained
from compilewatch.runner.search.environments import announce

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


_LOG = logging.getLogger("compilewatch.runner")


class Objective(StrEnum):
    """What a candidate is to have least of: time of a step, time of a sample of the batch, peak memory of a
    step, time to the first result, or time of a process of so many steps, its compilation included.
    """

    LATENCY = "latency"
    THROUGHPUT = "throughput"
    MEMORY = "memory"
    COLD_START = "cold-start"
    COST = "cost"


class Question(SearchQuestion):
    """For what a model's candidates are raced, with what torch and where."""

    folder: ClassVar[str] = "advise"

    objective: Objective
    steps: int | None
    restarts: int | None
    strategies: tuple[str, ...]
    device: str
    torch: str
    settings: tuple[str, ...]
    """What of the configuration changes speed."""


class State(SearchState):
    """The run that holds the trials."""

    question: Question
    run_id: str | None = None


# Of the compiler's options those that change what a step or a start costs, by the names they are raced under.
_OPTIONS: dict[str, dict[str, Any]] = {
    "freezing": {"freezing": True},
    "cpp-wrapper": {"cpp_wrapper": True},
    # On a CPU the autotuned templates of matrix products take constant weights alone.
    "freezing-autotuned": {"freezing": True, "max_autotune": True},
    "coordinate-descent": {"coordinate_descent_tuning": True},
    # A small model may not get back what starting the compiler's other processes takes.
    "one-compile-thread": {"compile_threads": 1},
    "half-the-activations": {"functorch.activation_memory_budget": 0.5},
}
# What can win most comes first, and what takes long to compile comes late.
_STEADY = ("default", "reduce-overhead", "freezing", "cpp-wrapper", "default+regional", "coordinate-descent")
_TUNED = ("max-autotune-no-cudagraphs", "max-autotune", "freezing-autotuned")
_COLD = (
    "default+warm",
    "default+regional",
    "default+regional+warm",
    "default",
    "one-compile-thread",
    "packaged",
    "default+portable",
)
_RACED: dict[Objective, tuple[str, ...]] = {
    Objective.LATENCY: (*_STEADY, "default+dynamic", *_TUNED),
    Objective.THROUGHPUT: (*_STEADY[:4], "max-autotune"),
    Objective.MEMORY: ("default", "reduce-overhead", "default+regional", "half-the-activations", "freezing"),
    Objective.COLD_START: _COLD,
    Objective.COST: (
        *_STEADY[:4],
        "default+warm",
        "default+regional",
        "default+regional+warm",
        "one-compile-thread",
        *_TUNED,
    ),
}
_TRAINING_ALONE = frozenset({"half-the-activations"})
_INFERENCE_ALONE = frozenset({"freezing", "freezing-autotuned", "packaged"})
_GPU_ALONE = frozenset({"coordinate-descent", "max-autotune-no-cudagraphs"})
_CPU_ALONE = frozenset({"freezing-autotuned"})
BATCHES = (2, 4)
"""Times its own batch, for throughput."""


def raced_strategies(objective: Objective, definition: WorkloadDefinition, device: str) -> list[str]:
    """The names of what is raced against eager for a workload on a device, in the order of first trials.

    What else means nothing there the plan leaves out, with its reason.
    """
    barred = _GPU_ALONE if device == "cpu" else _CPU_ALONE
    # What is frozen are weights, which a function has none of and a training step changes.
    barred |= _INFERENCE_ALONE if definition.task is not Task.INFERENCE else frozenset()
    barred |= _TRAINING_ALONE if definition.task is not Task.TRAINING else frozenset()
    if not definition.has_regions:
        barred |= {name for name in _RACED[objective] if "regional" in name}
    return [name for name in _RACED[objective] if name not in barred]


def with_candidates(settings: Settings, names: Sequence[str]) -> Settings:
    """`settings` with an entry for each of `names` that has none. Raises ConfigError where an entry of that
    name is something else.
    """
    known, own = known_strategies(settings), []
    for name, options in _OPTIONS.items():
        entry = StrategySettings(name=name, mode=None, options=options)
        if name not in known and name in names:
            own.append(entry)
        elif name in names and known[name].options != options:
            raise ConfigError(
                f"[[strategy]] {name!r} has other options than what `advise` races under that name.",
                "Give the entry another name.",
            )
    return settings.model_copy(update={"strategy": (*settings.strategy, *own)})


def with_batches(settings: Settings, definition: WorkloadDefinition) -> tuple[Settings, dict[str, int]]:
    """`settings` with the workload at several times its batch, and these batches by their names. Raises
    ConfigError for one without a batch size.
    """
    base = definition.batch_size
    if base is None:
        raise ConfigError(
            f"{definition.name} has no batch size to vary.", "Give its [[workload]] a `batch_size`."
        )
    entry = next((each for each in settings.workload if each.name == definition.name), None)
    entry = entry or WorkloadSettings(name=definition.name, target=definition.name)
    batches = {f"{definition.name}-b{base * times}": base * times for times in BATCHES}
    larger = tuple(
        entry.model_copy(update={"name": name, "batch_size": batch}) for name, batch in batches.items()
    )
    return settings.model_copy(update={"workload": (*settings.workload, *larger)}), batches


WARM = "+warm"


@dataclass(frozen=True)
class Price:
    """What a candidate is to have least of. For the cost of a process: of how many steps, and how often it
    starts again; None where every start finds what it has in its caches.
    """

    objective: Objective
    steps: int
    restarts: int | None = None

    def log_cost(self, trial: Mapping[str, Any], cold_ns: float) -> float | None:
        """What a trial costs, as a logarithm: against eager in its own process, for throughput and cold start
        in nanoseconds. None where the trial does not tell. `trial` is a row of a trials frame, `cold_ns` the
        compile cost of the same strategy from empty caches, NaN where that is not known.
        """

        def known(name: str) -> float:
            return math.nan if pd.isna(trial[name]) or trial[name] <= 0 else float(trial[name])

        latency, control = known("latency_ns"), known("control_latency_ns")
        if self.objective is Objective.LATENCY:
            cost = latency / control
        elif self.objective is Objective.THROUGHPUT:
            cost = latency / known("batch_size")
        elif self.objective is Objective.MEMORY:
            cost = known("peak_bytes") / known("control_peak_bytes")
        elif self.objective is Objective.COLD_START:
            cost = known("time_to_first_result_ns")
        else:
            paid = self._paid_ns(trial, cold_ns)
            cost = (paid + self.steps * latency) / (self.steps * control)
        return None if math.isnan(cost) else math.log(cost)

    def log_eager(self, trial: Mapping[str, Any]) -> float:
        """Logarithm of eager's cost in the trial, which `log_cost` is against; 0 where it is against none."""
        control = trial["control_latency_ns"]
        is_against = self.objective in (Objective.LATENCY, Objective.COST)
        return math.log(control) if is_against and control > 0 else 0.0

    def _paid_ns(self, trial: Mapping[str, Any], cold_ns: float) -> float:
        """Compile cost of a process, on average over all its starts: only the first finds empty caches."""
        if pd.isna(trial["trial_compile_cost_ns"]):
            return math.nan
        paid = max(0.0, float(trial["trial_compile_cost_ns"]))
        if self.restarts is None or math.isnan(cold_ns):
            return paid
        return (max(0.0, cold_ns) + self.restarts * paid) / (self.restarts + 1)


# Failures of the model or of this host: another candidate would fail as well.
_OF_THE_MODEL = (FailureKind.WORKLOAD_ERROR, FailureKind.IMPORT_ERROR, FailureKind.MISSING_COMPILER)


@dataclass
class Racing:
    """The race over the stored trials of one run. `cases` has the candidates by workload and strategy. Eager
    comes first, then what `Race.next_up` says, and at the end the choice from filled caches.
    """

    database: Database
    run_id: str
    race: Race
    cases: Mapping[Case, str]
    price: Price
    durations: Durations
    whys: dict[str, str] = field(default_factory=dict)
    """Of who left, in words."""
    broken: str | None = None
    """Why nothing of this model can be measured."""
    _noted: int = 0
    _stale: bool = True
    _measured: Counter[Case] = field(default_factory=Counter)
    _paid_ns: dict[Case, list[float]] = field(default_factory=dict)
    _quiet: bool = True

    def wanted(self, job: Job, *, budget: TimeBudget) -> bool:
        """Whether the trial is the one that comes next."""
        if job.is_canaries:
            return budget.admits(job)
        (spec,) = job.specs
        if self._stale:
            self.read()
        if _case(spec) != self._next(budget.remaining_s()) or not budget.admits(job):
            return False
        self._stale = True
        return True

    def read(self) -> None:
        """Note what was stored since; where the database is away, later."""
        try:
            frame = without_canaries(trials_frame(self.database, Filters(runs=(self.run_id,))))
        except DatabaseError as error:
            _LOG.warning("%s The race goes on when it is back.", error.message)
            return
        self._stale = False
        rows: list[dict[Any, Any]] = without_cancelled(frame).to_dict("records")
        for row in rows[self._noted :]:
            self._note({str(name): value for name, value in row.items()})
        self._noted, self._quiet = len(rows), False

    @property
    def measured(self) -> int:
        """Trials that were noted."""
        return self._noted

    def trials(self, name: str) -> int:
        """Trials of a candidate, those that failed too."""
        return sum(self._measured[case] for case, each in self.cases.items() if each == name)

    def seconds(self) -> dict[str, float]:
        """Expected seconds of a trial of each candidate."""
        return {name: self.durations.expected_s(case) for case, name in self.cases.items()}

    def _next(self, remaining_s: float) -> Case | None:
        if self.broken:
            return None
        cases = {name: case for case, name in self.cases.items()}
        eager, choice = cases[EAGER.name], self.race.choice()
        if not self._measured[eager]:
            return eager
        warm = cases[choice][0], cases[choice][1] + WARM
        has_warm = choice != EAGER.name and WARM not in choice and not self._measured[warm]
        price = self.seconds()
        final_s = price[choice] if has_warm else 0.0
        name = self.race.next_up(price, remaining_s - final_s)
        return cases[name] if name is not None else warm if has_warm else None

    def _note(self, trial: Mapping[str, Any]) -> None:
        case = str(trial["workload"]), str(trial["strategy"])
        self._measured[case] += 1
        if not pd.isna(trial["trial_compile_cost_ns"]):
            self._paid_ns.setdefault(case, []).append(float(trial["trial_compile_cost_ns"]))
        name = self.cases.get(case)
        if name is None:
            return
        before = set(self.race.left)
        kind = trial["failure_kind"]
        if trial["status"] == "ok" and trial["numerics_status"] != NumericsStatus.FAIL.value:
            cost = self.price.log_cost(trial, self._cold_ns(case))
            if cost is not None:
                self.race.note(name, cost, self.price.log_eager(trial))
            elif name != EAGER.name:
                self._leave(name, Left.FAILED, "nothing was measured of it")
        elif pd.isna(kind) or kind == FailureKind.WRONG_RESULT.value:
            self._leave(name, Left.WRONG, "its result is wrong")
        else:
            message = one_line(str(trial["failure_message"]).partition("\n")[0], 200).rstrip(".")
            self._leave(name, Left.FAILED, f"{words(str(kind))}: {message}")
            if kind in _OF_THE_MODEL:
                self.broken = f"{words(str(kind))}: {message}"
        for left in set(self.race.left) - before:
            gain = ratio(1.0 / self.race.against_eager(left)[0])
            self.whys.setdefault(left, f"{gain} of eager, shown to be worse than {self.race.leader}")
            if not self._quiet:
                announce(f"{left} leaves: {self.whys[left]}.")

    def _cold_ns(self, case: Case) -> float:
        """Mean compile cost from empty caches of a strategy from filled ones, so far; NaN of every other."""
        workload, strategy = case
        paid = self._paid_ns.get((workload, strategy.removesuffix(WARM)), []) if WARM in strategy else []
        return fmean(paid) if paid else math.nan

    def _leave(self, name: str, why: Left, text: str) -> None:
        self.whys[name] = text
        self.race.leave(name, why)


def _case(spec: TrialSpec) -> Case:
    return spec.workload.name, spec.strategy.name


def race_of(candidates: Sequence[str], objective: Objective, policy: Policy) -> Race:
    """Nothing of which is measured."""
    is_exact = objective not in (Objective.THROUGHPUT, Objective.COLD_START)
    return Race(candidates, policy, eager=EAGER.name, eager_is_exact=is_exact)
