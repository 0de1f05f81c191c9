"""Names that a shell proposes for an option: of the configuration, and of what is stored.

A shell waits for the answer and shows no error, so a configuration or a database that cannot be read
proposes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import typer

from db.errors import CompilewatchError
from runner.config.settings import Settings
from runner.config.sources import load_settings

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
        from db.engine.session import open_database
        from db.queries.named import stored_names

        with open_database(settings.database_url, read_only=True) as database:
            return stored_names(database, kind)

    return names


def _workloads(settings: Settings) -> Iterable[str]:
    from runner.plan.selection import known_workloads

    return known_workloads(settings)


def _strategies(settings: Settings) -> Iterable[str]:
    from runner.plan.selection import known_strategies

    return known_strategies(settings)


def _suites(settings: Settings) -> Iterable[str]:
    from runner.plan.selection import known_suites

    return known_suites(settings)


def _installed_builds(settings: Settings) -> Iterable[str]:
    from runner.plan.builds import known_builds

    return known_builds(settings)


def _sides(_: Settings) -> Iterable[str]:
    return ("latest", "previous")


workloads = _proposing(_workloads, _stored("workload"))
strategies = _proposing(_strategies, _stored("strategy"))
suites = _proposing(_suites, _stored("suite"))
machines = _proposing(_stored("machine"))
builds = _proposing(_stored("build"))
installed_builds = _proposing(_installed_builds)
sides = _proposing(_sides, _installed_builds, _stored("build"), _stored("run"))
