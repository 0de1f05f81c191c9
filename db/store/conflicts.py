"""What to say of a trial whose id is stored with other content."""

from __future__ import annotations

from compilewatch.db.errors import ConflictError, one_line
from compilewatch.db.records.trial import SourceKind, Trial


def conflict(trial: Trial, stored: Trial) -> ConflictError | None:
    """The error for `trial`, whose id `stored` has already; None where both are the same."""
    fields = [name for name in Trial.model_fields if getattr(trial, name) != getattr(stored, name)]
    if not fields:
        return None
    if trial.source.kind is SourceKind.IMPORTED and stored.source.kind is SourceKind.IMPORTED:
        return _of_imports(trial, stored, fields)
    return ConflictError(
        f"Trial {trial.trial_id} of run {trial.run_id} is known already, from run {stored.run_id}, "
        f"with different content in {_listed(fields)}.",
        "Nothing was changed. Give the second one an id of its own if it is another trial.",
    )


def _of_imports(trial: Trial, stored: Trial, fields: list[str]) -> ConflictError:
    """The id of an import follows from what its file says, so that nobody can give it another one."""
    subject = f"{one_line(stored.workload.name)} with {one_line(stored.strategy.name)}"
    machine = trial.machine.model_copy(update={"name": stored.machine.name})
    if trial.model_copy(update={"machine": machine}) == stored:
        return ConflictError(
            f"{subject} was imported before, with machine {one_line(stored.machine.name)}.",
            "Nothing was changed: it is stored already. Give --machine as before, or leave it.",
        )
    return ConflictError(
        f"{subject} was imported before, with different content in {_listed(fields)} "
        f"(trial {trial.trial_id}).",
        "Nothing was changed. An earlier import had half of the pair, or read the file differently. "
        "Give --replace to have the trials of this one instead.",
    )


def _listed(fields: list[str]) -> str:
    return ", ".join(fields).replace("schema_", "schema")
