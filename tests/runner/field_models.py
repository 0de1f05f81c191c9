"""Small models after public reports of people who work with torch.compile."""

import importlib
import itertools
import os
import random
import time
import warnings
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import torch


class Counter(torch.nn.Module):
    """Counts its calls (pytorch 128319, 115711): recompiles until the limit, then runs as it is."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        self.calls += 1
        return self.linear(x) * min(1.0, self.calls / 1000)


def counter():
    return Counter(), (torch.randn(4, 8),)


def counter_without_limit(limit=1_000_000):
    """The same for somebody who raised the limits: it never becomes steady."""
    torch._dynamo.config.recompile_limit = limit
    torch._dynamo.config.accumulated_recompile_limit = limit
    return counter()


def other_lengths_now_and_then():
    """Another shape every thirtieth call, of which each is compiled for itself."""
    calls = itertools.count()
    torch._dynamo.config.automatic_dynamic_shapes = False

    @torch.compiler.disable
    def length():
        return 4 + next(calls) // 30

    def run(x):
        return torch.relu(x[: length()]) * 2

    return run, (torch.randn(64, 8),)


class Scheduled(torch.nn.Module):
    """Its temperature is a number of Python that changes at every call."""

    def __init__(self):
        super().__init__()
        self.temperature = 1.0

    def forward(self, x):
        self.temperature *= 0.99
        return torch.softmax(x / self.temperature, -1)


def scheduled():
    return Scheduled(), (torch.randn(4, 8),)


def new_function_each_call():
    """A closure made anew at every call, which a guard on its identity never fits."""

    def run(x):
        return apply(lambda y: y * 2, x)

    def apply(function, x):
        torch._dynamo.graph_break()
        return function(x) + 1

    return run, (torch.randn(4, 8),)


def compiles_for_ever():
    @torch.compiler.assume_constant_result
    def settings():
        time.sleep(3600)
        return 2

    return (lambda x: x * (settings() if torch.compiler.is_compiling() else 2)), (torch.randn(4, 8),)


def takes_all_memory(group):
    """Joins a control group of memory, and takes more than it may have once it was compiled."""
    calls = itertools.count()

    @torch.compiler.disable
    def take():
        if next(calls) > 6:
            torch.ones(1 << 28)

    def run(x):
        take()
        return x * 2

    Path(group).write_text(str(os.getpid()))
    return run, (torch.randn(4, 8),)


# Tensors without a storage of their own (pytorch 160355, 132618).


def jagged():
    tensor = torch.nested.nested_tensor([torch.randn(n, 8) for n in (2, 5, 3)], layout=torch.jagged)
    return (lambda x: torch.relu(x) * 2), (tensor,)


def nested_with_strides():
    """The older layout, which has no shape."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The PyTorch API of nested tensors is in prototype stage")
        tensor = torch.nested.nested_tensor([torch.randn(2, 8), torch.randn(3, 8)])
    return (lambda x: x * 2), (tensor,)


def sparse():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        matrix = torch.randn(8, 8).relu().to_sparse_csr()
    return (lambda a, x: torch.relu(a @ x)), (matrix, torch.randn(8, 4))


def sparse_result():
    return (lambda x: (x * 2).to_sparse()), (torch.randn(8, 8).relu(),)


class Scaled(torch.Tensor):
    """Integers and a scale, as quantised weights are kept: a tensor around two others."""

    @staticmethod
    def __new__(cls, whole, scale):
        return torch.Tensor._make_wrapper_subclass(cls, whole.shape, dtype=scale.dtype, device=whole.device)

    def __init__(self, whole, scale):
        self.whole, self.scale = whole, scale

    def __tensor_flatten__(self):
        return ["whole", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, _context, _size, _stride):
        return cls(inner["whole"], inner["scale"])

    def dequantize(self):
        return self.whole.to(self.scale.dtype) * self.scale

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function in (torch.ops.aten.detach.default, torch.ops.aten.clone.default):
            return cls(args[0].whole.clone(), args[0].scale.clone())
        plain = [each.dequantize() if isinstance(each, cls) else each for each in args]
        return function(*plain, **(kwargs or {}))


class Quantised(torch.nn.Module):
    def __init__(self):
        super().__init__()
        whole = torch.randint(-8, 8, (8, 8), dtype=torch.int8)
        self.weight = torch.nn.Parameter(Scaled(whole, torch.tensor(0.1)), requires_grad=False)

    def forward(self, x):
        return torch.relu(torch.nn.functional.linear(x, self.weight))


def quantised():
    return Quantised(), (torch.randn(4, 8),)


# Results that are more than tensors, and state that a step changes (pytorch 138908, 120248, 141196).


@dataclass
class Result:
    logits: torch.Tensor
    hidden: torch.Tensor | None = None
    steps: int = 0
    kind: str = "mean"


