"""TORCH_TRACE logs, which torch writes of every compilation of a process and tlparse reads.

Shape: pytorch, torch/_logging/_internal.py: a line of glog's prefix and one JSON object, then the payload, if
any, in lines that begin with a tab. The object has the MD5 of its payload, so that damage shows. A process
writes `dedicated_log_torch_trace_[rank_N_]RANDOM.log`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from db.errors import RecordError
from db.interchange.files.fields import Place
from db.interchange.files.opening import InputFile
from db.interchange.files.options import ImportOptions
from db.interchange.read.compile_log import ARTIFACTS, WITH_PAYLOAD, CompileLog
from db.interchange.read.job_trials import JobProcess

_PREFIX = rb"(?:\[rank\d+\]:)?[A-Z]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ .+?:\d+\]"
FIRST_LINE = re.compile(_PREFIX + rb" \{")
_LINE = re.compile(_PREFIX + rb" (\{.*)")
_RANK = re.compile(r"_rank_(\d+)(?:_|\.)")
_NEXT = "Copy it again from the job's host, or import the other files alone."


UNNAMED = "job"
"""The name of a job whose log lies in no folder that anybody knows."""


class _DamageError(Exception):
    """A record is not what torch writes."""


DAMAGE = (_DamageError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""What folding a record raises that torch did not write."""


def read_process(file: InputFile, options: ImportOptions) -> JobProcess:
    """What one log tells. Of a log that ends inside a record, everything before it.

    Raises RecordError where a record before the last one is damaged.
    """
    log, digest = CompileLog(), hashlib.sha256()
    damaged: int | None = None
    for line, record, payload in _records(file):
        if damaged is not None:
            raise RecordError(f"{file.shown}, line {damaged}: is no record of TORCH_TRACE.", _NEXT)
        digest.update(record + b"\0" + payload)
        try:
            _fold(log, record, payload)
        except DAMAGE:
            damaged = line
    named = _RANK.search(file.name)
    return JobProcess(
        place=Place(file.shown),
        name=options.job or file.folder or UNNAMED,
        key="",
        raw={"log": digest.hexdigest()},
        log=log,
        phases_ns=log.phases.spent_ns,
        began_ns=log.began_ns,
        rank=log.rank if log.rank is not None or named is None else int(named[1]),
        cut_off=damaged is not None,
    )


def _records(file: InputFile) -> Iterator[tuple[int, bytes, bytes]]:
    """(line, the JSON object or what stands in its place, payload if it is read)."""
    begun: tuple[int, bytes] | None = None
    payload: list[bytes] = []
    wanted = False
    for number, line in file.lines():
        if line.startswith(b"\t"):
            if wanted:
                payload.append(line[1:])
            continue
        if begun is not None:
            yield *begun, b"\n".join(payload)
        match = _LINE.match(line)
        begun, payload = (number, match[1] if match else b""), []
        wanted = match is not None and _is_read(match[1])
    if begun is not None:
        yield *begun, b"\n".join(payload)


def _is_read(record: bytes) -> bool:
    """Whether the payload is read; graphs and generated code are most of a log, and are not."""
    head = record[:120]
    return any(b'{"%s"' % name.encode() in head for name in WITH_PAYLOAD) and (
        b'"artifact"' not in head or any(b'"%s"' % name.encode() in head for name in ARTIFACTS)
    )


def _fold(log: CompileLog, text: bytes, payload: bytes) -> None:
    record: Any = json.loads(text)
    if not isinstance(record, dict):
        raise _DamageError
    if "artifact" in record and record["artifact"].get("name") not in ARTIFACTS:
        return
    expected = record.get("has_payload")
    if expected and _is_read(text) and hashlib.md5(payload, usedforsecurity=False).hexdigest() != expected:
        raise _DamageError
    log.add(record, payload.decode("utf-8", errors="replace"))
