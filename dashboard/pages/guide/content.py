"""What the page Guide says beside its text: the judge's constants in force."""

from __future__ import annotations

import pandas as pd

from compilewatch.dashboard.parts.parts import Table, TableColumn
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.policy_entries import policy_entries

_COLUMNS = {
    "constant": TableColumn("Constant", pinned=True),
    "value": TableColumn("Value", numeric=True),
    "meaning": TableColumn("Meaning and source", wide=True),
}


def policy_part(policy: Policy) -> Table:
    """Every constant by which verdicts are made."""
    entries = policy_entries(policy)
    return Table(
        "policy",
        "Every constant of the judge with its value, meaning and source",
        pd.DataFrame([(entry.name, entry.value, entry.meaning) for entry in entries], columns=list(_COLUMNS)),
        _COLUMNS,
        title="Policy in force",
        note="When a change counts as real. Set it under [policy] in the configuration.",
    )
