"""Columns of an uploaded CSV: asked about where needed, named where not used, given a meaning on the page."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records, trials_frame
from tests.dashboard.conftest import texts
from tests.dashboard.uploads import TOLD, looked_at, page, stored

FOREIGN = b"""model,mode,compiled (ms),eager (ms),mem,note
bert,reduce-overhead,8.5,12.25,1.5,first
t5,default,4,6,2,
"""
MEANT = {
    "model": "workload",
    "mode": "strategy",
    "compiled (ms)": "latency_ms",
    "eager (ms)": "eager_latency_ms",
}


def columns_asked(test: AppTest) -> dict[str, Any]:
    """By column; labels are escaped Markdown."""
    boxes = (box for box in test.selectbox if str(box.key).startswith("import-column-"))
    return {box.label.replace("\\", ""): box for box in boxes}


def test_columns_of_a_foreign_csv_are_mapped_on_the_page(url: str) -> None:
    test = looked_at(page(), ("results.csv", FOREIGN))
    assert "no column is mapped to workload and to a latency" in texts(test)
    assert "--column" not in texts(test), "a page has fields, not options"
    assert set(columns_asked(test)) == {"model", "mode", "compiled (ms)", "eager (ms)", "mem", "note"}
    assert columns_asked(test)["mem"].help.replace("\\", "") == "First cell: 1.5"
    for column, meaning in (MEANT | {"mem": "metric.mem"}).items():
        columns_asked(test)[column].set_value(meaning)
    test = looked_at(test)
    assert "does not say the torch version" in texts(test), "the mapping fits; the facts are asked for next"
    test = looked_at(test, **TOLD)
    assert not test.exception
    assert "Would bring in 2 new trials" in texts(test)
    rows = next(e.value for e in test.dataframe if "latency_ms" in e.value.columns)
    assert list(rows["latency_ms"]) == [8.5, 4.0]
    assert stored(url) == 0
    test = test.button("import-yes").click().run()
    assert not columns_asked(test), "the next files have columns of their own"
    with open_database(url, read_only=True) as database:
        frame = trials_frame(database).set_index("workload").sort_index()
        (bert,) = (trial for trial in trial_records(database, Filters()) if trial.workload.name == "bert")
    assert list(frame.index) == ["bert", "t5"]
    assert list(frame["latency_ns"]) == [8_500_000, 4_000_000]
    assert list(frame["control_latency_ns"]) == [12_250_000, 6_000_000]
    assert list(frame["strategy"]) == ["reduce-overhead", "default"]
    assert bert.summary.metrics == {"mem": 1.5}


OURS = b"workload,latency_ms,mode,batch,metric.flops\nbert,8.5,EAGER,4,2\n"


def test_columns_that_are_not_used_are_said_and_can_be_given_a_meaning(url: str) -> None:
    test = looked_at(page(), ("results.csv", OURS))
    assert "does not say the torch version" in texts(test)
    assert "Not used: mode, batch. Say above what they mean, or leave them out." in texts(test)
    assert set(columns_asked(test)) == {"mode", "batch"}
    columns_asked(test)["mode"].set_value("strategy")
    test = looked_at(test, **TOLD)
    assert "Would bring in 1 new trial" in texts(test)
    assert "Not used: batch." in texts(test)
    rows = next(e.value for e in test.dataframe if "latency_ms" in e.value.columns)
    assert list(rows["strategy"]) == ["eager"]
    test.button("import-yes").click().run()
    with open_database(url, read_only=True) as database:
        (bert,) = trial_records(database, Filters())
    assert bert.workload.batch_size is None
    assert bert.summary.metrics == {"flops": 2}


@pytest.mark.parametrize(
    ("meant", "says"),
    [
        ({"eager (ms)": "latency_ms"}, "Two columns mean latency_ms: compiled (ms) and eager (ms)"),
        ({"note": "peak_gb"}, "results.csv, line 2: peak_gb"),
    ],
)
def test_columns_mapped_wrongly_are_said(url: str, meant: dict[str, str], says: str) -> None:
    test = looked_at(page(), ("results.csv", FOREIGN))
    for column, meaning in (MEANT | meant).items():
        columns_asked(test)[column].set_value(meaning)
    test = looked_at(test)
    assert not test.exception
    assert says in texts(test)
    assert stored(url) == 0


def test_a_table_of_too_many_columns_is_not_asked_about(url: str) -> None:
    header = ",".join(f"c{number}" for number in range(61))
    test = looked_at(page(), ("wide.csv", f"{header}\n{header}\n".encode()))
    assert not columns_asked(test)
    assert "Leave at most 60 columns in it" in texts(test)
