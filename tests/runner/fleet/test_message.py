"""What the queue says is data: a worker measures what its own configuration names, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import ConfigError
from compilewatch.db.records.requests import RequestKind, RequestSpec
from compilewatch.db.records.strategies import parse_strategy
from compilewatch.db.service.requests import new_request
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.fleet.dispatch import jobs_with_ids, with_ids_of
from compilewatch.runner.fleet.message import Message, RefusedError, job_of, message_of, read_message
from compilewatch.runner.fleet.names import queue_of_device, queues_of_worker
from compilewatch.runner.plan.host_stacks import HostStacks, MissingBuildError
from compilewatch.runner.plan.plan import canary_specs, plan_run, plan_spec
from compilewatch.runner.plan.trial_spec import Job
from tests.runner.fleet.test_service import make_fleet
from tests.runner.quick_measurement import configuration, interpreter
from tests.runner.service.test_service import NOW


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(configuration(tmp_path, interpreter(tmp_path / "build")))


@pytest.fixture
def job(settings: Settings) -> Job:
    (spec,) = plan_run(settings, device="cuda:0", trials=1, builds=settings.builds).trials
    return Job((spec,))


def test_a_message_becomes_the_same_job_with_this_hosts_code(job: Job, settings: Settings) -> None:
    message = read_message(message_of(job).model_dump(mode="json"))
    assert job_of(message, settings, device="cuda:0") == job


def test_a_recorded_build_is_found_by_the_host_that_measures(settings: Settings, tmp_path: Path) -> None:
    """The service need not have it: its plan only names it."""
    (build, stack), *_ = HostStacks.read(settings).stacks
    spec = RequestSpec(suite="quick", stacks=(stack,))
    request = new_request("one", RequestKind.CONFIRMATION, spec, by="the judge", at=NOW)
    elsewhere = configuration(tmp_path / "service", tmp_path / "no" / "python", '[fleet]\nqueues = ["cpu"]')
    with open_database(f"sqlite:///{tmp_path}/one.db", migrate=True) as database:
        fleet = make_fleet(load_settings(elsewhere), database)
        plan = fleet.plan(load_settings(elsewhere), request)
    (job,) = jobs_with_ids(plan, request)
    message = read_message(message_of(job).model_dump(mode="json"))
    assert [found.interpreter for found in job_of(message, settings, device="cpu").specs] == [build.python]
    gone = message.model_copy(update={"stack": stack.model_copy(update={"torch": "1.0.0"})})
    with pytest.raises(MissingBuildError, match="cannot be measured again"):
        job_of(gone, settings, device="cpu")


def test_canaries_travel_too(job: Job, settings: Settings) -> None:
    canaries = Job(canary_specs(job.specs[0]), is_canaries=True)
    message = read_message(message_of(canaries).model_dump(mode="json"))
    back = job_of(message, settings, device="cuda:0")
    assert [spec.workload for spec in back.specs] == [spec.workload for spec in canaries.specs]
    assert back.is_canaries


def test_a_message_holds_no_code_no_path_and_no_environment(job: Job) -> None:
    text = message_of(job).model_dump_json(exclude={"schema_"})
    assert not any(word in text for word in ("target", "path", "interpreter", "worker_env", "/"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "os:system"}, "no workload 'os:system'"),
        ({"version": "other"}, "differently"),
        ({"shape": {"elements": 3}}, "differently"),
    ],
)
def test_a_workload_that_means_something_else_here_is_refused(
    job: Job, settings: Settings, change: dict[str, object], reason: str
) -> None:
    message = message_of(job)
    changed = message.workloads[0].model_copy(update=change)
    with pytest.raises(RefusedError, match=reason):
        job_of(message.model_copy(update={"workloads": (changed,)}), settings, device="cpu")


def test_a_strategy_with_other_options_is_refused(job: Job, settings: Settings) -> None:
    message = message_of(job)
    strategy = message.strategy.model_copy(update={"options": {"max_autotune": True}})
    with pytest.raises(RefusedError, match="strategy"):
        job_of(message.model_copy(update={"strategy": strategy}), settings, device="cpu")


@pytest.mark.parametrize(
    "options", [{}, {"cpp.cxx": ["/tmp/anything"]}, {"aot_inductor.compile_wrapper_opt_level": "O3"}]
)
def test_canaries_bring_no_strategy_of_their_own(
    job: Job, settings: Settings, options: dict[str, object]
) -> None:
    """A canary is eager; with a strategy of the queue it would hand the compiler whatever the queue says."""
    message = message_of(Job(canary_specs(job.specs[0]), is_canaries=True))
    strategy = parse_strategy("default").model_copy(update={"options": options})
    forged = read_message(message.model_copy(update={"strategy": strategy}).model_dump(mode="json"))
    with pytest.raises(RefusedError, match="strategy"):
        job_of(forged, settings, device="cuda:0")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        *(
            ({"trial_ids": [name]}, "trial_ids")
            for name in ("..", "../../x", "/etc", "-rf", "a/b", "", "a\n")
        ),
        ({"run_id": "../../run"}, "run_id"),
        ({"trial_ids": []}, "trial_ids"),
        ({"trial_ids": ["one", "two"]}, "one workload for each trial"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("inf")}, "timeout_s"),
        ({"timeout_s": 1e300}, "timeout_s"),
        ({"matmul_precision": "fast"}, "matmul_precision"),
    ],
)
def test_a_message_names_no_path_and_no_endless_trial(
    job: Job, change: dict[str, object], named: str
) -> None:
    """Traces and spooled records lie under the trial's id, and an empty folder of traces is deleted."""
    with pytest.raises(RefusedError, match=named):
        read_message(message_of(job).model_dump(mode="json") | change)


