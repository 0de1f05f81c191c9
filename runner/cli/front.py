"""The one place where a command's outcome becomes an exit code and a sentence, and where none that measures
is silent for long.

0 fine; 1 a regression or a failed trial was found; 2 cannot tell or cannot do it; 3 a defect of ours; 130
interrupted.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TextIO

import typer

from compilewatch.db.errors import CompilewatchError, did_you_mean, one_line, visible

FIRST_S = 1.2
"""Without a line so long after its start, a command says that it begins."""
LONGEST_S = 9.0
"""Longer than what says itself what is under way is silent, since that says more."""


class Silence:
    """Says on standard error that `command` is at work whenever neither stream got a word for a while."""

    def __init__(self, command: str) -> None:
        self._command, self._limit_s, self._has_written = command, FIRST_S, False
        self._began = self._last_line_at = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="silence", daemon=True)
        self._streams = ExitStack()

    def __enter__(self) -> Self:
        self._streams.enter_context(redirect_stdout(_Heard(sys.stdout, self._heard)))
        self._streams.enter_context(redirect_stderr(_Heard(sys.stderr, self._heard)))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._streams.close()

    def _heard(self) -> None:
        self._last_line_at, self._limit_s, self._has_written = time.monotonic(), LONGEST_S, True

    def _watch(self) -> None:
        while not self._over.wait(max(0.05, self._last_line_at + self._limit_s - time.monotonic())):
            now = time.monotonic()
            if now - self._last_line_at >= self._limit_s:
                passed = f"{now - self._began:.0f} s so far" if self._has_written else "begins"
                print(f"compilewatch {self._command}: {passed}", file=sys.stderr, flush=True)


class _Heard:
    """`stream`, which tells of each word that it gets."""

    def __init__(self, stream: TextIO, heard: Callable[[], None]) -> None:
        self._stream, self._tell = stream, heard

    def write(self, text: str) -> int:
        written = self._stream.write(text)
        self._tell()
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def command_of(arguments: list[str], measuring: Any) -> str | None:
    """Which of the commands `measuring` is typed; None for another one, or where its help is wanted."""
    word = next((each for each in arguments if not each.startswith("-")), None)
    return word if word in measuring and "--help" not in arguments else None


EXIT_CANNOT = 2
EXIT_DEFECT = 3
EXIT_INTERRUPTED = 130
_LONGEST_LINE = 2_000
_CHOICES = re.compile(r"'([^']*)' is not one of (.*)")
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the console script; exits with the code of the command."""
    try:
        from compilewatch.runner.cli.app import MEASURING, app
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    if sys.stdout is None:
        # Closed by who started the program, and no command asks whether there is one.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # As standard error has it: a terminal that is ASCII, or the name of a folder that is not UTF-8.
        sys.stdout.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:] if arguments is None else arguments
    measuring = command_of(arguments, MEASURING)
    with nullcontext() if measuring is None else Silence(measuring):
        code = exit_code_of(app, arguments)
    _leave_nothing_to_write()
    sys.exit(code)


def exit_code_of(app: typer.Typer, arguments: list[str]) -> int:
    """Run `app`, print what a person must know on standard error and return the exit code."""
    try:
        result = app(arguments, standalone_mode=False, prog_name="compilewatch")
        # What is still held back would fail at the interpreter's exit, with a code of its own.
        sys.stdout.flush()
    except CompilewatchError as error:
        _print_error(error.message, error.next_step)
        return error.exit_code
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "compilewatch"
        _print_error(_complaint(error), f"Try `{command} --help`.")
        return EXIT_CANNOT
    except (KeyboardInterrupt, typer.Abort):
        _print_error("Interrupted.", "What was measured is stored.")
        return EXIT_INTERRUPTED
    except SystemExit as leaving:
        # Typer and rich end the program themselves where the reader (head, less) went away.
        if not isinstance(leaving.__context__, BrokenPipeError):
            raise
        return EXIT_CANNOT
    except Exception as error:  # noqa: BLE001
        return _unforeseen(error, arguments)
    return result if isinstance(result, int) else 0


def _unforeseen(error: Exception, arguments: list[str]) -> int:
    """The exit code of what no command expects, after what a person must know."""
    if isinstance(error, BrokenPipeError):
        return EXIT_CANNOT
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        what = error.filename or "The output"
        next_step = "Free space or write elsewhere, then run it again."
        _print_error(f"{what} could not be written whole ({error.strerror}).", next_step)
        return EXIT_CANNOT
    if isinstance(error, ValueError):
        # What names a file may be any bytes; what is looked up or stored may not.
        for argument in arguments:
            if argument != argument.encode(errors="replace").decode():
                _print_error(f"{visible(argument)} is not UTF-8 text.", "Type it in UTF-8.")
                return EXIT_CANNOT
    log = _log_defect()
    if (damage := _damage()) is not None:
        _print_error(damage.message, damage.next_step)
        return damage.exit_code
    _print_error(
        f"compilewatch has a defect ({type(error).__name__}), traceback in {log}.",
        "Please report it with that file.",
    )
    return EXIT_DEFECT


def _damage() -> CompilewatchError | None:
    """The damaged row of the command's database, which a failure that nobody expects may come from."""
    from compilewatch.db.engine.session import open_database
    from compilewatch.db.service.integrity import first_damage
    from compilewatch.runner.cli.options import READ_LAST

    settings = READ_LAST.get()
    if settings is None:
        return None
    try:
        with open_database(settings.database_url, read_only=True) as database:
            return first_damage(database)
    except CompilewatchError:
        # That it is not there is not why the command failed.
        return None


def _leave_nothing_to_write() -> None:
    """What cannot be written now would fail once more when the interpreter exits, which complains."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _print_error(message: str, next_step: str) -> None:
    # What was typed is in the sentence, and may hold what a terminal would obey.
    print(f"compilewatch: {_plain(message)}", file=sys.stderr)
    if next_step:
        print(f"  {_plain(next_step)}", file=sys.stderr)


def _plain(text: str) -> str:
    return "\n".join(one_line(line, _LONGEST_LINE) for line in text.splitlines())


def _complaint(error: typer.TyperException) -> str:
    """What is wrong with the words of a command; where pydantic found it, not in pydantic's words."""
    from pydantic import ValidationError

    cause = error.__cause__
    if isinstance(cause, ValidationError):
        from compilewatch.db.records.fields import problem

        details = cause.errors(include_url=False)[0]
        complaint = problem(details)
        error.message = f"{complaint}." if details["type"] == "value_error" else f"it {complaint}."
    # The choices of a missing option stand on lines of their own.
    sentence = " ".join(error.format_message().split())
    sentence = sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."
    if found := _CHOICES.search(sentence):
        choices = re.findall(r"'([^']+)'", found[2])
        sentence = f"{sentence} {did_you_mean(found[1], choices)}".rstrip()
    return sentence


def _log_defect() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="compilewatch-defect-"))
    path = directory / "traceback.txt"
    path.write_text(
        f"{datetime.now(UTC).isoformat()}\n{' '.join(sys.argv)}\n\n{traceback.format_exc()}",
        encoding="utf-8",
        errors="backslashreplace",
    )
    return path
