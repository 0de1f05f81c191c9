"""`compare` on published timm pairs: compiled batches of 256 and 1024 are not comparable, equal ones are.

Read naively, a third of the models lost speedup between torch 2.4.0 and 2.9.1: the older compiled file was
measured with another batch size.
"""

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from db.engine.session import open_database
from db.interchange.files.options import ImportOptions
from db.interchange.read.importing import import_paths
from tests.db.interchange.reading import TIMM, needs_timm
from tests.runner.terminal import in_this_process

RELEASES = {
    "benchmark-infer-amp-nchw-pt240-cu124-rtx4090-dynamo.csv": datetime(2024, 9, 1, tzinfo=UTC),
    "benchmark-infer-amp-nchw-pt291-cu128-4090-dynamo.csv": datetime(2025, 11, 20, tzinfo=UTC),
}


@needs_timm
@pytest.mark.slow  # tests/db/judge/test_published_timm.py judges the same files
def test_another_batch_size_is_not_comparable_and_no_regression(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/compilewatch.db", migrate=True) as database:
        for name, measured_at in RELEASES.items():
            report = import_paths(database, [TIMM / name], options=ImportOptions(measured_at=measured_at))
            assert report.errors == ()
    finished = in_this_process("compare", "torch=2.4.0", "torch=2.9.1", "--json", cwd=tmp_path)
    document = json.loads(finished.stdout)
    compared = [row for row in document["rows"] if (row["strategy"], row["metric"]) == ("default", "latency")]
    assert len(compared) == 31
    ratios = [math.log(row["base"] / row["head"]) for row in compared]
    assert round(math.exp(sum(ratios) / len(ratios)), 3) == 1.005
    refused = [
        case for case in document["left_out"] if "differs in batch size (256 against 1024)" in case["reason"]
    ]
    assert len(refused) >= 1182  # models of the same image size in both files with these two batch sizes
    assert {case["verdict"] for case in refused} == {"not comparable"}
    assert {case["cause"] for case in refused} == {"method"}
    assert "regressed" not in {row["verdict"] for row in document["rows"]}
    assert "numerics" not in {row["metric"] for row in document["rows"]}, "nobody checked them"
    # head against base: 1 / 1.005
    mean = document["geomean"]["compiled_latency"]
    assert (mean["cases"], round(1 / (1 + mean["change"]), 3)) == (31, 1.005)
    low, high = mean["interval"]
    assert low < mean["change"] < high
    said = "Geomean latency of 31 matched compiled cases, head against base: -0.5"
    assert any(sentence.startswith(said) for sentence in document["sentences"])
    assert finished.returncode != 1
