"""Folders and files that are called by a date, by which people keep results of several nights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_WORDS = (
    r"(?:nightly|night|daily|day|run|results?|bench|benchmarks?|perf|performance"
    # Files of TorchBench, in the host's local time, and of transformers' CI.
    r"|metrics|hf|summary)"
)
_DATE = r"(20\d\d)([-_.]?)(\d\d)\2(\d\d)(?:[T_. -]?(\d\d)[-:.h]?(\d\d)(?:[-:.m]?(\d\d))?Z?(?!\d))?"
_NAMES = (
    # 2026-03-01, 20260301, nightly-2026-03-01, each also with a time. Another word may mean another date.
    re.compile(rf"(?:{_WORDS}[-_. ]?)*{_DATE}(?:[-_. ]{_WORDS})*", re.IGNORECASE),
    # As PyTorch's benchmarks/dynamo/runner.py archives a day: day_060_01_03_26_performance_amp_3012.
    re.compile(r"day_\d{3}_(?P<day>\d\d)_(?P<month>\d\d)_(?P<year>\d\d)_.+"),
    # 2026-03-01_h100: what follows is of that day, unless it is another day.
    re.compile(rf"{_DATE}[-_. ](?!.*20\d\d[-_.]?\d\d[-_.]?\d\d).+", re.IGNORECASE),
)
_AHEAD = timedelta(days=1)


def named_date(file: str, folders: Sequence[str], many: int) -> datetime | None:
    """The moment, in UTC, by which a file is called, else the nearest of the first `many` folders, or three
    such as 2026/03/01; midnight where it has no time. `folders` begin with the nearest.

    01-03-2026 is no date: of two numbers nobody knows which is the month.
    """
    if (moment := _moment(file.rpartition(".")[0] or file)) is not None:
        return moment
    for at in range(min(many, len(folders))):
        parts = folders[at : at + 3]
        together = "-".join(reversed(parts)) if all(map(str.isdecimal, parts)) else ""
        if (moment := _moment(folders[at]) or _moment(together)) is not None:
            return moment
    return None


def _moment(name: str) -> datetime | None:
    """None for what is no date, and for one that is yet to come."""
    match = next((match for pattern in _NAMES if (match := pattern.fullmatch(name))), None)
    if match is None:
        return None
    if named := match.groupdict():
        parts = [f"20{named['year']}", named["month"], named["day"]]
    else:
        parts = [part or "0" for part in match.group(1, 3, 4, 5, 6, 7)]
    try:
        year, month, day, hour, minute, second = (*map(int, parts), 0, 0, 0)[:6]
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return moment if moment <= datetime.now(UTC) + _AHEAD else None
