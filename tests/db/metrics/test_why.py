"""The sentences of a profile, word by word, and what they leave out where nothing is known."""

from __future__ import annotations

import pytest

from db.diagnosis import Profile, ProfileSide
from db.metrics.why import profile_rows, why, work_text
from db.units import MISSING

EAGER = ProfileSide(
    step_ns=2_000_000, launches=412, kernels=412, operators=380, device_busy_fraction=0.61, launch_ns=900_000
)


def gpu(**own):
    side = {"step_ns": 1_000_000, "launches": 61, "kernels": 61, "operators": 30} | own
    return Profile(steps=5, own=ProfileSide(**side), control=EAGER)


def test_a_busy_gpu_has_little_left_to_gain():
    assert why(gpu(device_busy_fraction=0.93, matrix_fraction=0.2)) == (
        "412 launches a step became 61; the GPU was busy 61 % of the time and is now 93 %. "
        "Little is left to gain from fewer launches; the rest is in the kernels themselves."
    )


def test_a_gpu_in_matrix_products_is_bound_by_them():
    text = why(gpu(device_busy_fraction=0.93, matrix_fraction=0.724))
    assert text.endswith(" Bound by matrix products, 72 % of the work: little is left to gain.")


def test_a_gpu_that_waits_says_for_how_long():
    assert why(gpu(device_busy_fraction=0.4, matrix_fraction=0.9)).endswith(
        " It still waits for the host 60 % of the time."
    )


def test_a_cpu_speaks_of_operators_and_of_python():
    eager = ProfileSide(step_ns=10_000, operators=59, python_ns=4_000, matrix_fraction=0.3)
    own = ProfileSide(step_ns=10_000, operators=13.5, python_ns=2_500, matrix_fraction=0.61)
    assert why(Profile(steps=5, own=own, control=eager)) == (
        "59 operators a step became 13.5. "
        "Bound by matrix products, 61 % of the work: little is left to gain. "
        "Python and guards take 25 % of a step."
    )
    assert why(Profile(steps=5, own=eager)) == ("59 operators a step. Python and guards take 40 % of a step.")


def test_where_nothing_is_known_nothing_is_said():
    assert why(Profile(steps=5, own=ProfileSide(step_ns=1))) == ""
    assert work_text(Profile(steps=5, own=ProfileSide(step_ns=1)), 1e6) == ""


def test_rows_leave_out_what_neither_side_knows():
    eager = ProfileSide(step_ns=10_000, operators=59, python_ns=4_000)
    own = ProfileSide(step_ns=8_000, operators=13)
    assert profile_rows(Profile(steps=5, own=own, control=eager)) == [
        ("operators per step", "59", "13"),
        ("Python and guards", "4.00 µs", MISSING),
        ("step, while profiled", "10.0 µs", "8.00 µs"),
    ]


@pytest.mark.parametrize(
    ("flops", "moved", "text"),
    [
        (2 * 4096**3, None, "137 GFLOP a step (137 TFLOP/s)"),
        (None, 1 << 20, "1.00 MiB read and written by its operators (1.00 GiB/s)"),
        (999, None, "999 FLOP a step (999 kFLOP/s)"),
    ],
)
def test_work_has_its_rate_at_the_latency(flops, moved, text):
    profile = Profile(steps=5, own=ProfileSide(step_ns=1), flops=flops, bytes=moved)
    latency_ns = 1e9 / 1024 if moved else 1e6
    assert work_text(profile, latency_ns) == text
