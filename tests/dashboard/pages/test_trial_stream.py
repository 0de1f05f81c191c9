"""The Trial page of a workload of several batches: padding, tokens, and where it was compiled."""

from __future__ import annotations

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.trial import charts as first_iteration
from compilewatch.db.records.sampling_facts import CompileAt, StreamFacts
from tests.builders import MS, START, make_compiler_facts, make_trial
from tests.dashboard.conftest import DATABASE, Store, opened, texts

REASON = "tensor 'x' size mismatch at index 0. expected 32, actual 9"
EPOCH = StreamFacts(
    batches=3,
    shapes=2,
    iteration_ns=100 * MS,
    data_ns=90 * MS,
    control_iteration_ns=108 * MS,
    control_data_ns=92 * MS,
    first_batches_ns=[9000 * MS, 10 * MS, 5000 * MS],
    control_first_batches_ns=[30 * MS, 10 * MS, 10 * MS],
    compiles=[
        CompileAt(batch=1, part="forward", took_ns=8000 * MS),
        CompileAt(batch=3, part="forward", took_ns=4500 * MS, reason=REASON),
    ],
)
REQUESTS = StreamFacts(
    batches=64, shapes=51, policy="buckets", tokens=3000, padded_tokens=4000, latency_per_token_ns=1500.0
)


@pytest.fixture(scope="module")
def url(store_once: Store) -> str:
    trials = [
        make_trial(
            workload="first-epoch", trial_id="trial-epoch", run_id="run-s", started_at=START, stream=EPOCH
        ),
        make_trial(
            workload="varlen", strategy="eager", trial_id="trial-eager", run_id="run-s", stream=REQUESTS
        ),
        make_trial(workload="mlp", trial_id="trial-plain", run_id="run-s"),
        make_trial(
            workload="mlp",
            strategy="export",
            trial_id="trial-export",
            run_id="run-s",
            compiler=make_compiler_facts(graphs=0, graph_breaks=[], recompiles=[]),
        ),
    ]
    return store_once(trials)


@pytest.fixture(autouse=True)
def _database(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE, url)


def test_an_epoch_shows_where_it_was_compiled_and_what_that_cost() -> None:
    test = opened(Link(page=Page.TRIAL, trial="trial-epoch"))
    assert "Compiled at batch 1 and 3, of 3" in texts(test)
    (compiles,) = [frame.value for frame in test.dataframe if "took" in frame.value.columns]
    assert compiles["took"].tolist() == [8.0, 4.5]
    assert compiles["reason"].tolist() == ["first compilation", REASON]
    assert any(chart.proto.alt.startswith("Time of every batch") for chart in test.get("vega_lite_chart"))


def test_an_epoch_says_what_waits_for_data_and_what_compiling_gains() -> None:
    """By hand: 16 ms of steps over 10, 108 ms of all over 100."""
    test = opened(Link(page=Page.TRIAL, trial="trial-epoch"))
    shown = " ".join(str(table.value.to_dict()) for table in test.table).replace("\\", "")
    assert "90.0 ms of 100 ms (90.0 %)" in shown
    assert "1.60x in the steps, 1.08x of the iteration" in shown


def test_requests_show_their_padding_and_what_a_token_takes() -> None:
    test = opened(Link(page=Page.TRIAL, trial="trial-eager"))
    assert "64 batches per iteration" in texts(test)
    assert "The time of single batches was not measured." in texts(test)
    shown = " ".join(str(table.value.to_dict()) for table in test.table)
    assert "25.0 % of 4,000 computed" in shown.replace("\\", "")
    assert "1.50 µs" in shown


def test_a_workload_of_one_batch_has_no_such_part() -> None:
    test = opened(Link(page=Page.TRIAL, trial="trial-plain"))
    assert "per iteration" not in texts(test)


def test_a_program_without_a_graph_of_dynamos_is_compiled_all_the_same() -> None:
    assert "nothing compiled" not in texts(opened(Link(page=Page.TRIAL, trial="trial-export")))


def test_a_batch_of_the_chart_says_what_was_compiled_there() -> None:
    rows = first_iteration.first_iteration_frame(
        EPOCH.first_batches_ns, EPOCH.control_first_batches_ns, EPOCH.compiles or [], "default"
    )
    own = rows[rows["strategy"] == "default"]
    assert own["compiled"].tolist() == ["1 graph, 8.00 s", "nothing", "1 graph, 4.50 s"]
    assert rows[rows["strategy"] == "eager"]["compiled"].tolist() == ["nothing"] * 3
    assert own["text"].tolist() == ["9.00 s", "10.0 ms", "5.00 s"]
