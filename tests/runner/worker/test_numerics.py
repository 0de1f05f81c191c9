"""When a compiled result counts as right, wrong, or impossible to judge."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from torch import nn

from compilewatch.db.cause.trial_words import numerics_sentence
from compilewatch.db.records.evidence import Numerics
from compilewatch.runner.worker.numerics import check, tolerance_of
from compilewatch.runner.worker.step import host
from compilewatch.runner.worker.step.state import State
from compilewatch.runner.worker.step.steps import make_variant, own_copy
from compilewatch.runner.workloads.built import Built
from tests.runner import workload_fixtures as workloads
from tests.runner.seeded_defects import DEFECTS, build


def judged(built, wrong=None, seed=0, **options):
    """`wrong` stands for the compiled callable; None for a faithful one."""
    target = own_copy(built) if built.task == "training" else built
    call = target.model_or_fn if wrong is None else wrong(target.model_or_fn)
    return check(make_variant(built), make_variant(target, call), None, seed, **options)


def test_a_faithful_result_passes_against_float64():
    found, message = judged(workloads.relu_function())
    assert found["status"] == "pass"
    assert found["reference"] == "float64"
    assert found["max_abs_error"] == 0.0
    assert message is None


def test_a_wrong_result_fails_and_says_where():
    found, message = judged(workloads.relu_function(), lambda f: lambda x: f(x) + 0.01)
    assert found["status"] == "fail"
    assert found["max_abs_error"] == pytest.approx(0.01, rel=1e-3)
    assert "output 0" in message


def test_a_missing_output_fails():
    built = Built(lambda x: (x, x + 1), (torch.ones(3),), "function")
    found, message = judged(built, lambda f: lambda x: f(x)[:1])
    assert found["status"] == "fail"
    assert "output 1" in message


def test_an_output_near_zero_everywhere_is_degenerate():
    found, message = judged(workloads.near_zero_output(), lambda f: lambda x: f(x) * 3)
    assert found == {"status": "degenerate"}
    assert message is None


def test_random_numbers_that_repeat_from_one_seed_are_reproducible():
    expected = {"status": "reproducible", "not_compared": ["outputs"]}
    assert judged(workloads.random_output())[0] == expected
    other = judged(workloads.random_output(), lambda f: lambda x: f(x) + torch.rand_like(x))
    assert other == (expected, None)


def dropped_out():
    """Two layers with dropout between them, and a loss that has corners."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 32), nn.Tanh())
    return Built(model, (torch.randn(16, 64),), "training")


class OtherMask(torch.autograd.Function):
    """Dropout whose backward pass draws a mask of its own, from one seed every time."""

    @staticmethod
    def forward(ctx, x):
        return x * (torch.rand_like(x) > 0.5) * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * (torch.rand_like(gradient) > 0.5) * 2


def test_random_gradients_are_held_to_finite_differences_of_their_loss():
    found, message = judged(dropped_out())
    assert message is None
    assert found == {
        "status": "reproducible",
        "reference": "finite differences",
        "not_compared": ["loss"],
    }
    said = "gradients agree with finite differences of the loss, loss not compared with eager"
    assert numerics_sentence(Numerics.model_validate(found)) == said
    found, message = judged(dropped_out(), draws_as_eager=True)
    assert (found["status"], message) == ("pass", None)


def test_gradients_of_another_dropout_mask_than_the_forward_pass_are_wrong():
    def wrong(model):
        layers = list(model)
        layers[2] = OtherMask.apply

        def call(x):
            for layer in layers:
                x = layer(x)
            return x

        return call

    found, message = judged(dropped_out(), wrong)
    assert found["status"] == "fail"
    assert message.startswith("The compiled gradient of 0.weight is wrong: it is ")
    assert "off finite differences of its own loss from the same random numbers" in message


@pytest.mark.usefixtures("fresh_dynamo")
def test_the_activation_budget_of_torch_draws_another_mask_in_the_backward_pass():
    """https://github.com/pytorch/pytorch/issues/190758, in the graph that is parted, before code is made."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4096))

        def forward(self, x):
            return nn.functional.dropout(x * self.scale, 0.5).sin()

    built = Built(Scaled(), (torch.ones(4096),), "training", loss=torch.sum)
    for budget, status in ((1.0, "reproducible"), (0.5, "fail")):
        torch._dynamo.reset()
        with torch._functorch.config.patch(activation_memory_budget=budget):
            found, _ = judged(built, lambda model: torch.compile(model, backend="aot_eager"))
        assert found["status"] == status, budget


def test_gradients_that_rounding_hides_are_said_not_to_be_compared():
    built = replace(dropped_out(), autocast_dtype=torch.bfloat16)
    found, message = judged(built)
    assert (found, message) == ({"status": "reproducible", "not_compared": ["loss and gradients"]}, None)
    said = "loss and gradients not compared with eager"
    assert numerics_sentence(Numerics.model_validate(found)) == said


def whole_step(*, optimizes):
    """A function that leaves gradients on its model and never empties them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = model(x).square().mean() / 100
        loss.backward()
        if optimizes:
            optimizer.step()
        return loss

    return Built(step, (torch.randn(8, 16),), "function", with_gradients=True), model


