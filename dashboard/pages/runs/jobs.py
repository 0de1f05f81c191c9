"""What the page Runs says of jobs in production that say how they are while they run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pandas as pd

from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import Lines, Part, TableColumn, informative
from compilewatch.db.cause.running_jobs import compiled_sentence, job_rows, jobs_of, waiting_sentences
from compilewatch.db.records.hosts import JobState

JOBS = "runs-jobs"
_JOBS = {
    "job": TableColumn("Job", pinned=True),
    **parts.texts({"host": "Host"}),
    "rank": TableColumn("Rank", kind="number"),
    **parts.texts({"state": "State", "compiling": "Compiles now"}),
    **parts.quantities("ns", {"since": "For"}),
    **parts.quantities("count", {"compiles": "Compiled after ready"}),
    **parts.quantities("ns", {"cost": "Took"}),
    "newest": TableColumn("Newest compilation after ready", wide=True),
    **parts.hidden(
        {
            **parts.quantities(
                "count",
                {
                    "steps": "Steps",
                    "hits": "Cache hits",
                    "misses": "Misses",
                    "bypasses": "Bypasses",
                    "dropped": "Events not sent",
                },
            ),
            "seen_at": TableColumn("Last heard of (UTC)", kind="moment"),
        }
    ),
}


def running_jobs(states: Sequence[JobState], now: datetime) -> tuple[Part, ...]:
    """Which job compiles while somebody waits, a line each, and a row for each process; nothing without such
    a job.
    """
    rows = pd.DataFrame(job_rows(states, now))
    said = tuple(
        f"{job}: {sentence}."
        for job, processes in jobs_of(states).items()
        for sentence in (*waiting_sentences(processes, now), compiled_sentence(processes))
        if sentence
    )
    alt = "Processes of running jobs with what they compile now and compiled after they were ready"
    shown = informative(_JOBS, rows)
    lines = (Lines(said, key="runs-jobs-said"),) if said else ()
    return (*lines, *parts.table(JOBS, alt, rows, shown, title="Jobs in production"))
