"""Every constant of the judge, in one place, with its source; overridable per workload and per metric.

Sources named below:

- Smyth 2004: "Linear models and empirical Bayes methods for assessing differential expression",
  Statistical Applications in Genetics and Molecular Biology 3(1), article 3.
- Benjamini & Hochberg 1995: "Controlling the false discovery rate", J. R. Statist. Soc. B 57(1), 289-300.
- Schuirmann 1987: two one-sided tests, J. Pharmacokinet. Biopharm. 15(6), 657-680.
- Celisse et al. 2018: kernel change points, "New efficient algorithms for multiple change-point detection
  with reproducing kernels", Comput. Statist. Data Anal. 128, 200-220; as `ruptures.KernelCPD`.
- measured: the tables of docs/measured/verdicts.md, printed by tests/qa/benchmarks/.

Every constant of a policy with its value and meaning, as the Guide and reports list them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from compilewatch.db.columns.column import Threshold
from compilewatch.db.columns.metrics import METRICS, is_counted
from compilewatch.db.records.fields import Closed
from compilewatch.db.records.vocabulary import Metric

Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Effect = Annotated[float, Field(gt=0, le=2, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Thresholds(Closed):
    """Relative sizes of change that matter for one metric; compared on the log scale, so that a change
    and its reverse are judged alike.
    """

    minimum_effect: Effect
    """smallest change that is called regressed or improved"""
    unchanged_margin: Effect
    """unchanged means: shown to lie within this margin"""

    @model_validator(mode="after")
    def _margin_holds_the_effect(self) -> Self:
        if self.unchanged_margin < self.minimum_effect:
            raise ValueError("unchanged_margin must be at least minimum_effect")
        return self


class Override(Closed):
    """Other thresholds where `workload` (a shell-style pattern) and `metric` fit; the last fitting wins."""

    workload: str = "*"
    strategy: str = "*"
    metric: Metric | None = None
    minimum_effect: Effect | None = None
    unchanged_margin: Effect | None = None

    @model_validator(mode="after")
    def _overrides_something(self) -> Self:
        if self.minimum_effect is None and self.unchanged_margin is None:
            raise ValueError("an override needs minimum_effect or unchanged_margin")
        if self.metric is not None and is_counted(self.metric):
            raise ValueError(f"{self.metric} is compared exactly and has no thresholds")
        if self.minimum_effect is not None and self.unchanged_margin is not None:
            Thresholds(minimum_effect=self.minimum_effect, unchanged_margin=self.unchanged_margin)
        return self

    def fits(self, workload: str, strategy: str, metric: Metric) -> bool:
        """Whether it is for this metric of this case, by their names."""
        return (
            fnmatchcase(workload, self.workload)
            and fnmatchcase(strategy, self.strategy)
            and self.metric in (None, metric)
        )


class HistoryPolicy(Closed):
    """How change points of a series are found and announced."""

    window: int = Field(default=200, ge=20)
    """nights that are judged; older ones are settled (measured)"""
    minimum_segment: int = Field(default=5, ge=2)
    """shortest stretch between changes (measured)"""
    candidate_penalty: Positive = 4.0
    """penalty of ruptures.KernelCPD, rbf kernel (Celisse et al. 2018; measured)"""
    kernel_gamma: Positive = 0.2
    """kernel exp(-gamma d^2), d in deviations of the noise: points three deviations apart are far, and an
    outlier is no farther (measured)
    """
    p_value: Share = 0.01
    """Mann-Whitney p of a boundary times the number of positions (measured)"""
    nightly_p_value: Share = 0.003
    """the same where each night's newest point is judged as it comes: every night is another chance for a
    false alarm (measured)
    """
    lasting_p_value: Share = 0.02
    """the same for a change of the last points_per_side nights that stood on each of the last lasting_nights
    nights: chance passes (measured)
    """
    lasting_nights: int = Field(default=3, ge=1)
    """nights in a row that weaker evidence has to last (measured)"""
    obvious_size: Positive = 6.0
    """a step of this many deviations of the points needs no rank test (measured)"""
    points_per_side: int = Field(default=60, ge=5)
    """points per side that enter the boundary's test (measured)"""
    autocorrelation_limit: Share = 0.7
    """z is shrunk by sqrt((1-rho)/(1+rho)), rho at most this (measured)"""
    minimum_effect: Effect = 0.02
    """smallest step that is announced (measured)"""
    quiet_points: int = Field(default=12, ge=0)
    """nothing is announced within this many points of an announced one (measured)"""
    two_mode_bic_gain: Positive = 10.0
    """BIC by which two modes must beat one before a series is called two-mode (Kass & Raftery 1995, J. Am.
    Statist. Assoc. 90, 773-795: above 10 is very strong)
    """
    two_mode_separation: Positive = 2.0
    """distance of the modes in their own SDs (Ashman et al. 1994, Astron. J. 108, 2348: above 2 is a clean
    separation)
    """
    two_mode_share: Share = 0.1
    """smallest share of points of the rarer mode"""
    two_mode_visits: int = Field(default=4, ge=3)
    """stretches in two alternating modes before another one counts as a flip, not a change (measured)"""
    two_mode_reach: Positive = 2.5
    """deviations from a mode within which a point belongs to it (measured)"""
    two_mode_within: Share = 0.9
    """share of the points after a step that lie in earlier modes: a flip (measured)"""
    steady_ratio: Positive = 1.5
    """mean square successive difference over variance, 2 for a steady series (von Neumann 1941, Ann. Math.
    Statist. 12, 367-395); below this the search for steps comes before the spread
    """
    trend_points: int = Field(default=20, ge=5)
    """fewest points a trend is predicted from"""
    group_days: Positive = 3.0
    """changes this close in time on one machine, one way, are one event"""
    whole_run_share: Share = 0.5
    """a run with a smaller share of its suite's earlier cases is partial: none is missing"""
    drift_points: int = Field(default=10, ge=3)
    """points compared with the pinned reference build"""

    @property
    def fewest_runs(self) -> int:
        """The fewest in which a change of level is looked for."""
        return 2 * self.minimum_segment

    def at(self, p_value: float) -> HistoryPolicy:
        """The same rules at another p of a boundary."""
        return self.model_copy(update={"p_value": p_value})


