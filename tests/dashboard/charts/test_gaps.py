"""Where a history has no number: how far a line goes, and what is said of the rest."""

from __future__ import annotations

import pandas as pd
import pytest

from compilewatch.dashboard.charts import trend_rows


def _history(**steps: list[int | None]) -> pd.DataFrame:
    """A point per build `a`, `b` and so on; None where compiling never pays off."""
    points = [
        {"build_id": chr(ord("a") + place), "strategy": strategy.replace("_", "-"), "break_even_steps": value}
        for strategy, values in steps.items()
        for place, value in enumerate(values)
    ]
    frame = pd.DataFrame(points).astype({"break_even_steps": "Int64"})
    words = frame["break_even_steps"].isna().map({True: "never", False: "steps"})
    return frame.assign(break_even=words).sort_values("build_id", kind="stable")


def test_a_stretch_of_points_ends_where_its_own_strategy_has_no_number() -> None:
    points = _history(default=[5, None, None, 7, 8], max_autotune=[1, 2, 3, 4, 5])
    known = points["break_even_steps"].notna().to_numpy(dtype=bool)
    of = points.assign(stretch=trend_rows.stretches(points, known))[known].groupby("strategy")["stretch"]
    assert {name: list(found) for name, found in of} == {"default": [0, 2, 2], "max-autotune": [0] * 5}


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ({"default": [5, 6]}, ""),
        ({"eager": [None, None], "default": [5, 6]}, ""),
        ({"default": [5, None, None, 6]}, "No number: never with A1, A2."),
        ({"default": [5, None, None, None]}, "No number: never with A1 to A3."),
        (
            {"default": [5, None, 7], "max_autotune": [None, 2, None]},
            "No number: default never with A1; max-autotune never with A0, A2.",
        ),
        ({"default": [None, 1] * 6}, "No number: never with A4, A6, A8, A10 and 2 older."),
    ],
)
def test_what_has_no_number_is_told_in_a_sentence(steps: dict[str, list[int | None]], said: str) -> None:
    names = {chr(ord("a") + place): f"A{place}" for place in range(12)}
    assert trend_rows.sentence(_history(**steps), "break_even", names) == said


def test_what_comes_before_the_first_point_that_is_drawn_is_not_told() -> None:
    points = _history(default=[None, 5, None, 6]).reset_index(drop=True)
    names = {letter: letter.upper() for letter in "abcde"}
    drawn = points[points["break_even_steps"].notna()]
    told = trend_rows.since_first(points, drawn, "break_even", axis="torch", names=names)
    assert told == (("B", "C", "D"), "No number: never with C.")
    assert trend_rows.since_first(points, drawn, "break_even", axis="time", names=names)[1] == ""
