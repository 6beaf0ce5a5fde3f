"""argv: how the ranks meet, rank, size. Nothing in the environment says who takes part."""

import sys

import torch
import torch.distributed as dist

import onesum.torch  # noqa: F401

method, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for life in range(2):
    dist.init_process_group("onesum", init_method=method, rank=rank, world_size=size)
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor)
    assert tensor.item() == size * (size - 1) / 2
    dist.destroy_process_group()
    if method.startswith("file"):
        method += "-again"
print("good")
