"""An LSTM as a cell in a Python loop.

`torch.nn.LSTM` is not used: Dynamo skips its frame (`torch._dynamo.config.allow_rnn` is False), so that
nothing is compiled. The loop is unrolled into one graph.
"""

from __future__ import annotations

import torch
from torch import nn

from compilewatch.runner.workloads.built import INFERENCE, Built


class UnrolledLstm(nn.Module):
    """One LSTM cell over a sequence."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.cell = nn.LSTMCell(width, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, sequence, width) -> the last hidden state, (batch, hidden)."""
        state = x.new_zeros(x.shape[0], self.hidden)
        memory = torch.zeros_like(state)
        for step in x.unbind(1):
            state, memory = self.cell(step, (state, memory))
        return state


def build_lstm_cell(
    *,
    batch_size: int,
    sequence_length: int,
    width: int,
    hidden: int,
    device: torch.device,
    dtype: torch.dtype,
) -> Built:
    """Inference on (batch_size, sequence_length, width)."""
    model = UnrolledLstm(width, hidden).to(device, dtype).eval()
    inputs = (torch.randn(batch_size, sequence_length, width, device=device, dtype=dtype),)
    return Built(model_or_fn=model, inputs=inputs, task=INFERENCE)
