"""Upgrade verdict: two builds, every matched case, every metric."""

from __future__ import annotations

import pandas as pd
from pydantic import BaseModel, ConfigDict

from db.verdicts.policy import Policy
from db.verdicts.results import Comparison


class Selection(BaseModel):
    """Which trials make one side: those of any of `build_ids`, further narrowed to `run_ids` if given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    build_ids: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()


def compare_builds(
    trials: pd.DataFrame,
    base: Selection | str,
    head: Selection | str,
    policy: Policy | None = None,
    *,
    history: pd.DataFrame | None = None,
    machine_id: str | None = None,
) -> Comparison:
    """Judge `head` against `base`, metric by metric, over the cases that match.

    `trials` is a trials frame (`db.queries.trials.trials_frame`) holding both sides; a `str` side is a
    build id. `history` is a trials frame of earlier runs on the same machine (may be the same frame). With
    `machine_id` None the machine with most matched cases is taken; the others are named in `left_out`.
    Raises VerdictError when a side has no trial or both sides select the same trials.
    """
