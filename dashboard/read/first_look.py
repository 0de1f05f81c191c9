"""What a page opens on where its link leaves that open: what tells most."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from compilewatch.dashboard.read.data import read_builds, read_choices, read_regressions
from compilewatch.dashboard.read.versions import cached
from compilewatch.db.queries.selection import Filters


class FirstMachine(NamedTuple):
    """A machine, and why it is shown in a word or three."""

    machine_id: str
    why: str


@cached
def first_machine() -> FirstMachine | None:
    """The machine with most cases in open regressions that no later build took back, else the newest with two
    builds, else the newest; None where there is none.
    """
    machines = read_choices().newest_machines
    cases = {
        (each.regression.machine_id, each.regression.row.case.ids)
        for each in read_regressions()
        if each.is_open
    }
    waiting = Counter(machine for machine, _ in cases if machine in machines)
    if waiting:
        return FirstMachine(max(machines, key=lambda each: waiting[each]), "has open regressions")
    for place, machine in enumerate(machines):
        here = Filters(machines=(machine,))
        if len(read_builds(here, only_measured=True) or read_builds(here)) > 1:
            return FirstMachine(machine, "newest" if place == 0 else "newest with two builds")
    return FirstMachine(machines[0], "newest") if machines else None
