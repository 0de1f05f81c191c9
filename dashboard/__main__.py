"""`python -m compilewatch.dashboard`: serve the database named in COMPILEWATCH_DATABASE_URL."""

from __future__ import annotations

import argparse
import logging
import sys

from compilewatch.db.errors import CompilewatchError, OneLineRecord


def _log_to_standard_error() -> None:
    # uvicorn and Streamlit bring formatters of their own.
    logging.setLogRecordFactory(OneLineRecord)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    # Who signed in, and who was refused, is worth a line.
    logging.getLogger("compilewatch").setLevel(logging.INFO)


def main() -> int:
    parser = argparse.ArgumentParser(prog="compilewatch dashboard", description="Serve the dashboard.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--allow-public", action="store_true")
    parser.add_argument("--base-path", default="")
    arguments = parser.parse_args()
    _log_to_standard_error()
    try:
        from compilewatch.dashboard.read.database import database_url
        from compilewatch.dashboard.server.server import serve

        serve(
            database_url(),
            arguments.host,
            arguments.port,
            allow_public=arguments.allow_public,
            base_path=arguments.base_path,
        )
    except KeyboardInterrupt:
        # The server has ended in good order before it passes this on.
        return 0
    except CompilewatchError as error:
        sys.stderr.write(f"compilewatch: {error.message}\n  {error.next_step}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
