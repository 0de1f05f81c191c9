"""Log lines that nobody can forge: whatever a name or a message holds, one record is one line."""

from __future__ import annotations

import logging
from typing import Any

from compilewatch.db.errors import visible


class OneLine(logging.Formatter):
    """As its base, but for the message, which stays on its line; a traceback is indented below it."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(_Plain(record))

    def formatException(self, ei: object) -> str:  # noqa: N802 - the name is the base's
        text = super().formatException(ei)  # type: ignore[arg-type]
        return "\n".join(f"    {visible(line)}" for line in text.splitlines())


class _Escaped(logging.LogRecord):
    def getMessage(self) -> str:  # noqa: N802 - the name is the base's
        return visible(super().getMessage())


class OneLineRecord(_Escaped):
    """For `logging.setLogRecordFactory`: one line under every formatter, those of libraries among them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info:
            self.exc_text = OneLine().formatException(self.exc_info)


class _Plain(_Escaped):
    """A record whose message is escaped; everything else is that of `record`."""

    def __init__(self, record: logging.LogRecord) -> None:
        self.__dict__.update(record.__dict__)
