"""Small models as people report them, for `plain_script.py`: each builder is one that a user would write."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

_Inputs = tuple[Tensor, ...]


class Gated(nn.Module):
    """One block of a gated MLP, pre-norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.up(self.norm(x)).chunk(2, -1)
        added: Tensor = self.down(functional.silu(gate) * value)
        return x + added


def gated_mlp() -> tuple[nn.Module, _Inputs]:
    """Three gated blocks over a batch of 64."""
    return nn.Sequential(*(Gated(96) for _ in range(3))), (torch.randn(64, 96),)


class Tower(nn.Module):
    """A ranker: two ids through an embedding, three layers over it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20_000, 64)
        self.layers = nn.ModuleList(nn.Linear(128 if n == 0 else 512, 512) for n in range(3))

    def forward(self, ids: Tensor) -> Tensor:
        x: Tensor = self.table(ids).flatten(1)
        for layer in self.layers:
            x = functional.gelu(layer(x)) * 0.5 + 0.1
        return x


def ranker() -> tuple[nn.Module, _Inputs]:
    """Intermediates of 1 MiB, which glibc maps afresh in a process that has freed nothing as large."""
    return Tower(), (torch.randint(20_000, (512, 2)),)


class Remembering(nn.Module):
    """Keeps its hidden states in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(128, 128)
        self.past: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        hidden = functional.gelu(self.linear(x))
        self.past.append(hidden)
        return hidden + torch.stack(self.past).mean(0)


def remembering() -> tuple[nn.Module, _Inputs]:
    """State that grows by 4 KiB a call."""
    return Remembering(), (torch.randn(8, 128),)


_HISTORY: list[Tensor] = []


def forget() -> None:
    """Empty the list in which `hoarding` keeps what it computed."""
    _HISTORY.clear()


def hoarding() -> tuple[Callable[..., Tensor], _Inputs]:
    """A function that keeps 8 KiB a call in a global list and reads all of it."""

    def step(x: Tensor, weight: Tensor) -> Tensor:
        _HISTORY.append(torch.tanh(x @ weight))
        return torch.cat(_HISTORY).sum(0)

    return step, (torch.randn(16, 128), torch.randn(128, 128))


BEGIN_AGAIN: list[Callable[[], None]] = []
"""Makes each training that was built new. One that goes on over the same batch has denormal moments after
some thousand steps, and its compiled step then takes 1.2 times as long."""


def training_closure() -> tuple[Callable[..., Tensor], _Inputs]:
    """A whole training step, with model and AdamW in its closure."""
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss

    def begin_again() -> None:
        for each in model:
            if isinstance(each, nn.Linear):
                each.reset_parameters()
        for of_parameter in optimizer.state.values():
            for moment in of_parameter.values():
                moment.zero_()

    BEGIN_AGAIN.append(begin_again)
    return step, (torch.randn(128, 256), torch.randint(10, (128,)))


class Cached(nn.Module):
    """A step of decoding over a static cache, whose position it counts up."""

    k: Tensor
    v: Tensor
    position: Tensor

    def __init__(self, width: int = 128, length: int = 2048) -> None:
        super().__init__()
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.register_buffer("k", torch.zeros(1, length, width))
        self.register_buffer("v", torch.zeros(1, length, width))
        self.register_buffer("position", torch.zeros(1, dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        k, v = self.kv(x).chunk(2, -1)
        self.k.index_copy_(1, self.position, k)
        self.v.index_copy_(1, self.position, v)
        self.position.add_(1)
        return functional.scaled_dot_product_attention(self.q(x), self.k, self.v)


def cached() -> tuple[nn.Module, _Inputs]:
    """State that calls write in place; full after 2,048 of them."""
    return Cached(), (torch.randn(1, 1, 128),)


class Recurrent(nn.Module):
    """A cell in a loop of Python."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.into, self.again = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, xs: Tensor) -> Tensor:
        hidden = torch.zeros_like(xs[:, 0])
        out = []
        for step in range(xs.shape[1]):
            hidden = torch.tanh(self.into(xs[:, step]) + self.again(hidden))
            out.append(hidden)
        return torch.stack(out, 1)


def loop() -> tuple[nn.Module, _Inputs]:
    """Twenty steps of a cell, unrolled by the compiler."""
    return Recurrent(), (torch.randn(8, 20, 32),)


class Spectral(nn.Module):
    """A filter of complex numbers."""

    def __init__(self, size: int = 1024) -> None:
        super().__init__()
        self.filter = nn.Parameter(torch.randn(size // 2 + 1, dtype=torch.complex64))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = torch.fft.irfft(torch.fft.rfft(x) * self.filter)
        return found


def spectral() -> tuple[nn.Module, _Inputs]:
    """Complex operators, for which nothing is generated."""
    return Spectral(), (torch.randn(64, 1024),)