@pytest.mark.parametrize("name", ["backend:tvm", "backend:somebodys_package+dynamic"])
def test_a_backend_of_whatever_is_installed_is_refused(job: Job, settings: Settings, name: str) -> None:
    message = message_of(job)
    strategy = parse_strategy(name)
    with pytest.raises(ConfigError, match="cannot name the backend"):
        job_of(message.model_copy(update={"strategy": strategy}), settings, device="cpu")
    with pytest.raises(ConfigError, match="cannot name the backend"):
        plan_spec(settings, RequestSpec(workloads=("cnn",), strategies=(name,)), [], device="cpu")


def test_a_build_that_is_not_here_is_refused(job: Job, settings: Settings) -> None:
    with pytest.raises(RefusedError, match=r"no build '\.\./python'"):
        job_of(message_of(job).model_copy(update={"build": "../python"}), settings, device="cpu")


def test_what_is_no_message_is_one_sentence() -> None:
    with pytest.raises(RefusedError, match="trial_ids"):
        read_message({"schema_": "compilewatch.job/1"})
    with pytest.raises(RefusedError):
        read_message([])


def test_whoever_plans_a_request_again_plans_the_same_trials(settings: Settings) -> None:
    def ids(request_id: str) -> list[str]:
        request = new_request(request_id, RequestKind.MANUAL, RequestSpec(), by="ann", at=NOW)
        plan = plan_run(settings, device="cpu", trials=3, builds=settings.builds)
        plan = with_ids_of(plan.model_copy(update={"canaries": True}), request)
        assert {spec.run_id for spec in plan.trials} == {plan.runs[0].run_id}
        return [spec.trial_id for job in jobs_with_ids(plan, request) for spec in job.specs]

    first = ids("one")
    assert ids("one") == first
    assert len(set(first)) == len(first) == 3 + 6
    assert not set(first) & set(ids("two"))


def test_queues_are_named_for_machine_types_hosts_and_gpus() -> None:
    assert queue_of_device("NVIDIA H200") == "nvidia-h200"
    assert queue_of_device(None) == "cpu"
    assert queues_of_worker("nvidia-h200", "box", "GPU-1") == ["nvidia-h200", "host:box", "gpu:GPU-1"]
    assert queues_of_worker("cpu", "box", None) == ["cpu", "host:box"]


def test_the_message_is_closed(job: Job) -> None:
    content = message_of(job).model_dump(mode="json") | {"interpreter": "/bin/sh"}
    with pytest.raises(RefusedError, match="interpreter"):
        read_message(content)
    assert set(Message.model_fields) & {"interpreter", "path", "worker_env", "target"} == set()
