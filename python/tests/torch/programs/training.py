"""argv: backend, wrapper (ddp, fsdp1, fsdp2, sparse), micro-batches of each step, file for the weights.
Trains on the same batches whatever the ranks: rank r has r * micro to r * micro + micro - 1 in every step.
Prints the losses."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import onesum.torch  # noqa: F401

backend, wrapper, micro, weights = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
STEPS, BATCHES, ROWS = 6, 4, 8

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()

if wrapper == "sparse":
    plain = torch.nn.Sequential(torch.nn.EmbeddingBag(100, 32, sparse=True), torch.nn.Linear(32, 16))
    inputs = torch.randint(0, 100, (BATCHES, ROWS, 5))
else:
    plain = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 16)
    )
    inputs = torch.randn(BATCHES, ROWS, 32)
targets = torch.randn(BATCHES, ROWS, 16)

if wrapper in ("ddp", "sparse"):
    model = DistributedDataParallel(plain, bucket_cap_mb=0.01)
elif wrapper == "fsdp1":
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = FullyShardedDataParallel(plain, use_orig_params=True, device_id=torch.device("cpu"))
else:
    from torch.distributed.fsdp import fully_shard

    model = plain
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

losses = []
for step in range(STEPS):
    optimizer.zero_grad()
    loss_sum = torch.zeros(1)
    for part in range(micro):
        batch = rank * micro + part
        is_last = part == micro - 1
        if wrapper in ("ddp", "sparse"):
            model.require_backward_grad_sync = is_last
        elif wrapper == "fsdp2":
            model.set_requires_gradient_sync(is_last)
        loss = torch.nn.functional.mse_loss(model(inputs[batch]), targets[batch]) / micro
        loss.backward()
        loss_sum += loss.detach()
    optimizer.step()
    dist.all_reduce(loss_sum)
    losses.append(loss_sum.item() / size)

if wrapper in ("ddp", "sparse"):
    state = {name.removeprefix("module."): tensor for name, tensor in model.state_dict().items()}
elif wrapper == "fsdp1":
    from torch.distributed.fsdp import FullStateDictConfig, StateDictType

    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig()):
        state = model.state_dict()
else:
    state = {name: tensor.full_tensor() for name, tensor in model.state_dict().items()}
if rank == 0:
    torch.save(state, weights)
print(" ".join(f"{loss:.6f}" for loss in losses))
dist.barrier()
dist.destroy_process_group()
