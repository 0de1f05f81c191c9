"""`compilewatch compare` in process, over a filled database: verdicts, documents, tables and mistakes."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.records.ids import machine_identity
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import MS, START, make_build, make_history, make_machine, make_trial, make_workload
from tests.regression_cases import stepping_history


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def compare(url: str, *arguments: str) -> int:
    return exit_code_of(app, ["compare", *arguments, "--db", url])


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    captured = capsys.readouterr()
    assert captured.err == ""
    found: dict[str, Any] = json.loads(captured.out)
    return found


def test_the_same_speed_exits_0(sqlite_url: str) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, stepping_history(1.0, 1.0, builds=("2.12.0", "2.13.0"), trials_per_case=10))
    assert compare(sqlite_url, "torch=2.12.0", "torch=2.13.0") == 0


def test_one_trial_a_side_cannot_tell_and_exits_2(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, stepping_history(1.0, 1.5, builds=("2.12.0", "2.13.0"), trials_per_case=1))
    assert compare(sqlite_url, "torch=2.12.0", "torch=2.13.0", "--json") == 2
    captured = capsys.readouterr()
    undecided = "12 of 18 rows undecided, 6 of 6 of latency and speedup"
    assert f"compilewatch: Cannot tell: {undecided}." in captured.err
    assert "Measure" in captured.err.splitlines()[1]
    rows = json.loads(captured.out)["rows"]
    judged = {row["verdict"] for row in rows if row["metric"] in ("latency", "speedup", "compile_cost")}
    assert judged == {"inconclusive"}
    assert "never a verdict" in next(row["reason"] for row in rows if row["metric"] == "latency")


def test_sides_without_a_common_case_cannot_be_compared(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, make_history(workloads=("mlp",), builds=("2.12.0",)))
        save_trials(database, make_history(workloads=("bert-base",), builds=("2.13.0",), seed=1))
    assert compare(sqlite_url, "torch=2.12.0", "torch=2.13.0") == 2
    captured = capsys.readouterr()
    assert "Compared 0 of" in captured.out
    assert captured.err.startswith("compilewatch: Nothing can be compared: ")


def test_the_document_has_every_key_of_the_contract(stepped: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(stepped, "torch=2.12.0", "torch=2.13.0", "--json") == 1
    found = document(capsys)
    assert found["schema"] == "compilewatch.compare/1"
    assert found["base"]["components"]["torch"] == "2.12.0"
    assert found["head"]["components"]["torch"] == "2.13.0"
    assert found["machine"] == "gpu-box-3"
    assert (found["matched"], found["left_out"], found["verdict"]) == (4, [], "regressed")
    assert {"base", "head", "naive_base", "naive_head"} <= found["geomean"].keys()
    assert found["targets"] == []
    assert found["policy"]["thresholds"]["latency"]["minimum_effect"] == 0.02
    row = next(
        row
        for row in found["rows"]
        if (row["workload"], row["strategy"], row["metric"]) == ("mlp", "default", "latency")
    )
    assert {
        "workload", "strategy", "metric", "base", "head", "change", "interval", "p_value", "q_value",
        "verdict", "who_moved", "trials", "reason",
    } <= row.keys()  # fmt: skip
    assert row["base"] == pytest.approx(8 * MS, rel=0.01)
    assert row["change"] == pytest.approx(0.4, abs=0.01)
    assert row["interval"][0] < row["change"] < row["interval"][1]
    assert (row["verdict"], row["who_moved"], row["trials"]) == ("regressed", "compiled", [5, 5])
    metrics = {row["metric"] for row in found["rows"]}
    assert metrics == {
        "latency", "speedup", "compile_cost", "peak_memory", "graph_breaks", "recompiles", "numerics",
        "break_even",
    }  # fmt: skip


def test_options_narrow_the_cases(stepped: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("torch=2.12.0", "torch=2.13.0", "--workload", "mlp", "--strategy", "default", "--json")
    assert compare(stepped, *arguments) == 1
    assert {(row["workload"], row["strategy"]) for row in document(capsys)["rows"]} == {("mlp", "default")}


def test_a_wider_margin_calls_no_regression(stepped: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(stepped, "torch=2.12.0", "torch=2.13.0", "--margin", "0.6", "--json") == 1
    found = document(capsys)
    verdicts = {row["verdict"] for row in found["rows"] if row["metric"] in ("latency", "speedup")}
    assert verdicts == {"unchanged"}
    assert {row["metric"] for row in found["rows"] if row["verdict"] == "regressed"} == {"break_even"}
    assert [each["minimum_effect"] for each in found["policy"]["overrides"]] == [0.6, 0.6]


@pytest.mark.parametrize("margin", ["0", "-0.1", "3", "nan", "inf"])
def test_a_margin_that_is_none(stepped: str, margin: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(stepped, "torch=2.12.0", "torch=2.13.0", f"--margin={margin}") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "--margin must be more than 0 and at most 2" in captured.err


def test_thresholds_of_the_configuration_are_used(stepped: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("compilewatch.toml").write_text(
        "[policy.thresholds]\n"
        + "".join(
            f"{metric} = {{ minimum_effect = 0.9, unchanged_margin = 0.9 }}\n"
            for metric in ("latency", "speedup")
        )
    )
    compare(stepped, "torch=2.12.0", "torch=2.13.0", "--json")
    found = document(capsys)
    assert found["policy"]["thresholds"]["latency"]["minimum_effect"] == 0.9
    assert set(found["tally"]["slower_by"]) == {"break_even"}


HOSTILE = "a|b`c*d_e[f](g)<h>#\\i"


def test_markdown_shows_hostile_names_as_they_stand(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = make_workload(HOSTILE)
    label = "line\nbreak | <b>"
    trials = [
        trial.model_copy(update={"workload": workload, "build": make_build(trial.build.torch, label=label)})
        for trial in stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0"))
        if trial.workload.name == "mlp"
    ]
    with open_database(sqlite_url) as database:
        save_trials(database, trials)
    assert compare(sqlite_url, "torch=2.12.0", "torch=2.13.0", "--markdown") == 1
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith("| ") and "workload" not in line]
    assert any("latency" in row.lower() for row in rows)
    for row in rows:
        bare = row.replace("\\\\", "").replace("\\|", "")
        assert bare.count("|") == 10, row
        assert "a\\|b\\`c\\*d\\_e\\[f\\](g)\\<h\\>\\#\\\\i" in row or "---" in row
    assert "<h>" not in out
    assert "docs/reference/policy.md" in out


def test_latest_and_previous_are_of_the_machine_that_was_named_or_has_the_newest_run(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other machine has more cases and other builds."""
    other = make_machine("gpu-box-4", threads=5)
    older = make_history(builds=("2.11.0", "2.12.0"), machines=(other,), workloads=("a", "b", "c"))
    newer = make_history(
        builds=("2.12.0", "2.13.0"), machines=("gpu-box-3",), start=START + timedelta(days=9)
    )
    with open_database(sqlite_url) as database:
        save_trials(database, [*older, *newer])
    found = []
    for machine in ((), *(("--machine", machine_identity(each[0].machine)) for each in (older, newer))):
        compare(sqlite_url, "previous", "latest", *machine, "--json")
        document = json.loads(capsys.readouterr().out)
        sides = [document[side]["components"]["torch"] for side in ("base", "head")]
        found.append((document["machine"], *sides))
    here = ("gpu-box-3", "2.12.0", "2.13.0")
    assert found == [here, ("gpu-box-4", "2.11.0", "2.12.0"), here]


