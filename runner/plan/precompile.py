"""A workload and a strategy -> a directory that compiles them elsewhere and loads what was compiled."""

from __future__ import annotations

from pathlib import Path

from compilewatch.db.errors import ConfigError
from compilewatch.db.records.strategies import not_applicable_reason
from compilewatch.db.records.trial import CacheState, Strategy, StrategyKind
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.catalog.targets import split_target
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.bundle import bundle_of, literal
from compilewatch.runner.plan.plan import case_spec
from compilewatch.runner.plan.selection import select

SCRIPT, LOADER = "precompile.py", "load_caches.py"
CACHES, VALID_FOR = "caches.zip", "valid_for.json"
"""What the script writes beside itself, and the loader reads there."""

_LOADER = Path(__file__).parents[1] / "worker" / "compiler" / LOADER


def case_of(
    settings: Settings, workload: str, strategy: str, device: str
) -> tuple[WorkloadDefinition, Strategy]:
    """What is to be compiled on `device`. Raises ConfigError where it leaves no cache to carry."""
    chosen = select(settings, workloads=(workload,), strategies=(strategy,))
    definition, wanted = chosen.workloads[0], chosen.strategies[0]
    if len(chosen.workloads) > 1:
        raise ConfigError(
            f"{workload} stands for several workloads.", f"Name one, such as {definition.name}."
        )
    kind, cache = wanted.kind, wanted.cache
    if kind is not StrategyKind.COMPILE or wanted.backend != "inductor" or cache is CacheState.WARM:
        raise ConfigError(
            f"{wanted.name} leaves no caches of Inductor to carry.", "Name a mode of torch.compile: default."
        )
    reason = not_applicable_reason(wanted, device.partition(":")[0])
    if reason is not None:
        raise ConfigError(f"{wanted.name} means nothing on {device}: {reason}.", "Use -s default.")
    return definition, wanted


def directory_files(
    definition: WorkloadDefinition, strategy: Strategy, settings: Settings, device: str
) -> dict[str, str]:
    """The text of each file to write, by name: the script and what a production program imports.

    They import torch and what the workload itself imports from installed packages, nothing of compilewatch.
    Raises BundleError where the workload's own modules cannot be carried.
    """
    bundle = bundle_of(definition.target, definition.path)
    bundle.add("compilewatch.runner.worker.compiler.precompiling", "precompile")
    script = _SCRIPT.format(
        what=f"{definition.name}, {strategy.name}",
        imports=bundle.imports(),
        spec=literal(case_spec(definition, strategy, device, settings)),
        body=bundle.body(),
        function=split_target(definition.target)[1],
    )
    return {SCRIPT: script, LOADER: _LOADER.read_text(encoding="utf-8")}


_SCRIPT = '''"""Compile {what}, and write the caches beside this file.

python precompile.py              compile here, from empty caches
python precompile.py --warm-up    load the caches and call twice; exits 1 where something was compiled again
"""

from __future__ import annotations

import os
import sys
import tempfile

# Read when torch is imported. What is compiled here goes into empty caches, so that all of it is written.
EMPTY = tempfile.TemporaryDirectory(prefix="precompile-")
for place in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
    if "--warm-up" not in sys.argv or place not in os.environ:
        os.environ[place] = os.path.join(EMPTY.name, place)

{imports}

SPEC = {spec}


{body}


if __name__ == "__main__":
    sys.exit(precompile(SPEC, {function}, Path(__file__).parent))
'''
