"""Tables in the width of a terminal: no word is broken, and what does not fit is named."""

from __future__ import annotations

import io
import itertools
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from compilewatch.db.engine.session import open_database
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.output.tables import FittedTable, plain_table
from tests.builders import MS, make_history, make_machine
from tests.runner.terminal import in_this_process

WORKLOADS = ("attention-encoder-large", "mlp")
STRATEGIES = ("eager", "max-autotune-no-cudagraphs+dynamic", "default")
CONFIGURATION = """
[[schedule]]
name = "nightly-of-the-large-models"
cron = "15 3 * * *"
suite = "smoke"
"""
COMMANDS = (
    *(f"list {subject}" for subject in ("workloads", "strategies", "suites", "runs", "trials", "cases")),
    *(f"list {subject}" for subject in ("builds", "machines", "regressions", "annotations")),
    *(
        f"list cases --preset {preset}"
        for preset in ("scenario", "throughput", "regional", "strategies", "scaling")
    ),
    "list cases --columns latency,peak_memory,graph_breaks,speedup,time_to_first_result,compile_cost",
    "break-even",
    "geomean",
    "history",
    "history --workload attention-encoder-large --strategy default --metric latency",
    "compare torch=2.12.0 torch=2.13.0",
    "compare strategy=eager strategy=default",
    "config show",
    "request list --all",
    "schedule list",
)


@pytest.fixture(scope="module")
def folder(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a configuration and a database that has something for each table."""
    place = tmp_path_factory.mktemp("widths")
    (place / "compilewatch.toml").write_text(CONFIGURATION)
    shutil.copyfile(_sqlite_template, place / "compilewatch.db")
    machine = make_machine(name="gpu-box-3.measuring.example", device_name="NVIDIA H100 80GB HBM3")
    builds, compiled = ("2.12.0", "2.13.0"), (8 * MS, 11 * MS)
    trials = make_history(
        workloads=WORKLOADS,
        strategies=STRATEGIES,
        builds=builds,
        machines=(machine,),
        latency_ns=lambda _workload, strategy, run: 12 * MS if strategy == "eager" else compiled[run],
        trials_per_case=5,
        failures=[("mlp", "max-autotune-no-cudagraphs+dynamic", 1)],
    )
    with open_database(f"sqlite:///{place / 'compilewatch.db'}") as database:
        save_trials(database, trials)
    for typed in (
        f"gate --run {trials[-1].run_id} --since {trials[0].run_id}",
        "annotate driver-upgraded-to-580.65.06-and-the-BIOS-of-every-machine",
        "request create --suite smoke",
    ):
        done = in_this_process(*typed.split(), cwd=place)
        assert done.returncode in (0, 1), done.stderr
    return place


@pytest.mark.parametrize("columns", [100, 80])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_word_is_broken_and_what_goes_is_named(folder: Path, command: str, columns: int) -> None:
    wide, narrow = (
        in_this_process(*command.split(), cwd=folder, COLUMNS=str(width)).stdout for width in (1000, columns)
    )
    assert wide.strip()
    words = set(wide.split())
    told = narrow.splitlines()
    longest = max(map(len, words))
    assert max(map(len, told)) <= max(columns, longest)
    table, left_out = narrow, ""
    if "Not shown in " in narrow:
        table, _, left_out = narrow.partition("Not shown in ")
    shown = set(table.split())
    assert all(word.endswith("…") or set(word) == {"─"} for word in shown - words)
    if not left_out and "…" not in table:
        assert {word for word in words if set(word) != {"─"}} <= shown


def printed(table: FittedTable, columns: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=columns, color_system=None).print(table)
    return out.getvalue().splitlines()


def test_what_has_no_room_goes_in_its_order_and_is_named() -> None:
    table = plain_table(("name", "of", "value"), [["a" * 20, "b" * 20, "c" * 20]], optional=("of", "name"))
    assert any("b" * 20 in line for line in printed(table, 80))
    said = printed(table, 50)
    assert any("a" * 20 in line and "c" * 20 in line for line in said)
    assert said[-1] == "Not shown in 50 columns: of."
    assert " ".join(printed(table, 30)).endswith("Not shown in 30 columns: name, of.")


def test_what_may_not_go_is_cut_with_a_sign() -> None:
    said = printed(plain_table(("name", "value"), [["a" * 40, "12 ms"]]), 30)
    (row,) = (line for line in said if "12 ms" in line)
    assert "aaa…" in row
    assert max(map(len, said)) <= 30


@given(
    st.lists(st.lists(st.text("ab ", max_size=40), min_size=4, max_size=4), min_size=1, max_size=5),
    st.integers(24, 120),
)
def test_whatever_a_table_has_it_is_no_wider_and_breaks_nothing(rows: list[list[str]], columns: int) -> None:
    said = printed(plain_table(("one", "two", "three", "four"), rows, optional=("two", "four")), columns)
    assert all(len(line) <= columns for line in said)
    table = itertools.takewhile(lambda line: not line.startswith("Not shown"), said)
    words = {word for row in rows for cell in row for word in cell.split()} | {"one", "two", "three", "four"}
    shown = {word for line in table for word in line.split()}
    assert all(word.endswith("…") or set(word) <= {"─"} or word in words for word in shown)
