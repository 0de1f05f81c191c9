"""New releases, tried before anybody installs them: which there are, what they may take, what is told."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.records.people import TriageState
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.service.reports import REPORTS, reports_frame
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.measure import watch as command
from compilewatch.runner.cli.measure.schedule import _Releases
from compilewatch.runner.config.sections import ReleaseWatchSettings
from compilewatch.runner.config.settings import THIS_INTERPRETER, BuildSettings, Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.plan import builds
from compilewatch.runner.plan import plan as plan_plan
from compilewatch.runner.plan.builds import BuildError, BuildFacts, CreatedBuild
from compilewatch.runner.plan.host_stacks import HostStacks
from compilewatch.runner.plan.interpreter import InterpreterFacts
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.process.execution import RunOutcome
from compilewatch.runner.search import watch as search_watch
from compilewatch.runner.search.environments import disk_words
from compilewatch.runner.search.watch import (
    InUse,
    Release,
    ReleaseError,
    installed,
    newest_releases,
    not_installed,
    requirements_of,
)
from tests.builders import MS, make_build, make_machine, make_trial
from tests.loopback import Quiet, on_loopback
from tests.runner.local_index import needed_by, offer, offer_installed, offer_wheel
from tests.runner.second_environment import make_empty_environment
from tests.runner.terminal import compilewatch, in_this_process
from tests.runner.webhook import Webhook, webhook

IN_USE = InUse(BuildSettings(name=THIS_INTERPRETER, python=Path(sys.executable)), make_build("2.13.0"))


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A package index on loopback, its directory and address; pip knows no other."""
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    directory = tmp_path / "index"
    directory.mkdir()

    class Files(Quiet, SimpleHTTPRequestHandler):
        pass

    with on_loopback(partial(Files, directory=str(directory))) as address:
        yield directory, address


def watching(tmp_path: Path, **options: Any) -> Settings:
    watch = ReleaseWatchSettings(**{"packages": ("torch",)} | options)
    return Settings(data_dir=tmp_path / "data", watch=watch)


@pytest.mark.parametrize(
    ("early", "found"), [(False, ["torch 2.14.0"]), (True, ["torch 2.15.0rc1", "triton 3.8.0"])]
)
def test_the_newest_release_of_each_package_that_is_not_withdrawn(
    index: tuple[Path, str], tmp_path: Path, early: bool, found: list[str]
) -> None:
    directory, address = index
    for version in ("2.12.0", "2.13.0", "2.13.1", "2.14.0", "2.15.0rc1"):
        offer(directory, "torch", version)
    offer(directory, "torch", "2.16.0", withdrawn=True)
    offer(directory, "triton", "3.6.0")
    if early:
        offer(directory, "triton", "3.8.0")
    packages = ("torch", "triton", "timm")
    settings = watching(tmp_path, packages=packages, index_url=address, pre=early)
    assert [str(each) for each in newest_releases(settings, IN_USE)] == found
    assert [line.partition(" ")[0] for line in not_installed(settings, IN_USE)] == ["timm"]


def test_an_index_that_offers_nothing_is_not_called_up_to_date(
    index: tuple[Path, str], tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError, match="no release of torch"):
        newest_releases(watching(tmp_path, index_url=index[1]), IN_USE)


def test_only_the_release_differs_from_the_build_in_use() -> None:
    stack = make_build("2.13.0", packages={"transformers": "5.23.0", "torchvision": "0.28.0"})
    in_use = InUse(IN_USE.build, stack)
    assert requirements_of(Release("torch", "2.14.0"), in_use, ("einops",)) == [
        *("torch==2.14.0", "transformers==5.23.0", "torchvision", "einops")
    ]
    assert requirements_of(Release("triton", "3.8.0"), in_use, ()) == [
        *("torch==2.13.0", "transformers==5.23.0", "torchvision==0.28.0", "triton==3.8.0")
    ]


