"""Names that a shell proposes for an option: of the configuration, and of what is stored.

A shell waits for the answer and shows no error, so a configuration or a database that cannot be read
proposes nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

import typer

from compilewatch.db.errors import CompilewatchError
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.config.sources import load_settings

Proposals = Callable[[typer.Context, str], list[str]]


def _proposing(*sources: Callable[[Settings], Iterable[str]]) -> Proposals:
    def proposals(context: typer.Context, incomplete: str) -> list[str]:
        names: set[str] = set()
        for source in sources:
            try:
                names.update(source(_settings(context)))
            except CompilewatchError:
                continue
        return sorted(name for name in names if name.startswith(incomplete))

    return proposals


def _settings(context: typer.Context) -> Settings:
    url = context.params.get("db")
    return load_settings(context.params.get("config"), options={} if url is None else {"database_url": url})


def _stored(kind: str) -> Callable[[Settings], Iterable[str]]:
    def names(settings: Settings) -> Iterable[str]:
        from compilewatch.db.engine.session import open_database
        from compilewatch.db.queries.named import stored_names

        with open_database(settings.database_url, read_only=True) as database:
            return stored_names(database, kind)

    return names


def _known(module: str, function: str) -> Callable[[Settings], Iterable[str]]:
    """What a function of the planner knows by name; it is imported when a shell asks."""

    def names(settings: Settings) -> Iterable[str]:
        known: Iterable[str] = getattr(importlib.import_module(module), function)(settings)
        return known

    return names


_installed_builds = _known("compilewatch.runner.plan.builds", "known_builds")
workloads = _proposing(_known("compilewatch.runner.plan.selection", "known_workloads"), _stored("workload"))
strategies = _proposing(_known("compilewatch.runner.plan.selection", "known_strategies"), _stored("strategy"))
suites = _proposing(_known("compilewatch.runner.plan.selection", "known_suites"), _stored("suite"))
machines = _proposing(_stored("machine"))
runs = _proposing(_stored("run"))
stored_workloads = _proposing(_stored("workload"))
builds = _proposing(_stored("build"))
installed_builds = _proposing(_installed_builds)
sides = _proposing(lambda _: ("latest", "previous"), _installed_builds, _stored("build"), _stored("run"))
