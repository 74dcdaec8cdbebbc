# SPDX-License-Identifier: Apache-2.0
"""Volumes in programs of torch: data sets and batches of files. Checkpoints are in
gofs.torch.checkpoint, and graphs in gofs.torch.pyg.

    from gofs.torch import BatchLoader, FileDataset

    loader = DataLoader(FileDataset(volume, "/train", transform=decode), batch_size=64)
    for batch in BatchLoader(volume, "/train", batch_size=4096, shuffle=True):
        train(batch.data, batch.offsets, batch.names)

Importing this does not import torch, and where it is not installed there are arrays of numpy.
"""

from gofs.torch._batches import Batch, BatchLoader
from gofs.torch._dataset import FileDataset

__all__ = ["Batch", "BatchLoader", "FileDataset"]
