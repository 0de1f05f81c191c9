"""Builds made by the real venv and pip, from a directory of tiny wheels instead of a package index."""

from __future__ import annotations

import fcntl
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from compilewatch.db.errors import CompilewatchError, NotFoundError
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.builds import (
    BuildError,
    builds_named,
    create_build,
    created_builds,
    known_builds,
    make_environment,
    remove_build,
)
from compilewatch.runner.plan.interpreter import InterpreterError
from tests.runner.quick_measurement import interpreter
from tests.runner.second_environment import make_empty_environment
from tests.runner.terminal import in_this_process

TORCH = """
from types import SimpleNamespace
{name} = "{version}"
version = SimpleNamespace(cuda=None, hip=None)
cuda = SimpleNamespace(is_available=lambda: False)
"""


def _wheel(directory: Path, name: str, version: str, source: str, *, more: str = "") -> None:
    information = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", source)
        wheel.writestr(
            f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}"
        )
        wheel.writestr(
            f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{information}/RECORD", "")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """pip finds torch 2.6.0 and 2.12.1, a torch that does not import, and numpy; nothing else."""
    wheels = tmp_path_factory.mktemp("wheels")
    for version in ("2.6.0", "2.12.1"):
        _wheel(wheels, "torch", version, TORCH.format(name="__version__", version=version))
    _wheel(wheels, "torch", "2.13.0", "raise ImportError('libcudart.so.13: cannot open shared object file')")
    _wheel(wheels, "numpy", "2.0.0", "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(wheels))
        patch.setenv("PIP_CONFIG_FILE", "/dev/null")
        yield


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, index: None) -> Iterator[Settings]:
    """A data directory that holds the build torch-2.12.1; the next ones have this environment's pip."""
    made = Settings(data_dir=tmp_path_factory.mktemp("data"))
    create_build(["torch==2.12.1"], made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("compilewatch.runner.plan.builds.make_environment", make_empty_environment)
        yield made


def _refused(requirements: list[str], settings: Settings, **options: object) -> CompilewatchError:
    before = {path.name for path in settings.data_dir.glob("builds/*")}
    with pytest.raises(CompilewatchError) as caught:
        create_build(requirements, settings, **options)  # type: ignore[arg-type]
    after = {path.name for path in settings.data_dir.glob("builds/*") if path.is_dir()}
    assert after <= before
    assert caught.value.next_step
    assert "Traceback" not in str(caught.value)
    return caught.value


def test_a_build_has_the_torch_that_was_asked_for(settings: Settings):
    (build,) = created_builds(settings)
    assert (build.name, build.facts.torch) == ("torch-2.12.1", "2.12.1")
    assert build.facts.requirements == ("torch==2.12.1", "numpy")
    assert builds_named(["torch-2.12.1", "torch-2.12.1"], settings) == [
        known_builds(settings)["torch-2.12.1"]
    ]
    assert known_builds(settings)["torch-2.12.1"].python == build.python


def test_the_same_build_again_is_the_one_that_is_there(settings: Settings):
    marker = created_builds(settings)[0].directory / "untouched"
    marker.touch()
    assert create_build(["torch==2.12.1"], settings).name == "torch-2.12.1"
    assert marker.exists()
    refused = _refused(["torch==2.12.1", "transformers==5.17.0"], settings)
    assert "There is a build torch-2.12.1" in refused.message


def test_a_release_that_nobody_offers_says_which_there_are(settings: Settings):
    refused = _refused(["torch==2.99.0"], settings)
    assert refused.message == "pip finds no torch==2.99.0 for this Python and platform."
    assert refused.next_step == "It offers 2.6.0, 2.12.1, 2.13.0."


def test_a_release_that_nobody_offers_promises_no_download(settings: Settings, tmp_path: Path) -> None:
    made = in_this_process(
        *("builds", "create", "--name", "other", "torch==2.12.1", "absent==1.0"),
        cwd=tmp_path,
        COMPILEWATCH_DATA_DIR=str(settings.data_dir),
    )
    assert made.returncode == 2
    told, _next_step = made.stderr.splitlines()
    assert told == "compilewatch: pip finds no absent==1.0 for this Python and platform."


def test_a_download_is_announced_once_pip_has_found_it(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPILEWATCH_DATA_DIR", str(settings.data_dir))
    assert exit_code_of(app, ["builds", "create", "torch==2.6.0"]) == 0
    announced = capfd.readouterr().err
    assert announced.startswith("Installing torch==2.6.0; a build with CUDA is a download of 3 GB.\n")
    assert exit_code_of(app, ["builds", "create", "torch==2.6.0"]) == 0
    assert "Installing" not in capfd.readouterr().err, "it is there already"
    remove_build("torch-2.6.0", settings)


def test_a_torch_that_does_not_import_leaves_nothing_behind(settings: Settings):
    refused = _refused(["torch==2.13.0"], settings)
    assert isinstance(refused, InterpreterError)
    assert "libcudart" in refused.message


@pytest.mark.parametrize(
    ("requirements", "says"),
    [
        (["torch"], "does not name one release"),
        (["torch>=2.8"], "does not name one release"),
        (["torch==2.*"], "does not name one release"),
        (["numpy==2.0.0"], "does not name one release"),
        (["torch==2.12.1", "torch @ file:///x"], "names an address"),
        (["torch=2.12.1"], "cannot be read"),
        (["torch==1.13.1"], "too old"),
        (["--index-url"], "cannot be read"),
    ],
)
def test_what_is_no_release_of_torch_is_refused(tmp_path: Path, requirements: list[str], says: str):
    assert says in _refused(requirements, Settings(data_dir=tmp_path)).message


def test_names_that_cannot_be(tmp_path: Path):
    taken = Settings(data_dir=tmp_path, build=[{"name": "old", "python": "old/bin/python"}])  # type: ignore[arg-type]
    assert "has a [[build]] named" in _refused(["torch==2.12.1"], taken, name="old").message
    assert "is no name" in _refused(["torch==2.12.1"], taken, name="../up").message


def test_a_python_that_cannot_make_environments(tmp_path: Path):
    with pytest.raises(BuildError, match="cannot be started"):
        make_environment(tmp_path / "missing", tmp_path / "env")
    with pytest.raises(BuildError, match="cannot make virtual environments"):
        make_environment(Path("/bin/false"), tmp_path / "env")


def test_what_a_killed_command_left_is_no_build_and_is_replaced(settings: Settings):
    left = settings.data_dir / "builds" / "torch-2.6.0"
    (left / "lib").mkdir(parents=True)
    (left / "lib" / "half").touch()
    assert [build.name for build in created_builds(settings)] == ["torch-2.12.1"]
    create_build(["torch==2.6.0"], settings)
    assert [build.name for build in created_builds(settings)] == ["torch-2.6.0", "torch-2.12.1"]
    assert not (left / "lib" / "half").exists()
    remove_build("torch-2.6.0", settings)
    assert not left.exists()


def test_two_commands_do_not_make_one_build_at_once(tmp_path: Path):
    lock = tmp_path / "builds" / ".torch-2.12.1.lock"
    lock.parent.mkdir()
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "Another command works on" in _refused(["torch==2.12.1"], Settings(data_dir=tmp_path)).message


def test_a_name_that_is_not_there(settings: Settings):
    with pytest.raises(NotFoundError, match=r"no build 'torch-2\.12'") as caught:
        builds_named(["torch-2.12"], settings)
    assert "Did you mean torch-2.12.1?" in caught.value.next_step
    with pytest.raises(NotFoundError):
        remove_build("torch-2.12", settings)


def test_a_build_is_measured_by_its_name(tmp_path: Path):
    """Its worker is another interpreter than the one that plans."""
    build = tmp_path / ".compilewatch" / "builds" / "torch-2.0"
    interpreter(build / "bin", death=f"open({str(tmp_path / 'used')!r}, 'w')")
    facts = {"requirements": ["torch==2.0"], "torch": "2.0", "python": "3.11"}
    (build / "build.json").write_text(json.dumps(facts))
    (tmp_path / "tmp").mkdir()
    listed = in_this_process("builds", "list", "--json", cwd=tmp_path)
    (row,) = json.loads(listed.stdout)["rows"]
    assert (row["build"], row["from"]) == ("torch-2.0", "builds create")
    wrong = in_this_process("run", "--build", "torch-2.1", cwd=tmp_path)
    assert (wrong.returncode, "There is no build 'torch-2.1'." in wrong.stderr) == (2, True)
    assert not (tmp_path / "used").exists()
    ran = in_this_process(
        *("run", "-w", "elementwise", "-s", "eager", "--trials", "1", "--build", "torch-2.0"),
        cwd=tmp_path,
        TMPDIR=str(tmp_path / "tmp"),
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "used").exists()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_real_release_from_the_configured_index(tmp_path: Path):
    """Downloads torch as pip is configured here; about a gigabyte for a CPU build."""
    import torch

    release = torch.__version__
    settings = Settings(data_dir=tmp_path)
    try:
        build = create_build([f"torch=={release}"], settings)
    except BuildError as error:
        if "pip finds no torch" not in error.message:
            raise
        pytest.skip(f"pip finds no torch {release} here")
    assert build.facts.torch == release
