"""The accuracy that PyTorch's CI expects, as its lists have it in `benchmarks/dynamo/ci_expected_accuracy`.

Shape: update_expected.py beside them: `name,accuracy,graph_breaks`, a model a row in the order of their
names, three empty lines between rows, which keep two changes of one list from a conflict.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import BinaryIO

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.interchange.write.oss_v3_export import accuracy_of
from compilewatch.db.queries.trial_export import TrialBatch

_HEADER = ("name", "accuracy", "graph_breaks")
_BETWEEN_ROWS = "\n\n\n\n"
_SHOWN_NAMES = 5


def write(batches: Iterable[TrialBatch], output: BinaryIO, notes: list[str]) -> int:
    """The newest trial of each workload as a row; returns how many.

    Raises CompilewatchError where they are of several strategies, or none has a verdict on its accuracy.
    `notes` takes in what a list should not be changed by: models of which nothing was compiled.
    """
    rows: dict[str, tuple[str, str, int | None]] = {}
    strategies: set[str] = set()
    uncompiled: set[str] = set()
    trials = 0
    for batch in batches:
        columns, trials = batch.columns, trials + len(batch.stacks)
        told = zip(
            batch.stacks,
            columns["failure_kind"],
            columns["failure_message"],
            columns["numerics_status"],
            columns["graphs"],
            columns["graph_breaks"],
            strict=True,
        )
        for stack, failure_kind, message, status, graphs, breaks in told:
            accuracy = accuracy_of(failure_kind, status, message)
            if accuracy is None:
                continue
            name = stack.workload.name
            strategies.add(stack.strategy.name)
            rows[name] = (name, accuracy, breaks)
            (uncompiled.add if graphs == 0 else uncompiled.discard)(name)
    if len(strategies) > 1:
        named = ", ".join(sorted(strategies)[:_SHOWN_NAMES])
        raise CompilewatchError(
            f"A list of expected accuracy is of one strategy, and these trials are of {named}.",
            "Name it with --strategy.",
        )
    if trials and not rows:
        raise CompilewatchError(
            "None of these trials says whether its result is right.", "Import the accuracy files too."
        )
    if uncompiled:
        named = ", ".join(sorted(uncompiled)[:_SHOWN_NAMES])
        notes.append(f"0 graphs were compiled of {named}: look before the list is changed by it.")
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=_BETWEEN_ROWS).writerows(
        [_HEADER, *(rows[name] for name in sorted(rows))]
    )
    output.write(text.getvalue().encode())
    return len(rows)
