"""Recorded builds found again on this host, part by part, without importing torch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from compilewatch.db.records.requests import RequestSpec
from compilewatch.db.records.trial import Build
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan.host_stacks import HostStacks, MissingBuildError, compiler_version
from compilewatch.runner.plan.plan import plan_request
from tests.runner.second_environment import make_environment


@pytest.fixture(scope="module")
def this_stack() -> Build:
    """What a trial of this interpreter records."""
    (found,) = [
        stack for build, stack in HostStacks.read(Settings()).stacks if build.name == "this-interpreter"
    ]
    return found


def host(*stacks: Build) -> HostStacks:
    return HostStacks(tuple((BuildSettings(name=f"b{i}", python=Path("p")), s) for i, s in enumerate(stacks)))


def test_this_interpreter_is_found_as_its_trials_record_it(this_stack: Build) -> None:
    import torch

    assert this_stack.torch == torch.__version__.partition("+")[0]
    assert this_stack.torch_git == torch.version.git_version[:12]
    assert this_stack.python == sys.version.split()[0]


def test_a_part_that_changed_makes_it_another_build(this_stack: Build) -> None:
    older = this_stack.model_copy(update={"compiler": "g++ 4.2.1", "packages": {"timm": "0.1"}})
    with pytest.raises(MissingBuildError) as gone:
        host(this_stack).build_like(older)
    assert f"compiler {this_stack.compiler} instead of g++ 4.2.1" in gone.value.message
    assert "timm" in gone.value.message
    assert "stays suspected" in gone.value.next_step


def test_the_nearest_of_several_is_named(this_stack: Build) -> None:
    far = this_stack.model_copy(update={"python": "3.9.1", "triton": "1.0", "os": "Linux 1"})
    near = this_stack.model_copy(update={"python": "3.9.1"})
    with pytest.raises(MissingBuildError, match=r"here it has python 3\.9\.1 instead of 3"):
        host(far, near).build_like(this_stack)


def test_a_part_is_named_in_words(this_stack: Build) -> None:
    other = this_stack.model_copy(update={"torch_variant": "cu999"})
    with pytest.raises(MissingBuildError, match=r"torch variant \w+ instead of cu999"):
        host(this_stack).build_like(other)


def test_settings_label_and_what_was_never_recorded_decide_nothing(this_stack: Build) -> None:
    loose = this_stack.model_copy(
        update={"settings": {"x": 1}, "label": "ours", "torch_git": None, "driver": None, "cudnn": "9"}
    )
    assert host(this_stack).build_like(loose).name == "b0"


def test_of_several_builds_of_a_side_the_first_that_is_here_is_taken(this_stack: Build) -> None:
    gone = this_stack.model_copy(update={"torch": "1.0"})
    assert host(this_stack).first_of([gone, this_stack]) == this_stack
    with pytest.raises(MissingBuildError, match=r"torch 1\.0"):
        host(this_stack).first_of([gone])


def test_an_interpreter_without_torch_or_that_is_gone_is_no_build(tmp_path: Path) -> None:
    settings = Settings(build=[{"name": "gone", "python": tmp_path / "python"}])
    assert {build.name for build, _ in HostStacks.read(settings).stacks} == {"this-interpreter"}


@pytest.mark.slow
def test_a_request_of_recorded_builds_is_planned_on_their_interpreters(
    tmp_path: Path, this_stack: Build
) -> None:
    other = make_environment(tmp_path / "other", timm="9.9.9")
    settings = Settings(data_dir=tmp_path, build=[{"name": "other", "python": other}])
    stacks = [stack for _, stack in HostStacks.read(settings).stacks]
    assert [stack.packages.get("timm") == "9.9.9" for stack in stacks] == [True, False]
    spec = RequestSpec(cases=(("elementwise", "eager"),), stacks=(this_stack, stacks[0]), trials=2)
    plan = plan_request(settings, spec)
    assert [run.interpreter for run in plan.runs] == [Path(sys.executable), other]
    here = Path(sys.executable)
    assert [trial.interpreter for trial in plan.trials] == [here, other, other, here]
    gone = spec.model_copy(update={"stacks": (this_stack.model_copy(update={"torch": "1"}),)})
    with pytest.raises(MissingBuildError):
        plan_request(settings, gone)


def test_a_compiler_that_was_upgraded_under_a_running_process_is_another_one(tmp_path: Path) -> None:
    compiler = tmp_path / "g++"
    versions = []
    for second, release in enumerate(("12.2.0", "14.1.0"), start=1):
        compiler.write_text(f"#!/bin/sh\necho 'g++ (Debian {release}-1) {release}'\n", encoding="utf-8")
        compiler.chmod(0o755)
        os.utime(compiler, (second, second))
        versions.append(compiler_version({"PATH": str(tmp_path)}))
    assert versions == ["g++ 12.2.0", "g++ 14.1.0"]
