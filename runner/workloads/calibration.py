"""Random weights whose outputs are of order 1, as trained ones give: elsewhere rounding or overflow would be
what is checked, and an absolute tolerance would pass anything or nothing.
"""

from __future__ import annotations

import torch
from torch import nn


def calibrate_batch_norm(model: nn.Module, *inputs: torch.Tensor) -> None:
    """Set the statistics of every batch norm to those of one forward pass of `inputs`; ends in `eval` mode.

    Untrained ones are mean 0 and variance 1, so a deep network multiplies its activations block by block.
    """
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        # A cumulative average: of one pass, that pass.
        norm.momentum = None
    model.train()
    with torch.no_grad():
        model(*inputs)
    model.eval()
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum


def keep_variance(model: nn.Module) -> None:
    """Initialise every linear layer so that a ReLU-like network neither grows nor shrinks what it is given
    (He et al., arXiv 1502.01852, equation 10).
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            nn.init.zeros_(module.bias)
