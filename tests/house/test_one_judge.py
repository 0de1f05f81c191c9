"""Nothing but the gateway puts together what a verdict between two builds rests on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.tracked import Import, imports, imports_of, room_files

# What reads or arranges the trials of a verdict, or judges them.
OF_A_VERDICT = (
    "db.queries.comparison",
    "db.judge.compare.upgrade",
    "db.judge.compare.judge_sides",
    "db.judge.compare.comparable.match_cases",
    "db.judge.compare.sides.split_sides",
    "db.judge.statistics.contrast",
    "db.judge.decide.decide",
    "db.judge.statistics.evidence",
    "db.judge.compare.measured",
    "db.judge.statistics.noise",
)
GATEWAY = "db/verdicts/gateway.py"
STRATEGIES = "db/judge/compare/strategies.py"
"""One strategy against another, which reads nothing either: the same judge over other sides."""
# Pure arithmetic, which reads nothing; of it only the gateway may ask for a verdict.
ARITHMETIC = "db/judge/"


def strays(path: Path, found: list[Import]) -> list[str]:
    """The imports by which a file would assemble a verdict of its own."""
    name = path.as_posix()
    if name in (GATEWAY, STRATEGIES):
        return []
    barred = (
        ("db.queries.comparison", "db.judge.compare.upgrade") if name.startswith(ARITHMETIC) else OF_A_VERDICT
    )
    return [
        f"{name}:{each.line} imports {each.module}"
        for each in found
        if any(each.inside(package) for package in barred)
    ]


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("from compilewatch.db.judge.compare.upgrade import compare_builds", True),
        ("from compilewatch.db.judge.compare import upgrade", True),
        ("import compilewatch.db.judge.compare.upgrade as judge", True),
        ("def late():\n    from compilewatch.db.queries.comparison import past_frame", True),
        ("from compilewatch.db.judge.compare.sides import split_sides", True),
        ("from compilewatch.db.judge.compare.sides import Selection", False),
        ("from compilewatch.db.judge.statistics.noise_floor import noise_floors", False),
        ("from compilewatch.db.verdicts import gateway", False),
    ],
)
def test_a_verdict_assembled_elsewhere_is_caught(source: str, caught: bool) -> None:
    assert bool(strays(Path("dashboard/read/data.py"), list(imports(source)))) is caught


def test_only_the_gateway_assembles_a_verdict() -> None:
    assert [line for path in room_files() for line in strays(path, list(imports_of(path)))] == []
