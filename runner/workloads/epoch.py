"""A training epoch end to end: a data loader, every step, and a last batch that is smaller."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from compilewatch.runner.workloads.built import TRAINING, Batch, Built, Stream
from compilewatch.runner.workloads.cnn import residual_network

CLASSES = 10


def build(
    *,
    batch_size: int,
    images: int,
    image_size: int,
    device: torch.device,
    dtype: torch.dtype,
    channels: int = 32,
    blocks: int = 1,
    workers: int = 0,
    drop_last: bool = False,
) -> Built:
    """An epoch over `images` of (3, image_size, image_size), shuffled, with SGD. One iteration is the epoch.

    Unless `batch_size` divides `images` the last batch is ragged, which compiles once more; `drop_last` drops
    it. `workers` are those of the data loader. A 16-bit `dtype` is that of autocast.
    """
    model = residual_network(channels, blocks, CLASSES).to(device).train()
    dataset = TensorDataset(torch.randn(images, 3, image_size, image_size), torch.randint(CLASSES, (images,)))
    order = torch.Generator()
    loader = DataLoader(
        dataset,
        batch_size,
        shuffle=True,
        generator=order,
        num_workers=workers,
        drop_last=drop_last,
        pin_memory=device.type == "cuda",
    )

    def batches() -> Iterator[Batch]:
        # The same order in every epoch, so that eager and compiled go through the same batches.
        order.manual_seed(0)
        for pictures, labels in loader:
            yield Batch((pictures.to(device, non_blocking=True),), labels.to(device, non_blocking=True))

    return Built(
        model_or_fn=model,
        inputs=next(batches()).inputs,
        task=TRAINING,
        loss=lambda logits, labels: functional.cross_entropy(logits.float(), labels),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
        autocast_dtype=dtype if dtype.itemsize == 2 else None,
        regions=("Bottleneck",),
        # A convolution before a batch norm has a gradient that is the small difference of large sums.
        tolerance=5e-2,
        stream=Stream(batches=batches),
    )
