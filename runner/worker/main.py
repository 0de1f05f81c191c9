"""Entry of the measured process: `<interpreter> -I main.py RECORD_FD` with one JSON specification line on
stdin.

Runs under any interpreter that has a torch, so nothing of compilewatch or its dependencies may be expected
there. Leaves with `os._exit` once the record is out: a regular exit costs 1 to 2 s after a compilation.
"""

import time

_ENTERED_NS = time.monotonic_ns()

import faulthandler  # noqa: E402
import importlib.util  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

_PACKAGE = Path(__file__).absolute().parents[2]


def _provide_package() -> None:
    """Make `compilewatch` importable and nothing else.

    The directory that holds the package is not put on `sys.path`: it may be another environment's
    site-packages, whose torch would then shadow the one that is to be measured.
    """
    spec = importlib.util.spec_from_file_location(
        "compilewatch", _PACKAGE / "__init__.py", submodule_search_locations=[str(_PACKAGE)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["compilewatch"] = module
    spec.loader.exec_module(module)


def main() -> None:
    """Measure what standard input says, and leave the record in the pipe named by the first argument."""
    faulthandler.enable()
    # At the deadline the runner sends SIGTERM: the stacks go to the log, then the default action ends us.
    faulthandler.register(signal.SIGTERM, all_threads=True, chain=True)
    _provide_package()
    from compilewatch.runner.worker.step.messages import Channel, Specification
    from compilewatch.runner.worker.trial import run

    channel = Channel(int(sys.argv[1]))
    specification = Specification.from_line(sys.stdin.buffer.readline())
    run(specification, channel, entered_ns=_ENTERED_NS)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


main()
