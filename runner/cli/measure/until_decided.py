"""`compilewatch run --until-decided`: both sides by turns, until each case is decided or the time is over.

The base is the commit that the checkout started from, in a work tree of its own, as `gate --confirm run`
measures it; of several builds each is the base of the next. Where there is no such commit, trials of the
checkout are added against the run that is stored. After so many trials a side as `db.judge.statistics.looks`
says, the cases that are decided drop out.
"""

from __future__ import annotations

import logging
import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pandas import DataFrame
from ulid import ULID

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, DatabaseError, NotFoundError
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.compare.whole import outlooks, still_open
from compilewatch.db.judge.results import Comparison
from compilewatch.db.judge.statistics.looks import LOOKS
from compilewatch.db.metrics.eligibility import without_canaries, without_cancelled
from compilewatch.db.queries.codes import interleaved_runs
from compilewatch.db.queries.named import recorded_builds
from compilewatch.db.queries.run_parts import run_status
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.identity import SHORT_COMMIT
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.units import plural
from compilewatch.db.verdicts import gateway
from compilewatch.runner.catalog.work_tree import WorkTree, work_tree_of
from compilewatch.runner.cli.judge.confirm import with_code_of
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.output.comparison_text import decided_lines
from compilewatch.runner.output.progress import Wanted
from compilewatch.runner.plan.durations import Case, Durations, TimeBudget
from compilewatch.runner.plan.host_stacks import HostStacks, MissingBuildError
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.plan.selection import ResolvedSuite
from compilewatch.runner.plan.trial_spec import Job, TrialSpec
from compilewatch.runner.regressions.judged_runs import Head, base_commit, machine_here, sides_by_code
from compilewatch.runner.regressions.log import compare_runs

_LOG = logging.getLogger("compilewatch.runner")

MOST_PLANNED = 4_000
"""Trials of all cases and sides together: a plan is made before anybody knows how many it takes."""
_SHORTEST_TRIAL_S = 1.0
_HOUR_S = 3600.0
_FEWEST_ROUNDS = int(LOOKS[0])


def require_minutes(minutes: float | None) -> None:
    """Raise ConfigError where nobody says when it ends."""
    if minutes is None:
        raise ConfigError("--until-decided needs a time at which it ends.", "Add --minutes 20.")


def most_rounds(minutes: float | None, selection: ResolvedSuite, builds: int) -> int:
    """So many trials a side of each case are planned: more than there is time for, within `MOST_PLANNED`."""
    cases, sides = len(selection.workloads) * len(selection.strategies), max(2, builds)
    in_time = 60.0 * (minutes or 0.0) / (sides * _SHORTEST_TRIAL_S)
    return max(_FEWEST_ROUNDS, math.ceil(min(in_time, MOST_PLANNED / (sides * cases))))


Compare = Callable[[], Sequence[Comparison]]


@dataclass
class Sides:
    """`plan` has what is measured, `head` the runs that are judged, `begun` those of an earlier command that
    go on. `wanted` decides of every trial, None where all are. What `fresh` trials show is confirmed by them.
    """

    plan: Plan
    head: tuple[str, ...]
    begun: tuple[str, ...] = ()
    fresh: bool = False
    wanted: Wanted | None = None

    def lines(self, durations: Durations, budget: TimeBudget) -> list[str]:  # noqa: ARG002
        """What to say at the end of what was not measured."""
        unmeasured = budget.unmeasured_text()
        return [f"compilewatch: {unmeasured}"] if unmeasured else []


