"""Models whose state grows with their calls or runs full, by what holds it, and some that only seem to."""

from __future__ import annotations

from collections import UserList, deque
from dataclasses import dataclass, field

import torch
from torch import nn

from compilewatch.runner.workloads.built import Built

HISTORY = []
X = (torch.ones(4, 16),)


class Holds(nn.Module):
    """Keeps each input in `past`, and works through all of them."""

    def __init__(self, past):
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.past = past

    def forward(self, x):
        h = self.linear(x)
        self.past.append(h)
        return h + torch.stack(list(self.past)).mean(0)


def in_list():
    return Holds([]), X


def in_deque():
    return Holds(deque()), X


def in_user_list():
    return Holds(UserList()), X


@dataclass(slots=True)
class Cache:
    entries: list = field(default_factory=list)

    def append(self, entry):
        self.entries.append(entry)

    def __iter__(self):
        return iter(self.entries)


def in_slots():
    return Holds(Cache()), X


def in_global():
    def step(x):
        HISTORY.append(x.tanh())
        return torch.cat(HISTORY).sum(0)

    return step, X


class NamesGlobal(nn.Module):
    def forward(self, x):
        HISTORY.append(x.tanh())
        return torch.cat(HISTORY).sum(0)


def in_global_of_module():
    return NamesGlobal(), X


def in_closure():
    past = []

    def step(x):
        past.append(x.tanh())
        return torch.cat(past).sum(0)

    return step, X


def in_hook():
    seen = []
    model = nn.Linear(16, 16)
    model.register_forward_hook(lambda _module, _inputs, output: seen.append(output.detach()))
    return model, X


class Generator:
    def __init__(self):
        self.linear = nn.Linear(16, 16)
        self.past = []

    def step(self, x):
        self.past.append(self.linear(x))
        return torch.cat(self.past).sum(0)

    def __call__(self, x):
        return self.step(x)


def in_method():
    return Generator().step, X


def in_object():
    return Generator(), X


def in_default():
    def step(x, past=[]):  # noqa: B006
        past.append(x.tanh())
        return torch.cat(past).sum(0)

    return step, X


class Concatenates(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(0, 16))

    def forward(self, x):
        self.cache = torch.cat([self.cache, x])
        return self.cache.sum(0)


def in_buffer():
    return Concatenates(), X


class NewAttributes(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        setattr(self, f"seen_{self.calls}", x.tanh())
        self.calls += 1
        return x + 1


def in_attributes():
    return NewAttributes(), X


class NotCleared(dict):
    def clear(self):
        raise TypeError("not cleared")


class CannotBePutBack(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = NotCleared()

    def forward(self, x):
        self.seen[len(self.seen)] = x.tanh()
        return x + len(self.seen)


def cannot_be_put_back():
    return CannotBePutBack(), X


def puts_itself_back():
    model = CannotBePutBack()
    return Built(model, X, reset=lambda side: dict.clear(side.seen))


class Filled(nn.Module):
    """A cache of so many positions; its position is counted up in place."""

    def __init__(self, positions):
        super().__init__()
        self.register_buffer("cache", torch.zeros(positions, 16))
        self.register_buffer("position", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        self.cache.index_copy_(0, self.position, x[:1])
        self.position.add_(1)
        return self.cache.sum(0)


def filled():
    return Filled(24), X


class Codebook(nn.Module):
    """Moves its codes towards what comes in, as vector quantisation does."""

    def __init__(self, *, through_data):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(8, 16), requires_grad=False)
        self.through_data = through_data

    def forward(self, x):
        nearest = torch.cdist(x, self.codes).argmin(1)
        codes = self.codes.data if self.through_data else self.codes
        codes.mul_(0.99).add_(0.01 * x.mean(0))
        return self.codes[nearest] * 2


def codebook():
    return Codebook(through_data=False), X


def codebook_through_data():
    return Codebook(through_data=True), X


class Ring(nn.Module):
    """Full after three calls."""

    def __init__(self):
        super().__init__()
        self.past = deque(maxlen=3)

    def forward(self, x):
        self.past.append(x.tanh())
        return torch.cat(list(self.past)).sum(0)


def ring():
    return Ring(), X


def norm():
    return nn.BatchNorm1d(16), X


def plain():
    return nn.Linear(16, 16), X
