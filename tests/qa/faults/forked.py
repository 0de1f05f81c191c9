"""Where processes of the rig come from: forked of one that has imported all, in hundredths of a second."""

from __future__ import annotations

import multiprocessing
from multiprocessing.util import get_temp_dir

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "tests.qa.faults.runner_process",
        "tests.qa.faults.service_process",
        "tests.qa.faults.writing_commands",
    ]
)
# Its socket lies there: made now, before a test points temporary files to a place of its own.
get_temp_dir()