class ConfirmPolicy(Closed):
    """When a suspicion is measured again, and how much that may cost."""

    suspect_p_value: Share = 0.10
    """p up to which a case is suspected (measured)"""
    suspect_effect: Effect = 0.015
    """change from which a case is suspected (measured)"""
    fresh_trials: int = Field(default=7, ge=3)
    """fresh interleaved trials a side that decide a suspicion (measured)"""
    budget_trials: int = Field(default=280, ge=0)
    """most extra trials of one confirmation, both sides together"""


_THRESHOLDS = {
    Threshold.FINE: Thresholds(minimum_effect=0.02, unchanged_margin=0.03),
    Threshold.COARSE: Thresholds(minimum_effect=0.05, unchanged_margin=0.05),
}


def _default_thresholds() -> dict[Metric, Thresholds]:
    """Of what two builds are compared by, then of what only a history follows."""
    metrics = sorted(Metric, key=lambda metric: not METRICS[metric].judged)
    named = ((metric, METRICS[metric].threshold) for metric in metrics)
    return {metric: _THRESHOLDS[threshold] for metric, threshold in named if threshold in _THRESHOLDS}


class Policy(Closed):
    """The judge's constants. `Policy()` is the default policy."""

    false_discovery_rate: Share = 0.05
    """largest expected share of false ones among the changes announced for a metric (Benjamini & Hochberg
    1995)
    """
    few_trials: int = Field(default=4, ge=2)
    """fewer trials than this on a side are held to few_trials_rate (measured)"""
    few_trials_rate: Share = 0.03
    """the same where a side has few trials: three of one mode and three of another differ without noise
    (measured)
    """
    gpu_few_trials_rate: Share = 0.02
    """the same on a GPU with exactly few_trials a side, the fewest at which noisy cases are announced
    (measured)
    """
    noisy_class_cv: Positive = 0.03
    """in a class that scatters more, a change over few trials is suspected until confirmed (measured)"""
    obvious_size: Positive = 6.0
    """a change of this many deviations of a trial of its class is obvious and needs no confirmation
    (measured)
    """
    obvious_factor: float = Field(default=1.25, gt=1.0, allow_inf_nan=False)
    """so is one where every trial of one side is beyond every one of the other by this factor, if no two
    trials of one side of the class differ by as much as the sides (measured)
    """
    rank_trials: int = Field(default=10, ge=5)
    """trials a side from which a case with two modes is judged by ranks (measured)"""
    advice_effect: Effect = 0.05
    """change of latency and speedup that advice on more trials plans for"""
    advice_power: Share = 0.80
    """how likely the trials advised find such a change"""
    advice_trials: int = Field(default=30, ge=3)
    """trials a side above which the advice is that this clock cannot show it"""
    equivalence_level: Share = 0.05
    """level of each of the two one-sided tests behind unchanged (Schuirmann 1987)"""
    confidence: Share = 0.95
    """coverage of the interval around a change between two sides, and around a drift"""
    minimum_trials: int = Field(default=3, ge=2)
    """trials a side for a verdict (measured)"""
    minimum_trials_with_history: int = Field(default=2, ge=2)
    """trials a side that suffice when the series has a long history (measured)"""
    long_history_runs: int = Field(default=20, ge=3)
    """past runs that make a history long (measured)"""
    history_runs: int = Field(default=30, ge=1)
    """past runs of each case that its noise is learnt from, those nearest to the head, and at least
    long_history_runs; more would only be older, as history_df_limit caps what they lend
    """
    history_df_limit: int = Field(default=20, ge=1)
    """most degrees of freedom a history may lend to a case (measured)"""
    prior_df_limit: float = Field(default=50.0, gt=0)
    """most degrees of freedom of the prior over all cases (Smyth 2004; measured)"""
    outlier_level: Share = 0.01
    """a case noisier than this upper tail of the prior has its own variance (measured)"""
    pairing_gain: Share = 0.7
    """pairs replace runs as blocks when they leave less than this share of the variance: pairing costs half
    the degrees of freedom (measured)
    """
    noise_floor: Positive = 0.002
    """smallest run-to-run CV believed (measured)"""
    between_run_floor: float = Field(default=0.005, ge=0)
    """smallest between-run CV where the sides come from different runs (measured)"""
    run_cv: Positive = 0.025
    """between-run CV of a machine whose runs nobody knows: scale of a Student t with run_cv_df that covers
    the night-to-night changes of public series (measured)
    """
    run_cv_alone: Positive = 0.05
    """the same where nothing shows the noise between runs: no canary, no past, no other case (measured)"""
    run_cv_df: Positive = 3.0
    """degrees of freedom of run_cv: how heavy its tails are (measured)"""
    run_ratio_share: Share = 1 / 3
    """part of the noise between runs that is left in a speedup, both of whose times are of one process
    (measured)
    """
    run_surprise: Positive = 6.0
    """times run_cv that other cases of the same runs can show as noise between runs: beyond it they have
    changed (measured)
    """
    run_neighbours: int = Field(default=8, ge=3)
    """cases from which what two runs have in common is told from what one has (measured)"""
    suspect_z: Positive = 3.0
    """|z| on the series' own history from which a single trial is suspected (measured)"""
    canary_share: Share = 0.5
    """share of a change of device time that must be gone in cycles to blame the machine"""
    host_canary_workloads: str = "canary-launch*"
    """of the canaries on a GPU those that measure the host; the others measure the device"""
    host_bound_ratio: float = Field(default=1.10, gt=1.0)
    """a case is host-bound where a step takes longer than this many times its device time"""
    canary_workloads: str = "canary*"
    """pattern of the workloads that measure the machine, not the software"""
    run_visible: Effect = 0.50
    """between separate runs, which show no case unchanged, it is enough that a change of this size would be
    seen
    """
    open_change: Effect = 0.10
    """a change for the worse that nobody could decide leaves the whole open from this size on"""
    decided_share: Share = 0.5
    """a comparison that decides fewer of its rows, or of its latencies and speedups, is inconclusive as a
    whole
    """
    thresholds: dict[Metric, Thresholds] = Field(default_factory=_default_thresholds)
    overrides: tuple[Override, ...] = ()
    history: HistoryPolicy = HistoryPolicy()
    confirm: ConfirmPolicy = ConfirmPolicy()

    @field_validator("thresholds", mode="after")
    @classmethod
    def _every_measured_metric_has_thresholds(
        cls, thresholds: dict[Metric, Thresholds]
    ) -> dict[Metric, Thresholds]:
        for metric in thresholds:
            if is_counted(metric):
                raise ValueError(f"{metric} is compared exactly and has no thresholds")
        return _default_thresholds() | thresholds

    def for_case(self, workload: str, strategy: str, metric: Metric) -> Thresholds:
        """Thresholds in force for one case and metric, overrides applied in their order."""
        thresholds = self.thresholds.get(metric) or _THRESHOLDS[Threshold.COARSE]
        for override in self.overrides:
            if override.fits(workload, strategy, metric):
                effect = override.minimum_effect or thresholds.minimum_effect
                margin = override.unchanged_margin or thresholds.unchanged_margin
                thresholds = Thresholds(minimum_effect=effect, unchanged_margin=max(effect, margin))
        return thresholds

    def with_margin(self, minimum_effect: float) -> Policy:
        """The same policy with another minimum effect of latency and speedup (`compare --margin`)."""
        margin = max(minimum_effect, _default_thresholds()[Metric.LATENCY].unchanged_margin)
        overrides = tuple(
            Override(metric=metric, minimum_effect=minimum_effect, unchanged_margin=margin)
            for metric in (Metric.LATENCY, Metric.SPEEDUP)
        )
        return Policy.model_validate(self.model_dump() | {"overrides": (*self.overrides, *overrides)})

    def shared_over(self, looks: int) -> Policy:
        """The same policy where trials are judged up to `looks` times and the first change shown counts: each
        time gets its part of the level (Bonferroni).
        """
        rates = ("false_discovery_rate", "few_trials_rate", "gpu_few_trials_rate")
        return self.model_copy(update={name: getattr(self, name) / looks for name in rates})

    def to_json(self) -> dict[str, Any]:
        """Every threshold in force, as `compare --json` prints it and a frozen report keeps it."""
        return self.model_dump(mode="json")


