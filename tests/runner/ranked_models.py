"""Models of several ranks, as their users write them."""

import json
import os
from pathlib import Path

import torch
from torch import nn
from torch.distributed import all_reduce, get_rank
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from compilewatch.runner.workloads.built import Batch, Built, Stream


def _layers():
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


def _mean_square(output):
    return output.square().mean()


def replicated():
    return DistributedDataParallel(_layers()), (torch.randn(8, 16),), _mean_square


def sharded():
    model = _layers()
    fully_shard(model)
    return model, (torch.randn(8, 16),), _mean_square


def uneven(lengths=(8, 12, 16)):
    """Rank 1 meets other lengths at its second and third step."""
    own = lengths if get_rank() == 1 else (8, 8, 8)
    batches = [Batch((torch.randn(length, 16),)) for length in own]
    model = nn.Linear(16, 4)

    def step(inputs):
        total = model(inputs).sum().detach()
        all_reduce(total)
        return total

    return Built(step, batches[0].inputs, "function", stream=Stream(lambda: batches))


def more_work_on_rank_1(sizes=(32, 384)):
    size = sizes[get_rank()]

    def step(inputs):
        total = (inputs @ inputs).sum()
        all_reduce(total)
        return total

    return step, (torch.randn(size, size),)


def tells_its_cores(folder=""):
    """Writes what this rank may run on, as it is built and at each step, and its threads of compilation."""
    import torch._inductor.config as config

    file = Path(folder) / f"rank{get_rank()}"
    built = {"built": sorted(os.sched_getaffinity(0)), "compile_threads": config.compile_threads}

    def step(inputs):
        total = inputs.sum()
        all_reduce(total)
        # In a file: what the function holds itself is put back.
        with file.open("a") as steps:
            steps.write(json.dumps(built | {"stepped": sorted(os.sched_getaffinity(0))}) + "\n")
        return total

    return step, (torch.ones(8),)


def fails_on_rank_1():
    if get_rank() == 1:
        raise ValueError("no shard of the data for rank 1")
    return replicated()
