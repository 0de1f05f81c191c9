"""The search for the largest batch, over memories of every size; and the command on a model of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.errors import CompilewatchError
from compilewatch.runner.cli.measure.largest_batch import search
from compilewatch.runner.process.explanation import Fit, NoFitError
from tests.runner.terminal import in_this_process

NEVER = float("inf")


def memory_of(limit: int, tried: list[int], per_sample: int = 100, base: int = 1_000) -> Callable[[int], Fit]:
    """A host on which `limit` samples fit."""

    def attempt(batch: int) -> Fit:
        tried.append(batch)
        if batch > limit:
            raise NoFitError("out of memory")
        return Fit(latency_ns=batch * 10, peak_bytes=base + per_sample * batch)

    return attempt


@given(st.integers(1, 100_000), st.integers(1, 1_000))
def test_the_largest_batch_is_found_within_a_sixteenth(limit: int, first: int) -> None:
    tried: list[int] = []
    side = search(memory_of(limit, tried), first, until_s=NEVER, available_bytes=None)
    assert side.largest is not None
    assert limit / (1 + 1 / 16) - 1 <= side.largest <= limit
    assert len(tried) == len(set(tried)) <= 40


def test_where_nothing_fits_one_sample_was_tried() -> None:
    tried: list[int] = []
    side = search(memory_of(0, tried), 8, until_s=NEVER, available_bytes=None)
    assert (side.largest, tried) == (None, [8, 4, 2, 1])


@given(st.integers(2_000, 100_000))
def test_what_would_take_more_than_is_free_is_not_tried(free: int) -> None:
    tried: list[int] = []
    side = search(memory_of(10**9, tried), 1, until_s=NEVER, available_bytes=free)
    assert max(1_000 + 100 * batch for batch in tried[2:]) <= free
    assert side.largest == max(tried)
    assert "of" in side.fails[min(side.fails)]


def test_the_time_ends_it_after_what_fits_and_an_error_at_once() -> None:
    moments = iter(range(100))
    side = search(memory_of(10**9, []), 8, until_s=3, available_bytes=None, clock=lambda: next(moments))
    assert (side.stopped, side.largest) == ("time", 64)

    def broken(batch: int) -> Fit:
        raise CompilewatchError(f"batch {batch} is no number of heads")

    with pytest.raises(CompilewatchError, match="no number of heads"):
        search(broken, 8, until_s=NEVER, available_bytes=None)


def test_both_sides_at_their_own_largest(tmp_path: Path) -> None:
    """A model that refuses more than one sample as memory does: 1 and 2 are tried on each side."""
    (tmp_path / "own_models.py").write_text(
        "import torch\n"
        "def build(batch_size=1):\n"
        "    if batch_size > 1:\n"
        "        raise MemoryError('no room')\n"
        "    return torch.nn.Linear(4, 4), (torch.randn(batch_size, 4),)\n",
        encoding="utf-8",
    )
    (tmp_path / "compilewatch.toml").write_text(
        '[[workload]]\nname = "own"\ntarget = "own_models:build"\nbatch_size = 1\n', encoding="utf-8"
    )
    told = in_this_process("largest-batch", "own", "-s", "backend:eager", "--json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert [side["largest_batch"] for side in found["sides"].values()] == [1, 1]
    assert found["ratios"]["batch"] == 1.0
    same = found["sides"]["backend:eager"]["fits"]["1"]["latency_ns"]
    eager = found["sides"]["eager"]["fits"]["1"]["latency_ns"]
    assert found["ratios"]["throughput_at_own"] == pytest.approx(eager / same)
    assert not list(tmp_path.glob("**/*.db"))
