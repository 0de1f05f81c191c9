"""The image of the Dockerfile without an engine: every stage a root directory, every step carried out in it.

What an engine decides is decided alike: what `.dockerignore` lets in, which build arguments an ARG lets in,
what replaces a variable, and who runs a step.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.house import image_base, pip_settings
from tests.house.container import Process, build_step
from tests.house.dockerfile import Instruction, Unreadable, argument, expand, is_in_context, read
from tests.house.tracked import ROOT

LEFT_TO_SHELL = {"RUN", "ARG", "ENTRYPOINT", "CMD", "HEALTHCHECK"}
"""In these the builder itself replaces no variable."""
WORK = ("FROM", "COPY", "RUN")
"""What takes time is said while it is done; the others note a setting."""


@dataclass
class Image:
    """A root directory, and what the Dockerfile says about starting it."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: dict(image_base.ENVIRONMENT))
    arguments: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    folder: str = "/"
    volumes: list[str] = field(default_factory=list)
    ports: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    check: list[str] = field(default_factory=list)

    def process(self) -> Process:
        """How its own process is started."""
        return Process(self.environment, self.folder, self.user)

    def inside(self, path: str) -> Path:
        """A path of the image, seen from outside; a relative one starts where WORKDIR says."""
        return self.root / str(Path(self.folder) / path).lstrip("/")


class Build:
    """One build from the checkout, in `work`, an empty folder; `given` are its build arguments."""

    def __init__(self, work: Path, given: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._work = work
        self._given = given
        self._say = say
        self._bases: dict[str, Path] = {}
        self._made: dict[str, Image] = {}
        self._mounts = pip_settings.mounts(pip_settings.pip_settings(), work)

    def image(self) -> Image:
        """Carry out the Dockerfile and return the image of its last stage.

        Raises Unreadable for what is not carried out here, Unavailable where there is no base,
        CalledProcessError with what was printed where a step fails.
        """
        for number, stage in enumerate(read((ROOT / "Dockerfile").read_text(encoding="utf-8"), self._given)):
            image = Image(self._work / f"stage-{number}")
            with self._timed(f"FROM {stage.origin}"):
                _copy(self._base(stage.origin), image.root)
            for instruction in stage.instructions:
                with self._timed(f"{instruction.name} {instruction.text}"):
                    self._carry_out(instruction, image)
            self._made[stage.name or str(number)] = image
        return image

    def _base(self, name: str) -> Path:
        if name not in self._bases:
            root = self._work / f"base-{len(self._bases)}"
            image_base.make_base(name, root)
            self._bases[name] = root
        return self._bases[name]

    def _carry_out(self, written: Instruction, image: Image) -> None:
        variables = image.arguments | image.environment
        is_expanded = written.name not in LEFT_TO_SHELL
        step = replace(written, text=expand(written.text, variables)) if is_expanded else written
        match step.name:
            case "ARG":
                image.arguments |= argument(step, self._given)
            case "ENV":
                image.environment |= step.pairs()
            case "USER":
                image.user = step.text
            case "WORKDIR":
                image.folder = str(Path(image.folder) / step.text)
                image.inside(".").mkdir(parents=True, exist_ok=True)
            case "COPY":
                self._copy_in(step, image)
            case "RUN":
                words = ["/bin/sh", "-c", step.text]
                settings = {"HOME": "/root", "PIP_CONFIG_FILE": str(pip_settings.CONFIGURATION)}
                process = Process(settings | variables, image.folder, image.user)
                build_step(image.root, process, words, self._mounts)
            case _:
                _configure(step, image)

    def _copy_in(self, step: Instruction, image: Image) -> None:
        *names, target = step.text.split()
        made = self._made.get(step.flags.get("from", ""))
        if "from" in step.flags and made is None:
            raise Unreadable(f"COPY --from={step.flags['from']}")
        destination = image.inside(target)
        sources = [path for name in names for path in (_found(name) if made is None else [made.inside(name)])]
        if not sources:
            raise Unreadable(f"COPY {step.text}: there is no such file")
        for source in sources:
            place = destination / source.name if target.endswith("/") and source.is_file() else destination
            place.parent.mkdir(parents=True, exist_ok=True)
            if made is None:
                _copy_of_context(source, place)
            else:
                _copy(source, place)
            if "chmod" in step.flags:
                place.chmod(int(step.flags["chmod"], 8))

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        if what.startswith(WORK):
            self._say(f"{time.monotonic() - began:7.1f} s  {' '.join(what.split())[:100]}")


def _configure(step: Instruction, image: Image) -> None:
    match step.name:
        case "VOLUME":
            image.volumes.append(step.text)
        case "EXPOSE":
            image.ports.append(step.text)
        case "ENTRYPOINT":
            image.entrypoint = step.words()
        case "CMD":
            image.command = step.words()
        case "HEALTHCHECK":
            image.check = step.words()
        case _:
            raise Unreadable(step.name)


def _found(name: str) -> list[Path]:
    """What a COPY from the checkout names; `*` is any part of a file's name."""
    return sorted(ROOT.glob(name.removesuffix("/")))


def _copy_of_context(source: Path, place: Path) -> None:
    """Copy a file or what is below a folder of the checkout, as far as `.dockerignore` lets it in.

    Raises Unreadable where it lets in nothing.
    """
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
    let_in = [path for path in files if is_in_context(str(path.relative_to(ROOT)), rules)]
    if not let_in:
        raise Unreadable(f"COPY {source.relative_to(ROOT)}: .dockerignore keeps all of it out")
    for path in let_in:
        target = place if path == source else place / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def _copy(source: Path, place: Path) -> None:
    """Copy a file, or a folder with everything in it, with owners, links and times."""
    place.parent.mkdir(parents=True, exist_ok=True)
    what = f"{source}/." if source.is_dir() else str(source)
    subprocess.run(["cp", "-a", "--reflink=auto", what, str(place)], check=True, capture_output=True)
