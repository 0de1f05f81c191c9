"""What differs between two environments, and what has to be installed for a mix of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from compilewatch.runner.config.settings import BuildSettings
from compilewatch.runner.plan.builds import BuildError
from compilewatch.runner.search.components import (
    Environment,
    Package,
    components_between,
    python_of,
    require_same,
    requirements_of,
)


def environment(*, python="3.11.7", requested=("torch", "numpy"), local=(), **packages):
    """`packages` by name: a version, or a version and what it requires."""
    installed = {}
    for name, (version, *requires) in {
        n: (v,) if isinstance(v, str) else v for n, v in packages.items()
    }.items():
        needs = tuple(map(Requirement, requires))
        installed[name] = Package(version, needs, name in local)
    build = BuildSettings(name="build", python=Path("python"))
    return Environment(build, python, Path(f"/usr/bin/python{python}"), installed, frozenset(requested))


def parts(base, head):
    return {each.name: each.packages for each in components_between(base, head)}


def test_only_what_differs_is_a_component_and_torch_is_the_first():
    base = environment(torch="2.12.1", numpy="2.0", transformers="4.40", pip="24.0", setuptools="70")
    head = environment(torch="2.13.0", numpy="2.0", transformers="4.46", pip="25.0", setuptools="80")
    assert list(parts(base, head)) == ["torch", "transformers"]


def test_a_pinned_triton_is_part_of_torch():
    base = environment(torch=("2.12.1", "triton==3.4"), triton="3.4")
    head = environment(torch=("2.13.0", "triton==3.5"), triton="3.5")
    assert parts(base, head) == {"torch": ("torch", "triton")}


def test_a_triton_that_only_one_build_of_torch_brings_is_part_of_it():
    base = environment(torch=("2.12.1", "triton==3.7.1"), triton="3.7.1")
    assert parts(base, environment(torch="2.13.0+cpu")) == {"torch": ("torch", "triton")}
    assert parts(environment(torch="2.13.0+cpu"), base) == {"torch": ("torch", "triton")}


def test_what_an_extra_brings_along_moves_with_who_asked_for_it():
    toolkit = Package("13.0", (), is_local=False, extras={"cufft": (Requirement("nvidia-cufft==12.0"),)})
    base = environment(torch=("2.12.1", "cuda-toolkit[cufft]==13.0"), **{"nvidia-cufft": "12.0"})
    with_toolkit = replace(base, packages={**base.packages, "cuda-toolkit": toolkit})
    found = parts(with_toolkit, environment(torch="2.13.0+cpu"))
    assert {name: set(packages) for name, packages in found.items()} == {
        "torch": {"torch", "cuda-toolkit", "nvidia-cufft"}
    }


def test_a_triton_that_torch_leaves_open_stands_for_itself():
    base = environment(torch=("2.12.1", "triton>=3.4"), triton="3.4")
    head = environment(torch=("2.13.0", "triton>=3.4"), triton="3.5")
    assert parts(base, head) == {"torch": ("torch",), "triton": ("triton",)}


def test_what_a_package_brings_along_moves_with_it():
    base = environment(torch="2.13.0", transformers=("4.40", "tokenizers<0.20"), tokenizers="0.19")
    head = environment(
        torch="2.13.0", transformers=("4.46", "tokenizers>=0.20", "xet"), tokenizers="0.20", xet="1.0"
    )
    ((name, packages),) = parts(base, head).items()
    assert (name, set(packages)) == ("transformers", {"transformers", "tokenizers", "xet"})


def test_what_nobody_asked_for_and_nothing_needs_is_the_rest():
    base, head = (
        environment(torch="2.13.0", left="1", over="1"),
        environment(torch="2.13.0", left="2", over="2"),
    )
    assert parts(base, head) == {"other packages": ("left", "over")}


def test_what_compilewatch_alone_brings_is_no_component():
    own = environment(
        torch=("2.12.1", "jinja2"),
        jinja2="3.1",
        compilewatch=("0.1", "torch>=2.6", "streamlit", "numpy"),
        streamlit=("1.67", "jinja2", "tornado"),
        tornado="6.5",
        numpy="2.0",
        tokenizers="0.1",
    )
    dev = replace(own.packages["compilewatch"], extras={"dev": (Requirement("pytest"),)})
    base = replace(own, packages={**own.packages, "compilewatch": dev, "pytest": Package("9.0", (), False)})
    head = environment(torch=("2.13.0", "jinja2"), jinja2="3.2", numpy="2.1", tokenizers="0.2")
    found = parts(base, head)
    assert found == {"torch": ("torch", "jinja2"), "numpy": ("numpy",), "other packages": ("tokenizers",)}
    # What a model's environment has of the same packages, the model may use.
    with_tornado = replace(head, packages={**head.packages, "tornado": Package("6.6", (), False)})
    assert set(parts(base, with_tornado)["other packages"]) == {"tokenizers", "tornado"}


def test_another_python_is_a_component():
    base, head = environment(torch="2.13.0"), environment(torch="2.13.0", python="3.12.1")
    assert parts(base, head) == {"python": ("python",)}
    assert python_of(frozenset(["python"]), base, head) == Path("/usr/bin/python3.12.1")
    assert python_of(frozenset(), base, head) == Path("/usr/bin/python3.11.7")


def test_a_hybrid_has_every_package_at_one_version():
    base = environment(torch="2.12.1", transformers=("4.40", "old"), old="1", numpy="2.0", pip="24")
    head = environment(torch="2.13.0", transformers=("4.46", "new"), new="1", numpy="2.0", pip="24")
    components = components_between(base, head)
    assert requirements_of(frozenset(["transformers"]), components, base, head) == [
        *("torch==2.12.1", "new==1", "numpy==2.0", "transformers==4.46"),
    ]
    assert requirements_of(frozenset(["torch"]), components, base, head) == [
        *("torch==2.13.0", "numpy==2.0", "old==1", "transformers==4.40"),
    ]


def test_a_package_of_a_folder_cannot_be_installed_elsewhere():
    base = environment(torch="2.13.0", timm="1", local=("timm", "mine"), mine="1")
    head = environment(torch="2.13.0", timm="2", local=("mine",), mine="1")
    components = components_between(base, head)
    with pytest.raises(BuildError, match="timm 1 comes from a folder of this host"):
        requirements_of(frozenset(), components, base, head)
    assert requirements_of(frozenset(["timm"]), components, base, head) == ["torch==2.13.0", "timm==2"]


def test_other_versions_than_wanted_are_refused():
    made = environment(torch="2.13.0", numpy="2.1")
    require_same(made, ["torch==2.13.0"])
    with pytest.raises(
        BuildError, match=r"pip installed numpy 2.1 instead of 2.0, timm missing instead of 1"
    ):
        require_same(made, ["torch==2.13.0", "numpy==2.0", "timm==1"])