@pytest.mark.parametrize(("limit", "seconds"), [("max_disk_gb", 600.0), ("max_hours", 0.0)])
def test_a_release_beyond_its_limits_leaves_nothing_behind(
    index: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, seconds: float
) -> None:
    monkeypatch.setattr(builds, "make_environment", make_empty_environment)
    monkeypatch.setattr(search_watch, "_LOOK_EVERY_S", 0.0)
    directory, address = index
    offer_wheel(directory, "torch", "2.14.0", [("torch/libtorch.so", bytes(30_000_000))])
    offer_wheel(directory, "numpy", "2.4.0", [("numpy/__init__.py", b"")])
    # Another's environment, and what a killed process left.
    mine, left = (tmp_path / "data" / "builds" / name for name in ("mine", "release-in-trial-torch-2.9.0"))
    for path, temporary in ((mine, False), (left, True)):
        path.mkdir(parents=True)
        facts = BuildFacts(requirements=("torch==2.9.0",), torch="2.9.0", python="3.11", temporary=temporary)
        (path / "build.json").write_text(facts.model_dump_json())
    in_use = IN_USE._replace(stack=make_build("2.13.0", packages={}))
    settings = watching(tmp_path, index_url=address, max_disk_gb=0.02)
    with search_watch.only_here(settings):
        assert mine.is_dir()
        assert not left.exists()
        with (
            pytest.raises(ReleaseError, match=limit),
            installed(
                Release("torch", "2.14.0"), in_use, settings, seconds=seconds, should_stop=lambda: False
            ),
        ):
            pytest.fail("it was installed")
        with pytest.raises(ReleaseError, match="Another process"), search_watch.only_here(settings):
            pytest.fail("two at once")
    assert [path.name for path in mine.parent.iterdir() if path.is_dir()] == ["mine"]


class FakeHost:
    """Makes builds and measures as a real one, with `latency_ms` by release and workload."""

    def __init__(self, latency_ms: dict[tuple[str, str], float], offered: list[str]) -> None:
        self.latency_ms, self.offered = latency_ms, offered
        self.stacks = [IN_USE]
        self.there: set[str] = set()
        self.measured = 0
        self.moment = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)

    def create(self, wanted: list[str], settings: Settings, *, name: str, **options: Any) -> CreatedBuild:
        release = wanted[0].removeprefix("torch==")
        if release == "2.15.0":
            raise BuildError(f"pip could not install torch=={release}.", "Try it by hand.")
        self.there.add(name)
        self.stacks.append(InUse(BuildSettings(name=name, python=Path(sys.executable)), make_build(release)))
        facts = BuildFacts(requirements=tuple(wanted), torch=release, python="3.11", temporary=True)
        return CreatedBuild(name, Path("/nowhere"), facts)

    def measure(self, plan: Plan, database: Any, *_: object) -> tuple[RunOutcome, None]:
        releases = {build.name: stack.torch for build, stack in self.stacks}
        of_run = {run.run_id: releases[run.build or THIS_INTERPRETER] for run in plan.runs}
        trials = []
        for number, spec in enumerate(plan.trials):
            self.moment += timedelta(minutes=1)
            noise = random.Random(self.measured + number).gauss(1, 0.001)
            release = of_run[spec.run_id]
            trials.append(
                make_trial(
                    trial_id=spec.trial_id,
                    run_id=spec.run_id,
                    workload=spec.workload.name,
                    strategy=spec.strategy.name,
                    machine=make_machine("box", device="cpu"),
                    build=make_build(release),
                    started_at=self.moment,
                    latency_ns=self.latency_ms.get((release, spec.workload.name), 8.0) * MS * noise,
                    control_latency_ns=12 * MS,
                    seed=number,
                )
            )
        save_trials(database, trials)
        self.measured += len(trials)
        return RunOutcome(len(trials), 0, 0, False), None

    def install(self, monkeypatch: pytest.MonkeyPatch, *, is_frozen: bool = False) -> None:
        """In the place of the real one; without the process that freezes the page as a report."""
        facts = InterpreterFacts(
            path=sys.executable, python="3.11", torch="2.13.0", cuda=None, hip=None, device_count=0
        )
        monkeypatch.setattr(HostStacks, "read", lambda _settings: HostStacks(tuple(self.stacks)))
        monkeypatch.setattr(search_watch, "offered_versions", lambda *_, **__: self.offered)
        monkeypatch.setattr(search_watch, "create_build", self.create)
        monkeypatch.setattr(search_watch, "remove_build", lambda name, _settings: self.there.discard(name))
        for module in (search_watch, plan_plan):
            monkeypatch.setattr(module, "interpreter_facts", lambda _builds: [facts])
        monkeypatch.setattr(command, "measure", self.measure)
        if not is_frozen:
            monkeypatch.setattr(command, "freeze", lambda *_: "0" * 32)


