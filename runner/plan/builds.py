"""Environments with other releases of torch, made with venv and pip under the data directory."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TextIO

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ConfigDict, ValidationError

from compilewatch.db.errors import CompilewatchError, NotFoundError, did_you_mean, one_line
from compilewatch.runner.config.scrub import scrub
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan.cancellation import run_child
from compilewatch.runner.plan.interpreter import MIN_TORCH, InterpreterFacts, check_interpreter

# venv and pip as child processes: their progress is shown, their failure becomes one sentence.

_TIMEOUT_S = 3600.0
TRITON = "triton"
_ALONE = ("--no-deps",)
# pip would otherwise install somewhere else than into the environment it runs in, or refuse to.
_UNWANTED = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_REQUIRE_VIRTUALENV")
_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")
_AVAILABLE = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
_NO_DISTRIBUTION = re.compile(r"No matching distribution found for (\S+)")


class BuildError(CompilewatchError):
    """A build cannot be created or removed."""


def make_environment(base: Path, directory: Path) -> None:
    """An empty virtual environment with pip at `directory`, of the Python `base`."""
    finished = _run([str(base), "-I", "-m", "venv", str(directory)])
    if finished.returncode:
        missing = "ensurepip" in finished.stderr
        raise BuildError(
            f"{base} cannot make virtual environments: {_last_line(finished.stderr)}.",
            "Install its venv module (Debian: apt-get install python3-venv), or name another Python."
            if missing
            else "Name another Python with --python, or free space in data_dir.",
        )


def check_offered(python: Path, requirements: Sequence[str], *, index_url: str | None) -> None:
    """Raises BuildError for a requirement that names versions of which the pip of `python` finds none."""
    for requirement in map(Requirement, requirements):
        if not requirement.specifier:
            continue
        early = bool(requirement.specifier.prereleases)
        offered = offered_versions(python, requirement.name, index_url=index_url, early=early)
        if not any(requirement.specifier.contains(version, prereleases=True) for version in offered):
            raise _not_offered(str(requirement), offered[::-1])


def offered_versions(python: Path, name: str, *, index_url: str | None, early: bool = False) -> list[str]:
    """Every version of a package that the pip of `python` finds, newest first; candidates only with `early`.

    Raises BuildError where pip cannot say.
    """
    index = [] if index_url is None else ["--index-url", index_url]
    command = [str(python), "-I", "-m", "pip", "index", "versions", "--no-input"]
    command += ["--disable-pip-version-check", *(["--pre"] if early else []), *index, name]
    finished = _run(command, stdout=subprocess.PIPE)
    available = _AVAILABLE.search(finished.stdout)
    if available is None and not _NO_DISTRIBUTION.search(finished.stderr):
        raise _explained(finished.stderr, [name])
    return [text.strip() for text in available.group(1).split(",")] if available else []


def distinct_releases(offered: Iterable[str]) -> list[Version]:
    """Each release once, oldest first; "2.13.0+cpu" is a build of 2.13.0."""
    versions = set()
    for text in offered:
        try:
            versions.add(Version(Version(text).public))
        except InvalidVersion:
            continue
    return sorted(versions)


def install(
    python: Path, requirements: Sequence[str], *, index_url: str | None, scratch: Path | None = None
) -> None:
    """Have the pip of `python` install `requirements`; its progress goes to standard error on a terminal.

    With `scratch`, a directory, pip writes nowhere else but there and into the environment.
    """
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    index = [] if index_url is None else ["--index-url", index_url]
    command = [str(python), "-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    options = [] if scratch is None else ["--no-cache-dir"]
    places = {} if scratch is None else {"TMPDIR": str(scratch)}
    # torch pins one Triton, and pip would refuse every other.
    tied = [each for each in requirements if Requirement(each).name == TRITON]
    for dependencies, wanted in (([], [each for each in requirements if each not in tied]), (_ALONE, tied)):
        if wanted:
            whole = [*command, *quiet, *index, *options, *dependencies, *wanted]
            finished = _run(whole, stdout=sys.stderr, more=places)
            if finished.returncode:
                raise _explained(finished.stderr, wanted)


def _run(
    command: Sequence[str],
    *,
    stdout: int | TextIO = subprocess.DEVNULL,
    more: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") and name not in (*_UNWANTED, "VIRTUAL_ENV")
    }
    try:
        return run_child(command, env={**environment, **more}, timeout_s=_TIMEOUT_S, stdout=stdout)
    except OSError as error:
        raise BuildError(
            f"The interpreter {command[0]} cannot be started: {error.strerror}.", "Name another Python."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise BuildError(
            f"{Path(command[0]).name} did not end within {_TIMEOUT_S / 60:g} minutes.",
            "Check the network, then create the build again.",
        ) from error


def _explained(stderr: str, requirements: Sequence[str]) -> BuildError:
    """pip's complaint in one sentence. Addresses of package indexes may hold passwords and are left out."""
    nothing = _NO_DISTRIBUTION.search(stderr)
    if nothing is not None:
        versions = _VERSIONS.search(stderr)
        offered = [text.strip() for text in versions.group(1).split(",")] if versions else []
        return _not_offered(nothing.group(1), [] if offered == ["none"] else offered)
    if "No space left on device" in stderr:
        return BuildError(
            "The disk is full.",
            "A build with CUDA needs 6 GB, and pip as much again in TMPDIR; set data_dir to another disk.",
        )
    return BuildError(
        f"pip could not install {', '.join(requirements)}: {_last_line(stderr)}.",
        "Try that `pip install` by hand.",
    )


