"""Small models after public reports of people who work with torch.compile."""

import itertools
import time

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
