"""Where on this host is a build that was measured before? Compared part by part, without importing torch."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.trial import Build
from compilewatch.db.units import words
from compilewatch.runner.config.settings import THIS_INTERPRETER, BuildSettings, Settings
from compilewatch.runner.device.state import device_facts
from compilewatch.runner.plan.builds import known_builds
from compilewatch.runner.plan.interpreter import answer_of
from compilewatch.runner.worker.step.host import RECORDED_PACKAGES, split_version, torch_variant

# What the runner adds to a build's facts: the C++ compiler the workers will find.

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")
_CANDIDATES = ("g++", "clang++")


def compiler_version(environment: Mapping[str, str]) -> str | None:
    """Name and version of the C++ compiler Inductor would use there, such as "g++ 12.2.0", or None."""
    named = environment.get("CXX")
    path = environment.get("PATH", "")
    for candidate in (named,) if named else _CANDIDATES:
        compiler = shutil.which(candidate, path=path)
        if compiler is not None:
            # A service or a worker may outlive an upgrade of the compiler.
            return _version_of(compiler, Path(compiler).stat().st_mtime_ns)
    return None


@functools.cache
def _version_of(compiler: str, changed_at_ns: int) -> str | None:  # noqa: ARG001
    try:
        answer = subprocess.run(
            [compiler, "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    # "g++ (Debian 12.2.0-14) 12.2.0": the last number of the first line is the compiler's own.
    numbers = _VERSION.findall(answer.partition("\n")[0])
    return f"{PurePath(compiler).name} {numbers[-1]}" if numbers else PurePath(compiler).name


_TIMEOUT_S = 20.0

# torch/version.py is what `torch.__version__` is read from; importing torch itself takes seconds, and the
# metadata of a wheel may lack its +cu130.
_PROBE = """
import importlib.util, json, platform, runpy, sys
from importlib import metadata
def installed(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
found = importlib.util.find_spec("torch")
facts = runpy.run_path(found.submodule_search_locations[0] + "/version.py") if found else {}
sys.stdout.write(json.dumps({
    "version": facts.get("__version__") and str(facts["__version__"]),
    "git": facts.get("git_version"), "cuda": facts.get("cuda"), "hip": facts.get("hip"),
    "triton": installed("triton") or installed("pytorch-triton"),
    "python": platform.python_version(), "os": platform.system() + " " + platform.release(),
    "packages": {name: installed(name) for name in sys.argv[1:] if installed(name)},
}))
"""


class MissingBuildError(CompilewatchError):
    """A build that was measured once is not on this host, or not as it was."""


@dataclass(frozen=True)
class HostStacks:
    """The builds of this host: the known ones and this interpreter, each with what a trial of it records."""

    stacks: tuple[tuple[BuildSettings, Build], ...]

    @classmethod
    def read(cls, settings: Settings) -> HostStacks:
        """Asks every interpreter; one that is gone, broken or has no torch is no build."""
        this = BuildSettings(name=THIS_INTERPRETER, python=Path(sys.executable))
        builds = [*known_builds(settings).values(), this]
        stacks = [(build, _stack_of(str(build.python))) for build in builds]
        return cls(tuple((build, stack) for build, stack in stacks if stack is not None))

    def build_like(self, stack: Build, *, but: Collection[str] = ()) -> BuildSettings:
        """The build every recorded part of which is as in `stack`: torch and its commit, Python, Triton, the
        recorded packages, driver, compiler and kernel, `but` those. Raises MissingBuildError where there is
        none.
        """
        nearest: tuple[str, ...] | None = None
        for build, present in self.stacks:
            if present.torch != stack.torch:
                continue
            different = _different(stack, present, but)
            if not different:
                return build
            if nearest is None or len(different) < len(nearest):
                nearest = different
        reason = "no build here has that torch" if nearest is None else f"here it has {', '.join(nearest)}"
        raise MissingBuildError(
            f"{stack_title(stack)} cannot be measured again on this host: {reason}.",
            "What is suspected stays suspected; make the build again with `compilewatch builds create`.",
        )

    def first_of(self, candidates: Sequence[Build]) -> Build:
        """The first of several builds that is on this host. Raises MissingBuildError of the last one."""
        for stack in candidates[:-1]:
            with contextlib.suppress(MissingBuildError):
                self.build_like(stack)
                return stack
        self.build_like(candidates[-1])
        return candidates[-1]


def stack_title(stack: Build) -> str:
    """What people call a build: "torch 2.12.1 (cpu)"."""
    variant = f" ({stack.torch_variant})" if stack.torch_variant else ""
    return f"torch {stack.torch}{variant}"


def _different(stack: Build, present: Build, but: Collection[str] = ()) -> tuple[str, ...]:
    """What differs between a recorded build and what is there; what was not recorded decides nothing."""
    changes = []
    for part in ("torch_git", "torch_variant", "cuda", "triton", "python", "os", "driver", "compiler"):
        if part in but:
            continue
        then, now = getattr(stack, part), getattr(present, part)
        # A trial on the CPU has no driver, whatever the host has.
        if then is not None and then != now:
            changes.append(f"{words(part)} {now} instead of {then}")
    for name in sorted(stack.packages.keys() | present.packages.keys()):
        then, now = stack.packages.get(name), present.packages.get(name)
        if then != now:
            changes.append(f"{name} {now or 'missing'} instead of {then or 'none'}")
    return tuple(changes)


def torch_facts(python: str) -> dict[str, Any] | None:
    """What an interpreter has installed: `release` and `variant` of its torch and more; None without a torch.

    Raises OSError, subprocess.SubprocessError or ValueError where it does not answer.
    """
    facts: dict[str, Any] = answer_of(python, _PROBE, *RECORDED_PACKAGES, timeout_s=_TIMEOUT_S)
    if not facts["version"]:
        return None
    release, local = split_version(facts["version"])
    return facts | {"release": release, "variant": torch_variant(local, facts["cuda"], facts["hip"])}


def _stack_of(python: str) -> Build | None:
    """What a trial under this interpreter would record, but for its settings; None without a torch."""
    try:
        facts = torch_facts(python)
    except (OSError, subprocess.SubprocessError, ValueError):
        # An interpreter that is gone or broken has no build; `run --build` says what is wrong with it.
        return None
    if facts is None:
        return None
    return Build(
        torch=facts["release"],
        torch_git=(facts["git"] or "")[:12] or None,
        torch_variant=facts["variant"],
        cuda=facts["cuda"] or facts["hip"],
        driver=device_facts("cuda:0").driver,
        triton=facts["triton"],
        python=facts["python"],
        os=facts["os"],
        compiler=compiler_version(os.environ),
        packages=facts["packages"],
    )
