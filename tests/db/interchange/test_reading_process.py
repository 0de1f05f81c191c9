"""Foreign files are read in a process of their own: in bounded memory and time."""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange import process
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import JOB_READERS, Format
from compilewatch.db.interchange.importing import import_paths, import_uploads
from tests.builders import make_trial
from tests.db.interchange.reading import TOLD, read
from tests.db.interchange.tiny_files import TINY
from tests.db.interchange.trace_logs import artifact, whole_log

OPTIONS = ImportOptions(**TOLD)


def peak_bytes(pid: int) -> int:
    """The most that a process had resident; 0 of one that has ended and is not yet waited for."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0


class Watched(process.ReadingProcess):
    """Notes the most memory that any process of its kind took."""

    peak = 0

    def _begun(self) -> process.subprocess.Popen[bytes]:
        begun = super()._begun()

        def watch() -> None:
            while begun.poll() is None:
                try:
                    Watched.peak = max(Watched.peak, peak_bytes(begun.pid))
                except OSError:
                    return
                time.sleep(0.01)

        threading.Thread(target=watch, daemon=True).start()
        return begun


LISTS = b"[],[[]],{},"
LINE_BYTES, WIDE = 15 * 2**20, 2**24 - 2**12


def bomb(format: Format) -> bytes:
    """A good beginning, and then the most that the limits of size let in; packed a few hundred kB."""
    text = next(iter(TINY[format].values())).encode()
    if format in JOB_READERS:
        return text + b"\t\n" * 8_000_000
    if text.lstrip()[:1] not in (b"{", b"[") or format is Format.TORCH_COMPARE:
        line = text.splitlines(keepends=True)[-1]
        return text + line.rstrip() + b"," * (WIDE // 2) + b"  |" * (WIDE // 6) + b"\n"
    try:
        json.loads(text)
        size = 4 * LINE_BYTES
    except ValueError:
        size = LINE_BYTES
    head, brace, rest = text.partition(b"{")
    return head + brace + b'"bomb": [' + LISTS * (size // len(LISTS)) + b"0], " + rest


# What no beginning of a good file leads to.
MORE_BOMBS = {
    "oss.json": b'[{"metric": {"name": "a", "benchmark_values": [' + LISTS * 2_500_000 + b"0]}}]",
    "pytest.json": b'{"machine_info": {}, "commit_info": {}, "benchmarks": [' + LISTS * 2_500_000 + b"0]}",
    "data.js": b"window.BENCHMARK_DATA = [" + LISTS * 2_500_000 + b"0]",
    "quoted.csv": b"workload,latency_ms\n" + b'"' + b"x" * 2**24,
    "header.csv": b"name,speedup,abs_latency" + b"," * WIDE + b"\n" + b"," * WIDE,
}


def bombs(folder: Path) -> list[Path]:
    """One of every format that there is, and more."""
    texts = {next(iter(TINY[format])): bomb(format) for format in Format} | MORE_BOMBS
    for partner, content in [part for files in TINY.values() for part in list(files.items())[1:]]:
        (folder / partner).write_text(content)
    for name, text in texts.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(text, 1))
    assert len(texts) == len(Format) + len(MORE_BOMBS)
    return [folder / f"{name}.gz" for name in texts]


@pytest.mark.slow
def test_no_small_file_takes_more_memory_than_is_allowed(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compilewatch.db.interchange.importing.ReadingProcess", Watched)
    good = tmp_path / "good.jsonl"
    good.write_text(make_trial().to_json() + "\n")
    report = import_paths(sqlite_database, [*bombs(tmp_path), good], options=OPTIONS)
    *others, last = report.files
    assert (last.error, last.new + last.known) == (None, 1), "the file after them comes in"
    # What a format does not look at may be skipped within the bounds; else it is one sentence.
    assert all(file.error or file.new for file in others)
    assert any("over 512 MiB of memory" in error.message for error in report.errors)
    assert 0 < Watched.peak <= process.MEMORY_BYTES
    refused = len(report.errors)
    print(
        f"\n{len(others)} bombs, {refused} refused; most memory of a process: {Watched.peak / 2**20:.0f} MiB"
    )


def test_a_file_that_takes_too_long_is_refused_and_the_next_one_comes_in(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "CPU_S", 1)
    slow = tmp_path / "dedicated_log_torch_trace_a.log.gz"
    slow.write_bytes(gzip.compress(artifact("torch_version", "{}").encode() + b"\tx\n" * 20_000_000, 1))
    good = tmp_path / "good.jsonl"
    good.write_text(make_trial().to_json() + "\n")
    report = import_paths(sqlite_database, [slow, good], options=OPTIONS)
    assert "processor time" in report.errors[0].message
    assert report.new == 1


@pytest.mark.parametrize(
    ("name", "head", "empty"),
    [
        ("a.csv", b"workload,latency_ms\nm,1\n", b"\n"),
        ("b.csv", b"name;speedup;abs_latency\n", b" ; ;\n"),
        ("c.json", TINY[Format.OSS_V3]["results.json"].encode(), b"\n"),
        ("d.jsonl", make_trial().to_json().encode() + b"\n", b"\n"),
        ("dedicated_log_torch_trace_a.log", whole_log().encode(), b"\t\n"),
    ],
)
def test_empty_lines_end_soon(tmp_path: Path, name: str, head: bytes, empty: bytes) -> None:
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(head + empty * 20_000_000, 1))
    begun = time.process_time()
    with pytest.raises(RecordError, match="most lines until there are empty"):
        read(path, **TOLD)
    assert time.process_time() - begun < 10, "20 million of them took that and more"


def test_an_upload_is_read_there_too(sqlite_database: Database) -> None:
    uploads = {name: text.encode() for name, text in TINY[Format.DYNAMO_CSV].items()}
    report = import_uploads(sqlite_database, uploads, options=OPTIONS)
    assert (report.errors, report.new, report.known) == ((), 3, 3)


def test_it_is_told_no_secret(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPILEWATCH_DATABASE_URL", "postgresql://u:secret@h/d")
    with process.ReadingProcess() as reading:
        begun = reading._begun()
        environment = Path(f"/proc/{begun.pid}/environ").read_bytes()
    assert b"secret" not in environment


def test_a_module_beside_the_files_is_not_imported(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "csv.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "db.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "good.jsonl").write_text(make_trial().to_json() + "\n")
    monkeypatch.chdir(tmp_path)
    assert import_paths(sqlite_database, [Path("good.jsonl")]).new == 1
