"""What is installed: every dependency has a reason, one pinned version and a place that uses it."""

import importlib.metadata
import re
import sys
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import db
from tests.house.tracked import ROOMS, ROOT, imports_of, project_files, room_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
OWN = canonicalize_name("compilewatch")


def declared() -> list[Requirement]:
    """Return the dependencies of the package and of all its extras."""
    groups = (PROJECT["project"]["dependencies"], PROJECT["build-system"]["requires"], *EXTRAS.values())
    return [Requirement(line) for group in groups for line in group]


def pins() -> dict[str, Version]:
    """Return the version that constraints.txt allows, by canonical name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.name): Version(str(pin.specifier).removeprefix("==")) for pin in pinned}


def test_every_dependency_says_why_it_is_there() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text[text.index("dependencies = [") : text.index("[project.scripts]")]
    lines = [line for line in section.splitlines() if line.startswith('    "')]
    count = len(PROJECT["project"]["dependencies"]) + sum(map(len, EXTRAS.values()))
    assert [line for line in lines if not re.search(r'", +# \w', line)] == []
    assert len(lines) == count


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


def test_torch_stays_at_one_release() -> None:
    assert str(pins()["torch"]) == "2.13.0"


def test_what_is_imported_is_declared() -> None:
    distributions = importlib.metadata.packages_distributions()
    names = {canonicalize_name(requirement.name) for requirement in declared()}
    undeclared = [
        f"{path}:{found.line} imports {found.top}"
        for path in room_files()
        for found in imports_of(path)
        # Triton comes with torch's builds for a GPU; who imports it asks first whether it is there.
        if found.top not in {*sys.stdlib_module_names, *ROOMS, "triton"}
        and not names & {canonicalize_name(name) for name in distributions.get(found.top, [found.top])}
    ]
    assert undeclared == []


def test_version_has_one_place() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "db.__version__"}
    assigned = [
        str(path)
        for path in project_files()
        if path.suffix == ".py"
        and re.search(r"^__version__\s*=", (ROOT / path).read_text("utf-8"), re.MULTILINE)
    ]
    assert assigned == ["db/__init__.py"]


def test_installed_version_is_the_written_one() -> None:
    assert importlib.metadata.version(OWN) == db.__version__


def test_changelog_knows_the_version() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0].split()[0] in {"Unreleased", db.__version__}
