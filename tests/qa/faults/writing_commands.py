"""What writes, and the ground on which each works: imported before the fork, with all that it needs later."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import compilewatch.db.store.backup
import compilewatch.runner.cli.judge.judging
import compilewatch.runner.cli.stored.database
import compilewatch.runner.cli.stored.interchange  # noqa: F401
from compilewatch.dashboard.reports.freeze import freeze_comparison, freeze_link, store_report
from compilewatch.db.engine.schema import OLDEST
from compilewatch.db.engine.session import open_database
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.service.reports import reports_frame
from compilewatch.db.store.trials import save_trials, start_run
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.cli.measure import watch
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.process.spool import Spool, persist, store_waiting
from compilewatch.runner.regressions.log import log_builds
from tests.builders import START, make_trial
from tests.db.every_table import fill_every_table
from tests.regression_cases import RUN_0, RUN_1, judged, stepping_history
from tests.runner.regressions.test_confirmation import FRESH, taking_turns
from tests.runner.search.test_watch import CONFIG as WATCHING
from tests.runner.search.test_watch import FakeHost

OLD_SCHEMA = Path(__file__).parents[2] / "db" / "schemas" / f"{OLDEST}.db"


@dataclass(frozen=True)
class Ground:
    """Where one command works: a directory of its own, and a database in it or on a server."""

    directory: Path
    url: str

    def __truediv__(self, name: str) -> Path:
        return self.directory / name

    @property
    def spool(self) -> Spool:
        return Spool(self / "spool")


@dataclass(frozen=True)
class Command:
    """What is killed: `lay` makes the ground once, `work` is the command and returns its exit code."""

    name: str
    work: Callable[[Ground], object]
    lay: Callable[[Ground], None]
    forgets: frozenset[str] = frozenset()
    """Columns that another try has otherwise: moments and random ids."""
    on_servers: bool = True
    comes_to: Callable[[Ground], object] | None = None
    """What is compared in the place of all tables."""
    more: frozenset[str] = frozenset()
    """Tables to which a try adds a row: one more may be there, where the killed try had committed its own."""


def _typed(command: str, ground: Ground) -> int:
    os.chdir(ground.directory)
    words = [
        word.format(url=ground.url, source=f"sqlite:///{ground / 'source.db'}") for word in command.split()
    ]
    return exit_code_of(app, words)


def _nothing(_ground: Ground) -> None:
    pass


def _with_tables(ground: Ground) -> None:
    open_database(ground.url, migrate=True).close()


def _filled(ground: Ground) -> None:
    with open_database(ground.url, migrate=True) as database:
        fill_every_table(database)


def _source(ground: Ground) -> None:
    """What is restored or copied; the database of the command is not there yet, or has no tables."""
    with open_database(f"sqlite:///{ground / 'source.db'}", migrate=True) as database:
        fill_every_table(database)


def _history(ground: Ground) -> None:
    _with_tables(ground)
    lines = [trial.to_json() for trial in stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0"))]
    (ground / "history.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _old_schema(ground: Ground) -> None:
    shutil.copyfile(OLD_SCHEMA, ground / "compilewatch.db")


def _waiting(ground: Ground) -> None:
    """Three trials of a run and its end, and among them a file that is no record."""
    with open_database(ground.url, migrate=True) as database:
        start_run(database, run_id="run", suite="s", label=None, started_at=START, planned_trials=3)
    for number in range(3):
        ground.spool.put(_trial(number))
    ground.spool.put_end("run", START + timedelta(hours=1), RunStatus.FINISHED)
    (ground / "spool" / "trial-1a.json").write_text("{", encoding="utf-8")


def _trial(number: int) -> Any:
    return make_trial(run_id="run", trial_id=f"trial-{number}", seed=number)


def _replay(ground: Ground) -> None:
    with open_database(ground.url) as database:
        store_waiting(database, ground.spool)


def _persist(ground: Ground) -> None:
    with open_database(ground.url) as database:
        for number in range(2):
            assert persist(_trial(number), database, ground.spool)


def _stepped(ground: Ground) -> None:
    with open_database(ground.url, migrate=True) as database:
        save_trials(database, stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))


def _freeze(ground: Ground) -> None:
    os.environ["COMPILEWATCH_DATABASE_URL"] = ground.url
    content = freeze_comparison("torch=2.12.0", "torch=2.13.0", title=None, by="ann", at=START)
    store_report(ground.url, content)


def _suspected(ground: Ground) -> None:
    """A regression that nobody has confirmed, and fresh trials of both builds that show it again."""
    with open_database(ground.url, migrate=True) as database:
        save_trials(database, stepping_history(1.0, 1.1, builds=("2.12.0", "2.13.0")))
        record_comparison(database, judged(database, RUN_0, RUN_1), at=START)
        save_trials(database, taking_turns(1.0, 1.1))


def _confirm(ground: Ground) -> None:
    with open_database(ground.url) as database:
        log_builds(database, list(FRESH), Settings(), fresh=True)


def _watched(ground: Ground) -> None:
    _with_tables(ground)
    text = re.sub(r"(?s)\[\[channel\]\].*", "", WATCHING)
    (ground / "compilewatch.toml").write_text(text, encoding="utf-8")


def _watch(ground: Ground) -> int:
    """A release that is slower: measured, recorded, measured again and frozen, on a host that is made up."""
    os.environ["COMPILEWATCH_DATABASE_URL"] = ground.url

    def freeze(_settings: Settings, page: str, title: str) -> str:
        content = freeze_link(page, title=title, by=watch.signer(), at=datetime.now(UTC))
        return store_report(ground.url, content)

    patch = pytest.MonkeyPatch()
    FakeHost({("2.14.0", "elementwise"): 12.0}, ["2.14.0", "2.13.0"]).install(patch)
    patch.setattr(watch, "freeze", freeze)
    return _typed("watch --once --db {url}", ground)


def _told(ground: Ground) -> object:
    """What a watch or a confirmation comes to: ids, moments and trials are those of the try that did it."""
    with open_database(ground.url, read_only=True) as database:
        found = [(each.regression.row.workload, each.state) for each in standing_regressions(database)]
        return sorted(found), len(reports_frame(database))


COMMANDS = [
    Command("import", partial(_typed, "import history.jsonl --db {url}"), _history),
    Command("upgrade of no database", partial(_typed, "db upgrade --db {url}"), _nothing),
    Command(
        "upgrade of an old schema",
        partial(_typed, "db upgrade --db {url}"),
        _old_schema,
        on_servers=False,
    ),
    Command("backup", partial(_typed, "db backup backup.db --db {url}"), _filled),
    Command("restore", partial(_typed, "db restore source.db --yes --db {url}"), _source),
    Command("copy", partial(_typed, "db copy {source} {url}"), _source),
    Command("vacuum", partial(_typed, "db vacuum --db {url}"), _filled),
    Command(
        "removal", partial(_typed, "db remove-trials run-gpu-box-3-0-0000-0001 --yes --db {url}"), _filled
    ),
    Command("export", partial(_typed, "export --output history.jsonl --db {url}"), _filled),
    Command("spool", _persist, _with_tables),
    Command("replay of the spool", _replay, _waiting),
    Command("freeze", _freeze, _stepped, forgets=frozenset({"report_id"}), more=frozenset({"report"})),
    Command("confirm", _confirm, _suspected, comes_to=_told),
    Command("watch", _watch, _watched, comes_to=_told),
]
