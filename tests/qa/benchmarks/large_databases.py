"""The large histories as databases that outlive a run of the benchmarks: writing them takes minutes.

`COMPILEWATCH_BENCH_TRIALS=10000,100000,1000000` chooses the sizes (10,000 where it is not set),
`COMPILEWATCH_BENCH_DIR` where SQLite files lie, `COMPILEWATCH_TEST_POSTGRES_URL` the PostgreSQL server that
keeps its databases; a server started for the benchmark is gone with them afterwards.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from tests.qa.benchmarks.large_history import is_written, write_history

SIZES_VARIABLE, FOLDER_VARIABLE = "COMPILEWATCH_BENCH_TRIALS", "COMPILEWATCH_BENCH_DIR"
# Asked for here, before a test session has a temporary folder of its own that goes with it.
_LASTING = Path(tempfile.gettempdir()) / "compilewatch-bench"


def sizes() -> list[int]:
    return [int(size) for size in os.environ.get(SIZES_VARIABLE, "10000").split(",")]


def sqlite_history(trials: int) -> str:
    """The address of the SQLite database with that many trials, written if it is not there."""
    folder = Path(os.environ.get(FOLDER_VARIABLE, _LASTING))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"history-{trials}.db"
    url = f"sqlite:///{path}"
    if not (path.exists() and is_written(url)):
        for part in folder.glob(f"{path.name}*"):
            part.unlink()
        _write(url, trials)
    return url


def postgresql_history(server_url: str, trials: int) -> str:
    """The same on a PostgreSQL server where databases can be created."""
    import psycopg

    name = f"compilewatch_bench_{trials}"
    base, _, query = server_url.partition("?")
    url = f"{base.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")
    with psycopg.connect(server_url, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
        if known is not None and is_written(url):
            return url
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f'CREATE DATABASE {name} TEMPLATE template0 ENCODING "UTF8"')
    _write(url, trials)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    return url


def _write(url: str, trials: int) -> None:
    started = time.perf_counter()
    write_history(url, trials)
    print(f"\n{trials:,} trials written to {url.partition(':')[0]} in {time.perf_counter() - started:.0f} s")
