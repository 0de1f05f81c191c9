"""One question has one answer, whichever door is asked.

What contradicted itself once, and which figures would tell it now:

- a recipe of CI that is red in a table and undecided in `gate`: `verdict`, `tally`, `exit` of a comparison;
- `compare`, `gate` and `history` that end differently on the same trials: `exit`;
- "2 of 8 cases slower" here and "all is well" there: `tally` and `headline`;
- one upgrade with two changes on a screen, medians here and means there: `change of`, `speedup`, `latency`;
- steps to break even that differ between pages, commands, API and badges: `break-even`, `total of`;
- "eager is cheapest" beside a strategy that saves: `chosen at`;
- a history that counts fewer changes than those of its cases: `changes`;
- a frame or wall that shows something else than its page: `finding of`, `headline`;
- a message or a recorded regression with a change of its own: `recorded change`.

Random histories are stored, all doors are asked, and all figures gathered as (quantity, case, selection,
value). A quantity that two doors tell differently, to the digits that they show, is a defect of the product.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from dashboard.read.database import close_databases
from db.engine.session import open_database
from db.store.trials import save_trials, start_run
from tests.numbers.doors import every_figure
from tests.numbers.figures import contradictions
from tests.numbers.histories import History, histories

DATABASE = "COMPILEWATCH_DATABASE_URL"


def check(template: Path, history: History, folder: Path) -> list[str]:
    """What contradicts itself over `history`."""
    path = folder / "compilewatch.db"
    shutil.copy(template, path)
    url = f"sqlite:///{path}"
    with open_database(url) as database:
        for run in {each.run_id for each in history} if history.planned else ():
            began = min(each.started_at for each in history if each.run_id == run)
            start_run(
                database,
                run_id=run,
                suite="standard",
                label=None,
                started_at=began,
                planned_trials=history.planned,
            )
        save_trials(database, history)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATABASE, url)
        try:
            return contradictions(every_figure(folder, url))
        finally:
            close_databases()


PARTS, OF_PART = 10, 50
"""500 histories in parts that run beside each other."""
IN_FULL = (pytest.mark.slow, pytest.mark.timeout(7200))


@pytest.mark.parametrize(
    ("part", "examples"),
    [
        (0, 1),
        *(
            pytest.param(n, OF_PART, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])
            for n in range(PARTS)
        ),
    ],
)
def test_every_door_tells_the_same(template: Path, tmp_path: Path, part: int, examples: int) -> None:
    @seed(part)
    @settings(
        max_examples=examples,
        deadline=None,
        # A history takes seconds, and the first that contradicts itself tells enough.
        phases=(Phase.generate,),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(histories(machines=1 if examples == 1 else 2), st.uuids())
    def run(history: History, folder: UUID) -> None:
        if history:
            place = tmp_path / str(folder)
            place.mkdir()
            assert check(template, history, place) == []
            shutil.rmtree(place)

    run()
