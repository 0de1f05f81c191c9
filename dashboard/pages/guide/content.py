"""What the page Guide says beside its text: where questions are answered, the judge's constants in force."""

from __future__ import annotations

import pandas as pd

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import PAGES, Link, Page
from compilewatch.dashboard.parts.parts import Table, TableColumn
from compilewatch.db.judge.policy import Policy, policy_entries

_COLUMNS = {
    "constant": TableColumn("Constant", pinned=True),
    "value": TableColumn("Value", numeric=True),
    "meaning": TableColumn("Meaning and source", wide=True),
}

QUESTIONS: tuple[tuple[str, Page, str], ...] = (
    ("How much faster is my model, cold and warm?", Page.WORKLOAD, "list cases --preset scenario"),
    ("Which mode should I choose?", Page.MODES, "break-even"),
    ("What does a mode change, cost and gain?", Page.MODES, "list cases --preset strategies"),
    ("How much faster are all models together?", Page.OVERVIEW, "geomean"),
    ("After how many steps does compiling pay off?", Page.BREAK_EVEN, "break-even --steps 10000"),
    ("What does it save in money?", Page.BREAK_EVEN, "break-even --price-per-hour 2"),
    ("When is eager better, as for one call or a small model?", Page.BREAK_EVEN, "break-even --steps 1"),
    ("What do batch size and sequence length change?", Page.SIZES, "largest-batch encoder"),
    ("How does training scale over several GPUs?", Page.SIZES, "list cases --preset scaling"),
    ("Which machine, at which price?", Page.MACHINES, "compare machine=A machine=B --price A=2 --price B=4"),
    ("Why is the first call slow?", Page.COLD_START, "show TRIAL"),
    ("Does compiling only repeated blocks help?", Page.COLD_START, "list cases --preset regional"),
    ("Which part costs the compile time?", Page.TRIAL, "run --workload encoder --submodules"),
    ("How does production start warm?", Page.COLD_START, "precompile encoder"),
    ("Where does the graph break, and what mends it?", Page.TRIAL, "explain encoder"),
    ("Why is it compiled again: dynamic, static or buckets?", Page.TRIAL, "list cases --columns recompiles"),
    ("Is the result still right?", Page.TRIAL, "list cases --columns numerics"),
    ("How large are p95 and p99?", Page.MODES, "run --columns latency_p95,latency_p99"),
    ("How much memory does it need?", Page.WORKLOAD, "list cases --columns peak_memory,memory_ratio"),
    ("What does a training step keep for backward?", Page.TRIAL, "explain mlp-train --memory"),
    ("What can be tried beside modes: export, ONNX, AMP, int8?", Page.MODES, "list strategies"),
    ("How long do our own jobs compile?", Page.COLD_START, "import compilewatch-jobs"),
    ("What did the last upgrade change?", Page.UPGRADE, "compare previous latest"),
    ("Does a release that is coming hurt us?", Page.UPGRADE, "watch --once"),
    ("Did it drift over months?", Page.WORKLOAD, "history -w encoder -s default"),
    (
        "Which release, or which part of the stack, did it?",
        Page.REGRESSIONS,
        "bisect --good torch==2.12.1 --bad torch==2.13.0 -w encoder",
    ),
    ("What got worse, and does a pull request hold its targets?", Page.REGRESSIONS, "gate"),
    ("Is this machine calm enough to measure?", Page.RUNS, "doctor"),
    ("How do I send somebody the evidence?", Page.REPORTS, "report create --link URL"),
)
"""What people ask of torch.compile, the page that answers it for what is stored, and the command."""


def questions() -> str:
    """All of them as a table in Markdown."""
    rows = "".join(
        f"| {question} | [{PAGES[page].title}]({links.href(Link(page=page)) or '.'}) "
        f"| `compilewatch {command}` |\n"
        for question, page, command in QUESTIONS
    )
    return f"| question | page | command |\n|---|---|---|\n{rows}"


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
