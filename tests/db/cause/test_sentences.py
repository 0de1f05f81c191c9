"""The sentences on causes: recorded ones of an H100, made ones by hand, and none where nothing changed."""

from __future__ import annotations

import random

import pytest

from compilewatch.db.cause.families import Family
from compilewatch.db.cause.profile_change import FindingKind, compare_profiles, findings
from compilewatch.db.cause.sentences import (
    Watched,
    cause_between,
    cause_of_compiling,
    family_rows,
    short_name,
)
from compilewatch.db.records.sampling_facts import Profile
from tests.builders import MS, make_machine, make_trial
from tests.db.cause.profiles import noisy, recorded, recorded_sides, side

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn"
SGEMM = "ampere_sgemm_128x64_tn"
FLASH = "void pytorch_flash::flash_fwd_kernel<Traits>(pytorch_flash::Flash_fwd_params)"
EFFICIENT = "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(Params)"
GELU = "triton_poi_fused_gelu_0"
CAST = "triton_poi_fused__to_copy_1"


def between(before, after):
    """Both profiles of a step that took as long without the profiler."""
    return cause_between(*(Watched(each, each.step_ns) for each in (before, after)))


def sentence(before, after):
    return between(before, after).sentence


def test_the_vision_transformer_names_its_lost_attention_with_both_times():
    cause = cause_of_compiling(recorded("vit-b16"))
    assert cause.sentence == (
        "Slower on the device (6.33 ms became 11.0 ms a step): attention lost its fused kernel "
        "(cuDNN flash, 538 µs) and runs unfused in float32 (5.26 ms)."
    )
    # By hand, from the record: 12 calls each of two float32 products, two of softmax and two of casts.
    assert cause.findings[0].after_ns == 1364523 + 983662 + 1235336 + 1034459 + 413610 + 223725


def test_the_perceptron_says_that_the_host_pays():
    assert cause_of_compiling(recorded("mlp-4096")).sentence == (
        "The device gained nothing and the host pays. "
        "Device time went from 221 µs to 227 µs, a synchronised step from 267 µs to 346 µs."
    )


def test_a_trial_without_a_profile_has_no_cause():
    trial = recorded("vit-b16")
    assert cause_of_compiling(trial.model_copy(update={"profile": None})) is None
    alone = trial.profile.model_copy(update={"control": None})
    assert cause_of_compiling(trial.model_copy(update={"profile": alone})) is None


def test_attention_found_again_and_another_kind_of_it():
    profile = recorded("vit-b16").profile
    found = sentence(profile.own, profile.control)
    assert found == (
        "Faster on the device (11.0 ms became 6.33 ms a step): attention runs in a fused kernel "
        "(cuDNN flash, 538 µs) where it ran unfused in float32 (5.26 ms)."
    )
    assert sentence(side((GEMM, 4, 1000), (FLASH, 2, 500)), side((GEMM, 4, 1000), (EFFICIENT, 2, 900))) == (
        "Slower on the device (1.50 µs became 1.90 µs a step): attention runs memory-efficient (900 ns) "
        "instead of flash (500 ns)."
    )


# Operators of two attention layers on a CPU as torch 2.13.0 names them, without those that move nothing.
ON_A_CPU = (
    ("aten::_scaled_dot_product_flash_attention_for_cpu", 2, 162_200_000),
    ("aten::addmm", 4, 64_500_000),
    ("aten::copy_", 4, 5_840_000),
    ("aten::add", 2, 3_000_000),
    ("aten::scaled_dot_product_attention", 2, 38_000),
)
APART = (
    ("aten::bmm", 4, 168_100_000),
    ("aten::_softmax", 2, 65_800_000),
    ("aten::addmm", 4, 56_900_000),
    ("aten::all", 2, 50_700_000),
    ("aten::where", 2, 46_100_000),
    ("aten::isneginf", 2, 23_600_000),
    ("aten::copy_", 16, 8_540_000),
    ("aten::mul", 4, 5_460_000),
    ("aten::add", 2, 592_000),
    ("aten::_safe_softmax", 2, 230_000),
    ("aten::_scaled_dot_product_attention_math", 2, 115_000),
    ("aten::scaled_dot_product_attention", 2, 33_000),
)


def test_an_eager_cpu_names_its_lost_attention():
    fused, apart = side(*ON_A_CPU, busy=None), side(*APART, busy=None)
    assert sentence(fused, apart) == (
        "Slower (236 ms became 426 ms a step): attention lost its fused kernel (flash, 162 ms) "
        "and runs unfused (360 ms)."
    )
    assert sentence(apart, fused) == (
        "Faster (426 ms became 236 ms a step): attention runs in a fused kernel (flash, 162 ms) "
        "where it ran unfused (360 ms)."
    )


