"""A second process that reads a large file ahead of the one that stores it.

Reading and checking trials and making their rows takes longer than storing them. From its second batch on a
child, forked of this process, does that work; this process receives batches through a pipe and stores them.
The child has a copy of everything, open connections too, and uses none of it but the file that it reads: it
writes batches to the pipe and leaves by `os._exit`. It ends with its parent, whose end of the pipe is then
gone, and waits when it is more than a pipe and a batch ahead.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from itertools import chain
from typing import BinaryIO, NoReturn

from db.errors import ProcessEndedError, RecordError
from db.store_batches import TRIALS_OF_A_BATCH, Batch, ReadHereError, unpacked

# The most that Linux lets a pipe of an ordinary user hold: the child seldom waits for room.
_PIPE_BYTES = 2**20
_HEADER = struct.Struct("<BQ")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Kind(IntEnum):
    BATCH = 0
    REFUSED = 1
    END = 2


@contextmanager
def read_ahead(batches: Iterator[Batch]) -> Iterator[Iterator[Batch]]:
    """The same batches, those after the first made by a second process where that pays and is safe.

    When the block ends the second process has, too. Iterating raises the RecordError that `batches`
    raises, ReadHereError where anything else went wrong in the second process, and
    ProcessEndedError where that was killed.
    """
    first = next(batches, None)
    if first is None or len(first) < TRIALS_OF_A_BATCH or not is_possible():
        yield batches if first is None else chain([first], batches)
        return
    with _second_process(batches) as received:
        ahead = chain([first], received)
        del first  # so that its records are let go when it is stored
        yield ahead


def is_possible() -> bool:
    """Whether a second process has a processor of its own, and forking one is safe."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1 and threading.active_count() == 1


@contextmanager
def _second_process(batches: Iterator[Batch]) -> Iterator[Iterator[Batch]]:
    receiving, sending = os.pipe()
    child = None
    # An interrupt waits until both processes know what to do with it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    with open(receiving, "rb") as source:  # noqa: PTH123
        try:
            with open(sending, "wb") as target:  # noqa: PTH123
                child = _fork()
                if child == 0:
                    _read(batches, source, target, before)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield _received(source, child)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            if child:
                _end(child)


def _fork() -> int:
    try:
        with warnings.catch_warnings():
            # From 3.12 on of threads below Python: those of numpy end before a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            return os.fork()
    except OSError as error:
        raise ReadHereError from error


def _read(batches: Iterator[Batch], source: BinaryIO, target: BinaryIO, mask: set[int]) -> NoReturn:
    """All that the second process does."""
    import fcntl  # there is none on Windows

    status = os.EX_SOFTWARE
    try:
        # The terminal's Ctrl-C reaches both processes: the one that stores decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        source.close()
        with suppress(OSError):
            fcntl.fcntl(target, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        try:
            for batch in batches:
                _send(target, _Kind.BATCH, batch.packed())
            _send(target, _Kind.END, b"")
        except RecordError as error:
            if type(error) is not RecordError:  # only the process that stores can tell these apart
                raise
            _send(target, _Kind.REFUSED, json.dumps((error.message, error.next_step)).encode())
        status = os.EX_OK
    finally:
        os._exit(status)


def _send(target: BinaryIO, kind: _Kind, content: bytes) -> None:
    target.write(_HEADER.pack(kind, len(content)))
    target.write(content)
    target.flush()


def _received(source: BinaryIO, child: int) -> Iterator[Batch]:
    while len(header := source.read(_HEADER.size)) == _HEADER.size:
        kind, size_bytes = _HEADER.unpack(header)
        content = source.read(size_bytes)
        if len(content) < size_bytes:
            break
        if kind == _Kind.END:
            return
        if kind == _Kind.REFUSED:
            raise RecordError(*json.loads(content))
        yield unpacked(content)
    if not _was_killed(child):
        raise ReadHereError
    raise ProcessEndedError(
        "The process that reads the file was killed; nothing of the file was stored.",
        "Look whether the machine ran out of memory, and import the file again.",
    )


def _was_killed(child: int) -> bool:
    """Waits until `child` has ended, and leaves it for `_end`."""
    try:
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:  # nobody can tell where SIGCHLD is ignored
        return False
    return ended is not None and ended.si_code != os.CLD_EXITED


def _end(child: int) -> None:
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
