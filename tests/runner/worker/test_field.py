"""What people bring: tensors without a storage, all kinds of results, state, parts compiled already."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from compilewatch.db.records.trial import FailureKind, Status, parse_trial
from compilewatch.runner.worker.numerics import check
from compilewatch.runner.worker.step.internals import as_written, count_compilations, force_eager, is_compiled
from compilewatch.runner.worker.step.loading import WorkloadError, build_workload, import_builder
from compilewatch.runner.worker.step.memory import resident_bytes, step_peak
from compilewatch.runner.worker.step.messages import Workload
from compilewatch.runner.worker.step.state import State, functions_of
from compilewatch.runner.worker.step.steps import apart, make_variant, own_copy, require_values
from compilewatch.runner.workloads.built import Built
from tests.runner.field_models import helper
from tests.runner.measuring import FIXTURES, compiled, measure

CPU = torch.device("cpu")


def built(name, task="inference"):
    workload = Workload(name=name, task=task, dtype="float32", target=f"field_models:{name}")
    return build_workload(import_builder(workload.target, (str(FIXTURES),)), workload, CPU)


def judged(name, task="inference"):
    """Numerics of the model under Dynamo, each side with inputs and state of its own."""
    torch._dynamo.reset()
    eager = built(name, task)
    target = apart(eager)
    call = torch.compile(target.model_or_fn, backend="eager")
    return check(make_variant(eager), make_variant(target, call), None, 0)


@pytest.mark.parametrize(
    "name",
    [
        *("jagged", "nested_with_strides", "sparse", "sparse_result", "quantised", "stateful"),
        *("right_array", "right_distribution", "lazy", "changes_settings"),
    ],
)
def test_what_is_right_passes_whatever_it_is_made_of(name):
    found, message = judged(name)
    assert (found["status"], message) == ("pass", None)
    assert "not_compared" not in found


@pytest.mark.parametrize(
    ("name", "where", "how"),
    [
        ("wrong_input", "input 0", ""),
        ("wrong_number", "output 1", "2 instead of 1"),
        ("wrong_text", "output kind", "'sum' instead of 'mean'"),
        ("wrong_none", "output extra", "0 instead of None"),
        ("wrong_buffer", "buffer mean", ""),
        ("wrong_attribute", "attribute steps", "4 instead of 2"),
        ("wrong_variable", "variable seen.0", "6 instead of 2"),
        ("wrong_enum", "output 1", "Kind.SUM"),
        ("wrong_dtype_name", "output 1", "torch.float16 instead of torch.float32"),
        ("wrong_class_attribute", "class attribute CountsOnItsClass.calls", "4 instead of 2"),
        ("wrong_setting", "setting default dtype", "torch.bfloat16 instead of torch.float64"),
    ],
)
def test_a_wrong_result_is_found_wherever_it_is(name, where, how):
    found, message = judged(name)
    assert found["status"] == "fail"
    assert f"The compiled {where} is wrong" in message
    assert how in message


@pytest.mark.filterwarnings("ignore")
def test_a_training_loop_starts_each_time_from_the_same_weights_and_moments():
    torch._dynamo.reset()
    eager = replace(built("training_loop"), with_gradients=True)
    state, variant = State(eager), make_variant(eager)
    losses = []
    for _ in range(2):
        losses.append([variant.step().item() for _ in range(3)])
        assert "optimizer state.0.exp_avg" in state.changes()
        state.restore()
    assert losses[0] == losses[1]
    target = apart(eager)
    call = torch.compile(target.model_or_fn, backend="eager")
    found, message = check(make_variant(eager), make_variant(target, call), None, 0)
    assert (found["status"], message) == ("pass", None)


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
def test_numbers_that_python_draws_repeat():
    found, message = judged("draws_of_python")
    assert (found["status"], message) == ("reproducible", None)


def test_a_lazy_module_has_its_weights_before_it_is_copied():
    workload = built("lazy")
    one, other = make_variant(workload), make_variant(own_copy(workload))
    assert torch.equal(one.step(), other.step())


@pytest.mark.parametrize("name", ["generator", "coroutine"])
def test_a_step_that_returns_what_has_yet_to_run_is_refused(name):
    returned = built(name).model_or_fn(torch.ones(2))
    with pytest.raises(WorkloadError, match=f"returns a {name}, of which nothing has run yet. Return its"):
        require_values(returned)
    if name == "coroutine":
        returned.close()


@pytest.mark.slow
def test_such_a_step_fails_before_it_is_measured():
    trial = measure("generator", target="field_models:generator")
    assert (trial.failure.kind, trial.failure.phase) == (FailureKind.WORKLOAD_ERROR, "eager_first")


def test_what_cannot_be_compared_is_named():
    found, message = judged("opaque_result")
    assert (found["status"], found["not_compared"], message) == ("pass", ["output 1"], None)


def test_a_step_leaves_nothing_behind_that_is_not_put_back():
    workload = built("stateful")
    state, before = State(workload), workload.inputs[0].clone()
    variant = make_variant(workload)
    for _ in range(3):
        variant.step()
    changed = {"input 0", "buffer total", "attribute count", "attribute seen.0", "attribute seen.1"}
    assert state.changes().keys() == changed
    state.restore()
    assert state.changes() == {}
    assert torch.equal(workload.inputs[0], before)
    assert (workload.model_or_fn.count, workload.model_or_fn.seen) == (0, [])


def test_memory_is_missing_where_a_tensor_has_no_storage():
    variant = make_variant(built("sparse"))
    assert resident_bytes(variant) is None
    assert step_peak(variant, CPU, [])["bytes"] is None


# Ten rows of eight floats and four offsets; 64 numbers of one byte, a scale, and an input of 4 by 8 floats.
@pytest.mark.parametrize(
    ("name", "held"), [("jagged", 10 * 8 * 4 + 4 * 8), ("quantised", 64 + 4 + 4 * 8 * 4)]
)
def test_a_tensor_around_others_holds_what_they_hold(name, held):
    variant = make_variant(built(name))
    assert resident_bytes(variant) == held
    assert step_peak(variant, CPU, [])["bytes"] >= held


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("already_compiled", "the whole"),
        ("compiled_in_place", "1"),
        ("part_compiled", "PartCompiled.forward"),
        ("helper_compiled", "helper"),
        ("compiled_attribute", "inner"),
    ],
)
def test_what_is_compiled_already_is_noticed_and_does_not_run_compiled_as_eager(name, part):
    torch._dynamo.reset()
    workload, count = built(name), count_compilations()
    names = [path or "the whole" for path, each in functions_of(workload) if is_compiled(each)]
    assert part in names
    before = count()
    with force_eager(), torch.no_grad():
        expected = make_variant(workload).step()
    assert count() == before
    with torch.no_grad():
        torch.testing.assert_close(make_variant(workload).step(), expected)
    assert count() > before


def test_the_whole_that_is_compiled_already_is_measured_as_it_is_written():
    model = built("already_compiled").model_or_fn
    assert as_written(model) is model._orig_mod
    assert as_written(helper) is not helper
    assert not is_compiled(as_written(helper))
    plain = built("stateful").model_or_fn
    assert as_written(plain) is plain


def test_a_step_that_compiles_whenever_it_is_called_is_named():
    names = [
        path or "the whole" for path, each in functions_of(built("compiles_when_called")) if is_compiled(each)
    ]
    assert names == ["the whole"]


def test_an_input_that_needs_a_gradient_needs_one_in_its_copies():
    workload = replace(built("gradient_of_input"), with_gradients=True)
    target = apart(workload)
    assert target.inputs[0].requires_grad
    assert target.inputs[0].is_leaf
    found, message = check(make_variant(workload), make_variant(target), None, 0)
    assert (found["status"], found["reference"], message) == ("pass", "float64", None)


def test_nothing_is_said_of_a_model_that_compiles_nothing():
    for name in ("stateful", "attends"):
        assert not [path for path, each in functions_of(built(name)) if is_compiled(each)]


@pytest.fixture(scope="module")
def trials():
    """Whole trials of one model of each kind, two at a time."""
    names = ["jagged", "quantised", "stateful", "wrong_input", "part_compiled"]
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda name: measure(name, compiled("eager"), target=f"field_models:{name}"), names)
        return dict(zip(names, found, strict=True))


@pytest.mark.slow
def test_tensors_without_storage_are_measured_without_memory(trials):
    for name in ("jagged", "quantised"):
        trial = trials[name]
        assert trial.status is Status.OK, trial.failure
        assert trial.samples_ns
        assert trial.memory.peak_bytes is None
        assert trial.numerics.status == "pass"


@pytest.mark.slow
def test_eager_beside_it_does_not_advance_the_compiled_state(trials):
    trial = trials["stateful"]
    assert trial.status is Status.OK, trial.failure
    assert trial.numerics.status == "pass"


@pytest.mark.slow
def test_a_wrong_write_to_an_input_fails_the_trial_and_keeps_its_samples(trials):
    trial = trials["wrong_input"]
    assert trial.failure.kind is FailureKind.WRONG_RESULT
    assert "input 0" in trial.failure.message
    assert trial.samples_ns


@pytest.mark.slow
def test_a_part_that_is_compiled_already_is_in_the_record(trials):
    trial = trials["part_compiled"]
    assert trial.status is Status.OK, trial.failure
    assert trial.compiler.already_compiled == ["PartCompiled.forward"]
    assert parse_trial(trial.to_json()) == trial


def test_a_method_that_compiles_and_that_no_step_calls_is_no_part_that_is_compiled() -> None:
    """As `PreTrainedModel.get_compiled_call` of transformers."""

    class Model(torch.nn.Module):
        def compiled_call(self) -> object:
            return torch.compile(self.__call__)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.doubled(x)

        def doubled(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    names = [name for name, _ in functions_of(Built(Model(), (torch.ones(2),)))]
    assert set(names) == {"", "Model.forward", "Model.doubled"}
