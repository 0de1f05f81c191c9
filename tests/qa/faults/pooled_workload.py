"""A workload whose compilation waits for Inductor's own pool of worker processes, as Triton kernels do.

Without a GPU nothing of Inductor uses its pool, so a backend of ours gives it work.
"""

import time

import torch
from torch._dynamo import register_backend
from torch._inductor.async_compile import AsyncCompile

from compilewatch.runner.workloads.built import Built

WORK_S = 40.0


@register_backend(name="pooled")
def pooled(graph, _inputs):
    torch._inductor.config.compile_threads = 2
    AsyncCompile.process_pool().submit(time.sleep, WORK_S).result()
    return graph.forward


def doubled():
    return Built(lambda x: x * 2, (torch.ones(8),), "function")