CONFIG = """
[watch]
packages = ["torch"]
suite = "ours"
max_disk_gb = 0.001
[[suite]]
name = "ours"
workloads = ["elementwise", "cnn"]
strategies = ["default"]
[notify]
base_url = "https://watch.example"
[[channel]]
name = "team"
webhook = "{address}"
"""


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _sqlite_template: Path) -> Iterator[Webhook]:
    """A directory with a configuration that watches torch and tells a webhook."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(_sqlite_template, "compilewatch.db")
    with webhook() as receiving:
        Path("compilewatch.toml").write_text(CONFIG.format(address=receiving.address))
        yield receiving


def test_a_slower_release_is_measured_filed_frozen_told_once_and_removed(
    hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost({("2.14.0", "elementwise"): 12.0}, ["2.14.0", "2.13.0"])
    host.install(monkeypatch, is_frozen=True)
    looked = in_this_process("watch", cwd=Path.cwd())
    assert (looked.returncode, host.measured, hook.messages) == (0, 0, [])
    assert "torch 2.14.0 against 2.13.0: 20 trials" in looked.stderr
    ended = in_this_process("watch", "--once", "--json", cwd=Path.cwd())
    (row,) = json.loads(ended.stdout)["rows"]
    assert ended.returncode == 0, ended.stderr
    said = row["text"]
    assert said.startswith("torch 2.14.0 on your 2 models: latency 1 slower, ")
    # What seemed slower was measured again, by both.
    assert host.measured > 20
    assert not host.there
    (message,) = hook.messages
    assert (message["title"], message["link"]) == (said, f"https://watch.example/report/{row['report_id']}")
    assert "elementwise / default" in message["text"]
    with open_database("sqlite:///compilewatch.db") as database:
        states = {(each.regression.row.workload, each.state) for each in standing_regressions(database)}
        (report,) = reports_frame(database).to_dict("records")
        frozen = REPORTS.get(database, row["report_id"])
    assert states == {("elementwise", TriageState.CONFIRMED)}
    assert (report["report_id"], report["title"]) == (row["report_id"], said)
    # The report is about what got slower.
    assert "Latency of head against base" in json.dumps(frozen.content)
    # It is known now.
    again = in_this_process("watch", "--once", cwd=Path.cwd())
    assert (again.returncode, again.stdout) == (0, "Nothing new of torch.\n")
    assert len(hook.messages) == 1


def test_an_equal_release_is_told_too(hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost({}, ["2.14.0", "2.13.0"])
    host.install(monkeypatch)
    # What else was measured with the build in use is not missing in the new one.
    with open_database("sqlite:///compilewatch.db") as database:
        machine = make_machine("box", device="cpu")
        earlier = make_trial(run_id="earlier", workload="encoder", build=IN_USE.stack, machine=machine)
        save_trials(database, [earlier])
    assert in_this_process("watch", "--once", cwd=Path.cwd()).returncode == 0
    (message,) = hook.messages
    assert message["title"].startswith("torch 2.14.0 on your 2 models: latency 0 slower, 0 faster, ")
    assert "missing" not in message["title"]
    assert host.measured == 20


def test_the_service_tries_each_release_once_and_goes_on_after_one_that_cannot_be_installed(
    hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost({}, ["2.15.0", "2.13.0"])
    host.install(monkeypatch)
    settings = load_settings()
    with open_database("sqlite:///compilewatch.db") as database:
        service = _Releases(database, settings)
        monkeypatch.setattr(
            service, "_measured", lambda plan, _seconds, _stop: host.measure(plan, database)[0]
        )
        service.try_new(lambda: False)
        service.try_new(lambda: False)
        assert [message["title"] for message in hook.messages] == [
            "torch 2.15.0 could not be tried: pip could not install torch==2.15.0."
        ]
        host.offered = ["2.16.0", *host.offered]
        service.try_new(lambda: False)
        service.try_new(lambda: False)
    assert [message["title"].partition(" on ")[0] for message in hook.messages[1:]] == ["torch 2.16.0"]
    assert host.measured == 20


MODELS = """
import torch