@pytest.mark.parametrize("optimizes", [True, False])
def test_gradients_that_a_function_leaves_are_put_back_and_compared_by_their_own_size(optimizes):
    built, model = whole_step(optimizes=optimizes)
    found, message = judged(built)
    assert (found["status"], message) == ("pass", None)
    assert all(each.grad is None for each in model.parameters())

    def wrong(step):
        def call(x):
            loss = step(x)
            model[0].weight.grad.mul_(0.9)
            return loss

        return call

    found, message = judged(built, wrong)
    assert found["status"] == "fail"
    assert message.startswith("The compiled gradient of weight 0.weight is wrong")


def test_random_numbers_that_do_not_repeat_fail():
    generator = torch.Generator()
    found, message = judged(
        workloads.random_output(), lambda f: lambda x: x + torch.rand(x.shape, generator=generator)
    )
    assert found == {"status": "fail"}
    assert message == "The compiled output 0 differs between two runs from the same seed."


def test_random_numbers_drawn_as_eager_are_compared():
    found, message = judged(workloads.random_output(), draws_as_eager=True)
    assert (found["status"], found["max_abs_error"], message) == ("pass", 0.0, None)
    found, message = judged(
        workloads.random_output(), lambda f: lambda x: f(x) + torch.rand_like(x), draws_as_eager=True
    )
    assert found["status"] == "fail"
    assert "output 0" in message


def test_a_workload_that_is_not_repeatable_is_told():
    calls = itertools.count()

    def drifting(x):
        return x + next(calls)

    assert judged(Built(drifting, (torch.ones(3),), "function"))[0] == {"status": "eager_two_runs_differ"}


def test_training_is_judged_by_loss_and_gradients():
    found, message = judged(workloads.training())
    assert found["status"] == "pass"

    class HalfGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient / 2

    def wrong(model):
        return lambda x: HalfGradient.apply(model(x))

    found, message = judged(workloads.training(), wrong)
    assert found["status"] == "fail"
    assert "gradient of" in message


def test_weights_that_training_moved_are_put_back_first():
    built = workloads.training()
    copied = own_copy(built)
    states = (State(built), State(copied))
    eager, compiled = make_variant(built), make_variant(copied)
    for _ in range(3):
        eager.step()
    found, _ = check(eager, compiled, states, 0)
    assert found["status"] == "pass"


def test_weights_that_cannot_be_put_back_are_not_compared_with_others(monkeypatch):
    """Each side has trained its own weights, and there was no room to keep what they were."""
    monkeypatch.setattr(host, "available_memory_bytes", lambda: 1 << 20)
    built = Built(nn.Linear(512, 512), (torch.randn(2, 512),), "training")
    copied = own_copy(built)
    states = (State(built), State(copied))
    eager, compiled = make_variant(built), make_variant(copied)
    eager.step()
    found = check(eager, compiled, states, 0)
    assert found == ({"status": "not_checked", "reason": "too little memory"}, None)


def test_the_coarsest_dtype_gives_the_tolerance():
    built = workloads.relu_function()
    assert tolerance_of(built, {"output": torch.ones(1)}) == 1e-4
    assert tolerance_of(built, {"output": torch.ones(1, dtype=torch.bfloat16)}) == 1e-3
    assert tolerance_of(workloads.training(), {}) == 1e-2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_seeded_defect_fails(defect, dtype):
    built = build(torch.device("cpu"), dtype)
    found, message = judged(built, DEFECTS[defect])
    assert found["status"] == "fail"
    assert message is not None
    assert 0.1 < found["rms_exact"] < 10


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_same_network_without_a_defect_passes(dtype):
    def fused(model):
        """The batch norm folded into the product before it: other roundings, no defect."""

        def call(x):
            norm = model.norm
            scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
            weight = (model.first.weight.double() * scale[:, None]).to(dtype)
            bias = (model.first.bias.double() - norm.running_mean.double()) * scale + norm.bias.double()
            return model.second(torch.nn.functional.linear(x, weight, bias.to(dtype)))

        return call

    found, message = judged(build(torch.device("cpu"), dtype), fused)
    assert (found["status"], message) == ("pass", None)
