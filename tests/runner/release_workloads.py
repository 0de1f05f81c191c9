"""Tiny workloads that make every fact of a trial appear, under any release of torch."""

import torch

from compilewatch.runner.workloads.built import Batch, Built, Stream


def function_of_many_lengths():
    """More lengths than a static function is compiled for; after the limit Dynamo runs it eagerly."""

    def function(x):
        return torch.relu(x * 2)

    batches = [Batch((torch.ones(length),)) for length in range(3, 16)]
    return Built(function, batches[0].inputs, "function", stream=Stream(lambda: batches, "none"))
