"""What compiling costs by submodule: which parts there are, and what is listed of their trials."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from torch import nn

from compilewatch.db.engine.session import open_database
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.strategies import parse_strategy
from compilewatch.db.records.trial import ColdStart, CompilerFacts
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.output.parts import left_out_lines, submodule_lines, submodule_rows
from compilewatch.runner.worker.compiler.compiling import direct_submodules
from compilewatch.runner.workloads.built import Built
from tests.builders import MS, START, make_trial
from tests.runner.measuring import FAST_COMPILE, FIXTURES
from tests.runner.terminal import compilewatch, in_this_process


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 4)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4)) for _ in range(2))
        self.heads = nn.ModuleDict({"score": nn.Linear(4, 1)})


def test_elements_stand_for_a_list_of_modules() -> None:
    parts = direct_submodules(Built(Model(), (), "inference"))
    assert parts == ["embed", "blocks.0", "blocks.1", "heads.score"]
    assert direct_submodules(Built(lambda x: x, (), "function")) == []


def test_first_calls_are_medians_of_the_trials() -> None:
    def trial(path: str, first_call_ns: int, number: int):
        return make_trial(
            strategy=parse_strategy(f"default+submodule:{path}"),
            cold_start=ColdStart(first_call_ns=first_call_ns),
            compiler=CompilerFacts(graphs=number),
            started_at=START + timedelta(minutes=number),
        )

    trials = [trial("head", 5, 1), trial("head", 9, 2), trial("head", 6, 3), trial("body", 7, 4)]
    rows = submodule_rows([*trials, make_trial(strategy=parse_strategy("default"))], [])
    assert {(row["submodule"], row["first_call_ns"], row["trials"], row["graphs"]) for row in rows} == {
        ("body", 7, 1, 4),
        ("head", 6, 3, 3),
    }


def test_parts_are_ranked_by_what_they_are_shown_to_save(tmp_path: Path) -> None:
    """Whole milliseconds of a step of 12: one part saves 4, one 2, one moves between both, one loses 1."""
    latencies = {"small": (10, 10, 10), "large": (8, 8, 8), "loses": (13, 13, 13), "open": (9, 12, 16)}
    trials = [
        make_trial(
            strategy=parse_strategy(f"default+submodule:{path}"), latency_ns=ms * MS, seed=seed, spread=0.001
        )
        for path, of_trials in latencies.items()
        for seed, ms in enumerate(of_trials)
    ]
    with open_database(f"sqlite:///{tmp_path / 'stored.db'}", migrate=True) as database:
        save_trials(database, trials)
        cases = summarize_cases(trials_frame(database, Filters())).to_dict("records")
    rows = submodule_rows(trials, cases)
    assert [(row["submodule"], row["finding"]) for row in rows] == [
        ("large", "faster"),
        ("small", "faster"),
        ("open", "not shown"),
        ("loses", "not faster"),
    ]
    assert rows[0]["speedup"] == pytest.approx(12 / 8, rel=0.01)
    assert rows[0]["saved_ns"] == pytest.approx(4 * MS, rel=0.02)
    assert submodule_lines(rows)[0].startswith("Worth compiling alone, most first: large (1.50x,")
    assert submodule_lines(rows[2:]) == [
        "No part is shown to be worth compiling alone; more --trials decide more."
    ]
    assert submodule_lines([]) == []


def test_passes_that_were_left_out_are_summed_up_in_sentences() -> None:
    rows = [
        {"part": part, "finding": finding}
        for part, finding in (
            ("pattern_matcher", "earns it"),
            ("shape_padding", "undecided"),
            ("epilogue_fusion", "earns it"),
            ("inplace_buffers", "changes neither"),
        )
    ]
    assert left_out_lines(rows) == [
        "What is shown: pattern_matcher, epilogue_fusion (earns it); inplace_buffers (changes neither).",
        "1 of 4 parts undecided: more --trials decide more.",
    ]
    assert left_out_lines(rows[1:2]) == ["1 of 1 part undecided: more --trials decide more."]
    assert left_out_lines([]) == []


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("-w", "encoder", "-s", "eager"), "--submodules needs a strategy that compiles."),
        (("-w", "encoder", "-w", "cnn"), "--submodules is for one model."),
    ],
)
def test_what_has_no_parts_to_compile_is_refused(tmp_path: Path, typed: tuple[str, ...], said: str) -> None:
    done = in_this_process("run", *typed, "--submodules", "--device", "cpu", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.slow
def test_each_part_is_compiled_by_itself(tmp_path: Path) -> None:
    (tmp_path / "compilewatch.toml").write_text(
        f'[[workload]]\nname = "stack"\ntarget = "workload_fixtures:three_blocks"\npath = ["{FIXTURES}"]\n'
    )
    typed = ("run", "-w", "stack", "-s", "backend:aot_eager", "--submodules", "--trials", "1", "--json")
    done = compilewatch(*typed, cwd=tmp_path, **FAST_COMPILE)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["submodules"]
    assert sorted(row["submodule"] for row in rows) == ["blocks.0", "blocks.1", "blocks.2"]
    assert [row["graphs"] for row in rows] == [1, 1, 1]
    assert all(row["first_call_ns"] > 0 for row in rows)
