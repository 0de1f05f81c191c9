"""Published figures stand beside a case only where model, task, size, precision and mode agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.links.links import Link, Page
from dashboard.read.shaping import with_labels
from dashboard.render.published_lines import FIGURES_PER_CASE, published_lines
from db.engine.session import open_database
from db.interchange.published import published_for
from db.metrics.cases import summarize_cases
from db.queries.filters import Filters
from db.queries.trials import trials_frame
from db.records.trial import Task, Workload
from db.store.trials import save_trials
from tests.builders import MS, make_imported, make_trial, make_workload
from tests.dashboard.conftest import DATABASE, opened, texts

UNET = {"shape": {"latent_size": 64}, "dtype": "float16", "batch_size": 2, "item": "step"}


def _lines(path: Path, workload: Workload, *strategies: str) -> list[str]:
    with open_database(f"sqlite:///{path}", migrate=True) as database:
        save_trials(
            database,
            [
                make_trial(workload=workload, strategy=name, latency_ns=8 * MS, control_latency_ns=12 * MS)
                for name in strategies
            ],
        )
        frame = trials_frame(database, Filters())
    return published_lines(with_labels(summarize_cases(frame)))


def test_a_line_gives_the_own_speedup_and_the_published_ones(tmp_path: Path) -> None:
    (line,) = _lines(tmp_path / "a.db", make_workload("sd-unet", **UNET), "eager", "reduce-overhead")
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
def test_another_size_precision_or_task_is_not_the_same(tmp_path: Path, other: dict[str, object]) -> None:
    assert _lines(tmp_path / "a.db", make_workload("sd-unet", **UNET | other), "reduce-overhead") == []


def test_a_variant_is_not_its_mode(tmp_path: Path) -> None:
    assert _lines(tmp_path / "a.db", make_workload("sd-unet", **UNET), "reduce-overhead+dynamic") == []


def test_nothing_stands_beside_what_was_imported(tmp_path: Path) -> None:
    imported = make_imported(
        workload=make_workload("sd-unet", version="imported-timm-csv", **UNET), strategy="reduce-overhead"
    )
    with open_database(f"sqlite:///{tmp_path / 'a.db'}", migrate=True) as database:
        save_trials(database, [imported])
    (own,) = _lines(tmp_path / "a.db", make_workload("sd-unet", **UNET), "reduce-overhead")
    assert own.startswith("sd-unet with reduce-overhead: 1.5")


def test_modes_shows_the_lines_and_nothing_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, workload in (("unet", make_workload("sd-unet", **UNET)), ("own", make_workload("mlp"))):
        _lines(tmp_path / f"{name}.db", workload, "eager", "reduce-overhead")
    monkeypatch.setenv(DATABASE, f"sqlite:///{tmp_path / 'unet.db'}")
    assert "published elsewhere" in texts(opened(Link(page=Page.MODES)))
    monkeypatch.setenv(DATABASE, f"sqlite:///{tmp_path / 'own.db'}")
    assert "published elsewhere" not in texts(opened(Link(page=Page.MODES)))


def test_trends_shows_them_beside_the_speedup_of_the_workload_in_the_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lines(tmp_path / "unet.db", make_workload("sd-unet", **UNET), "eager", "reduce-overhead")
    monkeypatch.setenv(DATABASE, f"sqlite:///{tmp_path / 'unet.db'}")
    assert "sd-unet with reduce-overhead: 1.50x here; published elsewhere" in texts(
        opened(Link(page=Page.TRENDS))
    )
    assert "published elsewhere" not in texts(opened(Link(page=Page.TRENDS, metric="latency")))
