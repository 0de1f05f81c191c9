"""`compilewatch precompile`: caches for production, and the script that makes and loads them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from compilewatch.db.errors import CompilewatchError, ConfigError, one_line
from compilewatch.db.records.strategies import not_applicable_reason
from compilewatch.db.records.trial import CacheState, Strategy, StrategyKind
from compilewatch.db.units import plural, size
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.catalog.targets import split_target
from compilewatch.runner.cli.options import (
    ConfigOption,
    DeviceOption,
    JsonOption,
    WorkloadArgument,
    settings_of,
)
from compilewatch.runner.config.scrub import scrub
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.lock import default_lock_dir, device_lock
from compilewatch.runner.device.state import device_facts
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.progress import UnderWay, waiting_lines
from compilewatch.runner.plan.bundle import bundle_of, literal
from compilewatch.runner.plan.cancellation import run_child
from compilewatch.runner.plan.interpreter import BINDING, check_interpreter, worker_environment
from compilewatch.runner.plan.plan import case_spec
from compilewatch.runner.plan.selection import check_packages, resolve_device, select


def precompile(
    workload: WorkloadArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where to write; made if need be.")
    ],
    strategy: Annotated[str, typer.Option("--strategy", "-s", metavar="S", help="By name.")] = "default",
    device: DeviceOption = "auto",
    python: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Compile under this interpreter, with any torch.")
    ] = None,
    json_: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Compile a workload for production: its caches, and the script that loads them.

    Example: compilewatch precompile encoder -s default -o caches/encoder

    A second process loads what the first one wrote. Exits 1 where it had to compile all the same. The
    environment is that of a trial, with the TORCHINDUCTOR_, TORCHDYNAMO_ and TRITON_ variables of this one.
    """
    settings = settings_of(config, None)
    # A name typed wrongly is said at once, before an interpreter spends seconds importing torch.
    select(settings, workloads=(workload,), strategies=(strategy,))
    with UnderWay("asking the interpreter for its torch"):
        facts = check_interpreter(str(python or sys.executable))
    resolved = resolve_device(settings, [facts], device)
    definition, wanted = _case_of(settings, workload, strategy, resolved)
    if python is None:
        check_packages([definition])
    _write(_directory_files(definition, wanted, settings, resolved), output)
    device_id, what = device_facts(resolved).uuid or resolved, f"{definition.name} / {wanted.name}"
    with (
        UnderWay(f"compiling {what} on {resolved}, torch {facts.torch}"),
        device_lock(device_id, default_lock_dir(), what=what, on_wait=waiting_lines()),
    ):
        cold = _run(facts.path, output, settings)
        loaded = _run(facts.path, output, settings, "--warm-up")
    valid_for = json.loads((output / VALID_FOR).read_text(encoding="utf-8"))["surroundings"]
    hit = bool(loaded["hits"]) and not (loaded["compiled"] or loaded["built"])
    if json_:
        print_document(
            {
                "schema": "compilewatch.precompiled/1",
                "workload": definition.name,
                "strategy": wanted.name,
                "directory": str(output),
                "cold": cold,
                "loaded": loaded,
                "all_from_cache": hit,
                "valid_for": valid_for,
            }
        )
    else:
        _print(output, cold, loaded, valid_for, task=definition.task)
    return 0 if hit else 1


# What a process sets to be as the one that compiled, by its name in `valid_for.json`.
_SETTINGS = {
    "matmul precision": 'torch.set_float32_matmul_precision("{}")',
    "threads": "torch.set_num_threads({})",
}


def _write(files: dict[str, str], directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()) and not (directory / SCRIPT).exists():
            raise ConfigError(f"{directory} holds other files.", "Name a directory of its own.")
        for name in (VALID_FOR, CACHES):
            (directory / name).unlink(missing_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CompilewatchError(
            f"{directory} cannot be written: {error.strerror}.", "Name a directory you may write to."
        ) from error


def _run(python: str, directory: Path, settings: Settings, *options: str) -> dict[str, Any]:
    """What the script of `directory` reports, run in a fresh process with caches of its own."""
    with tempfile.TemporaryDirectory(prefix="compilewatch-precompile-") as scratch:
        environment = worker_environment(Path(scratch), threads=settings.threads, extra=_compiler_variables())
        # Nothing is timed step by step, and what compiles is to use every core.
        environment = {name: value for name, value in environment.items() if name not in BINDING}
        command = [python, str((directory / SCRIPT).absolute()), "--json", *options]
        try:
            finished = run_child(command, env=environment, timeout_s=settings.run.timeout_s)
        except subprocess.TimeoutExpired as error:
            raise CompilewatchError(
                f"{SCRIPT} did not end within {settings.run.timeout_s:g} s.", "Raise `timeout_s` in [run]."
            ) from error
    try:
        report: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = one_line(scrub(finished.stderr.strip().splitlines()[-1])) if finished.stderr.strip() else ""
        raise CompilewatchError(
            f"{SCRIPT} ended with code {finished.returncode}: {last or 'it printed nothing'}",
            f"Run it to see all: {python} {directory / SCRIPT} {' '.join(options)}".rstrip(),
        ) from None
    return report


def _compiler_variables() -> dict[str, str]:
    """Those of this process that change what is compiled; without the directories of its caches."""
    prefixes = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TRITON_")
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(prefixes) and not name.endswith("_CACHE_DIR")
    }


def _print(
    directory: Path, cold: dict[str, Any], loaded: dict[str, Any], valid_for: dict[str, str], *, task: str
) -> None:
    print(f"From empty caches: first step {cold['first_step_s']:.3g} s, {_compiled(cold)}.")
    print(
        f"A second process, caches loaded: first step {loaded['first_step_s']:.3g} s, "
        f"{plural(loaded['hits'], 'graph')} from the cache, {_compiled(loaded)}."
    )
    print(f"{directory / CACHES} ({size((directory / CACHES).stat().st_size)}) is valid for:")
    for name, value in valid_for.items():
        print(f"  {name}: {value}")
    print(f"In production, with {directory} on the path ({LOADER}), before anything is compiled:")
    lines = ["import torch", "from load_caches import load_caches"]
    lines += [step.format(valid_for[name]) for name, step in _SETTINGS.items() if name in valid_for]
    print("\n".join(f"  {line}" for line in (*lines, "load_caches()")))
    print(f"Before a roll-out, on each host: python {directory / LOADER}")
    variables = [f"{name}={value}" for name, value in valid_for.items() if name.isupper() and "_" in name]
    if variables:
        print(f"Start the process with {' '.join(variables)}, as here.")
    if task != "training":
        print("Call the model under torch.no_grad(), as here: with gradients it is another graph.")


def _compiled(report: dict[str, Any]) -> str:
    return f"{plural(report['compiled'], 'graph')} compiled, {report['built']} C++ libraries built"


SCRIPT, LOADER = "precompile.py", "load_caches.py"
CACHES, VALID_FOR = "caches.zip", "valid_for.json"
"""What the script writes beside itself, and the loader reads there."""

_LOADER = Path(__file__).parents[2] / "worker" / "compiler" / LOADER


def _case_of(
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


def _directory_files(
    definition: WorkloadDefinition, strategy: Strategy, settings: Settings, device: str
) -> dict[str, str]:
    """The text of each file to write, by name: the script and what a production program imports.

    They import torch and what the workload itself imports from installed packages, nothing of compilewatch.
    Raises BundleError where the workload's own modules cannot be carried.
    """
    bundle = bundle_of(definition.target, definition.path)
    bundle.add("compilewatch.runner.worker.compiler.scripts", "precompile")
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
