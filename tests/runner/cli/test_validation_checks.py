"""Every figure of a validation against its aim, on both sides of it, and what is printed of them."""

from __future__ import annotations

from typing import Any

import pytest

from compilewatch.db.judge.statistics.noise_floor import Scatter
from compilewatch.db.records.trial import Trial
from compilewatch.db.records.vocabulary import Bound
from compilewatch.runner.cli.measure.validation import (
    AimVerdict,
    Check,
    Probed,
    Probes,
    aim_cv,
    gate_checks,
    probe_checks,
    variation_checks,
)
from tests.builders import make_timed, make_timing

US = 1_000.0


def scatter(metric: str, cv: float) -> Scatter:
    return Scatter(metric, "mlp", "default", Bound.DEVICE, cv, 10)


@pytest.mark.parametrize(
    ("metric", "cv", "verdict"),
    [
        # 5 % with five trials a side; the host's part, and all that it is in, with thirty.
        ("device_time", 0.0177, AimVerdict.MET),
        ("device_time", 0.0178, AimVerdict.MISSED),
        ("speedup", 0.0178, AimVerdict.MISSED),
        ("issue_time", 0.0434, AimVerdict.MET),
        ("issue_time", 0.0435, AimVerdict.MISSED),
        ("latency", 0.0434, AimVerdict.MET),
        ("wall_pipelined", 0.0435, AimVerdict.MISSED),
    ],
)
def test_variation_has_an_aim_by_clock(metric: str, cv: float, verdict: AimVerdict) -> None:
    (check,) = variation_checks([scatter(metric, cv)])
    assert (check.name, check.case, check.value, check.verdict) == (metric, "mlp / default", cv, verdict)
    assert aim_cv(metric) in (pytest.approx(0.01775, rel=1e-3), pytest.approx(0.04347, rel=1e-3))


def timed(samples: int, verified: int, **control: Any) -> Trial:
    timing = make_timing()
    gate = timing.side.gate.model_copy(update={"samples": samples, "verified": verified})
    sides = {"side": timing.side.model_copy(update={"gate": gate}), "control": None}
    if control:
        sides["control"] = timing.side.model_copy(update={"gate": None, **control})
    return make_timed(timing=timing.model_copy(update=sides))


def test_the_share_of_verified_samples_is_over_all_of_them() -> None:
    (met,) = gate_checks([timed(100, 100), timed(300, 297)])
    assert (met.value, met.verdict, met.fact) == (397 / 400, AimVerdict.MET, "99.2 % of 400 samples")
    (missed,) = gate_checks([timed(100, 98)])
    assert (missed.value, missed.verdict) == (0.98, AimVerdict.MISSED)


def test_a_side_without_a_gate_is_said_and_misses_the_aim() -> None:
    (check,) = gate_checks([timed(100, 100, method="cupti")])
    assert (check.value, check.verdict) == (1.0, AimVerdict.MISSED)
    assert check.fact == "100 % of 100 samples; 1 of 2 sides not gated"
    (none,) = gate_checks([])
    assert (none.value, none.verdict, none.fact) == (None, AimVerdict.MISSED, "no gate held any step")


def probed(**changes: Any) -> dict[str, Check]:
    workload = {
        "workload": "mlp",
        "gated_ns": 232 * US,
        "wall_pipelined_ns": 233 * US,
        "do_bench_ratio": 0.995,
        "kernels_ns": 230 * US,
        "launches": 9.0,
        "graph_launches": 0,
        "streams": 1,
    }
    whole: dict[str, Any] = {
        "has_do_bench": True,
        "workloads": [workload | changes.pop("workload", {})],
        "l2": {"read_bytes": 25 << 20, "warm_ns": 10 * US, "cold_ns": 14 * US} | changes.pop("l2", {}),
        "graph": {"kernels": 200, "gated_ns": 400 * US, "launches": 1.0, "graph_launches": 1, "streams": 1}
        | changes.pop("graph", {}),
    }
    checks = list(probe_checks(Probed(Probes.model_validate(whole | changes))))
    assert len(checks) == 4
    return {check.name: check for check in checks}


def test_probes_that_reach_every_aim() -> None:
    found = probed()
    assert {name: check.verdict for name, check in found.items()} == dict.fromkeys(found, AimVerdict.MET)
    assert found["cupti_agreement"].value == pytest.approx(232 / 230)
    assert found["l2_flush"].value == pytest.approx(0.4)
    assert found["l2_flush"].fact == "+40.0 %: 10.0 µs cached, 14.0 µs flushed"
    assert found["graph_launches"].fact == "1 of 1 launch, 400 µs gated"


@pytest.mark.parametrize(
    ("name", "changes", "verdict"),
    [
        # 230 us of kernels, 2 % of them and 2 us a launch and once more: 254.6 us
        ("cupti_agreement", {"workload": {"gated_ns": 254.5 * US}}, AimVerdict.MET),
        ("cupti_agreement", {"workload": {"gated_ns": 254.7 * US}}, AimVerdict.MISSED),
        ("cupti_agreement", {"workload": {"gated_ns": 225.3 * US}}, AimVerdict.MISSED),
        ("cupti_agreement", {"workload": {"gated_ns": None}}, AimVerdict.UNKNOWN),
        ("cupti_agreement", {"workload": {"kernels_ns": None}}, AimVerdict.UNKNOWN),
        ("do_bench_agreement", {"workload": {"do_bench_ratio": 1.021}}, AimVerdict.MISSED),
        ("do_bench_agreement", {"workload": {"do_bench_ratio": 0.979}}, AimVerdict.MISSED),
        ("do_bench_agreement", {"workload": {"do_bench_ratio": None}}, AimVerdict.UNKNOWN),
        ("l2_flush", {"l2": {"cold_ns": 10.4 * US}}, AimVerdict.MISSED),
        ("l2_flush", {"l2": {"warm_ns": None}}, AimVerdict.UNKNOWN),
        ("graph_launches", {"graph": {"launches": 200.0, "graph_launches": 0}}, AimVerdict.MISSED),
        ("graph_launches", {"graph": {"graph_launches": None}}, AimVerdict.UNKNOWN),
    ],
)
def test_each_probe_on_the_other_side_of_its_aim(
    name: str, changes: dict[str, Any], verdict: AimVerdict
) -> None:
    found = probed(**changes)
    assert found.pop(name).verdict is verdict
    assert {check.verdict for check in found.values()} == {AimVerdict.MET}
