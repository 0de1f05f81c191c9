"""Budgets of the configuration on a history: drawn for the cases they fit, said where they lie far away."""

from __future__ import annotations

import json

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.read.database import VARIABLE, in_force
from compilewatch.db.errors import ConfigError
from tests.dashboard.conftest import OpenPage, texts

TARGETS = [
    {"workload": "bert-*", "strategy": "default", "latency_p95_ns": 8_000_000, "speedup": 1.25},
    {"workload": "bert-*", "strategy": "default", "latency_p95_ns": 900_000_000},
    {"workload": "other", "latency_p95_ns": 1},
]


def _drawn(page) -> list[dict]:
    (chart,) = page.get("vega_lite_chart")[:1]
    found = {dataset.name: dataset for dataset in chart.proto.datasets}
    if "targets" not in found:
        return []
    import pyarrow as pa

    with pa.ipc.open_stream(found["targets"].data.data) as stream:
        return stream.read_all().to_pylist()


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, json.dumps({"target": TARGETS}))


def test_a_near_budget_is_a_line_and_a_far_one_a_sentence(filled: OpenPage, targets: None) -> None:
    page = filled(Link(page=Page.WORKLOAD, focus="bert-base", metric="latency"))
    (line,) = _drawn(page)
    assert (line["value"], line["label"]) == (8.0, "target (95th percentile): at most 8.00 ms")
    assert "Outside the chart: target (95th percentile): at most 900 ms." in texts(page)


def test_a_speedup_must_be_at_least_its_budget(filled: OpenPage, targets: None) -> None:
    page = filled(Link(page=Page.WORKLOAD, focus="bert-base", metric="speedup"))
    assert [line["label"] for line in _drawn(page)] == ["target: at least 1.25x"]


def test_without_a_budget_nothing_is_drawn(filled: OpenPage, targets: None) -> None:
    assert _drawn(filled(Link(page=Page.WORKLOAD, focus="mlp", metric="latency"))) == []


def test_what_is_no_target_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, '{"target": [{"workload": "x"}]}')
    with pytest.raises(ConfigError, match="holds no settings"):
        in_force()
