"""Rooms stack: a folder imports only folders of lower floors, and can be read without those above."""

from __future__ import annotations

import pytest

from tests.house.tracked import ROOT, imports_of, room_files

# From the lowest floor up; rooms of one floor do not know each other. Pages stand together as `pages/*`.
FLOORS = {
    "db": (
        "db",
        "db/records",
        "db/columns",
        "db/metrics",
        "db/engine db/cause",
        "db/engine/migrations/versions",
        "db/engine/migrations",
        "db/judge",
        "db/judge/statistics",
        "db/judge/compare",
        "db/judge/history",
        "db/queries",
        "db/store",
        "db/service",
        "db/verdicts",
        "db/interchange/files",
        "db/interchange/sources",
        "db/interchange",
    ),
    "runner": (
        "runner/workloads",
        "runner/worker/timing",
        "runner/worker/step",
        "runner/worker/device runner/worker/compiler",
        "runner/worker",
        "runner/config runner/device",
        "runner/catalog",
        "runner/plan",
        "runner/process",
        "runner/service",
        "runner/fleet runner/regressions",
        "runner/output",
        "runner/search",
        "runner/cli",
        "runner/cli/judge runner/cli/stored",
        "runner/cli/measure",
        "runner",
    ),
    "dashboard": (
        "dashboard/text dashboard/links",
        "dashboard/read",
        "dashboard/charts",
        "dashboard/parts",
        "dashboard/verdicts",
        "dashboard/document",
        "dashboard/http",
        "dashboard/login",
        "dashboard/write",
        "dashboard/api",
        "dashboard/render",
        "dashboard/pages/*",
        "dashboard/pages",
        "dashboard/reports",
        "dashboard/server",
        "dashboard",
    ),
}


def floor_of(room: str) -> int | None:
    """The floor of a folder; None where it is on none."""
    named = "dashboard/pages/*" if room.startswith("dashboard/pages/") else room
    floors = FLOORS[room.partition("/")[0]]
    return next((floor for floor, rooms in enumerate(floors) if named in rooms.split()), None)


def room_of(module: str) -> str | None:
    """The folder of the file that a name of ours is in; None for what is not ours."""
    parts = module.split(".")
    while parts and parts[0] in FLOORS:
        path = "/".join(parts)
        if (ROOT / f"{path}.py").is_file():
            return path.rpartition("/")[0]
        if (ROOT / path / "__init__.py").is_file():
            return path
        parts.pop()
    return None


def edges(package: str) -> set[tuple[str, str]]:
    """Which folders of a package import which others of it."""
    found = set()
    for path in room_files(package):
        for each in imports_of(path):
            there = room_of(each.module) if each.inside(package) else None
            if there and there != path.parent.as_posix():
                found.add((path.parent.as_posix(), there))
    return found


def climbs(edge: tuple[str, str]) -> bool:
    lower, upper = floor_of(edge[1]), floor_of(edge[0])
    return lower is None or upper is None or lower >= upper


@pytest.mark.parametrize("package", FLOORS)
def test_every_folder_has_its_floor(package: str) -> None:
    rooms = {path.parent.as_posix() for path in room_files(package)}
    assert [room for room in sorted(rooms) if floor_of(room) is None] == []


@pytest.mark.parametrize("package", FLOORS)
def test_rooms_import_only_lower_floors(package: str) -> None:
    assert sorted({edge for edge in edges(package) if climbs(edge)}) == []


@pytest.mark.parametrize(
    ("edge", "up"),
    [
        (("db/store", "db/queries"), False),
        (("db/queries", "db/store"), True),
        (("runner/worker/device", "runner/worker/compiler"), True),
        (("dashboard/pages/modes", "dashboard/pages/upgrade"), True),
        (("dashboard/pages/modes", "dashboard/nowhere"), True),
    ],
)
def test_an_import_that_climbs_is_recognized(edge: tuple[str, str], up: bool) -> None:
    assert climbs(edge) is up
