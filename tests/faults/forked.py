"""Where processes of the rig come from: forked of one that has imported all, in hundredths of a second."""

from __future__ import annotations

import multiprocessing

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "tests.faults.runner_process",
        "tests.faults.service_process",
        "tests.faults.dashboard_process",
    ]
)
