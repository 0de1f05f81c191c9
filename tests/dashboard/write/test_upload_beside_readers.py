"""A file that somebody uploads, however it is made, keeps no reader waiting."""

from __future__ import annotations

import gzip
import json
import threading
import time

import pytest

from compilewatch.dashboard.write import uploading
from compilewatch.dashboard.write.uploading import Upload
from compilewatch.db.interchange import process
from tests.dashboard.asking import ask, whole_application
from tests.dashboard.conftest import DATABASE, Store
from tests.db.interchange.trace_logs import artifact, whole_log


def worst_files() -> dict[str, bytes]:
    """What froze a process of its own when it was read there: time, then memory."""
    slow = whole_log() + artifact("dynamo_graph_break_reason", "Graph break " * 200_000)
    lists = b"[" + b"[],[[]],{}," * 2_000_000 + b"0]}"
    return {
        "dedicated_log_torch_trace_a.log": slow.encode(),
        "endless.csv.gz": gzip.compress(b"workload,latency_ms\n" + b"\n" * 100_000_000, 1),
        "lists.json.gz": gzip.compress(
            b'{"machine_info": {}, "commit_info": {}, "benchmarks": ' + lists + b"}", 1
        ),
    }


@pytest.mark.slow
def test_health_is_told_at_once_while_the_worst_files_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = store([])
    monkeypatch.setenv(DATABASE, url)
    monkeypatch.setattr(process, "CPU_S", 5)
    upload = Upload(worst_files(), "auto", {}, {})
    with whole_application() as app:
        assert ask(app, "/healthz").status == 200
        reading = threading.Thread(target=uploading.preview, args=(url, upload))
        reading.start()
        waits: list[float] = []
        while reading.is_alive():
            began = time.perf_counter()
            assert json.loads(ask(app, "/healthz").body)
            waits.append(time.perf_counter() - began)
            time.sleep(0.02)
        reading.join()
    print(f"\n{len(waits)} answers of /healthz, the slowest after {max(waits) * 1000:.0f} ms")
    assert len(waits) > 10
    assert max(waits) < 0.5