@dataclass
class UntilDecided(Sides):
    """Trials of `plan` are measured while their case is open. `compare` judges what is stored by now, and
    `goes_on` says whether the same command would go on with these trials.
    """

    compare: Compare = list
    goes_on: bool = False
    counts: Counter[tuple[Case, str]] = field(default_factory=Counter)
    open: set[Case] = field(default_factory=set)
    _round: int = -1
    _looked_at: int = 0
    _chosen: dict[tuple[Case, int], Collection[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.wanted = self._wanted
        self.open = {_case(spec) for spec in self.plan.trials}
        self._look()

    def _wanted(self, job: Job, *, budget: TimeBudget) -> bool:
        """Whether the trial is one of an open case; its sides are measured together or not at all."""
        if job.is_canaries:
            return budget.admits(job)
        (spec,) = job.specs
        if spec.round != self._round:
            self._round = spec.round
            self._look()
        case = _case(spec)
        if (case, spec.round) not in self._chosen:
            runs = self._behind(case) if case in self.open else ()
            fits = bool(runs) and budget.admits(job, together=len(runs))
            self._chosen[case, spec.round] = runs if fits else ()
        if spec.run_id not in self._chosen[case, spec.round]:
            return False
        self.counts[case, spec.run_id] += 1
        return True

    def lines(self, durations: Durations, budget: TimeBudget) -> list[str]:  # noqa: ARG002
        """What is decided, what is open, and what one more hour would show of it."""
        try:
            comparisons = self.compare()
        except NotFoundError:
            return []
        rows = [row for each in comparisons for row in still_open(each)]
        seconds = sum(durations.expected_s((row.workload, row.strategy)) for row in rows)
        sides = len(self.plan.runs)
        more = int(_HOUR_S / (sides * seconds)) if rows else 0
        lines = [line for each in comparisons for line in decided_lines(each, list(outlooks(each, more)))]
        if rows and self.goes_on:
            lines.append("The same command again goes on with these trials.")
        return lines

    def _behind(self, case: Case) -> tuple[str, ...]:
        """The runs with fewest trials of the case: all of them, but where an earlier command was ended."""
        runs = [run.run_id for run in self.plan.runs]
        fewest = min(self.counts[case, run] for run in runs)
        return tuple(run for run in runs if self.counts[case, run] == fewest)

    def _look(self) -> None:
        """Judge what is stored where an open case has come to a look that it has not had."""
        runs = [run.run_id for run in self.plan.runs]
        most = max((min(self.counts[case, run] for run in runs) for case in self.open), default=0)
        look = int(LOOKS[most >= LOOKS].max(initial=0))
        if look <= self._looked_at:
            return
        self._looked_at = look
        try:
            comparisons = self.compare()
        except NotFoundError:
            # Nothing to be judged against, which is said at the end: the usual number of trials will do.
            self.open = set()
        except DatabaseError as error:
            _LOG.warning("%s Nothing was judged after %s a side.", error.message, plural(look, "trial"))
        else:
            compared = {(row.workload, row.strategy) for each in comparisons for row in each.rows}
            undecided = {(row.workload, row.strategy) for each in comparisons for row in still_open(each)}
            # What is compared nowhere fails: more trials decide nothing.
            self.open = {case for case in self.open if case in undecided or not compared}


def _case(spec: TrialSpec) -> Case:
    return spec.workload.name, spec.strategy.name


@contextmanager
def until_decided(plan: Plan, database: Database, settings: Settings) -> Iterator[UntilDecided]:
    """`plan` with the base beside it, where there is one to be measured; says what is measured."""
    runs = tuple(run.model_copy(update={"planned_trials": None}) for run in plan.runs)
    plan = plan.model_copy(update={"runs": runs})
    run_ids = tuple(run.run_id for run in runs)
    if len(runs) > 1:
        yield UntilDecided(
            *(plan, run_ids), fresh=True, compare=lambda: [*compare_runs(database, run_ids, settings)]
        )
        return
    with ExitStack() as stack:
        try:
            tree, *commits = _commits(plan, settings)
            of_base = stack.enter_context(with_code_of(tree, *commits))
        except (ConfigError, NotFoundError) as error:
            print(f"compilewatch: The base is not measured: {error.message}", file=sys.stderr)
            print(f"  {error.next_step} Trials are added against the run that is stored.", file=sys.stderr)
            yield _against_stored(plan, database, settings)
            return
        yield _by_turns(of_base, plan, database, settings, tree, commits)


def _commits(plan: Plan, settings: Settings) -> tuple[WorkTree, str, str]:
    """The work tree, the commit that its change started from, and the one that is checked out."""
    tree = WorkTree.around(settings.project_root)
    measured = {work_tree_of(spec.workload.target, spec.workload.path) for spec in plan.trials}
    if tree is None or tree.root not in {each.root for each in measured if each is not None}:
        raise ConfigError("No workload is code of a git work tree.", "Name one that is: --workload NAME.")
    return tree, base_commit(tree), str(tree.state().commit)


def _against_stored(plan: Plan, database: Database, settings: Settings) -> UntilDecided:
    (run,) = plan.runs
    workloads = Filters(workloads=tuple({spec.workload.name for spec in plan.trials}))

    def compare() -> Sequence[Comparison]:
        stored = sides_by_code(database, settings, Head(Selection(name=run.run_id, run_ids=(run.run_id,))))
        return _compared(database, stored.base, stored.head, settings, workloads)

    return UntilDecided(plan, (run.run_id,), compare=compare)


def _by_turns(
    of_base: Callable[[Plan], Plan],
    plan: Plan,
    database: Database,
    settings: Settings,
    tree: WorkTree,
    commits: Sequence[str],
) -> UntilDecided:
    names = [each[:SHORT_COMMIT] for each in commits]
    is_dirty = bool(tree.state().dirty)
    begun = () if is_dirty else _begun_before(database, commits)
    frame = without_cancelled(trials_frame(database, Filters(runs=begun or ("none",))))
    if not _is_interpreter_of(frame, plan, database, settings):
        begun = ()
    # The head is the newer one.
    new = sorted((str(ULID()), plan.runs[0].run_id))
    base, head = begun or new

    def compare() -> Sequence[Comparison]:
        before, after = (
            Selection(name=f"commit={name}", run_ids=(run,))
            for name, run in zip(names, (base, head), strict=True)
        )
        return _compared(database, before, after, settings, Filters())

    if begun and run_status(database, head) is RunStatus.FINISHED and not any(map(still_open, compare())):
        # All was decided: this is a new question.
        begun, (base, head) = (), new
    if begun:
        trials = plural(len(without_canaries(frame)), "trial")
        print(f"compilewatch: Run {head} goes on, with {trials} of both commits so far.", file=sys.stderr)
    return UntilDecided(
        *(of_base(_doubled(plan, base, head)), (head,)),
        begun=begun,
        fresh=True,
        compare=compare,
        goes_on=not is_dirty,
        counts=_counts(frame) if begun else Counter(),
    )


def _doubled(plan: Plan, base: str, head: str) -> Plan:
    """Every trial of `plan` also in a run before it, `base`: A B, B A, so that neither goes first."""
    (run,) = plan.runs
    places: Counter[int] = Counter()
    trials = []
    for spec in plan.trials:
        mine = spec.model_copy(update={"run_id": head})
        other = spec.model_copy(update={"run_id": base, "trial_id": str(ULID())})
        place = places[spec.round]
        trials += [other, mine] if (place + spec.round) % 2 == 0 else [mine, other]
        places[spec.round] += 1
    runs = tuple(run.model_copy(update={"run_id": each}) for each in (base, head))
    return plan.model_copy(update={"runs": runs, "trials": tuple(trials)})


def _begun_before(database: Database, commits: Sequence[str]) -> tuple[str, ...]:
    """The runs of base and head that an earlier command began on this machine; none where there are none."""
    machine = machine_here(database)
    if machine is None:
        return ()
    with database.read() as connection:
        return interleaved_runs(connection, commits[0], commits[1], machine, until_decided=True) or ()


def _is_interpreter_of(frame: DataFrame, plan: Plan, database: Database, settings: Settings) -> bool:
    """Whether all `frame` was measured with the build that `plan` measures with."""
    builds = recorded_builds(database, set(frame["build_id"]))
    if len(builds) != 1:
        return False
    try:
        known = HostStacks.read(settings).build_like(builds[0])
    except MissingBuildError:
        return False
    return Path(known.python) == Path(plan.runs[0].interpreter or sys.executable)


def _counts(frame: DataFrame) -> Counter[tuple[Case, str]]:
    """How many trials of each case each run has, failed ones too."""
    cases = zip(frame["workload"], frame["strategy"], frame["run_id"], strict=True)
    return Counter(((str(workload), str(strategy)), str(run)) for workload, strategy, run in cases)


def _compared(
    database: Database, base: Selection, head: Selection, settings: Settings, filters: Filters
) -> Sequence[Comparison]:
    try:
        return [gateway.compare(database, base, head, filters, policy=settings.policy)]
    except VerdictError:
        # A side has no trial yet.
        return []
