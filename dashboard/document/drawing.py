"""Charts become pictures in a process of their own.

Vega's runtime holds the interpreter as long as it draws, in which nobody else would be answered.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Mapping
from threading import Lock
from typing import Any, Literal

from compilewatch.db.own_process import begin_process

PNG_PIXELS = 2.0
"""Of a picture, per unit of the drawing."""

Kind = Literal["svg", "png", "pdf"]


class DrawingProcess:
    """A process that draws one chart after the other, begun when the first is drawn. Threads may share it.

    It ends when what is written to it ends, so with whoever began it, however that ends.
    """

    def __init__(self) -> None:
        self._one_by_one = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process_id(self) -> int | None:
        """None where there is none."""
        return None if self._process is None else self._process.pid

    def picture(self, kind: Kind, of: Mapping[str, Any] | str) -> bytes:
        """`of`: a chart of Vega-Lite for an SVG, an SVG for a PNG or PDF.

        Raises ValueError with Vega's words where it cannot be drawn.
        """
        request = json.dumps([kind, of]).encode() + b"\n"
        with self._one_by_one:
            # One that was killed, for its memory perhaps, is begun again once.
            reply = self._reply(request) or self._reply(request)
        if not reply:
            raise ValueError("the process that draws charts was ended twice")
        drawn, failed = json.loads(reply)
        if failed is not None:
            raise ValueError(failed)
        return b64decode(drawn)

    def end(self) -> None:
        """Wait until it has ended."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate()

    def _reply(self, request: bytes) -> bytes:
        """Nothing where the process ended without one."""
        process = self._process = self._process or begin_process(__name__)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
            reply = process.stdout.readline()
        except BrokenPipeError:
            reply = b""
        if not reply:
            process.kill()
            self.end()
        return reply


DRAWING = DrawingProcess()
"""That of this process."""
atexit.register(DRAWING.end)


def main() -> None:
    """Draw what the lines of the standard input ask for, a line of the standard output each."""
    import vl_convert

    for line in sys.stdin.buffer:
        kind, of = json.loads(line)
        drawn, failed = b"", None
        try:
            match kind:
                case "svg":
                    drawn = vl_convert.vegalite_to_svg(of).encode()
                case "png":
                    drawn = vl_convert.svg_to_png(of, scale=PNG_PIXELS)
                case "pdf":
                    drawn = vl_convert.svg_to_pdf(of)
        except ValueError as error:
            failed = str(error)
        sys.stdout.write(json.dumps([b64encode(drawn).decode(), failed]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
