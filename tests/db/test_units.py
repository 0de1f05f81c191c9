"""Text of numbers: three digits, the right unit after rounding, and an en dash for what is missing."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db import units
from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.break_even import NOT_FASTER

MISSING_VALUES = [None, math.nan, pd.NA, np.float64("nan"), math.inf, -math.inf]


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 s"),
        (7, "7 ns"),
        (8.5, "8.50 ns"),
        (812, "812 ns"),
        (999, "999 ns"),
        (999.7, "1.00 µs"),
        (1_000, "1.00 µs"),
        (12_400_000, "12.4 ms"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (41_000_000_000, "41.0 s"),
        (59_960_000_000, "1.00 min"),
        (90_000_000_000, "1.50 min"),
        (3_599_900_000_000, "1.00 h"),
        (9_000_000_000_000, "2.50 h"),
        (3_600_000_000_000 * 12_345, "12,345 h"),
        (-1_500_000, "\N{MINUS SIGN}1.50 ms"),
        (-999_999, "\N{MINUS SIGN}1.00 ms"),
        (np.int64(8_123_456), "8.12 ms"),
    ],
)
def test_a_duration_has_three_digits_in_the_unit_it_rounds_to(ns: float, text: str) -> None:
    assert units.duration(ns) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1,023 B"),
        (1024, "1.00 KiB"),
        (1_048_575, "1.00 MiB"),
        (512 * 2**20, "512 MiB"),
        (1_234_567_890, "1.15 GiB"),
        (150_754_820_096, "140 GiB"),
        (3 * 2**40, "3.00 TiB"),
    ],
)
def test_a_size_is_in_binary_units(size: int, text: str) -> None:
    assert units.size(size) == text


def test_the_name_of_a_field_has_no_underscore() -> None:
    assert units.words("eager_two_runs_differ") == "eager two runs differ"


@pytest.mark.parametrize(
    ("share", "text"), [(0.95, "95 %"), (0.9, "90 %"), (0.995, "99.5 %"), (0.29, "29 %"), (0.9999, "99.99 %")]
)
def test_a_chosen_level_has_no_decimals_that_nobody_chose(share: float, text: str) -> None:
    assert units.level(share) == text


def test_ratios_percents_counts_rates_and_money() -> None:
    assert units.ratio(1.8251) == "1.83x"
    assert units.ratio(0.04567) == "0.0457x"
    assert units.ratio(9.996) == "10.0x"
    assert units.ratio(1) == "1.00x"
    assert units.percent(0.032) == "3.20 %"
    assert units.percent(0.032, signed=True) == "+3.20 %"
    assert units.percent(-0.5, signed=True) == "\N{MINUS SIGN}50.0 %"
    assert units.percent(0, signed=True) == "0 %"
    assert units.count(12_400) == "12,400"
    assert units.count(2**63 - 1) == "9,223,372,036,854,775,807"
    assert units.rate(984.7, "sequence") == "985 sequences/s"
    assert units.rate(12.0) == "12.0 /s"
    assert units.money(1240.5) == "$1,240.50"
    assert units.money(0.00123) == "$0.00123"
    assert units.money(0.0144) == "$0.0144"
    assert units.money(-0.5) == "\N{MINUS SIGN}$0.500"
    assert units.money(0.9994) == "$0.999"
    assert units.money(0.9996) == units.money(1) == "$1.00"
    assert units.money(-2.5) == "\N{MINUS SIGN}$2.50"
    assert units.money(0) == "$0.00"


def test_steps_are_a_number_or_the_word_never() -> None:
    assert units.steps(1) == "1 step"
    assert units.steps(1240) == "1,240 steps"
    assert units.steps(1240.4) == "1,240 steps"
    assert units.steps(1.0) == "1 step"
    assert units.steps(1.4249) == "1.42 steps"
    assert units.steps(0.4) == "0.400 steps"
    assert units.steps(units.NEVER) == "never"
    assert units.steps(NOT_FASTER) == "never"
    assert units.steps(pd.NA) == units.MISSING


@pytest.mark.parametrize("value", MISSING_VALUES)
def test_what_is_missing_is_an_en_dash(value: object) -> None:
    for text in (
        units.duration,
        units.size,
        units.ratio,
        units.percent,
        units.count,
        units.steps,
        units.rate,
        units.money,
        units.significant,
    ):
        assert text(value) == "\N{EN DASH}"  # type: ignore[operator]


def test_a_moment_is_told_in_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    assert units.moment(datetime(2026, 11, 20, 18, 0, tzinfo=UTC)) == "2026-11-20 18:00 UTC"
    assert units.moment(datetime(2026, 11, 21, 3, 0, tzinfo=tokyo)) == "2026-11-20 18:00 UTC"
    assert units.moment(pd.Timestamp("2026-11-20T18:00Z")) == "2026-11-20 18:00 UTC"
    assert units.moment(None) == units.moment(pd.NaT) == units.MISSING


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(UnitError, match="no time zone"):
        units.moment(datetime(2026, 11, 20, 18, 0))  # noqa: DTZ001


def test_an_interval_names_both_ends_once() -> None:
    assert units.interval(1.7, 1.96, units.ratio) == "1.70x to 1.96x"
    assert units.interval(1.701, 1.702, units.ratio) == "1.70x"
    assert units.interval(None, None, units.ratio) == units.MISSING
    assert units.interval(120, None, units.steps) == "from 120 steps"
    assert units.interval(pd.NA, 120, units.steps) == "up to 120 steps"
    assert units.interval(120, "never", units.steps) == "120 steps to never"


@pytest.mark.parametrize(("low", "high", "said"), [(0.5, 2.0, True), (0.8, 1.25, False), (-0.1, 0.5, False)])
def test_an_interval_that_is_wider_than_its_value_says_so(low: float, high: float, said: bool) -> None:
    assert units.interval(low, high, units.ratio).endswith(" (wider than its value)") == said


_UNITS_NS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}


@given(st.integers(min_value=1, max_value=2**63 - 1))
def test_a_duration_read_back_is_within_half_a_unit_of_the_third_digit(ns: int) -> None:
    number, unit = units.duration(ns).split(" ")
    assert float(number.replace(",", "")) * _UNITS_NS[unit] == pytest.approx(ns, rel=0.00501)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_no_number_becomes_nan_or_inf(value: float) -> None:
    texts = units.duration(value), units.size(value), units.ratio(value), units.percent(value)
    assert not any("nan" in text or "inf" in text for text in texts)


@given(st.floats(-2000, 2000))
def test_three_digits_are_those_of_rounding_to_them_first(value: float):
    rounded = float(f"{value:.2e}") if abs(value) < 1000 else float(round(value))
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded)))) if rounded else 0
    expected = f"{rounded:,.{decimals}f}".replace("-", "\N{MINUS SIGN}")
    assert units.significant(value) == (expected if rounded else "0")


@pytest.mark.parametrize(
    ("trials", "said"), [(2, "n=2"), (1, units.MISSING), (3, units.MISSING), (pd.NA, units.MISSING)]
)
def test_two_trials_stand_in_place_of_their_interval(trials: int, said: str) -> None:
    assert units.interval(pd.NA, pd.NA, units.ratio, trials=trials) == said
    assert units.interval(1.5, 2.0, units.ratio, trials=2) == "1.50x to 2.00x"


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "case", "0 cases"),
        (1, "strategy", "1 strategy"),
        (2, "strategy", "2 strategies"),
        (2, "delay", "2 delays"),
        (1_200, "process", "1,200 processes"),
        (3, "batch", "3 batches"),
    ],
)
def test_a_number_of_things(number: int, noun: str, text: str) -> None:
    assert units.plural(number, noun) == text


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c"], "a, b and 1 more")]
)
def test_the_first_of_many_names(names: list[str], text: str) -> None:
    assert units.first_of(names, 2) == text
