"""What a host found out for an issue in public: a short script, and what it printed under each build."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from compilewatch.db.records.fields import Finite, Flag, Name, Record, Text, UtcDatetime
from compilewatch.db.records.ids import identity

_Script = Annotated[str, Field(max_length=65_536)]


class ScriptRun(Record):
    """One run of the script under a build. Times in nanoseconds."""

    build_id: Name
    """Whose release of torch it was."""
    torch: Name
    """That release."""
    eager_ns: Finite | None = None
    """Median of eager; null where it did not end well."""
    compiled_ns: Finite | None = None
    """Median of the compiled side; null where it did not end well."""
    problem: Text | None = None
    """Why there are no times: not installed on that host, or how the script failed."""


class IssueScript(Record):
    """The script of one case between two builds. It is shown, never run: whoever runs it makes it anew."""

    issue_id: Name
    made_at: UtcDatetime
    script: _Script | None = None
    """The script; null where none can be made or its code is private."""
    is_private: Flag = False
    """Whether it ran and is kept to its host."""
    problem: Text | None = None
    """Why there is none."""
    runs: list[ScriptRun] = Field(default=[])
    """The base first."""


def issue_id_of(
    machine_id: str, workload_id: str, strategy_id: str, base_build_id: str | None, head_build_id: str
) -> str:
    """The id of a case between two builds on a machine; without a base of the head alone."""
    return identity(
        {
            "machine": machine_id,
            "workload": workload_id,
            "strategy": strategy_id,
            "base": base_build_id,
            "head": head_build_id,
        }
    )
