"""What a channel is told of recorded regressions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.runner.regressions.notify import events_of, message_of
from tests.qa.numbers.figures import Figure, number, read, tallies
from tests.qa.numbers.of_commands import Commands

_WORDS = {each.word: key for key, each in METRICS.items()}
_LINE = re.compile(r"^(\S+) / (\S+): ([a-z -]+?) ([+\u2212-][\d.,]+ %)")


def of_messages(database: Database, commands: Commands) -> Iterator[Figure]:
    """Every line of every message that would be sent now, the rows that it is about, and the tallies below
    `list regressions`.
    """
    standing = [each.regression for each in standing_regressions(database)]
    # A line ends with the moment of its tally; the title of a message has the rest of it.
    listed = [line.partition(" (as of ")[0] for line in commands.typed("list", "regressions")[1].splitlines()]
    for event in events_of(standing):
        sides = ("+".join(sorted(side.run_ids)) for side in (event[-1].base, event[-1].head))
        title = message_of(event, None).title
        where = (str(event[-1].machine_id), *sides)
        yield from tallies([title], where, "subject of a message")
        mine = [line for line in listed if line.rpartition(": ")[2] and f": {line}" in title]
        yield from tallies(mine, where, "list regressions")
        between = (event[0].base_key, event[0].head_key)
        for each in event:
            case = (each.row.workload, each.row.strategy)
            quantity = f"recorded change of {each.row.metric}"
            yield Figure(quantity, case, between, "regression", number(each.row.change))
            yield Figure(
                "recorded change", case, (each.regression_id,), "regression", number(each.row.change)
            )
        for line in message_of(event, None).lines:
            if (found := _LINE.match(line)) and found[3] in _WORDS:
                quantity = f"recorded change of {_WORDS[found[3]]}"
                yield Figure(quantity, (found[1], found[2]), between, "message", read(found[4]))
