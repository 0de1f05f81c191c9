"""The published timm results of two torch versions: most models were compiled at another batch size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.results import Comparison
from compilewatch.db.records.vocabulary import CauseClass, Metric, Verdict
from tests.db.judge.frames import trial
from tests.db.metrics.frames import trials_frame

RESULTS = Path(__file__).resolve().parents[4] / "shared" / "data" / "published" / "timm_raw"
pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="the published timm result files are not here")

FILES = {
    "2.4.0": "benchmark-infer-amp-nchw-pt240-cu124-rtx4090",
    "2.9.1": "benchmark-infer-amp-nchw-pt291-cu128-4090",
}
CUDA = {"2.4.0": "12.4", "2.9.1": "12.8"}


def read(torch: str, ending: str) -> DataFrame:
    table = pd.read_csv(RESULTS / f"{FILES[torch]}{ending}.csv")
    return table.drop_duplicates(["model", "infer_img_size"])


def trials(torch: str) -> list[dict[str, Any]]:
    rows = []
    for strategy, table in (("eager", read(torch, "")), ("default", read(torch, "-dynamo"))):
        for row in table.itertuples():
            size = f"{row.model} {row.infer_img_size} batch {row.infer_batch_size}"
            rows.append(
                trial(
                    str(row.model),
                    strategy,
                    torch,
                    run_id=torch,
                    cuda=CUDA[torch],
                    device_name="NVIDIA GeForce RTX 4090",
                    workload_id=size,
                    batch_size=int(row.infer_batch_size),
                    shape={"image_size": int(row.infer_img_size)},
                    latency_ns=row.infer_step_time * 1e6,
                    control_latency_ns=None,
                    trial_compile_cost_ns=None,
                    peak_bytes=None,
                    graphs=1,
                    graph_breaks=None,
                    recompiles=None,
                )
            )
    return rows


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare_builds(trials_frame(trials("2.4.0") + trials("2.9.1")), "2.4.0", "2.9.1")


def test_nearly_all_compiled_models_are_not_comparable_because_their_batch_differs(comparison: Comparison):
    refused = [case for case in comparison.left_out if case.strategy == "default" and case.fields]
    assert len(refused) > 1000
    assert all("batch_size" in case.fields for case in refused)
    assert {case.verdict for case in refused} == {Verdict.NOT_COMPARABLE}
    assert {case.cause for case in refused} == {CauseClass.METHOD}
    (small,) = [case for case in refused if case.workload == "mobilenetv3_small_100"]
    assert small.reason == "differs in batch size (256 against 1024)"


def test_thirty_one_models_are_comparable_and_stand_still(comparison: Comparison):
    latency = [r for r in comparison.rows if r.metric is Metric.LATENCY and r.strategy == "default"]
    assert len(latency) == 31
    ratio = np.exp(np.mean([np.log(float(row.base) / float(row.head)) for row in latency]))
    assert ratio == pytest.approx(1.005, abs=0.0005)
