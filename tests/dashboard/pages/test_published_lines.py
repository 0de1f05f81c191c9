"""Published figures stand beside a case only where model, task, size, precision and mode agree."""

from __future__ import annotations

import pytest

from dashboard.parts.published_lines import FIGURES_PER_CASE, published_lines
from dashboard.read.shaping import with_labels
from db.engine.session import open_database
from db.interchange.published import published_for
from db.metrics.cases import summarize_cases
from db.queries.trials import trials_frame
from db.records.trial import Task, Trial, Workload
from tests.builders import MS, make_imported, make_trial, make_workload
from tests.dashboard.conftest import Store

UNET = {"shape": {"latent_size": 64}, "dtype": "float16", "batch_size": 2, "item": "step"}


def _trials(workload: Workload, *strategies: str) -> list[Trial]:
    return [
        make_trial(workload=workload, strategy=name, latency_ns=8 * MS, control_latency_ns=12 * MS)
        for name in strategies
    ]


def _lines(store: Store, trials: list[Trial]) -> list[str]:
    with open_database(store(trials), read_only=True) as database:
        frame = trials_frame(database)
    return published_lines(with_labels(summarize_cases(frame)))


def test_a_line_gives_the_own_speedup_and_the_published_ones(store: Store) -> None:
    (line,) = _lines(store, _trials(make_workload("sd-unet", **UNET), "eager", "reduce-overhead"))
    known = published_for(
        "sd-unet", task=Task.INFERENCE, dtype="float16", shape={"latent_size": 64}, mode="reduce-overhead"
    )
    assert line.startswith("sd-unet with reduce-overhead: 1.5")
    assert line.count("published elsewhere") == FIGURES_PER_CASE
    assert known[0].sentence() in line
    assert line.endswith(f"and {len(known) - FIGURES_PER_CASE} figures more")


@pytest.mark.parametrize(
    "other", [{"shape": {"latent_size": 32}}, {"dtype": "float32"}, {"task": Task.TRAINING}]
)
def test_another_size_precision_or_task_is_not_the_same(store: Store, other: dict[str, object]) -> None:
    assert _lines(store, _trials(make_workload("sd-unet", **UNET | other), "reduce-overhead")) == []


def test_a_variant_is_not_its_mode(store: Store) -> None:
    assert _lines(store, _trials(make_workload("sd-unet", **UNET), "reduce-overhead+dynamic")) == []


def test_nothing_stands_beside_what_was_imported(store: Store) -> None:
    imported = make_imported(
        workload=make_workload("sd-unet", version="imported-timm-csv", **UNET), strategy="reduce-overhead"
    )
    own = _trials(make_workload("sd-unet", **UNET), "reduce-overhead")
    (line,) = _lines(store, [imported, *own])
    assert line.startswith("sd-unet with reduce-overhead: 1.5")
