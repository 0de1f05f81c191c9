"""The machine's control series is no case: no page is opened on it, and none lists it beside workloads."""

from __future__ import annotations

from compilewatch.dashboard.links.links import Link, Page
from tests.builders import make_history, make_trial
from tests.dashboard.conftest import Store, opened, texts


def test_no_page_opens_on_the_control_series(store: Store) -> None:
    store(make_history(workloads=("mlp",), builds=("2.13.0",)))
    store(make_history(workloads=("canary-copy",), strategies=("eager",), builds=("2.13.0",), seed=3))
    for page in (Page.WORKLOAD, Page.COLD_START, Page.OVERVIEW, Page.MODES, Page.BREAK_EVEN):
        shown = opened(Link(page))
        chosen = [str(box.value) for box in shown.main.selectbox]
        tables = [table.value.to_string() for table in shown.main.dataframe]
        everything = "\n".join([texts(shown), *chosen, *tables])
        assert "canary" not in everything, page
        assert "mlp" in everything, page


def test_canaries_are_in_no_list_of_trials_unless_they_are_asked_for(store: Store) -> None:
    canary = make_trial(workload="canary-gemm", strategy="eager")
    store([*make_history(workloads=("mlp",), strategies=("eager",), builds=("2.13.0",)), canary])
    shown = opened(Link(page=Page.TRIAL))
    assert set(shown.dataframe[0].value["workload"]) == {"mlp"}
    assert "3 trials, 0 failed" in texts(shown)
    asked = opened(Link(page=Page.TRIAL, workload=("canary-gemm",)))
    assert set(asked.dataframe[0].value["workload"]) == {"canary-gemm"}
