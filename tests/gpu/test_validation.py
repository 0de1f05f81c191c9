"""The probes of a validation in a real process on the GPU."""

from __future__ import annotations

import pytest

from compilewatch.runner.cli.measure.validation import AimVerdict, plan_validation, probe, probe_checks
from compilewatch.runner.config.settings import Settings

pytestmark = pytest.mark.gpu


def test_the_probes_of_a_validation_have_a_figure_each(device):
    specs = plan_validation(Settings(), str(device), 3).trials[:4]
    found = probe(specs[0], [spec.workload for spec in specs], lambda: False)
    assert found.probes is not None, found.problem
    checks = list(probe_checks(found))
    for check in checks:
        print(f"{check.name}, {check.case}: {check.fact} ({check.aim}): {check.verdict.value}")
    unknown = [check for check in checks if check.verdict is AimVerdict.UNKNOWN]
    # A host-bound step has no agreement with do_bench, whose events hold the host's gaps.
    assert {check.name for check in unknown} <= {"do_bench_agreement"}
    assert [part.error for part in (*found.probes.workloads, found.probes.l2, found.probes.graph)] == [
        None
    ] * 6