def test_what_became_of_recorded_regressions_is_counted(
    stepped: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(app, ["gate", "--db", stepped]) == 1
    capsys.readouterr()
    assert compare(stepped, "torch=2.12.0", "torch=2.13.0") == 1
    assert "Recorded for 2 cases: " in capsys.readouterr().out
    assert compare(stepped, "torch=2.12.0", "torch=2.13.0", "--json") == 1
    recorded = document(capsys)["recorded"]
    assert set(recorded) == {"suspected"}
    assert recorded["suspected"] >= 2


def test_two_strategies_are_compared_on_one_machine(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another machine's cases, torch and driver are none of its."""
    strategies, other = ("eager", "default", "max-autotune"), make_machine("gpu-box-4", threads=5)
    here = make_history(
        strategies=strategies,
        builds=("2.13.0",),
        workloads=("bert-base", "mlp", "cnn"),
        trials_per_case=5,
        seed=1,
    )
    with open_database(sqlite_url) as database:
        there = make_history(strategies=strategies, builds=("2.12.0",), machines=(other,), trials_per_case=5)
        save_trials(database, [*there, *here])
    for base in ("default", "eager"):
        compare(sqlite_url, f"strategy={base}", "strategy=max-autotune", "--json")
        found = document(capsys)
        assert (found["machine"], found["matched"], found["left_out"]) == ("gpu-box-3", 3, [])
        assert found["base"]["components"]["torch"] == found["head"]["components"]["torch"] == "2.13.0"
        assert any("gpu-box-4" in sentence for sentence in found["sentences"])
        compare(sqlite_url, f"strategy={base}", "strategy=max-autotune", "--machine", "gpu-box-4", "--json")
        found = document(capsys)
        assert (found["machine"], found["matched"]) == ("gpu-box-4", 2)
        assert not any("gpu-box-3" in sentence for sentence in found["sentences"])


def test_eager_needs_no_trial_of_its_own(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, make_history(strategies=("default",), builds=("2.13.0",), trials_per_case=5))
    compare(sqlite_url, "strategy=eager", "strategy=default", "--json")
    assert document(capsys)["matched"] == 2


def two_machines(url: str) -> None:
    """A model twice as fast on "quick", one that only "slow" has; trials far apart enough for an interval."""
    for name, driver, factor in (("slow", "560.1", 2), ("quick", "570.2", 1)):
        machine = make_machine(name, device_name=f"NVIDIA {name}")
        with open_database(url) as database:
            for n in range(5):
                ran = make_trial(
                    machine=machine,
                    build=make_build(driver=driver),
                    workload=make_workload("bert-base", batch_size=8, items_per_iteration=8.0),
                    latency_ns=factor * (8 + n / 100) * MS,
                    control_latency_ns=factor * 12 * MS,
                    started_at=START + timedelta(minutes=n),
                )
                save_trials(database, [ran])
            if name == "slow":
                save_trials(database, [make_trial(workload="mlp", machine=machine)])


def test_two_machines_stand_side_by_side_without_a_verdict(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    two_machines(sqlite_url)
    sides = ("machine=slow", "machine=quick", "--price", "slow=1", "--price", "quick=3.5")
    assert compare(sqlite_url, *sides, "--json") == 0
    found = document(capsys)
    (row,) = found["rows"]
    assert (row["base_latency_ns"], row["latency_ns"]) == pytest.approx((16.04 * MS, 8.02 * MS), rel=0.01)
    assert row["times_as_fast"] == pytest.approx(2.0, rel=0.01)
    # 125,000 steps of 8: 2,005 s on the one at $1 an hour, half of it on the other at $3.50.
    prices = row["base_million_items_price"], row["million_items_price"]
    assert prices == pytest.approx((2005 / 3600, 1002.5 / 3600 * 3.5), rel=0.01)
    assert found["only"] == {"base": 1, "head": 0}
    assert found["unmatched"] == {"driver": ["560.1", "570.2"]}
    assert compare(sqlite_url, *sides) == 0
    printed = capsys.readouterr().out
    assert "driver 560.1 / 570.2" in printed
    assert "no regression" in printed


@pytest.mark.parametrize(
    ("sides", "said"),
    [
        (("machine=slow", "torch=2.13.0"), "A machine is compared with a machine."),
        (("machine=slow", "machine=slow"), "Both sides are the same machine."),
        (("machine=slow", "machine=quik"), "quik"),
        (("machine=slow", "machine=quick", "--price", "slow=free"), "no price of a machine"),
        (("machine=slow", "machine=quick", "--price", "slow=-1"), "no price of a machine"),
        (("torch=2.13.0", "latest", "--price", "slow=1"), "--price goes with two machines."),
        (("machine=slow", "machine=quick", "-w", "mlp"), "No case was measured on both machines."),
    ],
)
def test_machines_typed_wrongly_exit_2(
    sqlite_url: str, capsys: pytest.CaptureFixture[str], sides: tuple[str, ...], said: str
) -> None:
    two_machines(sqlite_url)
    assert compare(sqlite_url, *sides) == 2
    lines = capsys.readouterr().err.splitlines()
    assert said in lines[0]
    assert len(lines) >= 2
