"""An upgrade is noticed once, and only an upgrade."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.records.requests import RequestState
from compilewatch.db.service.requests import end_request, queue, requests, take_request
from compilewatch.db.store.trials import save_trial
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.state import DeviceFacts
from compilewatch.runner.service import upkeep
from compilewatch.runner.service.upkeep import fingerprints, request_where_changed
from tests.builders import make_build, make_machine, make_trial

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
# This environment's torch, as a trial's record has it.
INSTALLED = version("torch").partition("+")[0]


def look(database: Database, settings: Settings | None = None, host: str = "box") -> str | None:
    request = request_where_changed(
        database, settings or Settings(), host=host, machine=host, owner=f"{host}:1", at=NOW
    )
    return request.history[0].note if request else None


def measured(database: Database, torch: str, driver: str | None = None, host: str = "box") -> None:
    machine = make_machine("cpu-box").model_copy(update={"name": host})
    variant = fingerprints(Settings(), on_gpu=False)[None].torch_variant
    changes = {"torch": torch, "torch_variant": variant, "driver": driver}
    build = make_build("2.13.0").model_copy(update=changes)
    save_trial(database, make_trial(machine=machine, build=build))


def fake_torch(folder: Path, release: str) -> Path:
    """An interpreter whose torch says `release` and cannot be imported."""
    package = folder / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    (package / "version.py").write_text(f"__version__ = {release!r}\n", encoding="utf-8")
    python = folder / "python"
    script = f"import sys; sys.path.insert(0, '{folder}'); exec(sys.argv[1])"
    # As Python is called: -I -c PROGRAM.
    program = f'#!/bin/sh\nexec "{sys.executable}" -c "{script}" "$3"\n'
    python.write_text(program, encoding="utf-8")
    python.chmod(0o755)
    return python


def test_the_release_is_the_one_torch_says_and_torch_is_not_imported(tmp_path: Path) -> None:
    assert fingerprints(Settings(), on_gpu=False)[None].torch == INSTALLED
    settings = Settings(build=({"name": "new", "python": fake_torch(tmp_path, "9.9.0+cu999")},))
    assert str(fingerprints(settings, on_gpu=False)["new"]) == "torch 9.9.0 (cu999)"


def test_a_new_torch_is_measured_beside_the_old_one_once(sqlite_database: Database, tmp_path: Path) -> None:
    measured(sqlite_database, "2.12.0")
    variant = fingerprints(Settings(), on_gpu=False)[None].torch_variant
    builds = [
        {"name": name, "python": fake_torch(tmp_path / name, f"{release}+{variant}")}
        for name, release in (("old", "2.12.0"), ("new", "9.9.0"))
    ]
    settings = Settings(build=tuple(builds), run={"suite": "smoke"})
    assert look(sqlite_database, settings) == f"never measured on box: torch 9.9.0 ({variant})"
    (request,) = queue(sqlite_database)
    assert (request.kind, request.spec.suite, request.spec.machine) == ("upgrade", "smoke", "box")
    assert request.spec.builds == ()
    assert look(sqlite_database, settings) is None
    take_request(sqlite_database, owner="box:1", at=NOW, fits=lambda _request: True)
    end_request(sqlite_database, request.request_id, RequestState.FAILED, owner="box:1", at=NOW)
    assert look(sqlite_database, settings) is None
    assert len(requests(sqlite_database)) == 1


def test_what_was_measured_here_is_no_news(sqlite_database: Database) -> None:
    measured(sqlite_database, INSTALLED)
    assert look(sqlite_database) is None


def test_a_host_without_history_has_nothing_to_compare(sqlite_database: Database) -> None:
    measured(sqlite_database, "2.12.0", host="elsewhere")
    assert look(sqlite_database) is None


def test_a_new_driver_is_news_where_a_gpu_was_measured(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "device_facts", lambda _device: DeviceFacts(driver="580.65"))
    measured(sqlite_database, INSTALLED)
    assert look(sqlite_database) is None
    measured(sqlite_database, INSTALLED, driver="570.86")
    note = look(sqlite_database)
    assert note.startswith(f"never measured on box: torch {INSTALLED} (")
    assert note.endswith(" on driver 580.65")


def test_an_interpreter_that_is_gone_is_said_and_left_out(
    sqlite_database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    measured(sqlite_database, "2.12.0")
    assert look(sqlite_database, Settings(build=({"name": "gone", "python": tmp_path / "gone"},))) is None
    assert "cannot be read" in caplog.text


def test_a_build_that_is_gone_does_not_keep_the_others_from_being_measured(
    sqlite_database: Database, tmp_path: Path
) -> None:
    measured(sqlite_database, "2.12.0")
    builds = [
        {"name": "old", "python": fake_torch(tmp_path / "old", "2.12.0")},
        {"name": "gone", "python": tmp_path / "gone"},
        {"name": "new", "python": fake_torch(tmp_path / "new", "9.9.0")},
    ]
    assert look(sqlite_database, Settings(build=tuple(builds))) is not None
    (request,) = queue(sqlite_database)
    assert request.spec.builds == ("old", "new")
