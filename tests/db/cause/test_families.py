"""Names of kernels against their families, those of `kernel_names.tsv` and of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compilewatch.db.cause.families import Family, Kernel, canonical, classify

_PAGE = Path(__file__).parents[3] / "docs" / "kernels.md"
_NAMES = Path(__file__).with_name("kernel_names.tsv")
TABLE = [tuple(line.split("\t")) for line in _NAMES.read_text(encoding="utf-8").splitlines()]


def said(kernel: Kernel) -> str:
    """What the third column says of a kernel."""
    cores = {True: "tensor cores", False: "no tensor cores", None: None}[kernel.tensor_cores]
    parts = (
        *(kernel.library, kernel.variant, kernel.precision, cores),
        "casts" if kernel.casts else None,
        "softmax" if kernel.softmax else None,
    )
    return ", ".join(filter(None, parts)) or "-"


def test_the_table_has_every_family():
    assert {family for _, family, _ in TABLE} == {family.value for family in Family}
    assert len(TABLE) > 90


def test_the_examples_of_the_page_have_their_family():
    rows = re.findall(r"^\| ([a-zA-Z, ]+) \| (`.*`) \|", _PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 8
    for families, names in rows:
        for name in re.findall(r"`([^`]+)`", names):
            assert classify(name).family.value in families


@pytest.mark.parametrize(("name", "family", "says"), TABLE)
def test_a_name_has_its_family(name, family, says):
    kernel = classify(name)
    assert (kernel.family.value, said(kernel)) == (family, says)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        # An operator that fused attention gave its name to is no fused attention.
        ("triton_poi_fused__scaled_dot_product_efficient_attention_0", Family.POINTWISE),
        ("triton_poi_fused_convolution_relu_1", Family.POINTWISE),
        ("triton_poi_fused_sum_3", Family.POINTWISE),
        ("model__triton_red_fused_sum_3", Family.REDUCTION),
        ("triton_unk_fused_native_layer_norm_0", Family.REDUCTION),
        ("triton_unk_fused_0", Family.UNKNOWN),
        ("cpp_fused_convolution_2", Family.CONVOLUTION),
        ("aten::convolution_backward", Family.CONVOLUTION),
        ("", Family.UNKNOWN),
    ],
)
def test_names_that_mislead(name, family):
    assert classify(name).family is family


def test_a_kernel_has_one_name_in_two_releases():
    assert canonical("triton_poi_fused_gelu_view_8") == canonical("triton_poi_fused_gelu_view_11")
    assert canonical("graph_0_cpp_fused_tanh_0") == canonical("graph_2_cpp_fused_tanh_4")
    assert canonical("triton_poi_fused_gelu_view_8") != canonical("triton_poi_fused_tanh_view_8")
    assert canonical("ampere_sgemm_128x64_tn") == "ampere_sgemm_128x64_tn"


def test_only_attention_in_one_kernel_is_fused():
    assert classify("fmha_cutlassF_bf16_aligned_64x64_rf_sm80").fused_attention
    assert not classify("triton_red_fused__safe_softmax_add_3").fused_attention
    assert not classify("ampere_sgemm_128x64_tn").fused_attention
