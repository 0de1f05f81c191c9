"""One question has one answer, whichever door is asked.

What contradicted itself once, and which figures would tell it now:

- a recipe of CI that is red in a table and undecided in `gate`: `verdict`, `tally`, `exit` of a comparison;
- `compare`, `gate` and `history` that end differently on the same trials: `exit`;
- "2 of 8 cases slower" here and "all is well" there: `tally`;
- one upgrade with two changes on a screen, medians here and means there: `change of`, `speedup`, `latency`;
- steps to break even that differ between pages, commands, API and badges: `break-even`, `total of`;
- "eager is cheapest" beside a strategy that saves: `chosen at`;
- a history that counts fewer changes than those of its cases: `changes`;
- a frame that shows something else than its page: `finding of`;
- a message or a recorded regression with a change of its own: `recorded change`.

Random histories are stored, all doors are asked, and all figures gathered as (quantity, case, selection,
value). A quantity that two doors tell differently, to the digits that they show, is a defect of the product.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from altair.utils.schemapi import debug_mode

from compilewatch.dashboard.read.database import close_databases
from tests.qa.numbers.doors import every_figure
from tests.qa.numbers.figures import contradictions
from tests.qa.numbers.histories import numbered, store

DATABASE = "COMPILEWATCH_DATABASE_URL"


def check(template: Path, folder: Path, number: int, machines: int = 2) -> list[str]:
    """What contradicts itself over the history of this number."""
    history = numbered(number, machines)
    if not history:
        return []
    path = folder / f"{number}.db"
    url = store(history, template, path)
    with pytest.MonkeyPatch.context() as patch, debug_mode(arg=False):
        patch.setenv(DATABASE, url)
        try:
            return contradictions(every_figure(folder, url, turn=number))
        finally:
            close_databases()
            path.unlink()


@pytest.mark.parametrize(
    "numbers",
    [
        range(1),
        *(
            pytest.param(range(first, first + 5), marks=[pytest.mark.slow, pytest.mark.timeout(7200)])
            for first in range(0, 500, 5)
        ),
    ],
    ids=lambda numbers: f"{numbers[0]}-{numbers[-1]}",
)
def test_every_door_tells_the_same(template: Path, tmp_path: Path, numbers: range) -> None:
    contradicting = {
        number: found
        for number in numbers
        if (found := check(template, tmp_path, number, machines=1 if len(numbers) == 1 else 2))
    }
    assert contradicting == {}
