"""One finding of the doctor: what was looked at, how it stands, and the next step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
    """`warn`: figures may be noisier or fewer than they could be. `fail`: nothing can be measured."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class DoctorFinding:
    """`fact` is one phrase without a full stop; `next_step` is empty where there is nothing to do."""

    subject: str
    standing: Standing
    fact: str
    next_step: str = ""


def ok(subject: str, fact: str, next_step: str = "") -> DoctorFinding:
    """Nothing to do, unless `next_step` says what would still help."""
    return DoctorFinding(subject, Standing.OK, fact, next_step)


def warn(subject: str, fact: str, next_step: str) -> DoctorFinding:
    """Measuring works, and something makes its figures worse or unknown."""
    return DoctorFinding(subject, Standing.WARN, fact, next_step)


def fail(subject: str, fact: str, next_step: str) -> DoctorFinding:
    """Nothing can be measured or stored before this is mended."""
    return DoctorFinding(subject, Standing.FAIL, fact, next_step)
