"""Workloads that misbehave, and small ones that do not, for tests that start real measured processes."""

import ctypes
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from runner.workloads import epoch
from runner.workloads.built import Batch, Built, Stream


def healthy():
    """A model and its inputs, as a user returns them."""
    return torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()), (torch.randn(4, 16),)


def training(batch_size=8):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    return Built(model, (torch.randn(batch_size, 16),), "training")


def training_whole():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    return Built(model, (torch.randn(8, 16),), "training", compile_optimizer=True)


def relu_function():
    torch.manual_seed(0)
    return Built(lambda x: torch.relu(x * 2 - 0.5), (torch.randn(64, 64),), "function")


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


def segfaults():
    ctypes.string_at(0)


def out_of_address_space():
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
    held = []
    while True:
        held.append(bytearray(64 << 20))


def prints_garbage(fails=False):
    """100 MB on stdout and stderr, a good part of it no text."""
    chunk = os.urandom(1 << 20)
    for _ in range(50):
        sys.stdout.buffer.write(chunk)
        sys.stderr.buffer.write(chunk)
    sys.stderr.buffer.write(b"\nthe last words\n")
    if fails:
        raise RuntimeError("after the last words")
    return healthy()


def leaves_a_daemon(pid_file):
    """A process in a session of its own whose parent is gone at once, as daemons are made."""
    program = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(3600)"
    starter = (
        "import subprocess, sys;"
        "subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[2]], start_new_session=True)"
    )
    subprocess.run([sys.executable, "-c", starter, program, pid_file], check=True)
    while not Path(pid_file).exists() or not Path(pid_file).read_text():
        time.sleep(0.01)
    return healthy()


def daemon_then_hang(pid_file):
    leaves_a_daemon(pid_file + ".daemon")
    Path(pid_file).write_text(str(os.getpid()))
    hangs()


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


def children_affinity(out_file):
    """Writes the CPUs that a child started while compiling may use."""

    class Probing(torch.nn.Module):
        def forward(self, x):
            if torch.compiler.is_compiling():
                return probe(x)
            return x + 1

    @torch.compiler.assume_constant_result
    def probe_result():
        code = "import os; print(len(os.sched_getaffinity(0)))"
        answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        Path(out_file).write_text(answer.stdout + os.environ.get("OMP_PROC_BIND", "unset"))
        return 1

    def probe(x):
        return x + probe_result()

    return Built(Probing().eval(), (torch.ones(4),), "inference")


def faults_per_step(out_file):
    """Writes the minor page faults of a warm element-wise step on 4 MB tensors: the median so far."""
    import resource

    x = torch.randn(1024, 1024)
    seen = []

    def function(a):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        result = torch.relu(a * 2 + 1) - 0.5
        seen.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
        Path(out_file).write_text(str(statistics.median(seen)))
        return result

    return Built(function, (x,), "function")
