"""What to say of a trial whose id is stored with other content."""

from __future__ import annotations

from db.errors import ConflictError, one_line
from db.records.trial import SourceKind, Trial


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
    names = _names(stored)
    changed = [name for name, value in _names(trial).items() if value != names[name]]
    if changed and _renamed(trial, stored) == stored:
        changes = " and ".join(f"{name} {_shown(names[name])}" for name in changed)
        return ConflictError(
            f"{subject} was imported before, with {changes}.",
            f"Nothing was changed: it is stored already. Give {_options(changed)} as before, or leave it.",
        )
    return ConflictError(
        f"{subject} was imported before, with different content in {_listed(fields)} "
        f"(trial {trial.trial_id}).",
        "Nothing was changed. An earlier import had half of the pair, or read the file differently. "
        "Import the files into a new database.",
    )


def _names(trial: Trial) -> dict[str, str | None]:
    """What an import is called: no part of its id."""
    return {"machine": trial.machine.name, "label": trial.build.label or trial.label}


def _renamed(trial: Trial, stored: Trial) -> Trial:
    """`trial` under the names of `stored`."""
    names = {
        "label": stored.label,
        "machine": trial.machine.model_copy(update={"name": stored.machine.name}),
        "build": trial.build.model_copy(update={"label": stored.build.label}),
    }
    return trial.model_copy(update=names)


def _shown(name: str | None) -> str:
    return "not named" if name is None else one_line(name)


def _options(names: list[str]) -> str:
    return " and ".join(f"--{name}" for name in names)


def _listed(fields: list[str]) -> str:
    return ", ".join(fields).replace("schema_", "schema")