class Target(Closed):
    """`[[target]]`: budgets of the workloads and strategies that fit the shell-style patterns."""

    workload: str = "*"
    strategy: str = "*"
    latency_p95_ns: Positive | None = None
    latency_p99_ns: Positive | None = None
    throughput_per_s: Positive | None = None
    compile_cost_ns: Positive | None = None
    peak_bytes: Positive | None = None
    speedup: Positive | None = None
    break_even_steps: Positive | None = None
    time_to_first_result_ns: Positive | None = None
    graph_breaks: Annotated[int, Field(ge=0)] | None = None
    recompiles: Annotated[int, Field(ge=0)] | None = None
    ops_captured: Positive | None = None
    compiled_share: Annotated[float, Field(gt=0, le=1)] | None = None
    recompile_limit_hit: Annotated[int, Field(ge=0)] | None = None
    cudagraph_launches: Positive | None = None
    cudagraph_skips: Annotated[int, Field(ge=0)] | None = None
    cache_bypasses: Annotated[int, Field(ge=0)] | None = None
    cache_hit_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    compiles_after_ready: Annotated[int, Field(ge=0)] | None = None
    gpu_utilization_percent: Positive | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if not self.limits():
            raise ValueError("a target needs at least one limit, such as latency_p95_ns")
        return self

    def limits(self) -> dict[str, float]:
        """What is limited, by name, in the units of the names."""
        named = self.model_dump(exclude={"workload", "strategy"}, exclude_none=True)
        return {name: float(value) for name, value in named.items()}

    def fits(self, workload: str, strategy: str) -> bool:
        """Whether the case has this target. The machine's canaries have none, unless a target names them."""
        # pandas takes a while to import, and most readers of a target never judge.
        from compilewatch.db.metrics.eligibility import is_canary

        if is_canary(workload) and not is_canary(self.workload):
            return False
        return fnmatchcase(workload, self.workload) and fnmatchcase(strategy, self.strategy)


class PolicyEntry(Closed):
    """One constant, as the Guide lists it."""

    name: str
    value: str
    meaning: str


def policy_entries(policy: Policy) -> list[PolicyEntry]:
    """Every constant of `policy` with its value, meaning and source, in reading order."""
    return list(_entries(policy, ""))


def _entries(part: BaseModel, prefix: str) -> Iterator[PolicyEntry]:
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        if isinstance(value, BaseModel):
            yield from _entries(value, f"{prefix}{name}.")
        elif name == "thresholds":
            for metric, thresholds in value.items():
                yield from _entries(thresholds, f"{prefix}thresholds.{metric.value}.")
        elif name == "overrides":
            for index, override in enumerate(value):
                text = ", ".join(
                    f"{k} {v}" for k, v in override.model_dump(mode="json").items() if v is not None
                )
                yield PolicyEntry(name=f"overrides[{index}]", value=text, meaning="set in the configuration")
        else:
            meaning = " ".join((field.description or "").split())
            yield PolicyEntry(name=prefix + name, value=str(value), meaning=meaning)
