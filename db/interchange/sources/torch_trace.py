"""TORCH_TRACE logs, which torch writes of every compilation of a process and tlparse reads.

Shape: pytorch, torch/_logging/_internal.py: a line of glog's prefix and one JSON object, then the payload, if
any, in lines that begin with a tab. The object has the MD5 of its payload, so that damage shows. A process
writes `dedicated_log_torch_trace_[rank_N_]RANDOM.log`.

A trial per process: phases, breaks, recompilations, caches. Not taken: samples, latency, memory; a compile
cost where the log ends while it compiles. To name: torch and device of older logs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.fields import Place, as_fields, load_json
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources.compile_log import ARTIFACTS, WITH_PAYLOAD, CompileLog
from compilewatch.db.interchange.sources.job_trials import JobProcess

_PREFIX = rb"(?:\[rank\d+\]:)?[A-Z]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ .+?:\d+\]"
FIRST_LINE = re.compile(_PREFIX + rb" \{")
_LINE = re.compile(_PREFIX + rb" (\{.*)")
_RANK = re.compile(r"_rank_(\d+)(?:_|\.)")
_NEXT = "Copy it again from the job's host, or import the other files alone."


UNNAMED = "job"
"""The name of a job whose log lies in no folder that anybody knows."""


class DamageError(RecordError):
    """A record that is not whole, as the last one of a log that was cut off."""


def read_process(file: InputFile, options: ImportOptions) -> JobProcess:
    """What one log tells. Of a log that ends inside a record, everything before it.

    Raises RecordError where a record before the last one is damaged, or any is not what torch writes.
    """
    log, digest = CompileLog(), hashlib.sha256()
    damaged: DamageError | None = None
    for record in _records(file):
        if damaged is not None:
            raise damaged
        digest.update(record.text + b"\0")
        record.payload.add_to(digest)
        try:
            _fold(log, record, Place(file.shown, record.line))
        except DamageError as error:
            damaged = error
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


class _Payload:
    """The lines below a record: the first `_MOST_BYTES` of them, and the MD5 of all.

    Of what is read nothing is longer: reasons, and one event of a timer each.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._chunks: list[bytes] = []
        self._size = 0
        self._rest = hashlib.sha256()
        self._digest = hashlib.md5(usedforsecurity=False)
        self.cut = False

    def add(self, line: bytes) -> None:
        if not self._wanted:
            return
        text = line if not self._chunks else b"\n" + line
        self._digest.update(text)
        self._size += len(text) + _OVERHEAD_BYTES
        if self._size <= _MOST_BYTES:
            self._chunks.append(text)
        else:
            self.cut = True
            self._rest.update(text)

    def add_to(self, digest: Any) -> None:
        digest.update(self.kept)
        if self.cut:
            digest.update(self._rest.digest())

    @property
    def kept(self) -> bytes:
        return b"".join(self._chunks)

    @property
    def md5(self) -> str:
        return self._digest.hexdigest()


_MOST_BYTES = 2**20
# What an object in a list takes beside its content: a payload of empty lines is not small.
_OVERHEAD_BYTES = 48


class _Record(NamedTuple):
    line: int
    text: bytes
    """The JSON object, or what stands in its place."""
    payload: _Payload


def _records(file: InputFile) -> Iterator[_Record]:
    record: _Record | None = None
    for number, line in file.lines():
        if line.startswith(b"\t"):
            if record is not None:
                record.payload.add(line[1:])
            continue
        if record is not None:
            yield record
        match = _LINE.match(line)
        text = match[1] if match else b""
        record = _Record(number, text, _Payload(wanted=match is not None and _is_read(text)))
    if record is not None:
        yield record


def _is_read(record: bytes) -> bool:
    """Whether the payload is read; graphs and generated code are most of a log, and are not."""
    head = record[:120]
    return any(b'{"%s"' % name.encode() in head for name in WITH_PAYLOAD) and (
        b'"artifact"' not in head or any(b'"%s"' % name.encode() in head for name in ARTIFACTS)
    )


def _fold(log: CompileLog, read: _Record, place: Place) -> None:
    try:
        fields = as_fields(place, load_json(read.text, place))
    except RecordError as error:
        raise DamageError(f"{place}: is no record of TORCH_TRACE.", _NEXT) from error
    if "artifact" in fields.data and fields.part("artifact").text("name", 2_000) not in ARTIFACTS:
        return
    expected = fields.text("has_payload")
    if expected and _is_read(read.text) and read.payload.md5 != expected:
        raise DamageError(f"{place}: has_payload: is the checksum of another payload.", _NEXT)
    log.add(fields, read.payload.kept.decode("utf-8", errors="replace"))
