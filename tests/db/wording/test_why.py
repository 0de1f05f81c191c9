"""The sentences of a profile, word by word, and what they leave out where nothing is known."""

from __future__ import annotations

import pytest

from db.records.sampling import Profile, ProfileSide
from db.wording.trials import profile_rows, why, work_text
from db.wording.units import MISSING

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


def test_what_is_bound_begins_at_its_limits():
    busy = "Little is left to gain from fewer launches; the rest is in the kernels themselves."
    assert why(gpu(device_busy_fraction=0.9)).endswith(busy)
    assert why(gpu(device_busy_fraction=0.899)).endswith(" It still waits for the host 10 % of the time.")
    assert "Bound by matrix products, 60 %" in why(gpu(device_busy_fraction=0.9, matrix_fraction=0.6))
    assert "Bound" not in why(gpu(device_busy_fraction=0.9, matrix_fraction=0.599))


def test_one_side_alone_has_no_before():
    own = ProfileSide(step_ns=10_000, launches=61, operators=30, device_busy_fraction=0.93)
    assert why(Profile(steps=5, own=own)) == (
        "61 launches a step; the GPU was busy 93 % of the time. "
        "Little is left to gain from fewer launches; the rest is in the kernels themselves."
    )
    eager = ProfileSide(step_ns=10_000, operators=380)
    assert why(Profile(steps=5, own=own, control=eager)).startswith(
        "61 launches a step; the GPU was busy 93 % of the time. "
    )
    idle = ProfileSide(step_ns=10_000, device_busy_fraction=0.95)
    assert why(Profile(steps=5, own=idle)).startswith("The GPU was busy 95 % of the time. ")


@pytest.mark.parametrize(
    ("python_ns", "step_ns", "said"),
    [(1_000, 10_000, True), (999, 10_000, False), (None, 10_000, False), (5, 0, False)],
)
def test_python_is_named_from_a_tenth_of_a_step_on(python_ns, step_ns, said):
    text = why(Profile(steps=5, own=ProfileSide(step_ns=step_ns, python_ns=python_ns)))
    assert text == ("Python and guards take 10 % of a step." if said else "")
    busy = ProfileSide(step_ns=10_000, python_ns=9_000, device_busy_fraction=0.95)
    assert "Python" not in why(Profile(steps=5, own=busy))


def test_every_figure_has_its_row():
    own = ProfileSide(
        step_ns=1_500_000,
        launches=1234.5,
        kernels=61,
        operators=30,
        device_busy_fraction=0.934,
        launch_ns=900_000,
        python_ns=4_000,
        matrix_fraction=0.7,
    )
    assert profile_rows(Profile(steps=5, own=own)) == [
        ("launches per step", "1,234", MISSING),
        ("kernels per step", "61", MISSING),
        ("operators per step", "30", MISSING),
        ("GPU busy", "93 %", MISSING),
        ("host time in launches", "900 µs", MISSING),
        ("Python and guards", "4.00 µs", MISSING),
        ("in matrix products", "70 %", MISSING),
        ("step, while profiled", "1.50 ms", MISSING),
    ]
    bare = ProfileSide(step_ns=1_000)
    assert profile_rows(Profile(steps=5, own=own, control=bare))[0] == ("launches per step", MISSING, "1,234")


@pytest.mark.parametrize(
    ("flops", "text"),
    [
        (999, "999 FLOP a step"),
        (1000, "1.00 kFLOP a step"),
        (2_500_000, "2.50 MFLOP a step"),
        (1e9, "1.00 GFLOP a step"),
        (1e12, "1.00 TFLOP a step"),
        (1e15, "1.00 PFLOP a step"),
        (1e18, "1.00 EFLOP a step"),
    ],
)
def test_operations_have_a_prefix(flops, text):
    assert work_text(Profile(steps=5, own=ProfileSide(step_ns=1), flops=int(flops)), None) == text


def test_operations_and_bytes_stand_side_by_side():
    profile = Profile(steps=5, own=ProfileSide(step_ns=1), flops=1000, bytes=1 << 20)
    assert work_text(profile, None) == "1.00 kFLOP a step; 1.00 MiB read and written by its operators"
    fastest = Profile(steps=5, own=ProfileSide(step_ns=1), flops=2 * 10**12)
    assert work_text(fastest, 1.0) == "2.00 TFLOP a step (2,000 EFLOP/s)"
