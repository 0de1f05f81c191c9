"""Profiles of one side, of names, calls and nanoseconds."""

from __future__ import annotations

import json
import random
from pathlib import Path

from compilewatch.db.records.sampling_facts import Profile, ProfileEntry, ProfileSide
from compilewatch.db.records.trial import parse_trial

RECORDED = Path(__file__).parents[3] / "docs" / "measured" / "h100" / "profiles.jsonl"


def side(*kernels: tuple[str, float, int], rest_ns: int = 0, busy: float | None = 1.0) -> ProfileSide:
    """Kernels as (name, calls, nanoseconds), and `rest_ns` of work that is not listed."""
    top = [ProfileEntry(name=name, calls=calls, self_ns=ns) for name, calls, ns in kernels]
    total = sum(entry.self_ns for entry in top) + rest_ns
    step_ns = round(total / busy) if busy else total
    return ProfileSide(step_ns=step_ns, device_busy_fraction=busy, top=top)


def recorded(workload: str):
    """The trial of `workload` among the records of an H100."""
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    return next(parse_trial(line) for line in lines if json.loads(line)["workload"]["name"] == workload)


def recorded_sides() -> list[ProfileSide]:
    profiles = (recorded(name).profile for name in ("vit-b16", "mlp-4096"))
    return [
        each
        for profile in profiles
        if isinstance(profile, Profile)
        for each in (profile.own, profile.control)
    ]


def noisy(profile: ProfileSide, rng: random.Random, spread: float, listed: int) -> ProfileSide:
    """The same step again: each time times a lognormal factor, and only the `listed` longest."""
    entries = [
        entry.model_copy(update={"self_ns": round(entry.self_ns * rng.lognormvariate(0, spread))})
        for entry in profile.top
    ]
    entries.sort(key=lambda entry: -entry.self_ns)
    step_ns = round(profile.step_ns * rng.lognormvariate(0, spread))
    return profile.model_copy(update={"top": entries[:listed], "step_ns": step_ns})