def test_a_compiled_cpu_names_its_lost_attention():
    same = (("aten::addmm", 4, 75_000_000), ("graph_0_cpp_fused_add_view_0", 1, 165_000))
    softmax = "graph_0_cpp_fused__safe_softmax_view_1"
    fused = side(*ON_A_CPU[:1], *same, busy=None)
    apart = side(("aten::bmm", 4, 236_600_000), (softmax, 2, 82_200_000), *same, busy=None)
    assert sentence(fused, apart) == (
        "Slower (237 ms became 394 ms a step): attention lost its fused kernel (flash, 162 ms) "
        "and runs unfused (319 ms)."
    )


def test_pointwise_work_that_no_attention_explains_stays_pointwise():
    """Without a name that says unfused, a product and a softmax of one side are all that is counted."""
    others = [each for each in APART if "attention" not in each[0] and "_safe_softmax" not in each[0]]
    (found,) = [
        each
        for each in findings(compare_profiles(side(*ON_A_CPU, busy=None), side(*others, busy=None)))
        if each.family is Family.ATTENTION
    ]
    assert found.after_ns == 168_100_000 + 65_800_000


def test_without_softmax_nobody_says_unfused():
    before = side((GEMM, 4, 1000), (FLASH, 2, 500))
    after = side((GEMM, 4, 1000), (SGEMM, 2, 3000))
    assert {each.kind for each in findings(compare_profiles(before, after))}.isdisjoint(
        {FindingKind.LOST_FUSED_ATTENTION, FindingKind.GAINED_FUSED_ATTENTION}
    )


def test_products_leave_and_reach_the_tensor_cores():
    on, off = side((GEMM, 4, 1000), (GELU, 4, 200)), side((SGEMM, 4, 4000), (GELU, 4, 200))
    assert sentence(on, off) == (
        "Slower on the device (1.20 µs became 4.20 µs a step): matrix products left the tensor cores "
        "in float32 (1.00 µs became 4.00 µs)."
    )
    assert sentence(off, on) == (
        "Faster on the device (4.20 µs became 1.20 µs a step): matrix products reached the tensor cores "
        "in bfloat16 (4.00 µs became 1.00 µs)."
    )


def test_products_in_another_precision():
    tf32 = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align1>(Params)"
    assert sentence(side((GEMM, 4, 1000)), side((tf32, 4, 2000))) == (
        "Slower on the device (1.00 µs became 2.00 µs a step): matrix products run in TF32 instead of "
        "bfloat16 (1.00 µs became 2.00 µs)."
    )


def test_more_copies_are_counted():
    before, after = side((GEMM, 4, 1000)), side((GEMM, 4, 1000), (CAST, 1, 400))
    assert sentence(before, after) == (
        "Slower on the device (1.00 µs became 1.40 µs a step): "
        "1 more copy or cast a step (none became 400 ns)."
    )
    assert "3 fewer copies and casts a step" in sentence(
        side((GEMM, 4, 1000), (CAST, 3, 400)), side((GEMM, 4, 1000))
    )


def test_more_copies_have_their_bytes_where_both_profiles_know_them():
    before = side((GEMM, 4, 1000)).model_copy(update={"copied_bytes": 1_000})
    after = side((GEMM, 4, 1000), (CAST, 1, 400))
    assert "1 more copy or cast a step" in sentence(before, after)
    after = after.model_copy(update={"copied_bytes": 1_000 + 3 * 2**30})
    assert "1 more copy or cast of 3.00 GiB a step" in sentence(before, after)
    assert "1 fewer copy or cast of 3.00 GiB a step" in sentence(after, before)
    less = after.model_copy(update={"copied_bytes": 0})
    assert "1 more copy or cast a step" in sentence(before, less)


def test_one_kernel_is_named_where_it_makes_the_difference():
    before, after = (
        side((GEMM, 4, 1000), (GELU, 4, 200)),
        side((GEMM, 4, 1000), ("triton_poi_fused_gelu_7", 4, 900)),
    )
    assert sentence(before, after) == (
        "Slower on the device (1.20 µs became 1.90 µs a step): "
        "triton_poi_fused_gelu takes 900 ns instead of 200 ns."
    )


def test_a_cpu_speaks_of_generated_code_and_not_of_a_device():
    before = side(("generated code", 1, 400_000), ("aten::addmm", 2, 100_000), busy=None)
    after = side(("generated code", 1, 1_200_000), ("aten::addmm", 2, 110_000), busy=None)
    assert sentence(before, after) == (
        "Slower (500 µs became 1.31 ms a step): generated code takes 1.20 ms instead of 400 µs."
    )


def test_work_that_is_fused_elsewhere_is_no_change():
    """Inductor put the pointwise work into the reduction: it takes as long as before."""
    norm = "triton_per_fused_native_layer_norm_0"
    before = side((GEMM, 4, 1000), (GELU, 4, 800), (norm, 4, 400))
    after = side((GEMM, 4, 1500), ("triton_per_fused_gelu_native_layer_norm_0", 4, 1200))
    (finding,) = findings(compare_profiles(before, after))
    assert finding.family is Family.MATRIX


