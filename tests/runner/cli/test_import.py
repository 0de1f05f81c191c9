"""`import` as it is typed: what it shows before anything is stored, and what is typed wrongly."""

import os
from pathlib import Path

import pytest

from compilewatch.db.records.trial import Numerics, NumericsStatus, Summary
from tests.builders import make_imported, make_trial
from tests.runner.terminal import in_this_process

TABLE = "model,mode,compiled (ms),eager (ms),batch\nbert,reduce-overhead,8.5,12.75,8\nt5,default,4,,8\n"
FACTS = [
    *("--torch", "2.13.0", "--device", "cuda", "--device-name", "NVIDIA H200", "--dtype", "float16"),
    *("--task", "inference", "--measured-at", "2026-11-20"),
]
COLUMNS = [
    *("--column", "workload=model", "--column", "strategy=mode", "--column", "latency_ms=compiled (ms)"),
    *("--column", "eager_latency_ms=eager (ms)", "--column", "batch_size=batch"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "table.csv").write_text(TABLE)
    return tmp_path


def test_a_foreign_table_comes_in_by_one_command_after_a_look(folder: Path) -> None:
    looked = in_this_process("import", "table.csv", "--dry-run", *COLUMNS, *FACTS, cwd=folder)
    assert looked.returncode == 0, looked.stderr
    assert looked.stdout.splitlines() == [
        "table.csv (csv) would bring 2 trials.",
        "  bert / reduce-overhead on NVIDIA H200, torch 2.13.0, float16, batch 8: 8.50 ms, speedup 1.50x",
        "  t5 / default on NVIDIA H200, torch 2.13.0, float16, batch 8: 4.00 ms",
    ]
    first = in_this_process("import", "table.csv", *COLUMNS, *FACTS, cwd=folder)
    again = in_this_process("import", "table.csv", *COLUMNS, *FACTS, cwd=folder)
    assert first.stdout == "table.csv (csv) brought 2 trials.\n", "the look stored nothing"
    assert again.stdout == "table.csv (csv) brought 0 trials, 2 known already.\n"


def test_a_trial_of_the_accuracy_alone_is_shown_with_it(tmp_path: Path) -> None:
    known = make_imported(summary=Summary(n=1), numerics=Numerics(status=NumericsStatus.PASS))
    (tmp_path / "t.jsonl").write_text(known.to_json())
    looked = in_this_process("import", "t.jsonl", "--dry-run", cwd=tmp_path)
    assert looked.stdout.endswith("torch 2.13.0, bfloat16, batch 8: pass\n")


def test_a_look_makes_no_database(folder: Path) -> None:
    words = ("import", "table.csv", "--dry-run", *COLUMNS, *FACTS)
    looked = in_this_process(*words, "--db", "sqlite:///new.db", cwd=folder)
    assert looked.stdout.startswith("table.csv (csv) would bring 2 trials.\n")
    assert [each.name for each in folder.iterdir()] == ["table.csv"]
    refused = in_this_process(*words, "--db", "sqlite:///none/new.db", cwd=folder)
    assert refused.returncode == 2
    assert in_this_process(*words[:2], *words[3:], cwd=folder).stdout == "table.csv (csv) brought 2 trials.\n"


def test_a_failure_is_shown_as_one(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(make_trial(failure="timeout").to_json())
    looked = in_this_process("import", "t.jsonl", "--dry-run", cwd=tmp_path)
    assert looked.stdout.startswith("t.jsonl (trial) would bring 1 trial, 1 failed.\n")
    assert "bert-base / default on NVIDIA H200, torch 2.13.0, bfloat16, batch 8: timeout" in looked.stdout


@pytest.mark.parametrize(
    ("arguments", "says", "next_step"),
    [
        (["table.csv"], "no column is mapped to workload and to a latency", "--column latency_ms=time"),
        (
            ["table.csv", "--column", "workload"],
            "--column workload has no field or no column",
            "--column latency_ms=time",
        ),
        (
            ["table.csv", "--column", "workload=model", "--column", "workload=mode"],
            "--column names twice what workload is: model and mode",
            "Name one of them",
        ),
        (
            ["table.csv", "--column", "workload=name", "--column", "latency_ms=batch"],
            "table.csv, line 1: name: is no column of this file",
            "Its columns are model, mode",
        ),
        (
            ["table.csv", "--column", "wrkload=model", "--column", "latency_ms=batch"],
            "wrkload: is no field",
            "Known are workload",
        ),
    ],
)
def test_what_is_typed_wrongly_is_one_sentence_and_a_next_step(
    folder: Path, arguments: list[str], says: str, next_step: str
) -> None:
    finished = in_this_process("import", *arguments, *FACTS, cwd=folder)
    assert finished.returncode == 2
    message, step = finished.stderr.splitlines()
    assert says in message
    assert next_step in step


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (
            ("--measured-at", "2526-11-20"),
            "It cannot have been measured on 2526-11-20, which is yet to come.",
        ),
        (("--device", "cuda, hip or cpu"), "--device"),
        (("--device", "gpu"), "--device"),
        (("--torch", "banana"), "banana is no version of torch."),
        (("--torch", "v2.9.1"), "Write it as 2.13.0 or 2.13.0+cu130."),
        (("--torch", ""), "Nothing is no version of torch."),
    ],
)
def test_what_no_result_can_be_of_is_refused(folder: Path, typed: tuple[str, str], says: str) -> None:
    refused = in_this_process("import", "table.csv", "--dry-run", *COLUMNS, *FACTS, *typed, cwd=folder)
    assert refused.returncode == 2
    assert says in refused.stderr
    assert refused.stdout == ""


@pytest.mark.parametrize("path", ["pipe", "/dev/stdin", "/proc/self/fd/0"])
def test_a_pipe_is_refused_with_what_to_do(folder: Path, path: str) -> None:
    os.mkfifo(folder / "pipe")
    refused = in_this_process("import", path, *FACTS, cwd=folder)
    assert refused.returncode == 2
    message, step = refused.stderr.splitlines()
    assert f"{path} is a pipe or a device, which cannot be read twice" in message
    assert step.strip() == "Write its content to a file and import that."
