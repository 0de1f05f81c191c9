"""`compilewatch warm-up` and `caches`: what a recorded job compiled while requests waited, and where its
caches missed.
"""

from __future__ import annotations

from typing import Annotated

import typer

from compilewatch.db.cause.after_ready import warm_up_script
from compilewatch.db.cause.caches import host_texts, hosts_of
from compilewatch.db.errors import NotFoundError, one_line
from compilewatch.db.queries.case_parts import newest_job_caches
from compilewatch.db.queries.named import require_stored
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_record, trials_frame
from compilewatch.db.records.identity import JOB_SOURCE
from compilewatch.db.units import plural
from compilewatch.runner.cli.options import ConfigOption, DatabaseOption, database_of, settings_of

_MOST_HOSTS = 1_000


def warm_up(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The name of a recorded job.")],
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """A script that calls what a job compiled after it was ready, of all processes of its newest run.
    Example: compilewatch warm-up ranker-serve > warm_up.py
    """
    with database_of(settings_of(config, db), migrate=False) as database:
        of_job = Filters(workloads=(job,))
        require_stored(database, of_job)
        frame = trials_frame(database, of_job)
        recorded = frame[frame["source_name"] == JOB_SOURCE].sort_values(["started_at", "trial_id"])
        if recorded.empty:
            raise NotFoundError(
                f"{job} is no job that was recorded.",
                f"Run `python -m compilewatch.record --name {job} -- PROGRAM.py` and import its folder.",
            )
        newest = recorded[recorded["run_id"] == recorded["run_id"].iloc[-1]]
        trials = [trial_record(database, trial_id) for trial_id in newest["trial_id"]]
    known = [each.compiler.after_ready for each in trials if each.compiler]
    facts = [each for each in known if each is not None]
    if not facts:
        raise NotFoundError(
            f"{job} did not say when it was ready.",
            "Call compilewatch.record.ready() once it is warm, or record it with --ready-after STEPS.",
        )
    compiled = sum(each.count for each in facts)
    if compiled == 0:
        typer.echo(f"# {one_line(job)} compiled nothing after ready.")
        return 0
    script = warm_up_script(job, facts)
    if script is None:
        raise NotFoundError(
            f"{job} had {plural(compiled, 'compilation')} after ready, and none has inputs to call with.",
            f"See compilewatch show {trials[-1].trial_id}.",
        )
    typer.echo(script, nl=False)
    return 0


def caches(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The name of a recorded job.")],
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """What the caches of each host had for its newest run of a job, and by what hosts differ.
    Example: compilewatch caches ranker-serve
    """
    with database_of(settings_of(config, db), migrate=False) as database:
        require_stored(database, Filters(workloads=(job,)))
        hosts = hosts_of(newest_job_caches(database, _MOST_HOSTS, job).get(job, ()))
    if not hosts:
        raise NotFoundError(
            f"{job} is no recorded job that asked the compiler's caches.",
            f"Run `python -m compilewatch.record --name {job} -- PROGRAM.py` and import its folder.",
        )
    typer.echo("\n".join(host_texts(hosts)))
    return 0
