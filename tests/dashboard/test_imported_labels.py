"""Imported results on the pages: told by their label, never drawn as measured ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dashboard.links import Link, Page
from dashboard.shaping import with_labels
from db.queries.trials import trials_frame
from db.records import Source, SourceKind
from db.session import open_database
from db.store import save_trials
from tests.builders import START, make_history, make_imported, make_workload
from tests.dashboard.conftest import DATABASE, opened


@pytest.fixture
def mixed_url(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """mlp measured on two builds, and imported for the same machine and builds."""
    foreign = make_workload("mlp", version="imported")
    source = Source(kind=SourceKind.IMPORTED, name="timm-csv")
    imported = [
        make_imported(
            workload=foreign,
            strategy=strategy,
            build=build,
            source=source,
            run_id=f"imp-{build}",
            trial_id=f"imp-{build}-{strategy}",
            started_at=START,
        )
        for build in ("2.12.0", "2.13.0")
        for strategy in ("eager", "default")
    ]
    measured = make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0"), trials_per_case=5)
    with open_database(sqlite_url) as database:
        save_trials(database, [*measured, *imported])
    monkeypatch.setenv(DATABASE, sqlite_url)
    return sqlite_url


def test_the_label_names_the_source(mixed_url: str) -> None:
    with open_database(mixed_url, read_only=True) as database:
        labelled = with_labels(trials_frame(database))
    labels = dict(zip(labelled["source_kind"], labelled["workload_label"], strict=True))
    assert labels == {"measured": "mlp", "imported": "mlp (imported, timm-csv)"}


@pytest.mark.parametrize("page", [Page.TRENDS, Page.MODES, Page.UPGRADE, Page.BREAK_EVEN, Page.TRIAL])
def test_the_pages_keep_both_apart(mixed_url: str, page: Page) -> None:
    test = opened(Link(page=page))
    assert not test.exception
    charts = [chart.proto for chart in test.get("vega_lite_chart")]
    drawn = [pa.ipc.open_stream(each.data.data).read_pandas() for chart in charts for each in chart.datasets]
    frames = [*drawn, *(element.value for element in test.dataframe)]
    named = {str(name) for frame in frames if "workload" in frame for name in frame["workload"]}
    assert any("(imported, timm-csv)" in name for name in named), named
    assert any("imported" not in name for name in named), named
