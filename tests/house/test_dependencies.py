"""What is installed: every dependency has a reason, one pinned version and a place that uses it."""

import importlib.metadata
import sys
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.house.tracked import PACKAGE, ROOMS, ROOT, imports_of, room_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]


def declared() -> list[Requirement]:
    """Return the dependencies of the package and of all its extras."""
    groups = (PROJECT["project"]["dependencies"], PROJECT["build-system"]["requires"], *EXTRAS.values())
    return [Requirement(line) for group in groups for line in group]


def pins() -> dict[str, Version]:
    """Return the version that constraints.txt allows, by canonical name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.name): Version(str(pin.specifier).removeprefix("==")) for pin in pinned}


def test_every_dependency_is_pinned_to_a_version_it_allows() -> None:
    pinned = pins()
    wrong = [
        str(requirement)
        for requirement in declared()
        if (name := canonicalize_name(requirement.name)) not in pinned
        or pinned[name] not in requirement.specifier
    ]
    assert wrong == []


def test_every_installed_dependency_of_a_dependency_is_pinned() -> None:
    waiting = [canonicalize_name(requirement.name) for requirement in declared()]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            needed = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # an extra that is not installed here
        requirements = [Requirement(line) for line in needed]
        waiting += [
            canonicalize_name(r.name)
            for r in requirements
            if r.marker is None or r.marker.evaluate({"extra": ""})
        ]
    installed = {canonicalize_name(found.metadata["Name"]) for found in importlib.metadata.distributions()}
    assert (seen & installed) - pins().keys() == set()


def test_what_is_imported_is_declared() -> None:
    distributions = importlib.metadata.packages_distributions()
    names = {canonicalize_name(requirement.name) for requirement in declared()}
    undeclared = [
        f"{path}:{found.line} imports {found.top}"
        for path in room_files()
        for found in imports_of(path)
        # Triton comes with torch's builds for a GPU; who imports it asks first whether it is there.
        if found.top not in {*sys.stdlib_module_names, *ROOMS, PACKAGE, "triton"}
        and not names & {canonicalize_name(name) for name in distributions.get(found.top, [found.top])}
    ]
    assert undeclared == []
