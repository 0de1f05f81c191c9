"""What differs between two environments of this host, in parts that can be installed apart."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.judge.compare.attribution import Hybrid
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan.builds import BuildError, created_builds
from compilewatch.runner.plan.interpreter import answer_of
from compilewatch.runner.worker.step.host import RECORDED_PACKAGES

PYTHON = "python"
REST = "other packages"
_TIMEOUT_S = 60.0
# What pip installs with; unless a package needs one of them, nothing that is measured imports it.
_PRODUCT = "compilewatch"
_TOOLS = frozenset({"pip", "setuptools", "wheel", _PRODUCT})
_PROBE = """
import json, platform, sys
from importlib import metadata
packages = {}
for each in metadata.distributions():
    name = each.metadata["Name"]
    if name and name not in packages:
        local = json.loads(each.read_text("direct_url.json") or "{}")
        extras = each.metadata.get_all("Provides-Extra") or []
        packages[name] = [each.version, each.requires or [], bool(local), extras]
sys.stdout.write(json.dumps({
    "python": platform.python_version(), "base": getattr(sys, "_base_executable", sys.executable),
    "packages": packages,
}))
"""


@dataclass(frozen=True)
class Package:
    """An installed package; `is_local` where it comes from a folder of this host. `extras` have what each of
    them requires besides.
    """

    version: str
    requires: tuple[Requirement, ...]
    is_local: bool
    extras: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """What is installed for a build. `requested` are the packages that it was made for, by name."""

    build: BuildSettings
    python: str
    base_python: Path
    packages: Mapping[str, Package]
    requested: frozenset[str]

    def version(self, name: str) -> str | None:
        """Of a package or Python, None where it is not there."""
        if name == PYTHON:
            return self.python
        package = self.packages.get(name)
        return package.version if package else None

    def needs(self, name: str) -> set[str]:
        """Every installed package that `name` needs, itself among them."""
        needs: set[tuple[str, str]] = set()
        waiting = [(name, "")]
        while waiting:
            each, extra = waiting.pop()
            if (each, extra) in needs or each not in self.packages:
                continue
            needs.add((each, extra))
            package = self.packages[each]
            for need in package.extras.get(extra, ()) if extra else package.requires:
                extras = ("", *map(canonicalize_name, need.extras))
                waiting += [(canonicalize_name(need.name), more) for more in extras]
        return {each for each, _ in needs}

    def of_the_product(self, named: Collection[str]) -> set[str]:
        """Packages that are here for compilewatch alone, its extras included; `named` ones are not."""
        product = self.packages.get(_PRODUCT)
        if product is None:
            return set()
        extras = [need for needs in product.extras.values() for need in needs]
        required = {canonicalize_name(need.name) for need in (*product.requires, *extras)}
        brought = {need for name in required for need in self.needs(name)}
        roots = (self.packages.keys() - brought - _TOOLS) | (set(named) & self.packages.keys())
        return brought - {need for name in roots for need in self.needs(name)}

    def allows(self, owner: str, name: str, version: str | None) -> bool:
        """Whether `owner` as installed here works with `name` at this version, as far as it says."""
        mine = self.packages.get(owner)
        needs = [need for need in (mine.requires if mine else ()) if canonicalize_name(need.name) == name]
        if version is None:
            return not needs
        return all(need.specifier.contains(Version(version).public, prereleases=True) for need in needs)


@dataclass(frozen=True)
class Component:
    """Packages that change together, the one that it is named for first."""

    name: str
    packages: tuple[str, ...]

    def title(self, base: Environment, head: Environment) -> str:
        """With its versions: "torch 2.12.1 to 2.13.0"."""
        if self.name == REST:
            return f"{REST} ({', '.join(self.packages)})"
        versions = (side.version(self.name) or "none" for side in (base, head))
        return f"{self.name} {' to '.join(versions)}"


def environment_of(build: BuildSettings, settings: Settings) -> Environment:
    """Asks the interpreter. Raises CompilewatchError where it does not answer."""
    try:
        facts = answer_of(str(build.python), _PROBE, timeout_s=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise CompilewatchError(
            f"The interpreter of {build.name} does not say what is installed.", f"Check {build.python}."
        ) from error
    packages: dict[str, Package] = {
        canonicalize_name(name): Package(
            version,
            tuple(_needs(requires, facts["python"])),
            is_local,
            {canonicalize_name(extra): tuple(_needs(requires, facts["python"], extra)) for extra in extras},
        )
        for name, (version, requires, is_local, extras) in facts["packages"].items()
    }
    made = {each.name: each.facts.requirements for each in created_builds(settings)}
    requested = frozenset(canonicalize_name(Requirement(text).name) for text in made.get(build.name, ()))
    return Environment(build, facts["python"], Path(facts["base"]), packages, requested)


def _needs(requires: Sequence[str], python: str, extra: str = "") -> Iterator[Requirement]:
    marked = {"python_full_version": python, "python_version": python.rpartition(".")[0], "extra": extra}
    for text in requires:
        try:
            need = Requirement(text)
        except InvalidRequirement:
            continue
        if need.marker is None or need.marker.evaluate(marked):
            yield need


def components_between(base: Environment, head: Environment) -> list[Component]:
    """What differs, torch first. A package stands for itself where somebody asked for it, or it is recorded
    with trials; one that neither side's owner lets change alone, such as torch's pinned Triton, moves with
    its owner, and so does what was only installed because another package needs it. What is there for
    compilewatch alone, as in its own environment, is none: no model uses it.
    """
    names = [name for name in (*base.packages, *head.packages) if base.version(name) != head.version(name)]
    needed = {need for side in (base, head) for name in side.packages for need in side.needs(name) - {name}}
    named = {"torch", "triton", *RECORDED_PACKAGES, *base.requested, *head.requested}
    ours = [(side.packages.keys(), side.of_the_product(named)) for side in (base, head)]
    differing = [
        name
        for name in dict.fromkeys(names)
        if (name not in _TOOLS or name in needed)
        and not all(name in product for packages, product in ours if name in packages)
    ]
    roots = sorted((name for name in differing if name in named), key=lambda name: (name != "torch", name))
    owners = {root: _owner(root, roots[:place], base, head) for place, root in enumerate(roots)}
    roots = [root for root in roots if owners[root] is None]
    members: dict[str, list[str]] = {root: [root] for root in roots}
    for name in differing:
        if name in members:
            continue
        dragging = [root for root in roots if name in base.needs(root) | head.needs(root)]
        owner = owners.get(name) or next(iter(dragging), REST)
        members.setdefault(owner, []).append(name)
    if base.python != head.python:
        members[PYTHON] = [PYTHON]
    return [Component(name, tuple(packages)) for name, packages in members.items()]


def _owner(name: str, before: Sequence[str], base: Environment, head: Environment) -> str | None:
    """The one of `before` neither version of which works with the other version of `name`; where only one
    side has `name`, the one that brought it, such as a CUDA build of torch its Triton.
    """
    for owner in before:
        forth, back = (
            mine.allows(owner, name, other.version(name)) for mine, other in ((head, base), (base, head))
        )
        lacking = base.version(name) is None or head.version(name) is None
        if (not forth and not back) or (lacking and not (forth and back)):
            return owner
    return None


def requirements_of(
    hybrid: Hybrid, components: Collection[Component], base: Environment, head: Environment
) -> list[str]:
    """Every package of a hybrid at its version, torch first.

    Raises BuildError where a component is at a version that no index has.
    """
    side = dict.fromkeys((*base.packages, *head.packages), base)
    side |= {name: head for each in components if each.name in hybrid for name in each.packages}
    changing = {name for each in components for name in each.packages}
    tools = _TOOLS - changing
    wanted = []
    for name in sorted(set(side) - tools, key=lambda name: (name != "torch", name)):
        package = side[name].packages.get(name)
        if package is not None and package.is_local and name in changing:
            raise BuildError(
                f"{name} {package.version} comes from a folder of this host.", "Install it from an index."
            )
        if package is not None and not package.is_local:
            wanted.append(f"{name}=={package.version}")
    return wanted


def python_of(hybrid: Hybrid, base: Environment, head: Environment) -> Path:
    """The interpreter that its environment is made of."""
    return (head if PYTHON in hybrid else base).base_python


def require_same(made: Environment, requirements: Sequence[str]) -> None:
    """Raises BuildError where other versions are installed than wanted."""
    wanted = {name: version for name, _, version in (text.partition("==") for text in requirements)}
    wrong = [
        f"{name} {made.version(name) or 'missing'} instead of {version}"
        for name, version in wanted.items()
        if made.version(name) != version
    ]
    if wrong:
        raise BuildError(f"pip installed {', '.join(wrong)}.", "Name releases that exist apart.")
