# Started as: python -m torch.distributed.run --standalone --nproc-per-node 2
"""A step of DDP as the page shows it."""

import torch

import onesum.torch  # noqa: F401

torch.distributed.init_process_group("onesum")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
before = model.module.weight.detach().clone()
model(torch.full((1, 4), float(rank + 1))).sum().backward()
optimizer.step()
# The gradients are 1 and 2, their mean 1.5.
assert torch.equal(model.module.weight.detach(), before - 1.5), (before, model.module.weight)
torch.distributed.destroy_process_group()
print(f"rank {rank}: good")
