"""Processes that read a large file ahead of the one that stores it.

Reading and checking trials and making their rows takes longer than storing them. From its second batch on
children, forked of this process, do that work by turns; this process receives batches through pipes and
stores them in the order of the file. A child has a copy of everything, open connections too, and uses none
of it: it opens the file anew, writes batches to its pipe and leaves by `os._exit`. It ends with its parent,
whose end of the pipe is then gone, and waits when it is more than a pipe and a batch ahead.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, count, cycle
from typing import BinaryIO, NoReturn

from db.errors import ProcessEndedError, RecordError
from db.store.trial_rows import TRIALS_OF_A_BATCH, Batch, ReadHereError, unpacked

# The most that Linux lets a pipe of an ordinary user hold: the child seldom waits for room.
_PIPE_BYTES = 2**20
# Together they are faster than the one that stores, on as many processors.
_READERS = 2
_HEADER = struct.Struct("<BQ")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Kind(IntEnum):
    BATCH = 0
    REFUSED = 1
    END = 2


@dataclass(frozen=True)
class Share:
    """Which batches of a file a process makes: from the `first` on, counted from 0, every `every`-th."""

    first: int = 0
    every: int = 1

    def turns(self) -> Iterator[bool]:
        """Of each batch whether it belongs to the share."""
        return (place >= self.first and (place - self.first) % self.every == 0 for place in count())


# Makes the batches of a share, in their order; with an error comes what was to be made before it.
Making = Callable[[Share], Generator[Batch]]


@contextmanager
def read_ahead(making: Making) -> Iterator[Iterator[Batch]]:
    """All batches in their order, those after the first made by other processes where that pays and is safe.

    When the block ends they have, too. Iterating raises the RecordError that `making` raises, ReadHereError
    where anything else went wrong in another process, and ProcessEndedError where that was killed.
    """
    here = making(Share())
    first = next(here, None)
    if first is None or len(first) < TRIALS_OF_A_BATCH or not is_possible():
        yield here if first is None else chain([first], here)
        return
    here.close()
    with ExitStack() as processes:
        shares = [Share(1 + number, _READERS) for number in range(_READERS)]
        received = [processes.enter_context(_process(making, share)) for share in shares]
        ahead = chain([first], _round_robin(received))
        del first  # so that its records are let go when it is stored
        yield ahead


def is_possible() -> bool:
    """Whether other processes have a processor of their own, and forking them is safe."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1 and threading.active_count() == 1


@contextmanager
def _process(making: Making, share: Share) -> Iterator[Iterator[Batch]]:
    """What another process makes of `share`; it has ended when the block ends."""
    receiving, sending = os.pipe()
    child = None
    # An interrupt waits until both processes know what to do with it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    with open(receiving, "rb") as source:  # noqa: PTH123
        try:
            with open(sending, "wb") as target:  # noqa: PTH123
                child = _fork()
                if child == 0:
                    _read(making, share, source, target, before)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield _received(source, child)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            if child:
                _end(child)


def _round_robin(sources: Sequence[Iterator[Batch]]) -> Iterator[Batch]:
    """A batch of each source in turn, until the one whose turn it is has no more."""
    for source in cycle(sources):
        batch = next(source, None)
        if batch is None:
            return
        yield batch


def _fork() -> int:
    try:
        with warnings.catch_warnings():
            # From 3.12 on of threads below Python: those of numpy end before a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            return os.fork()
    except OSError as error:
        raise ReadHereError from error


def _read(making: Making, share: Share, source: BinaryIO, target: BinaryIO, mask: set[int]) -> NoReturn:
    """All that another process does."""
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
            for batch in making(share):
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
        "Check the machine's memory, then import the file again.",
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
