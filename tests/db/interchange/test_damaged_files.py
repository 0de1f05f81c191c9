"""Damaged files of every format: one sentence or a whole import, never a traceback, never a part."""

import random
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import JOB_READERS, Format
from compilewatch.db.interchange.importing import AUTO, import_paths
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.store.trials import save_trials
from tests.db.interchange.mutations import mutated
from tests.db.interchange.reading import TOLD, read
from tests.db.interchange.tiny_files import TINY

OPTIONS = ImportOptions(**TOLD)
BY_DEFAULT = 45
THOROUGHLY = 10_000
# Far above what any of these small files needs, and far below what would hurt.
WORST_S = 10.0
MOST_BYTES = 512 * 2**20


def write(folder: Path, contents: dict[str, bytes]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder / next(iter(contents))


def test_the_files_that_are_damaged_are_whole_at_first(sqlite_database: Database, tmp_path: Path) -> None:
    paths = [
        write(tmp_path / format, {name: text.encode() for name, text in TINY[format].items()})
        for format in Format
    ]
    report = import_paths(sqlite_database, paths, options=OPTIONS)
    assert report.errors == ()
    assert [file.formats for file in report.files] == [(format,) for format in Format]
    assert all(file.new for file in report.files)


@dataclass
class Outcome:
    """How many files were refused and how many came in whole, and the most CPU time that one took."""

    refused: int = 0
    imported: int = 0
    worst_s: float = 0.0


def refusal(database: Database, path: Path, format: str) -> CompilewatchError | None:
    try:
        save_trials(database, read(path, format=format, **TOLD))
    except CompilewatchError as error:
        return error
    return None


def damage(database: Database, folder: Path, format: Format, rounds: int) -> Outcome:
    """Read damaged files one after the other and store what is whole; a refusal is a sentence."""
    outcome = Outcome()
    for number in range(rounds):
        generator = random.Random(f"{format}-{number}")
        contents = {name: text.encode() for name, text in TINY[format].items()}
        name = generator.choice(list(contents))
        contents[name] = mutated(contents[name], generator)
        path = write(folder, contents)
        chosen = format if generator.random() < 0.5 else AUTO
        started = time.process_time()
        error = refusal(database, path, chosen)
        if error is None:
            outcome.imported += 1
        else:
            outcome.refused += 1
            assert type(error) is not CompilewatchError
            assert error.message.endswith("."), error.message
            assert len(error.message) < 1_000, error.message[:2_000]
            assert error.next_step
        outcome.worst_s = max(outcome.worst_s, time.process_time() - started)
    return outcome


def peak_bytes() -> int:
    """The most memory that this process ever had at once; ru_maxrss would include its parent."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024


@pytest.mark.parametrize("format", list(Format))
def test_damaged_files(sqlite_database: Database, tmp_path: Path, format: Format) -> None:
    outcome = damage(sqlite_database, tmp_path / "in", format, BY_DEFAULT)
    assert outcome.refused > BY_DEFAULT // 4
    assert outcome.imported > 0
    assert all(trial.to_json() for trial in trial_records(sqlite_database, Filters()))


@pytest.mark.parametrize("depth", [60, 500, 900, 960, 975, 985, 990, 995, 1_000, 5_000])
@pytest.mark.parametrize("format", [format for format in Format if "csv" not in format])
def test_any_depth_of_nesting(tmp_path: Path, format: Format, depth: int) -> None:
    nested = b'{"deep": ' + b"[" * depth + b"]" * depth + b", "
    contents = {name: text.encode().replace(b"{", nested, 1) for name, text in TINY[format].items()}
    with suppress(CompilewatchError):
        assert read(write(tmp_path / "in", contents), **TOLD)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format", list(Format))
def test_ten_thousand_damaged_files(sqlite_database: Database, tmp_path: Path, format: Format) -> None:
    before = peak_bytes()
    outcome = damage(sqlite_database, tmp_path / "in", format, THOROUGHLY)
    grown = peak_bytes() - before
    print(
        f"\n{format}: {outcome.refused} refused, {outcome.imported} imported whole, "
        f"worst {outcome.worst_s:.2f} s of CPU, memory grew by {grown / 2**20:.0f} MiB"
    )
    assert outcome.refused > THOROUGHLY // 4
    assert outcome.imported > 0
    assert outcome.worst_s < WORST_S
    assert grown < MOST_BYTES
    assert all(trial.to_json() for trial in trial_records(sqlite_database, Filters()))


LIMITED = """
import resource, sys
from pathlib import Path
from compilewatch.db.errors import CompilewatchError
from functools import partial
from compilewatch.db.interchange.files.opening import input_files
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import recognised_files
from compilewatch.db.interchange.reading import all_trials
from tests.db.interchange.reading import TOLD
before = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = before + 768 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
try:
    files = recognised_files(partial(input_files, Path(sys.argv[1])), sys.argv[2], [])
    count = sum(1 for _ in all_trials(files, ImportOptions(**TOLD)))
except CompilewatchError as error:
    print(error.message)
else:
    print(count, "trials")
"""


@pytest.mark.parametrize(
    ("format", "head", "unit", "times"),
    [
        (Format.TRIAL, b"", b"[" * 2**20, 400),
        (Format.OSS_V3, b"[", b"[" * 2**20, 400),
        (Format.PYTEST_BENCHMARK, b'{"machine_info": "', b"x" * 2**20, 400),
        (Format.CSV, b'workload,latency_ms\n"', b"x" * 2**20, 400),
        (Format.CSV, b'workload,latency_ms\n"', b"x" * 1023 + b"\n", 400_000),
        (Format.DYNAMO_CSV, b"name,speedup,abs_latency", b"," * 2**20, 100),
        (Format.TORCH_COMPARE, b"[--- a ---]\n   |  eager\n", b"  x  |  1.0\n" * 2**16, 400),
        (Format.SGLANG, b"", b'{"request_rate": Infinity, "x":' * 2**15, 400),
        (Format.TRANSFORMERS_CI, b'{"a":', b'{"a":' * 2**18, 40),
    ],
)
def test_huge_files_are_refused_in_bounded_memory_and_time(
    tmp_path: Path, format: Format, head: bytes, unit: bytes, times: int
) -> None:
    path = tmp_path / "huge"
    assert str(path) in said_with_little(path, format, head, unit, times)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [b"[", b'{"a":', b"x", b'"a', b"1,", b"a\n"], ids=repr)
@pytest.mark.parametrize("format", list(Format))
def test_a_file_of_any_format_that_never_ends(tmp_path: Path, format: Format, unit: bytes) -> None:
    """A good beginning, and then 300 MiB of the same."""
    name, text = next(iter(TINY[format].items()))
    for partner, content in TINY[format].items():
        (tmp_path / partner).write_text(content, encoding="utf-8")
    head = text.encode()[: 2 * len(text) // 3]
    said = said_with_little(tmp_path / name, format, head, unit * (2**20 // len(unit)), 300)
    # A log that a killed job left is read as far as it goes.
    assert str(tmp_path) in said or (format in JOB_READERS and "1 trials" in said)


def said_with_little(path: Path, format: Format, head: bytes, unit: bytes, times: int) -> str:
    """What is said of `times` `unit` behind `head`, with little memory and time."""
    with path.open("wb") as stream:
        stream.write(head)
        for _ in range(times):
            stream.write(unit)
    command = [sys.executable, "-c", LIMITED, str(path), format]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=240)
    path.unlink()
    assert finished.returncode == 0, finished.stderr[-2_000:]
    return finished.stdout
