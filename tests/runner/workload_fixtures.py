"""Workloads that misbehave, and small ones that do not, for tests that start real measured processes."""

import ctypes
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch

from compilewatch.runner.workloads import epoch
from compilewatch.runner.workloads.built import Batch, Built, Stream


def healthy():
    """A model and its inputs, as a user returns them."""
    return torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()), (torch.randn(4, 16),)


def own_threads():
    """Sets for itself what a plain script may."""
    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("medium")
    return healthy()


def training(batch_size=8, child_file=None):
    torch.manual_seed(0)
    if child_file is None:
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    else:
        # Fewer kernels: g++ needs seconds for each.
        model = torch.nn.Sequential(children_affinity(child_file), torch.nn.Linear(16, 4))
    return Built(model, (torch.randn(batch_size, 16),), "training")


def children_affinity(out_file):
    """Writes the CPUs that a child started while compiling may use, and what it is told of a binding."""

    class Probing(torch.nn.Module):
        def forward(self, x):
            return probe(x) if torch.compiler.is_compiling() else x + 1

    @torch.compiler.assume_constant_result
    def probe_result():
        code = "import os; print(len(os.sched_getaffinity(0)), os.environ.get('OMP_PROC_BIND', 'unset'))"
        answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        Path(out_file).write_text(answer.stdout)
        return 1

    def probe(x):
        return x + probe_result()

    return Probing()


def training_whole():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    return Built(model, (torch.randn(8, 16),), "training", compile_optimizer=True)


def relu_function():
    torch.manual_seed(0)
    return Built(lambda x: torch.relu(x * 2 - 0.5), (torch.randn(64, 64),), "function")


def transposed():
    """Which Inductor compiles without a kernel, and so without g++."""
    return Built(torch.t, (torch.ones(8, 4),), "function")


def batched_product(size=64):
    """For which Inductor has a C++ kernel beside torch's own, also where neither factor is constant."""
    torch.manual_seed(0)
    return Built(torch.bmm, (torch.randn(4, size, size), torch.randn(4, size, size)), "function")


def hangs():
    while True:
        time.sleep(3600)


def hangs_in_c():
    """Holds the GIL for ever, so that no Python thread or signal handler can run."""
    ctypes.PyDLL(None).sleep(3600)


def out_of_address_space():
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
    held = []
    while True:
        held.append(bytearray(64 << 20))


def raises():
    raise ValueError("the configuration has no layer 7, see https://example.org/secret?token=abc")


def breaks_graph():
    def function(x):
        x = x + 1
        print("a side effect")
        return x * 2

    return Built(function, (torch.ones(8),), "function")


def breaks_inside_a_loop():
    """Dynamo skips the whole frame: no break is counted and nothing is compiled."""

    def function(x):
        for _ in range(2):
            x = x + 1
            print("a side effect")
        return x

    return Built(function, (torch.ones(8),), "function")


def branches_on_data():
    def function(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    return Built(function, (torch.ones(8),), "function")


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 8, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


def recurrent():
    torch.manual_seed(0)
    return Built(Recurrent().eval(), (torch.randn(2, 4, 8),), "inference")


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.linear(x))


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def three_blocks():
    torch.manual_seed(0)
    return Built(Stack().eval(), (torch.randn(2, 8),), "inference")


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Stack()
        self.extra = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(8, 8)) for _ in range(2))

    def forward(self, x):
        x = self.body(x)
        for layer in self.extra:
            x = layer(x)
        return x


def two_kinds_of_blocks():
    torch.manual_seed(0)
    return Head().eval(), (torch.randn(2, 8),)


def three_lengths():
    """Batches of (2, length, 8) that are served one after the other."""
    torch.manual_seed(0)
    batches = [Batch((torch.randn(2, length, 8),)) for length in (5, 7, 11)]
    stream = Stream(lambda: batches, "none", tokens=40, padded_tokens=46)
    return Built(Stack().eval(), batches[0].inputs, stream=stream)


def ragged_epoch(drop_last=False):
    """Two batches of 8 images and one of 3."""
    return epoch.build(
        batch_size=8,
        images=19,
        image_size=8,
        channels=8,
        device=torch.device("cpu"),
        dtype=torch.float32,
        drop_last=drop_last,
    )


def random_output():
    return Built(lambda x: x + torch.rand_like(x), (torch.ones(32),), "function")


def near_zero_output():
    return Built(lambda x: x * 1e-20, (torch.ones(32),), "function")


def unfakeable():
    """An operation without a fake implementation, so that it cannot be traced."""
    library = torch.library.Library("compilewatch_test", "DEF")
    library.define("mystery(Tensor x) -> Tensor")
    library.impl("mystery", lambda x: x.clone(), "CPU")
    unfakeable.library = library
    return Built(lambda x: torch.ops.compilewatch_test.mystery(x) + 1, (torch.ones(4),), "function")


def wrong_when_compiled():
    return Built(lambda x: x + torch.compiler.is_compiling(), (torch.ones(4),), "function")


def wrong_relu():
    """Inductor's own switch that makes the generated ReLU wrong (torch/_inductor/config.py)."""
    import torch._inductor.config

    torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"
    return relu_function()


class Hoarding(torch.nn.Module):
    """Keeps 8 KiB of each call in a list, and reads all of it."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def forward(self, x):
        self.kept.append(torch.tanh(x))
        return torch.cat(self.kept).sum(0)


def hoarding():
    return Hoarding().eval(), (torch.randn(16, 128),)


def pooled():
    """Compiled by a backend that has Inductor's pool at work, as Triton's kernels do."""
    import torch._inductor.async_compile as pools
    from torch._dynamo import register_backend

    def backend(graph, _inputs):
        pools.AsyncCompile.process_pool().submit(abs, 1).result()
        return graph.forward

    torch._inductor.config.compile_threads = 2
    register_backend(backend, name="pooled")
    return Built(lambda x: x * 2, (torch.ones(8),), "function")


class FillsUp(torch.nn.Module):
    """Room for so many calls, in an iterator, whose state nobody sees."""

    def __init__(self, positions=64):
        super().__init__()
        self.room = iter(range(positions))

    def forward(self, x):
        if next(self.room, None) is None:
            raise IndexError("no room is left")
        return torch.relu(x * 2)


def fills_up():
    return Built(FillsUp(), (torch.randn(8, 8),), "inference")