class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(64, 64)

    def forward(self, x):
        return torch.nn.functional.silu(self.up(x)) * x

def gated():
    return Gated().eval(), (torch.randn(4096, 64),)

def plain():
    return torch.nn.Linear(256, 256).eval(), (torch.randn(512, 256),)
"""
SLOWER = "torch.sin(torch.asin(torch.sin(torch.asin(torch.tanh(input)))))"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_wheels_of_an_index_are_compared_for_real(index: tuple[Path, str], hook: Webhook) -> None:
    """The second is this torch with an activation that takes several times as long."""
    directory, address = index
    for name in {*needed_by("torch"), "numpy"}:
        offer_installed(directory, name)
    here = metadata.version("torch")
    edited = {
        "torch/version.py": (f"'{here}'", "'2.99.0rc1'"),
        "torch/nn/functional.py": ("torch._C._nn.silu(input)", f"torch._C._nn.silu({SLOWER})"),
    }
    offer_installed(directory, "torch", version="2.99.0rc1", edited=edited)
    offer_installed(directory, "torch")
    Path("models.py").write_text(MODELS)
    config = CONFIG.replace("max_disk_gb = 0.001", f'pre = true\nindex_url = "{address}"\ntrials = 3')
    config = config.replace('"elementwise", "cnn"', '"models:gated", "models:plain"')
    Path("compilewatch.toml").write_text(config.format(address=hook.address))
    ended = compilewatch("watch", "--once", "--json", cwd=Path.cwd(), timeout_s=1800)
    assert ended.returncode == 0, ended.stderr
    (row,) = json.loads(ended.stdout)["rows"]
    assert row["text"].startswith("torch 2.99.0rc1 on your 2 models: latency 1 slower, "), ended.stderr
    assert [message["title"] for message in hook.messages] == [row["text"]]
    shown = compilewatch("report", "show", row["report_id"], cwd=Path.cwd())
    assert row["text"] in " ".join(shown.stdout.split())
    assert not [path for path in Path(".compilewatch/builds").iterdir() if path.is_dir()]


def test_an_environment_takes_what_the_largest_of_this_host_takes(tmp_path: Path) -> None:
    for name, taken in (("torch-2.9.0", 5_000_000_000), ("torch-2.8.0+cpu", 700_000_000)):
        python = tmp_path / "data" / "builds" / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f"#!/bin/sh\necho {taken}\n")
        python.chmod(0o755)
        facts = BuildFacts(requirements=(name,), torch=name.removeprefix("torch-"), python="3.11")
        (python.parents[1] / "build.json").write_text(facts.model_dump_json())
    said = disk_words(2, Path(sys.executable), watching(tmp_path))
    assert said.startswith("2 environments at most, about 4.66 GiB each as torch takes here; ")
