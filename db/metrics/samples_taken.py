"""How samples were taken, in words."""

from __future__ import annotations

from db.diagnosis import SamplingFacts
from db.units import percent

_ENDED_BY = {
    "interval": "which was enough",
    "samples": "with as many samples as there may be",
    "time": "when the time was up",
    "disturbed": "with other work on the host in too many blocks",
}
_FLUSHED = {True: "L2 cache flushed before each", False: "L2 cache not flushed"}


def samples_taken(found: SamplingFacts) -> str:
    """How well the median is known, what ended sampling and warm-up: "median known to ±1.10 %, ..." """
    known = "too few samples to say how well the median is known"
    if found.reached_interval is not None:
        asked = f" (asked: ±{percent(found.relative_interval)})" if found.relative_interval else ""
        known = f"median known to ±{percent(found.reached_interval)}{asked}"
    parts = [known, _ENDED_BY.get(found.ended_by, f"ended by {found.ended_by}")]
    if found.flush_l2 is not None:
        parts.append(_FLUSHED[found.flush_l2])
    if found.warmup_ended_by not in (None, "steady"):
        parts.append(f"not steady after the warm-up's bound in {found.warmup_ended_by}")
    return ", ".join(parts)