def test_fusion_is_counted_over_its_families():
    eager = side(("aten::add", 10, 300_000), ("aten::mean", 2, 90_000), ("aten::copy_", 2, 60_000), busy=None)
    own = side(("graph_0_cpp_fused_add_mean_0", 1, 150_000), busy=None)
    assert sentence(eager, own) == (
        "Faster (450 µs became 150 µs a step): pointwise work, reductions and copies take 150 µs in 1 kernel "
        "instead of 450 µs in 14 kernels."
    )


def test_a_profile_of_a_cpu_that_the_timing_contradicts_says_nothing():
    """The profiler slows ten operators down more than one kernel."""
    eager = side(("aten::add", 10, 300_000), busy=None)
    own = side(("graph_0_cpp_fused_add_0", 1, 150_000), busy=None)
    profile = Profile(steps=5, own=own, control=eager)
    trial = make_trial(profile=profile, latency_ns=1 * MS, control_latency_ns=0.5 * MS)
    trial = trial.model_copy(update={"machine": make_machine("box", device="cpu")})
    assert cause_of_compiling(trial).sentence is None
    faster = make_trial(profile=profile, latency_ns=0.5 * MS, control_latency_ns=1 * MS)
    assert cause_of_compiling(faster).sentence.startswith("Faster (300 µs became 150 µs a step)")


def test_a_disturbed_profile_of_a_cpu_says_nothing():
    """Recorded on a host that others used: a kernel of 2.35 ms in a step that took 425 µs."""
    kernel = "graph_0_cpp_fused_add_mean_0"
    calm, disturbed = side((kernel, 1, 390_552), busy=None), side((kernel, 1, 2_352_601), busy=None)
    pair = Watched(calm, 411_000.0), Watched(disturbed, 425_000.0)
    assert cause_between(*pair).sentence is None
    assert cause_between(pair[0], Watched(disturbed, None)).sentence is None
    slower = Watched(disturbed, 2_100_000.0)
    assert cause_between(pair[0], slower).sentence.startswith("Slower (391 µs became 2.35 ms a step)")


def test_what_is_not_listed_may_be_anything():
    """400 ns of copies came, and the side before hides 500 ns: perhaps they were there."""
    before = side((GEMM, 4, 1000), rest_ns=500)
    assert sentence(before, side((GEMM, 4, 1000), (CAST, 4, 450), rest_ns=600)) is None
    assert sentence(before, side((GEMM, 4, 1000), (CAST, 4, 900), rest_ns=600)) is not None


def test_unknown_kernels_are_never_a_cause():
    before, after = side((GEMM, 4, 1000)), side((GEMM, 4, 1000), ("my_kernel", 1, 900))
    assert sentence(before, after) is None
    assert between(before, after).change.families[0].family is Family.UNKNOWN


def test_a_profile_of_a_device_meets_none_of_a_host():
    assert compare_profiles(side((GEMM, 1, 10)), side(("aten::mm", 1, 10), busy=None)) is None
    assert between(side(), side((GEMM, 1, 10))) is None


@pytest.mark.parametrize(("spread", "on_device"), [(0.03, True), (0.10, False)])
def test_identical_builds_have_no_cause(spread, on_device):
    """Two thousand pairs of the same step with the noise that processes have: no sentence at all."""
    rng = random.Random(0)
    sides = recorded_sides()
    if not on_device:
        sides = [
            each.model_copy(
                update={"device_busy_fraction": None, "step_ns": sum(e.self_ns for e in each.top)}
            )
            for each in sides
        ]
    said = 0
    for _ in range(500):
        for each in sides:
            pair = [noisy(each, rng, spread, rng.choice((8, 10))) for _ in range(2)]
            said += between(*pair).sentence is not None
    assert said == 0


def test_documents_hold_the_figures():
    document = cause_of_compiling(recorded("vit-b16")).to_json()
    assert document["findings"][0]["kind"] == "lost_fused_attention"
    assert document["families"][0] == {
        "family": "attention",
        "before_ns": 537762,
        "after_ns": 5255315,
        "before_calls": 12.0,
        "after_calls": 72.0,
    }
    rows = family_rows(cause_of_compiling(recorded("vit-b16")).change)
    assert rows[0] == {"family": "attention", "before": "538 µs", "after": "5.26 ms"}
    assert rows[-1] == {"family": "not listed", "before": "25.2 µs", "after": "1.16 ms"}
    whole = family_rows(cause_of_compiling(recorded("mlp-4096")).change)
    assert [row["family"] for row in whole] == ["pointwise", "matrix products", "copies and casts"]


def test_names_are_cut_to_what_a_line_bears():
    assert short_name("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>(int)") == (
        "at::native::vectorized_layer_norm_kernel"
    )
    assert len(short_name("x" * 300)) == 61
