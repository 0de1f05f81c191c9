"""The large history rests on verdicts as every door gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.verdicts.gateway import compare
from compilewatch.db.verdicts.sides import resolve_side
from tests.qa.benchmarks import large_history

_NIGHTS, _REPEATS = 3, 3


def test_what_is_recorded_counts_as_a_comparison_counts_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both know the past of the series, by which a case is slower, unchanged or undecided."""
    monkeypatch.setattr(large_history, "DEVICES", large_history.DEVICES[:1])
    url = f"sqlite:///{tmp_path / 'history.db'}"
    large_history.write_history(url, large_history.SERIES_COUNT * _NIGHTS * _REPEATS)
    with open_database(url) as database:
        base, head = (resolve_side(each, database) for each in ("previous", "latest"))
        found = [each.regression for each in standing_regressions(database)]
        recorded = {each.machine_id: each.tally for each in found}
        now = {machine: compare(database, base, head, machine_id=machine).tally for machine in recorded}
    assert recorded
    assert recorded == now
