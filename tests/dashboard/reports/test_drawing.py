"""Charts are drawn while others are answered, and go on after the process that draws was killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from threading import Event, Thread
from typing import Any

import psutil
import pytest

from compilewatch.dashboard.document.svg import DrawingProcess


def _chart(points: int) -> dict[str, Any]:
    axis = {"type": "quantitative"}
    values = [{"a": n, "b": n * n % 97} for n in range(points)]
    encoding = {"x": {"field": "a", **axis}, "y": {"field": "b", **axis}}
    return {"mark": "point", "data": {"values": values}, "encoding": encoding}


@pytest.fixture
def drawing() -> Iterator[DrawingProcess]:
    process = DrawingProcess()
    yield process
    process.end()


def test_other_threads_go_on_while_a_chart_is_drawn(drawing: DrawingProcess) -> None:
    moments, drawn = [time.monotonic()], Event()

    def go_on() -> None:
        while not drawn.wait(0.005):
            moments.append(time.monotonic())

    thread = Thread(target=go_on)
    thread.start()
    began = time.monotonic()
    picture = drawing.picture("svg", _chart(20_000))
    took = time.monotonic() - began
    drawn.set()
    thread.join()
    assert picture.startswith(b"<svg")
    assert max(later - earlier for earlier, later in pairwise(moments)) < took / 2


def test_a_killed_process_is_begun_again(drawing: DrawingProcess) -> None:
    first = drawing.picture("svg", _chart(3))
    assert drawing.process_id is not None
    os.kill(drawing.process_id, signal.SIGKILL)
    assert drawing.picture("svg", _chart(3)) == first


def test_a_chart_that_cannot_be_drawn_ends_nothing(drawing: DrawingProcess) -> None:
    with pytest.raises(ValueError, match="conversion failed"):
        drawing.picture("svg", {"mark": "none such", "data": {"values": []}})
    drawn = drawing.picture("svg", _chart(3)).decode()
    assert drawing.picture("png", drawn).startswith(b"\x89PNG")
    assert drawing.picture("pdf", drawn).startswith(b"%PDF")


def test_it_ends_with_whoever_began_it_however_that_ends() -> None:
    """Killed, a process says goodbye to nobody."""
    draw = (
        "import os, signal; from compilewatch.dashboard.document.svg import DRAWING;"
        " DRAWING.picture('svg', {'mark': 'point', 'data': {'values': []}});"
        " print(DRAWING.process_id, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    begun = subprocess.run([sys.executable, "-c", draw], stdout=subprocess.PIPE, check=False)
    process_id, until = int(begun.stdout), time.monotonic() + 30
    while _runs(process_id):
        assert time.monotonic() < until
        time.sleep(0.05)


def _runs(process_id: int) -> bool:
    try:
        return psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
