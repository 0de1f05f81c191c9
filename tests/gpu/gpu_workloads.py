"""Workloads for a GPU: healthy ones, and ones that break it in known ways."""

import torch
import triton
import triton.language as tl

from compilewatch.runner.workloads.built import Built


def chain(size=1 << 20):
    """Element-wise operations that fuse into one kernel."""

    def run(x):
        for _ in range(6):
            x = torch.sin(x) * 1.01 + 0.5
        return x

    return Built(run, (torch.randn(size, device="cuda"),), "function")


def matmul(size=4096):
    left = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)

    def run(a, b):
        return torch.mm(a, b)

    return Built(run, (left, left.clone()), "function")


def mlp(device, width=1024):
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, width))
    return model.to(device), (torch.randn(64, width, device=device),)


def mlp_loss(device, width=1024):
    return *mlp(device, width), lambda output: output.square().mean()


def resnet50():
    """The built-in one, at a smaller batch."""
    from compilewatch.runner.workloads.vision import build_resnet50

    return build_resnet50(batch_size=16, image_size=224, device=torch.device("cuda"), dtype=torch.bfloat16)


def visits_the_cpu():
    """An operation on the CPU in the middle, which no CUDA graph can record."""

    def run(x):
        shift = torch.sin(torch.ones(4)) + 1
        return (x * 2).sum() + shift.to(x.device).sum()

    return Built(run, (torch.randn(1 << 16, device="cuda"),), "function")


def takes_all_memory():
    free, _ = torch.cuda.mem_get_info()

    def run(x):
        return torch.empty(2 * free, dtype=torch.uint8, device="cuda")[:1] + x.to(torch.uint8)

    return Built(run, (torch.ones(1, device="cuda"),), "function")


@triton.jit
def _write_far_away(pointer):
    tl.store(pointer + (1 << 42), 1.0)


def writes_far_away():
    """A kernel that writes where no memory is: the context is lost with it."""

    def run(x):
        _write_far_away[(1,)](x)
        return x + 1

    return Built(run, (torch.ones(16, device="cuda"),), "function")


def indexes_past_the_end():
    """A device-side assertion: another error after which the context cannot be used."""

    def run(x, index):
        return x[index] + 1

    inputs = (torch.ones(16, device="cuda"), torch.tensor([1 << 30], device="cuda"))
    return Built(run, inputs, "function")
