"""What the image and the compose files promise: nothing public, no password written down, no tests inside."""

import importlib.metadata
import re
import tempfile
import tomllib
from fnmatch import fnmatchcase
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from compilewatch.runner.device.lock import default_lock_dir
from tests.house.test_dependencies import pins
from tests.house.tracked import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
LOCKED_EXTRAS = ("postgres", "notify", "auth", "fleet", "trace", "models")
OURS = [service for service in COMPOSE["services"].values() if service["image"] == "compilewatch"]


def test_ports_are_published_to_this_machine_only() -> None:
    published = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_password_comes_from_outside() -> None:
    variables = [service.get("environment", {}) for service in COMPOSE["services"].values()]
    passwords = [value for each in variables for name, value in each.items() if "PASSWORD" in name]
    assert len(passwords) == len(COMPOSE["services"])
    assert all(re.fullmatch(r"\$\{POSTGRES_PASSWORD:\?.+\}", password) for password in passwords)


def test_our_containers_can_write_only_where_they_must() -> None:
    assert OURS
    assert all(service["read_only"] is True for service in OURS)
    assert all(service["cap_drop"] == ["ALL"] for service in OURS)


def test_what_measures_shares_one_lock_of_the_host_and_its_gpus() -> None:
    measuring = {"schedule", "worker", "runner"}
    services = COMPOSE["services"]
    sharing = {
        name for name, each in services.items() if "locks:/tmp/compilewatch-locks" in each.get("volumes", [])
    }
    assert sharing == measuring
    assert COMPOSE["volumes"]["locks"] == {"name": "compilewatch-locks"}
    assert str(default_lock_dir()) == f"{tempfile.gettempdir()}/compilewatch-locks"
    assert f"install -d -m 1777 /tmp/{default_lock_dir().name}" in DOCKERFILE
    overlay = yaml.safe_load((ROOT / "compose.gpu.yaml").read_text(encoding="utf-8"))["services"]
    assert overlay.keys() == measuring
    assert all("deploy" in service for service in overlay.values())


def test_the_build_copies_only_what_is_there_and_let_in() -> None:
    let_in = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line[:1] == "!"
    }
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )?(.+) \S+$", DOCKERFILE, re.MULTILINE)
    sources = {
        str(file.relative_to(ROOT)) for line in copied for name in line.split() for file in ROOT.glob(name)
    }
    assert {name for line in copied for name in line.split() if not list(ROOT.glob(name))} == set()
    assert {
        source
        for source in sources
        if source.split("/")[0] not in let_in and not any(fnmatchcase(source, rule) for rule in let_in)
    } == set()


def locked(*names: str) -> dict[str, Version]:
    """What the image installs by hash, by canonical name; every line must be a version and a hash."""
    lines = [
        line
        for name in names or ("requirements.lock", "requirements-models.lock")
        for line in (ROOT / "docker" / name).read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    parts = [re.fullmatch(r"([a-z0-9.-]+)==(\S+) --hash=sha256:[0-9a-f]{64}", line) for line in lines]
    assert [line for line, part in zip(lines, parts, strict=True) if part is None] == []
    return {canonicalize_name(part[1]): Version(part[2]) for part in parts if part is not None}


def test_the_image_installs_pinned_files_by_their_hash() -> None:
    pinned, found = pins(), locked()
    assert {name: version for name, version in found.items() if pinned.get(name) != version} == {}
    assert "torch" not in found
    assert DOCKERFILE.count("--require-hashes") == 3
    assert "cyclonedx-bom" in locked("requirements-sbom.lock")
    by_version = [
        line for line in re.findall(r"pip install (.+)", DOCKERFILE) if "--require-hashes" not in line
    ]
    assert all(
        ".[${EXTRAS}]" in line or line.startswith("--no-build-isolation --no-deps") for line in by_version
    )


def test_the_lock_holds_every_declared_dependency() -> None:
    """`python docker/lock.py` brings it up to date."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in LOCKED_EXTRAS for line in extras[name])]
    names = {canonicalize_name(Requirement(line).name) for line in lines} - {"torch"}
    assert names - locked().keys() == set()


def test_the_lock_holds_what_its_packages_need() -> None:
    """Extras of theirs too, which no pip misses: `procrastinate` asks for `psycopg[pool]`."""
    found, missing = locked(), set()
    for name in found:
        try:
            lines = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # of an extra that is not installed here
        missing |= {f"{name}: {each}" for line in lines for each in named(line, "") if each not in found}
    assert missing == set()


def named(line: str, extra: str) -> set[str]:
    """The packages that a line of requirements asks for, those of the extras it names included."""
    requirement = Requirement(line)
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
        return set()
    name = canonicalize_name(requirement.name)
    names = {name}
    for wanted in requirement.extras:
        for below in importlib.metadata.requires(name) or []:
            marker = Requirement(below).marker
            if marker is not None and "extra" in str(marker):
                names |= named(below, wanted)
    return names
