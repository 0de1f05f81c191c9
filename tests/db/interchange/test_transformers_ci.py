"""transformers CI summaries: a day, both shapes, controls only of the same cache."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.errors import RecordError
from tests.db.interchange.reading import TOLD, by_name, of_each, read, read_told

ASKED = {key: TOLD[key] for key in ("torch", "device", "device_name", "dtype")}
COMMIT = "ecd61c62862f925a18b4f063dc17fcaf01826e25"
METRICS = {"decode.latency.mean": 2.5, "decode.throughput.value": 50.0}
EAGER = "backend.cache_implementation=static,backend.torch_compile=False"
COMPILED = "backend.cache_implementation=static,backend.torch_compile=True"


# Decode with the static cache compiled and eager, then eager with the dynamic one, in ns.
INVENTED_DAY = ("acme/gem", (1_250_000_000, 2_500_000_000, 2_250_000_000), 101.6, "c0ffee" * 6 + "c0ff")
PUBLIC_DAY = ("google/gemma-2b", (1_565_552_368, 2_674_888_428, 2_506_322_266), 81.12152782786438, COMMIT)


@pytest.mark.parametrize(("samples", "says"), of_each(INVENTED_DAY, PUBLIC_DAY))
def test_a_day_reads_as_it_says(samples: Path, says: tuple[Any, ...]) -> None:
    model, (compiled_ns, eager_ns, dynamic_ns), rate, commit = says
    trials = by_name(read(samples / "hf_summary_2024-09-04.json", **ASKED))
    assert len(trials) == 9
    decode = trials[f"{model} decode, cache_implementation=static", "compiled"]
    # Eager with the static cache, not the dynamic one.
    assert (decode.summary.latency_ns, decode.summary.control_latency_ns) == (compiled_ns, eager_ns)
    assert decode.summary.throughput_per_s == rate
    assert decode.build.packages == {"transformers": f"git {commit}"}
    assert decode.started_at.isoformat() == "2024-09-04T00:00:00+00:00"
    dynamic = trials[f"{model} decode, cache_implementation=null", "eager"]
    assert dynamic.summary.latency_ns == dynamic_ns


def test_both_shapes_say_the_same(tmp_path: Path) -> None:
    by_model = {"m": {EAGER: {COMMIT: {"metrics": METRICS}}, COMPILED: {COMMIT: {"metrics": METRICS}}}}
    listed = [
        {"model": "m", "commit": COMMIT, "config": config, "metrics": METRICS} for config in (EAGER, COMPILED)
    ]
    folder = tmp_path / "2024-06-08"
    folder.mkdir()
    (folder / "summary.json").write_text(json.dumps(by_model))
    (folder / "summaries.json").write_text(json.dumps(listed))
    assert read(folder / "summary.json", **ASKED) == read(folder / "summaries.json", **ASKED)


def test_without_a_date_the_moment_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text(json.dumps({"m": {EAGER: {COMMIT: {"metrics": METRICS}}}}))
    with pytest.raises(RecordError, match="does not say when it was measured"):
        read(path, **ASKED)


SUMMARY = json.dumps({"m": {EAGER: {COMMIT: {"metrics": METRICS}}}})


@pytest.mark.parametrize("path", ["2024-06-08/runs/summary.json", "x-2024-06-08/summary.json"])
def test_a_date_further_up_or_in_a_longer_name_is_not_when_it_was_measured(tmp_path: Path, path: str) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(SUMMARY)
    with pytest.raises(RecordError, match="does not say when it was measured"):
        read(file, **ASKED)


def test_the_folder_tells_the_date_of_a_file_named_from_within_it_and_in_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "2024-01-01" / "2024-06-08"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(SUMMARY)
    monkeypatch.chdir(folder)
    (within,) = read(Path("summary.json"), **ASKED)
    archive = tmp_path / "2024-06-08.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("summary.json", SUMMARY)
        packed.writestr("2024-06-09/summary.json", SUMMARY)
    moments = [trial.started_at.isoformat()[:10] for trial in (within, *read(archive, **ASKED))]
    assert moments == ["2024-06-08", "2024-06-09", "2024-06-08"]


@pytest.mark.parametrize(
    "content",
    [
        {"m": {"backend.torch_compile=maybe": {COMMIT: {"metrics": METRICS}}}},
        {"m": {EAGER: {COMMIT: {"metrics": {"decode.throughput.value": 1}}}}},
        {"m": {EAGER: {COMMIT: {"metrics": {"decode.latency.mean": "slow"}}}}},
        {"m": {EAGER: {COMMIT: {"metrics": {"decode.latency.mean": 0}}}}},
        {"m": {EAGER: 3}},
        [{"model": "m", "config": EAGER, "metrics": METRICS}],
        [7],
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, content: object) -> None:
    path = tmp_path / "summary_2024-09-04.json"
    path.write_text(json.dumps(content))
    with pytest.raises(RecordError, match="summary_2024-09-04"):
        read_told(path, format="transformers-ci")
