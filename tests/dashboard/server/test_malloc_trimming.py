"""Heaps of the server: few, shared, and as the environment says where it says something."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.dashboard.serving import ROOT

# Threads that come and go each allocate more than a thread's cache of small pieces holds, and glibc writes
# down the arenas it made for them.
_PROGRAM = """
import ctypes, json, tempfile, threading
import pyarrow as pa
from dashboard.server.malloc_trimming import share_heaps

share_heaps()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(8)

def allocate():
    together.wait()
    for _ in range(100):
        libc.malloc(5000)
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as told:
    stream = ctypes.c_void_p(libc.fopen(told.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    heaps = told.read().count(b"<heap nr=")
print(json.dumps({"pool": pa.default_memory_pool().backend_name, "heaps": heaps}))
"""


# Pieces of many pages, every hundredth of which stays: all but the end of the heap is holes.
_HOLES = """
import ctypes, time
from dashboard.server.malloc_trimming import trim_regularly

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]

def resident_mib():
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) / 256

pieces = [libc.malloc(100_000) for _ in range(2_000)]
for piece in pieces:
    ctypes.memset(piece, 1, 100_000)
for number, piece in enumerate(pieces):
    if number % 100 != 99:
        libc.free(piece)
before = resident_mib()
trim_regularly(every_s=0.01)
deadline = time.monotonic() + 5
while before - resident_mib() < 150 and time.monotonic() < deadline:
    time.sleep(0.01)
print(before - resident_mib())
"""


def _allocated(**environment: str) -> dict[str, object]:
    told = {"ARROW_DEFAULT_MEMORY_POOL", "MALLOC_ARENA_MAX"}
    inherited = {name: value for name, value in os.environ.items() if name not in told}
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, object] = json.loads(ended.stdout)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="counts the heaps of glibc")
def test_threads_share_two_heaps_and_arrow_uses_them() -> None:
    assert _allocated() == {"pool": "system", "heaps": 2}


@pytest.mark.skipif(sys.platform != "linux", reason="counts the heaps of glibc")
def test_what_the_environment_says_of_heaps_stands() -> None:
    found = _allocated(ARROW_DEFAULT_MEMORY_POOL="mimalloc", MALLOC_ARENA_MAX="5")
    assert found == {"pool": "mimalloc", "heaps": 5}


@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc for its free pages")
def test_free_pages_between_pieces_in_use_are_given_back() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _HOLES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert float(ended.stdout) > 150, "of 191 MiB"
