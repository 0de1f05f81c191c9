"""Apache Otava as a rule, in an environment of its own: it pins another numpy than ours.

python3 -m venv OTAVA && OTAVA/bin/pip install apache-otava
COMPILEWATCH_OTAVA_PYTHON=OTAVA/bin/python pytest -m benchmark -s \\
    tests/qa/benchmarks/test_history_detection.py
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import IO

import numpy as np
from numpy.typing import NDArray

PYTHON = os.environ.get("COMPILEWATCH_OTAVA_PYTHON")

_SERVER = """
import json, sys
from otava.analysis import compute_change_points
for line in sys.stdin:
    asked = json.loads(line)
    found, _ = compute_change_points(asked.pop("series"), **asked)
    print(json.dumps([int(change.index) for change in found]), flush=True)
"""


class Otava:
    """One running interpreter that answers one series per line."""

    def __init__(self, **options: float) -> None:
        assert PYTHON is not None
        self._options = options
        self._process = subprocess.Popen(
            [PYTHON, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, y: NDArray[np.float64]) -> list[int]:
        """Starts of new levels in log values `y`; Otava sees the values themselves."""
        asked: IO[str] | None = self._process.stdin
        answered: IO[str] | None = self._process.stdout
        asked.write(json.dumps({"series": np.exp(y).tolist(), **self._options}) + "\n")
        asked.flush()
        found: list[int] = json.loads(answered.readline())
        return found

    def close(self) -> None:
        self._process.communicate()