class Stateful(torch.nn.Module):
    """Right, with everything that a step can leave behind."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.register_buffer("total", torch.zeros(8))
        self.seen = []
        self.count = 0

    def forward(self, x):
        y = self.linear(x)
        self.total += y.sum(0)
        self.count += 1
        self.seen = [*self.seen[-1:], self.count]
        x.mul_(0.5)
        return Result(y, steps=x.shape[0])


def stateful():
    return Stateful(), (torch.randn(4, 8),)


def _when_compiled(value, other):
    """`value` in eager, `other` in compiled code: stands for what a compiler gets wrong."""
    return other if torch.compiler.is_compiling() else value


def wrong_input():
    def run(x):
        x.copy_(torch.sin(x) * _when_compiled(1.0, 4.0))

    return run, (torch.randn(4, 8),)


def wrong_number():
    return (lambda x: (torch.relu(x), _when_compiled(1, 2))), (torch.randn(4, 8),)


def wrong_text():
    return (lambda x: Result(x + 1, kind=_when_compiled("mean", "sum"))), (torch.randn(4, 8),)


def wrong_none():
    return (lambda x: {"y": x + 1, "extra": _when_compiled(None, 0)}), (torch.randn(4, 8),)


class WrongBuffer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x):
        self.mean += x.mean(0) * _when_compiled(1.0, 0.5)
        return x * 2


def wrong_buffer():
    return WrongBuffer(), (torch.randn(4, 8),)


class WrongAttribute(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps += _when_compiled(1, 2)
        return x * 2


def wrong_attribute():
    return WrongAttribute(), (torch.randn(4, 8),)


def wrong_variable():
    seen = [0]

    def run(x):
        seen[0] += _when_compiled(1, 3)
        return x * 2

    return run, (torch.randn(4, 8),)


class Opaque:
    """Equal to itself alone."""

    __slots__ = ()


def opaque_result():
    @torch.compiler.disable
    def token():
        return Opaque()

    return (lambda x: (x * 2, token())), (torch.randn(4, 8),)


# Eager that isn't eager: what a user compiles inside (pytorch 149834).


def already_compiled():
    layers = torch.nn.Linear(8, 8), torch.nn.GELU()
    return torch.compile(torch.nn.Sequential(*layers), backend="eager"), (torch.randn(4, 8),)


class Wave(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x) * 2


def compiled_in_place():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), Wave())
    model[1].compile(backend="eager")
    return model, (torch.randn(4, 8),)


class PartCompiled(torch.nn.Module):
    @torch.compile(backend="eager")
    def forward(self, x):
        return torch.sin(x) * 3


def part_compiled():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), PartCompiled()), (torch.randn(4, 8),)


@torch.compile(backend="eager")
def helper(x):
    return torch.cos(x) + 1


def helper_compiled():
    return (lambda x: helper(x) * 2), (torch.randn(4, 8),)


def attends():
    """With a function of torch's that compiles where it is called uncompiled."""
    flex_attention = importlib.import_module("torch.nn.attention.flex_attention").flex_attention
    return (lambda q: flex_attention(q, q, q)), (torch.randn(1, 1, 128, 16),)


def slow_step(seconds=1.0):
    """A step that takes long whoever executes it."""

    @torch.compiler.disable
    def wait(x):
        time.sleep(seconds)
        return x

    return (lambda x: torch.relu(wait(x + 1) * 2)), (torch.randn(4, 8),)


class Kind(Enum):
    MEAN = 1
    SUM = 2


def wrong_enum():
    return (lambda x: (x + 1, _when_compiled(Kind.MEAN, Kind.SUM))), (torch.randn(4, 8),)


def wrong_dtype_name():
    return (lambda x: (x + 1, _when_compiled(torch.float32, torch.float16))), (torch.randn(4, 8),)


def right_array():
    @torch.compiler.disable
    def array(x):
        return x.numpy() + 1

    return (lambda x: {"y": x * 2, "array": array(x), "kind": Kind.SUM}), (torch.randn(4, 8),)


def right_distribution():
    return (lambda x: torch.distributions.Normal(x, x.abs() + 1)), (torch.randn(4, 8),)


class CountsOnItsClass(torch.nn.Module):
    calls = 0

    def forward(self, x):
        CountsOnItsClass.calls += _when_compiled(1, 2)
        return x * 2


def wrong_class_attribute():
    return CountsOnItsClass(), (torch.randn(4, 8),)


class CompiledAttribute(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.inner = torch.compile(self._inner, backend="eager")

    def _inner(self, x):
        return torch.sin(self.linear(x))

    def forward(self, x):
        return self.inner(x)


def compiled_attribute():
    return CompiledAttribute(), (torch.randn(4, 8),)


def compiles_when_called():
    def run(x):
        return torch.compile(torch.sin, backend="eager")(x) * 2

    return run, (torch.randn(4, 8),)


def gradient_of_input():
    """Called with gradients, of an input that needs one."""

    def run(x):
        (gradient,) = torch.autograd.grad(x.square().sum(), x)
        return gradient

    return run, (torch.randn(4, 8, requires_grad=True),)


def training_loop():
    """As people write it, with an optimizer that has moments and a schedule."""
    labels = torch.randint(3, (4,))
    model = torch.nn.Linear(8, 3)
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    return step, (torch.randn(4, 8),)


# Steps that are not what they seem.


def lazy():
    layers = torch.nn.LazyLinear(16), torch.nn.ReLU(), torch.nn.LazyLinear(4)
    return torch.nn.Sequential(*layers), (torch.randn(4, 8),)


def generator():
    def run(x):
        yield x * 2

    return run, (torch.randn(4, 8),)


def coroutine():
    async def run(x):
        return x * 2

    return run, (torch.randn(4, 8),)


def draws_of_python():
    return (lambda x: x * random.random()), (torch.randn(4, 8),)


def changes_settings():
    @torch.compiler.disable
    def change():
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(torch.get_num_threads() + 1)

    def run(x):
        change()
        return x + torch.ones(8, dtype=x.dtype)

    return run, (torch.randn(4, 8),)


def wrong_setting():
    def run(x):
        torch.set_default_dtype(_when_compiled(torch.float64, torch.bfloat16))
        return x * 2

    return run, (torch.randn(4, 8),)