def _not_offered(requirement: str, offered: Sequence[str]) -> BuildError:
    """`offered` are all versions, the newest last."""
    newest = ", ".join(offered[-5:])
    return BuildError(
        f"pip finds no {one_line(requirement)} for this Python and platform.",
        f"It offers {newest}." if newest else "Check the release, the network and pip's configuration.",
    )


def _last_line(stderr: str) -> str:
    lines = [line.strip() for line in scrub(stderr).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR", "Error"))] or lines
    return one_line(errors[-1].removeprefix("ERROR: ").rstrip(".")) if errors else "without output"


# torch warns at import where numpy is missing, and models convert through it.
_ALWAYS = ("numpy",)
_FACTS = "build.json"
_SCRATCH = "scratch"


class BuildFacts(BaseModel):
    """What is written beside an environment once it is complete; one without it is left from a failure."""

    model_config = ConfigDict(frozen=True)

    requirements: tuple[str, ...]
    torch: str
    python: str
    temporary: bool = False
    """Whether it was made for one comparison, and goes with it."""


@dataclass(frozen=True)
class CreatedBuild:
    """An environment that `create_build` made, usable as `compilewatch run --build NAME`."""

    name: str
    directory: Path
    facts: BuildFacts

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return _python_of(self.directory)


def create_build(
    requirements: Sequence[str],
    settings: Settings,
    *,
    name: str | None = None,
    base: Path | None = None,
    index_url: str | None = None,
    look_up: bool = True,
    temporary: bool = False,
    before_install: Callable[[], None] = lambda: None,
) -> CreatedBuild:
    """Install `requirements`, the first of them "torch==RELEASE", and numpy into an environment of their own.

    `base` is the Python to make it from, by default this one; pip's own configuration applies. A build that
    is there already with the same requirements is returned as it is. `before_install` is called once pip has
    found every version, before it downloads one; without `look_up` pip is not asked for them. A `temporary`
    one is marked so, and pip writes nothing outside its directory. Raises BuildError for
    anything else, InterpreterError when the torch that came cannot be measured, PreparationCancelledError
    where nobody wants it any more; nothing is left behind then.
    """
    release, wanted = _parsed(requirements)
    chosen = _checked_name(name or f"torch-{release}", settings)
    directory = builds_directory(settings) / chosen
    with only_one(directory):
        if (known := _read(directory)) is not None:
            if known.facts.requirements != wanted:
                raise BuildError(
                    f"There is a build {chosen} with {', '.join(known.facts.requirements)}.",
                    f"Give the new one another --name, or `compilewatch builds remove {chosen}` first.",
                )
            return known
        _remove_tree(directory)
        try:
            make_environment(base or Path(sys.executable), directory)
            if look_up:
                check_offered(_python_of(directory), wanted, index_url=index_url)
            before_install()
            scratch = directory / _SCRATCH if temporary else None
            if scratch:
                scratch.mkdir()
            install(_python_of(directory), wanted, index_url=index_url, scratch=scratch)
            facts = check_interpreter(str(_python_of(directory)))
            written = BuildFacts(
                requirements=wanted, torch=facts.torch, python=facts.python, temporary=temporary
            )
            (directory / _FACTS).write_text(written.model_dump_json(indent=2) + "\n", encoding="utf-8")
            if scratch:
                _remove_tree(scratch)
        except BaseException:
            _remove_tree(directory)
            raise
        return CreatedBuild(chosen, directory, written)


def created_builds(settings: Settings) -> list[CreatedBuild]:
    """Every complete build under the data directory, oldest torch first."""
    builds = (_read(path) for path in builds_directory(settings).glob("*") if path.is_dir())
    return sorted((build for build in builds if build), key=lambda build: (_order(build), build.name))


def remove_build(name: str, settings: Settings) -> None:
    """Delete the environment of a created build. Raises NotFoundError when there is none of that name."""
    if name not in {build.name for build in created_builds(settings)}:
        raise _unknown(name, [build.name for build in created_builds(settings)])
    directory = builds_directory(settings) / name
    with only_one(directory):
        _remove_tree(directory)


def remove_temporary(settings: Settings) -> None:
    """Delete the environments that a killed command made for one comparison, whole or not."""
    for directory in builds_directory(settings).glob("*"):
        known = _read(directory)
        if (known and known.facts.temporary) or (directory / _SCRATCH).is_dir():
            with only_one(directory):
                _remove_tree(directory)


def known_builds(settings: Settings) -> dict[str, BuildSettings]:
    """What `--build` may name: the [[build]] entries of the configuration, then the created ones."""
    created = (BuildSettings(name=build.name, python=build.python) for build in created_builds(settings))
    return {build.name: build for build in (*created, *settings.builds)}


def builds_named(names: Sequence[str], settings: Settings) -> list[BuildSettings]:
    """The builds of these names, each once. Raises NotFoundError for a name that is not known."""
    known = known_builds(settings)
    for name in names:
        if name not in known:
            raise _unknown(name, list(known))
    return [known[name] for name in dict.fromkeys(names)]


def interpreter_facts(builds: Iterable[BuildSettings]) -> list[InterpreterFacts]:
    """What each build can measure; of this interpreter where there are none. Raises InterpreterError."""
    return [check_interpreter(str(build.python)) for build in builds] or [check_interpreter(sys.executable)]


def builds_directory(settings: Settings) -> Path:
    """Where created builds are, absolute."""
    return Path(os.path.abspath(settings.data_dir / "builds"))  # noqa: PTH100 - resolve() would follow links


def parsed_release(requirement: str) -> str:
    """The release in "torch==RELEASE". Raises BuildError for anything else, and for one that is too old."""
    return _parsed([requirement])[0]


def _parsed(requirements: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The release of torch that is asked for, and all requirements as they are installed and compared."""
    first = requirements[0] if requirements else ""
    try:
        torch, *others = [Requirement(text) for text in requirements]
    except (InvalidRequirement, ValueError) as error:
        raise BuildError(
            f"A requirement cannot be read: {str(error).splitlines()[0]}.", "Write for example torch==2.12.1."
        ) from None
    pinned = [specifier.version for specifier in torch.specifier if specifier.operator == "=="]
    if torch.name != "torch" or torch.url or len(torch.specifier) != 1 or not pinned or "*" in pinned[0]:
        raise BuildError(f"{first!r} does not name one release of torch.", "Write for example torch==2.12.1.")
    if any(other.url for other in others):
        raise BuildError(
            "A requirement names an address.", "Name releases, such as transformers==5.17.0, and --index-url."
        )
    if Version(pinned[0]).release[:2] < MIN_TORCH:
        raise BuildError(
            f"{first} is too old; the oldest torch that is measured is 2.6.", "Take a newer one."
        )
    extra = [text for text in _ALWAYS if text not in {other.name for other in others}]
    return pinned[0], (str(torch), *sorted(map(str, others)), *extra)


def _checked_name(name: str, settings: Settings) -> str:
    try:
        BuildSettings(name=name, python=Path("python"))
    except ValidationError:
        raise BuildError(
            f"{name!r} is no name for a build.", "Use letters, digits, dots, pluses and hyphens."
        ) from None
    if name in {build.name for build in settings.build}:
        raise BuildError(f"The configuration has a [[build]] named {name!r}.", "Give another --name.")
    return name


def _python_of(directory: Path) -> Path:
    return directory / "bin" / "python"


def _read(directory: Path) -> CreatedBuild | None:
    try:
        content = json.loads((directory / _FACTS).read_text(encoding="utf-8"))
        return CreatedBuild(directory.name, directory, BuildFacts.model_validate(content))
    except (OSError, ValueError, RecursionError):
        return None


def _order(build: CreatedBuild) -> Version:
    try:
        return Version(build.facts.torch)
    except InvalidVersion:
        return Version("0")


@contextlib.contextmanager
def only_one(directory: Path, taken: CompilewatchError | None = None) -> Iterator[None]:
    """Keep two commands from making or removing one environment at once: the second gets `taken`."""
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        lock = (directory.parent / f".{directory.name}.lock").open("w")
    except OSError as error:
        raise BuildError(
            f"{directory.parent} cannot be written: {error.strerror}.",
            "Set data_dir to a writable directory.",
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise taken or BuildError(
                f"Another command works on the build {directory.name}.", "Wait for it to end."
            ) from None
        yield


def _remove_tree(directory: Path) -> None:
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise BuildError(f"{directory} cannot be removed: {error.strerror}.", "Delete it by hand.") from error


def _unknown(name: str, known: list[str]) -> CompilewatchError:
    hint = did_you_mean(name, known, most=3)
    return NotFoundError(
        f"There is no build {name!r}.",
        f"{hint} `compilewatch builds list` shows all; `compilewatch builds create torch==RELEASE` adds "
        "one.".lstrip(),
    )
