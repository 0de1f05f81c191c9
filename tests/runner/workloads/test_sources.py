"""A change in a module that workloads share is a new version of those that use it, and of no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilewatch.db.records.trial import Task
from compilewatch.runner.catalog import definition
from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.catalog.targets import locate_module


def versions() -> dict[str, str]:
    return {each.name: each.version for each in WORKLOADS.values()}


@pytest.mark.parametrize(
    ("changed", "users"),
    [
        (
            "transformer",
            {"encoder", "encoder-512", "encoder-train", "encoder-train-bf16", "encoder-train-fp16"}
            | {"encoder-512-int8", "encoder-train-checkpointing", "encoder-train-compiled-optimizer"}
            | {"varlen", "varlen-max", "varlen-buckets", "varlen-dynamic"},
        ),
        ("decode", {"decode", "llama-decode"}),
        ("cnn", {"cnn", "first-epoch"}),
        ("lengths", {"varlen", "varlen-max", "varlen-buckets", "varlen-dynamic"}),
        ("built", set()),
    ],
)
def test_those_that_use_it_are_new(changed: str, users: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    before, read = versions(), definition._read

    def edited(module: str, path: tuple[str, ...]) -> bytes:
        return read(module, path) + (
            b"# edited\n" if module == f"compilewatch.runner.workloads.{changed}" else b""
        )

    monkeypatch.setattr(definition, "_read", edited)
    after = versions()
    assert {name for name in before if before[name] != after[name]} == users


def test_a_builder_that_shares_nothing_is_its_file_alone() -> None:
    file = locate_module("compilewatch.runner.workloads.cnn")
    assert definition.source_of("compilewatch.runner.workloads.cnn:build") == file.read_bytes()


def test_a_users_file_takes_along_what_it_shares_with_ours_and_not_its_own_modules(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from my_layers import Layer\nfrom compilewatch.runner.workloads.lengths import Lengths\n\n"
        "def build(): ...\n",
        encoding="utf-8",
    )
    (tmp_path / "my_layers.py").write_text("Layer = 1\n", encoding="utf-8")
    found = definition.source_of("mine:build", (str(tmp_path),)).decode()
    assert "class Lengths" in found
    assert "Layer = 1" not in found


def test_a_file_that_is_not_python_still_has_a_version(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def build(:\n", encoding="utf-8")
    broken = WorkloadDefinition(name="w", task=Task.FUNCTION, target="broken:build", path=(str(tmp_path),))
    assert len(broken.version) == 8
