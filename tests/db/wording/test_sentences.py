"""What the judge says, word by word: people act on these sentences."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from db.judge.vocabulary import Metric, Verdict, WhoMoved
from db.wording import sentences as say
from db.wording.sentences import Moved

LATENCY, SPEEDUP = Metric.LATENCY, Metric.SPEEDUP
EAGER, COMPILED, BOTH, UNCLEAR = WhoMoved.EAGER, WhoMoved.COMPILED, WhoMoved.BOTH, WhoMoved.UNCLEAR


@pytest.mark.parametrize(
    ("metric", "change", "who", "eager", "compiled", "text"),
    [
        (SPEEDUP, 0.1, EAGER, 0.1, 0.0, "Speedup rose because eager got slower."),
        (SPEEDUP, -0.1, EAGER, -0.1, 0.0, "Speedup fell because eager got faster."),
        (SPEEDUP, -0.1, COMPILED, 0.0, 0.1, "Speedup fell because compiled got slower."),
        (SPEEDUP, 0.1, COMPILED, 0.0, -0.1, "Speedup rose because compiled got faster."),
        (
            SPEEDUP,
            -0.1,
            BOTH,
            0.1,
            0.25,
            "Speedup fell because both moved: eager +10.0 %, compiled +25.0 % in latency.",
        ),
        (
            SPEEDUP,
            0.1,
            UNCLEAR,
            0.05,
            -0.04,
            "Speedup rose (eager +5.00 %, compiled -4.00 % in latency; neither is sure alone).",
        ),
        (SPEEDUP, 0.1, None, None, None, "Speedup rose by 10.0 %."),
        (SPEEDUP, 0.1, None, 0.1, 0.1, "Speedup rose by 10.0 %."),
        (SPEEDUP, 0.1, EAGER, None, 0.1, "Speedup rose by 10.0 %."),
        (SPEEDUP, 0.1, EAGER, 0.1, None, "Speedup rose by 10.0 %."),
        (LATENCY, -0.12, BOTH, -0.05, -0.12, "Latency fell by 12.0 %; eager moved too (-5.00 %)."),
        (LATENCY, 0.12, BOTH, None, None, "Latency rose by 12.0 %."),
        (LATENCY, 0.12, COMPILED, 0.0, 0.12, "Latency rose by 12.0 %; eager did not move."),
        (LATENCY, 0.12, EAGER, 0.12, 0.0, "Latency rose by 12.0 %."),
        (Metric.PEAK_MEMORY, 0.12, BOTH, 0.1, 0.1, "Peak memory rose by 12.0 %."),
        (Metric.COMPILE_COST, 0.12, COMPILED, 0.1, 0.1, "Compile cost rose by 12.0 %."),
    ],
)
def test_what_moved_and_because_of_whom(
    metric: Metric,
    change: float,
    who: WhoMoved | None,
    eager: float | None,
    compiled: float | None,
    text: str,
):
    assert say.moved(metric, change, who, eager=eager, compiled=compiled) == text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (lambda: say.unchanged((-0.01, 0.02), 0.03), "Shown to be within 3.00 %: -1.00 % to +2.00 %."),
        (lambda: say.inconclusive((-0.01, 0.2), None), "Cannot tell: -1.00 % to +20.0 %."),
        (
            lambda: say.inconclusive((-0.01, 0.2), 1),
            "Cannot tell: -1.00 % to +20.0 %; about 1 more trial a side would show 5 %.",
        ),
        (
            lambda: say.inconclusive((-0.01, 0.2), 2),
            "Cannot tell: -1.00 % to +20.0 %; about 2 more trials a side would show 5 %.",
        ),
        (
            lambda: say.inconclusive(None, 5),
            "The noise of this case is unknown; measure both sides with more trials.",
        ),
        (
            lambda: say.too_few((4, 1), 3, suspected=False),
            "1 trial on the smaller side is never a verdict; 3 a side are needed.",
        ),
        (
            lambda: say.too_few((2, 5), 3, suspected=True),
            "2 trials on the smaller side are never a verdict; 3 a side are needed. "
            "Suspected: the change is beyond the noise of its own history.",
        ),
        (
            lambda: say.confounded(("torch", "driver", "triton")),
            "torch, driver and triton changed at once, so their effects cannot be told apart.",
        ),
        (
            lambda: say.confounded(("torch_variant", "torch_git")),
            "torch variant and torch git changed at once, so their effects cannot be told apart.",
        ),
        (
            lambda: say.machine_moved(0.05),
            "The machine moved: its canary's latency changed by +5.00 %. "
            "Measure again before blaming a build.",
        ),
        (
            lambda: say.machine_moved(None),
            "The same build is on both sides: only the machine or chance can have moved it.",
        ),
        (lambda: say.missing(1), "1 case of the base side did not run on the head side."),
        (lambda: say.missing(2), "2 cases of the base side did not run on the head side."),
        (
            lambda: say.not_testable(SPEEDUP),
            "No trial of one side has eager measured in the same process; measure both sides again.",
        ),
        (
            lambda: say.not_testable(Metric.BREAK_EVEN),
            "No trial of one side has eager measured in the same process; measure both sides again.",
        ),
        (lambda: say.not_testable(LATENCY), "No trial of one side can be tested; measure both sides again."),
        (lambda: say.never(base=True, head=True, sure=False), "Compilation never pays off, on either side."),
        (lambda: say.never(base=False, head=True, sure=True), "Compilation no longer pays off."),
        (lambda: say.never(base=True, head=False, sure=True), "Compilation pays off now."),
        (
            lambda: say.never(base=True, head=False, sure=False),
            "Compilation pays off now, but the change of speedup behind it is not sure.",
        ),
        (
            lambda: say.geometric_mean(1.5, 1.8, 1),
            "Geomean speedup over 1 matched case: 1.50x to 1.80x (+20.0 %).",
        ),
        (
            lambda: say.latency_mean(-0.04, (-0.05, 0.01), 3, 0.95, "compiled"),
            "Geomean latency of 3 matched compiled cases, head against base: "
            "-4.00 % (95 % interval -5.00 % to +1.00 %).",
        ),
        (
            lambda: say.latency_mean(0.04, None, 1, 0.95, "eager"),
            "Geomean latency of 1 matched eager case, head against base: +4.00 %.",
        ),
        (
            lambda: say.withdrawn(Metric.PEAK_MEMORY, 0.001, 1),
            "With 1 more point the step in peak memory is +0.100 % and no longer stands.",
        ),
        (
            lambda: say.withdrawn(LATENCY, -0.001, 12),
            "With 12 more points the step in latency is -0.100 % and no longer stands.",
        ),
        (
            lambda: say.drifted(LATENCY, 0.03, "the oldest points", real=True),
            "Latency drifted by +3.00 % against the oldest points, beyond the announced steps.",
        ),
        (
            lambda: say.drifted(LATENCY, 0.003, "the reference build", real=False),
            "Latency stands at +0.300 % against the reference build, beyond the announced steps; "
            "that is no sure drift.",
        ),
    ],
)
def test_each_sentence(said: Callable[[], str], text: str):
    assert said() == text


@pytest.mark.parametrize(
    ("change", "components", "flips", "text"),
    [
        (0.05, (), False, "Latency rose by 5.00 %; no part of the build changed with it."),
        (-0.05, ("torch",), False, "Latency fell by 5.00 % with the change of torch."),
        (0.05, ("torch_variant",), False, "Latency rose by 5.00 % with the change of torch variant."),
        (
            0.05,
            ("torch", "driver"),
            False,
            "Latency rose by 5.00 %. torch and driver changed at once, so their effects "
            "cannot be told apart.",
        ),
        (
            0.05,
            ("torch",),
            True,
            "Latency rose by 5.00 %, back to a level it had before: the series flips between two modes.",
        ),
    ],
)
def test_a_change_of_level_says_what_changed_with_it(
    change: float, components: tuple[str, ...], flips: bool, text: str
):
    assert say.announced(LATENCY, change, components, flips=flips) == text


def test_the_whole_counts_every_case_once():
    cases = {Verdict.REGRESSED: 1, Verdict.IMPROVED: 2, Verdict.UNCHANGED: 1000, Verdict.INCONCLUSIVE: 4}
    assert say.overall(Verdict.REGRESSED, matched=1007, total=1010, cases=cases) == (
        "Compared 1,007 of 1,010 cases: 1 regressed, 2 improved, 1,000 unchanged, 4 not decided."
    )
    assert say.overall(Verdict.NOT_COMPARABLE, matched=0, total=3, cases={}) == (
        "Compared 0 of 3 cases: nothing can be compared."
    )


@pytest.mark.parametrize(
    ("compiled", "eager", "text"),
    [
        (Moved(5, 2, 1), Moved(3, 1, 0), "3 of 8 cases slower, 1 faster. Compiled and eager code moved."),
        (Moved(5, 0, 1), Moved(3, 1, 0), "1 of 8 cases slower, 1 faster. Compiled and eager code moved."),
        (Moved(5, 2, 0), Moved(3, 0, 0), "2 of 8 cases slower. Only compiled code slowed."),
        (
            Moved(5, 0, 0),
            Moved(3, 0, 3),
            "no slowdown shown in 8 cases, 3 faster. Only eager code got faster.",
        ),
        (Moved(5, 0, 0), Moved(3, 0, 0), "no slowdown shown in 8 cases."),
        (Moved(1, 1, 0), Moved(0, 0, 0), "1 of 1 case slower."),
        (Moved(0, 0, 0), Moved(2, 2, 0), "2 of 2 cases slower."),
    ],
)
def test_latency_alone_says_who_moved(compiled: Moved, eager: Moved, text: str):
    assert say.latency_moved(compiled, eager) == f"Latency: {text}"


@pytest.mark.parametrize(
    ("slower", "confirmed", "text"),
    [
        (14, 3, "14 of 48 cases slower, 3 confirmed, 1 faster. Only compiled code moved."),
        (14, 0, "14 of 48 cases slower, not confirmed yet, 1 faster. Only compiled code moved."),
        (0, 0, "no slowdown shown in 48 cases, 1 faster. Only compiled code got faster."),
    ],
)
def test_how_many_of_the_slower_cases_are_confirmed_is_said(slower: int, confirmed: int, text: str):
    assert say.latency_moved(Moved(32, slower, 1), Moved(16, 0, 0), confirmed) == f"Latency: {text}"
