"""The sentences of a profile, word by word, and what they leave out where nothing is known."""

from __future__ import annotations

import pytest

from compilewatch.db.cause.sentences import host_sentence, longest_rows, profile_rows, why, work_text
from compilewatch.db.cause.trial_words import StepTimes, step_times
from compilewatch.db.records.sampling_facts import Profile, ProfileSide
from tests.builders import make_trial

EAGER = ProfileSide(
    step_ns=2_000_000, launches=412, kernels=412, operators=380, device_busy_fraction=0.5, launch_ns=900_000
)
TIMES = StepTimes(own_ns=1_000_000, eager_ns=1_250_000)
UNTIMED = StepTimes(None, None)


def gpu(**own):
    side = {"step_ns": 1_000_000, "launches": 61, "kernels": 61, "operators": 30} | own
    return Profile(steps=5, own=ProfileSide(**side), control=EAGER)


def test_a_profile_that_slows_the_host_down_blames_nobody_for_it():
    # As measured on an H100: kernels of 227 us in a profiled step of 723 us, in a timed step of 327 us.
    profile = gpu(step_ns=723_052, launches=412, device_busy_fraction=0.31445879811100663)
    text = why(profile, StepTimes(own_ns=326_528, eager_ns=234_608))
    assert text.startswith("412 launches per step, unchanged. Kernels take 227 µs of a step of 327 µs; ")
    assert text.endswith(" The GPU is busy 70 % of the step: look at the host.")
    rows = {name: texts for name, *texts in profile_rows(profile, StepTimes(326_528, 1_250_000))}
    assert rows["GPU busy"] == ["80 %", "70 %"]
    assert rows["kernel time per step"] == ["1.00 ms", "227 µs"]


@pytest.mark.parametrize(
    ("busy", "step_ns", "expected"),
    [
        (0.7, 1e6, ""),
        (0.699, 1e6, "The GPU is busy 70 % of the step: look at the host."),
        (0.5, 1e6, "The GPU is busy 50 % of the step: look at the host."),
        # Profiled it takes twice as long: of the step that nothing profiled the kernels fill all.
        (0.5, 0.5e6, ""),
        (0.5, None, ""),
        (None, 1e6, ""),
    ],
)
def test_below_seventy_percent_the_host_is_where_to_look(busy, step_ns, expected):
    side = ProfileSide(step_ns=1_000_000, device_busy_fraction=busy)
    assert host_sentence(side, step_ns) == expected


def test_a_cpu_speaks_of_operators_and_of_python():
    eager = ProfileSide(step_ns=10_000, operators=59, python_ns=4_000, matrix_fraction=0.3)
    own = ProfileSide(step_ns=10_000, operators=13.5, python_ns=2_500, matrix_fraction=0.61)
    assert why(Profile(steps=5, own=own, control=eager), TIMES) == (
        "59 operators per step became 13.5. "
        "Bound by matrix products, 61 % of the work: little is left to gain. "
        "Python and guards take 25 % of a profiled step."
    )
    assert why(Profile(steps=5, own=eager), TIMES) == (
        "59 operators per step. Python and guards take 40 % of a profiled step."
    )


def test_where_nothing_is_known_nothing_is_said():
    bare = Profile(steps=5, own=ProfileSide(step_ns=1))
    assert why(bare, UNTIMED) == ""
    assert work_text(bare, UNTIMED) == ""
    assert longest_rows(bare, UNTIMED) == []


def test_the_steps_of_a_trial_are_those_that_nothing_profiled():
    compiled = make_trial(samples_ns=[8, 8, 9], control_samples_ns=[12, 12, 13])
    assert step_times(compiled) == StepTimes(8, 12)
    assert step_times(make_trial(strategy="eager", samples_ns=[12, 12, 13])) == StepTimes(12, 12)


def test_what_is_bound_begins_at_its_limits():
    busy = "Little is left to gain from fewer launches; the rest is in the kernels themselves."
    assert why(gpu(device_busy_fraction=0.9), TIMES).endswith(busy)
    assert why(gpu(device_busy_fraction=0.899), TIMES).endswith(
        " The GPU waits for the host 10 % of the step."
    )
    assert "Bound by matrix products, 60 %" in why(gpu(device_busy_fraction=0.9, matrix_fraction=0.6), TIMES)
    assert "Bound" not in why(gpu(device_busy_fraction=0.9, matrix_fraction=0.599), TIMES)


@pytest.mark.parametrize(
    ("python_ns", "step_ns", "said"),
    [(1_000, 10_000, True), (999, 10_000, False), (None, 10_000, False), (5, 0, False)],
)
def test_python_is_named_from_a_tenth_of_a_step_on(python_ns, step_ns, said):
    text = why(Profile(steps=5, own=ProfileSide(step_ns=step_ns, python_ns=python_ns)), TIMES)
    assert text == ("Python and guards take 10 % of a profiled step." if said else "")
    busy = ProfileSide(step_ns=10_000, python_ns=9_000, device_busy_fraction=0.95)
    assert "Python" not in why(Profile(steps=5, own=busy), TIMES)
