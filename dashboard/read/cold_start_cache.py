"""What processes spent until their first results, read once per trial and kept from then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from db.queries.cold_start import PHASES

MOST_TRIALS = 30_000
"""Of so many trials at most phases are kept, in a few megabytes; beyond that, of those asked for last."""
_OF_TRIAL = ["workload_id", "strategy_id", "strategy", "cache"]
_UNMEASURED = bytes(8 * len(PHASES))


class ColdStarts(NamedTuple):
    """The case of each trial, and in a row for each the nanoseconds of `db.queries.cold_start.PHASES`.

    A phase that was not measured has 0.
    """

    trials: pd.DataFrame
    phase_ns: NDArray[np.int64]


class ColdStartCache:
    """The phases of trials of one database. Safe to share between threads.

    Stored trials neither change nor go away, so what was read of one stays true.
    """

    def __init__(
        self, read: Callable[[Sequence[str]], Mapping[str, Sequence[int]]], version: Callable[[], int]
    ) -> None:
        """`read`: `db.queries.cold_start.cold_starts` of some ids; `version`: the data version now."""
        self._read = read
        self._version_now = version
        self._lock = Lock()
        self._version = 0
        self._phases: dict[str, bytes] = {}

    def of(self, trials: pd.DataFrame) -> ColdStarts:
        """The cold starts of `trials`, which have the columns of `db.queries.trials.trials_frame`."""
        trial_ids = trials["trial_id"].tolist()
        with self._lock:
            self._take(trial_ids)
            phases = b"".join([self._phases.get(trial_id, _UNMEASURED) for trial_id in trial_ids])
        return ColdStarts(trials[_OF_TRIAL], np.frombuffer(phases, dtype=np.int64).reshape(-1, len(PHASES)))

    def _take(self, trial_ids: Sequence[str]) -> None:
        version = self._version_now()
        if version < self._version:
            # Versions only grow: this is another database in the place of the one before.
            self._phases.clear()
        self._version = version
        unread = [trial_id for trial_id in trial_ids if trial_id not in self._phases]
        if unread:
            for trial_id, phases in self._read(unread).items():
                self._phases[trial_id] = np.array(phases, dtype=np.int64).tobytes()
        if len(self._phases) > MOST_TRIALS:
            wanted = set(trial_ids)
            self._phases = {key: phases for key, phases in self._phases.items() if key in wanted}
