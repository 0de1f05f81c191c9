"""How far a result is from the exact one, in words."""

from __future__ import annotations

from typing import Any

import pytest

from db.wording.numerics import numerics_sentence
from tests.builders import make_numerics


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (
            {"rmse_result": 0.38, "rmse_reference": 0.1, "rms_exact": 100.0, "dtype": "bfloat16"},
            "relative error 0.38 %, 3.8 x eager's, about one bf16 step",
        ),
        (
            {"rmse_result": 3e-7, "rmse_reference": 1e-7, "rms_exact": 1.0, "dtype": "float32"},
            "relative error 3.0e-07, 3 x eager's, about 5 fp32 steps",
        ),
        (
            {"rmse_result": 0.001, "rmse_reference": 0.0, "rms_exact": 1.0, "dtype": "bfloat16"},
            "relative error 0.1 %, less than half a bf16 step",
        ),
        (
            {"rmse_result": 0.5, "rmse_reference": 1e-4, "rms_exact": 1.0, "dtype": "float8_e4m3fn"},
            "relative error 50 %, 5,000 x eager's",
        ),
        ({"rmse_result": 0.262, "rmse_reference": 0.069}, "error (RMSE) 0.26, 3.8 x eager's"),
        ({"rmse_result": 0.1, "rmse_reference": 0.1, "rms_exact": 0.0}, "error (RMSE) 0.1, 1 x eager's"),
        ({"rmse_result": None, "rmse_reference": None}, ""),
    ],
)
def test_an_error_is_told_in_relation(facts: dict[str, Any], sentence: str) -> None:
    assert numerics_sentence(make_numerics(**facts)) == sentence
