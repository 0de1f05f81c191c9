"""`compilewatch demo`: a team's quarter, made of recorded trials, in a dashboard of its own."""

from __future__ import annotations

import importlib.metadata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path

from ulid import ULID

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import CompilewatchError, ConflictError
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.records.identity import version_key
from compilewatch.db.records.people import Annotation, TriageState
from compilewatch.db.records.trial import Trial, parse_trial
from compilewatch.db.service.annotations import ANNOTATIONS
from compilewatch.db.service.recording import record_comparison, triage
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts.gateway import compare
from compilewatch.db.verdicts.sides import resolve_side
from compilewatch.runner.cli.options import ConfigOption, settings_of
from compilewatch.runner.cli.stored.serve import HostOption, PortOption, PublicOption, dashboard

_RECORDED = Path(__file__).parents[4] / "docs" / "measured"
_QUARTER = "cpu-history.jsonl"
_A_RELEASE, _A_NIGHT = timedelta(days=14), timedelta(days=3)
_MOST_NIGHTS = 5
_LAST_NIGHT = date(2026, 11, 28)
"""After what is recorded of the H100, so that the page opens on the CPU."""
_UNTIL_MORNING = timedelta(hours=7)
_OWNER = "Ada (demo)"
_HOW_DATED = (
    "All releases were measured on 2026-11-21 within an hour; the demo dates them as of nights, and leaves "
    "cnn out of the last, which cures it: what 2.9.1 did to it stays open here."
)
_LEFT_OUT = ("2.15.0", "cnn")
"""A release of torch and a model: measured, and left out of the demo, so that something is open there."""


def demo(
    host: HostOption = "127.0.0.1",
    port: PortOption = 8501,
    allow_public: PublicOption = False,
    config: ConfigOption = None,
) -> int:
    """Serve a quarter: six torch releases on a CPU, an H100, a sweep. Example: compilewatch demo

    Nothing is measured: the trials are recorded ones, dated as of nights. They have a database of their own,
    demo.db in the data directory.
    """
    file = settings_of(config, None).data_dir.absolute() / "demo.db"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CompilewatchError(
            f"{file.parent} cannot be made: {error.strerror}.", "Type it in a folder you may write to."
        ) from error
    url = f"sqlite:///{file}"
    with open_database(url, migrate=True) as database:
        fill(database)
    return dashboard(host=host, port=port, allow_public=allow_public, db=url, config=config)


def fill(database: Database) -> None:
    """Store the quarter, with what its people said, unless it is stored already. Raises CompilewatchError."""
    mornings: dict[str, datetime] = {}
    for file in _recorded():
        trials = [parse_trial(line) for line in file.read_bytes().splitlines()]
        if file.name == _QUARTER:
            trials = as_a_quarter(
                trial for trial in trials if (trial.build.torch, trial.workload.name) != _LEFT_OUT
            )
            for trial in sorted(trials, key=lambda trial: trial.started_at):
                mornings[f"torch={trial.build.torch}"] = trial.started_at + _UNTIL_MORNING
        try:
            save_trials(database, trials)
        except ConflictError as error:
            raise CompilewatchError(
                "This database holds the demo of another release.", "Remove demo.db, then start it again."
            ) from error
    _file_regressions(database, mornings)


def as_a_quarter(trials: Iterable[Trial]) -> list[Trial]:
    """Releases that were measured by turns within an hour, as a team takes them up: a fortnight for each, in
    it a night for every trial of a case, the last of them `_LAST_NIGHT`.

    Times of day, figures and conditions are the recorded ones; a night is a run of its own.
    """
    nights: dict[tuple[str, int], list[Trial]] = defaultdict(list)
    counts: dict[tuple[str, str, str], int] = defaultdict(int)
    ordered = sorted(trials, key=lambda trial: trial.started_at)
    for trial in ordered:
        case = (trial.build.torch or "", trial.workload.name, trial.strategy.name)
        nights[case[0], min(counts[case], _MOST_NIGHTS - 1)].append(trial)
        counts[case] += 1
    releases = sorted({torch for torch, _ in nights}, key=version_key)
    quarter = []
    for (torch, number), measured in nights.items():
        fortnights = len(releases) - 1 - releases.index(torch)
        measured_on = ordered[0].started_at.date()
        night = _LAST_NIGHT - fortnights * _A_RELEASE - (_MOST_NIGHTS - 1 - number) * _A_NIGHT
        later = night - measured_on
        quarter += [
            trial.model_copy(
                update={
                    "run_id": measured[0].trial_id,
                    "started_at": trial.started_at + later,
                    "ended_at": trial.ended_at + later if trial.ended_at else None,
                }
            )
            for trial in measured
        ]
    return quarter


_STEPS = (("torch=2.6.0", "torch=2.8.0"), ("torch=2.8.0", "torch=2.9.1"))
_NOTES = {
    TriageState.CONFIRMED: "compilewatch bisect on another CPU: +198 % [+184, +212] between torch 2.6.0 "
    "and 2.7.0; 3 builds of 4 releases measured.",
    TriageState.ACKNOWLEDGED: "Inductor's code calls the exact tanh three times, where 2.6.0 writes it "
    "through exp. 2.15.0 calls it once.",
}
"""Of the first step: what is measured in docs/measured/causes.md and upgrade-history.md."""


def _file_regressions(database: Database, mornings: Mapping[str, datetime]) -> None:
    """What got worse in `_STEPS`, filed as a gate would have filed it then; the first with its bisection, an
    owner and the cause, which is a note at that build too.
    """
    (first, new), _ = [
        (comparison, record_comparison(database, comparison, at=mornings[head]).new)
        for base, head in _STEPS
        for comparison in [compare(database, resolve_side(base, database), resolve_side(head, database))]
    ]
    if not new:
        return
    at = mornings[_STEPS[0][1]]
    for each in new:
        for state, note in _NOTES.items():
            event = TriageEvent(state=state, author=_OWNER, at=at, note=note)
            triage(database, each.regression_id, event)
    for text, side, workload in (
        ("the exact tanh, called three times", first.head, "elementwise"),
        (_HOW_DATED, first.base, None),
    ):
        written = Annotation(
            annotation_id=str(ULID()),
            text=text,
            author=_OWNER,
            written_at=at,
            build_id=side.build_ids[-1],
            machine_id=first.machine_id,
            workload=workload,
        )
        ANNOTATIONS.add(database, written)


def _recorded() -> list[Path]:
    """The histories of a checkout, else those that were installed with the package."""
    histories = sorted(_RECORDED.rglob("*.jsonl"))
    if not histories:
        shipped = importlib.metadata.files("compilewatch") or []
        histories = sorted(Path(str(file.locate())).resolve() for file in shipped if file.suffix == ".jsonl")
    if not histories:
        raise CompilewatchError(
            "The recorded histories are not installed.", "Install the wheel of a release, or use a checkout."
        )
    return histories
