"""Every refusal of the metrics is one sentence and the next step, word by word."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest

from db.errors import UnitError
from db.metrics.break_even import price, steps_to_break_even
from db.metrics.cases import summarize_cases
from db.metrics.geomean import geomean, matched_geomeans
from db.metrics.mode_choice import ModeOption, best_option
from db.metrics.quantities import Subject, nanoseconds, require_one
from db.metrics.summary import summarize_samples
from tests.db.metrics.frames import trial, trials_frame

BERT, RESNET = Subject("box", "bert"), Subject("laptop", "resnet")
FAST = ModeOption("default", nanoseconds(5), nanoseconds(1))
TWO_BUILDS = summarize_cases(
    trials_frame(
        [
            trial(latency_ns=1.0, control_latency_ns=2.0, graphs=1, torch=torch)
            for torch in ("2.12.0", "2.13.0")
        ]
    )
)
LAPTOP = summarize_cases(
    trials_frame([trial(latency_ns=1.0, control_latency_ns=2.0, graphs=1, machine="laptop")])
)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            lambda: steps_to_break_even(math.inf, 1, 2),
            "inf is no measurement. Leave out cases without compile cost or latency.",
        ),
        (
            lambda: steps_to_break_even(1, Fraction(1, 2), 0),
            "A latency must be above 0 ns. Measure the case again.",
        ),
        (
            lambda: price(nanoseconds(1), Decimal(-1)),
            "-1 is no price per hour. Give a number of 0 or more.",
        ),
        (lambda: summarize_samples([5, -3]), "A sample of -3 ns is no time. Measure the trial again."),
        (
            lambda: geomean([1.0, -2.0]),
            "-2.0 has no place in a geometric mean. Leave out what did not pass.",
        ),
        (
            lambda: matched_geomeans({"base": TWO_BUILDS}),
            "base has several rows for bert. Choose one build or run a side.",
        ),
        (
            lambda: matched_geomeans({"base": TWO_BUILDS[:1], "head": LAPTOP}),
            "A geometric mean cannot mix several values of machine id: m-box, m-laptop. Choose one machine.",
        ),
        (lambda: best_option([], 1), "There is no strategy to choose from. Measure at least one."),
        (
            lambda: best_option([FAST], 0),
            "Steps 0 and restarts 0 cannot be run. Give at least 1 and 0.",
        ),
        (
            lambda: best_option([FAST], 1, -1),
            "Steps 1 and restarts -1 cannot be run. Give at least 1 and 0.",
        ),
        (
            lambda: best_option([FAST, ModeOption("odd", nanoseconds(1), nanoseconds(0))], 1),
            "odd has no latency above 0. Measure it again.",
        ),
        (
            lambda: nanoseconds(1) + 1,  # type: ignore[operator]
            "ns cannot meet a plain number. Give the number its unit.",
        ),
        (
            lambda: nanoseconds(1, BERT) - nanoseconds(1, RESNET),
            "Measurements of workload bert on machine box and of workload resnet on machine laptop "
            "cannot meet in one formula. Compare the same workload on the same machine.",
        ),
        (
            lambda: nanoseconds(2) * nanoseconds(3),  # type: ignore[operator]
            "A quantity can only be multiplied by a whole number or a fraction.",
        ),
        (
            lambda: nanoseconds(2) / nanoseconds(0),
            "Nothing can be divided by 0 ns. Measure it again.",
        ),
        (lambda: nanoseconds(math.nan), "nan is no measurement. Leave out what is missing."),
        (
            lambda: require_one(
                trials_frame([trial(torch=torch) for torch in ("4", "3", "2", "1")]), ("torch",), "This"
            ),
            "This cannot mix several values of torch: 1, 2, 3. Choose one torch.",
        ),
    ],
)
def test_a_refusal_in_words(wrong: Callable[[], object], text: str) -> None:
    with pytest.raises(UnitError) as refused:
        wrong()
    assert str(refused.value) == text
