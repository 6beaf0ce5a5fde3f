"""send, recv, isend, irecv, tags, batches; by all ranks at once."""

import torch
import torch.distributed as dist

import onesum.torch  # noqa: F401

dist.init_process_group("onesum")
rank, size = dist.get_rank(), dist.get_world_size()
after, before = (rank + 1) % size, (rank - 1) % size

# Around in a circle, blocking.
token = torch.tensor([0.0, 1.0])
if rank == 0:
    dist.send(token, after)
    dist.recv(token, before)
    assert token[0].item() == size - 1
else:
    dist.recv(token, before)
    token[0] += 1
    dist.send(token, after)

# Everybody to everybody, several sizes, tags in another order on the other side.
works, expected = [], []
for n in (1, 0, 1000, 300000):
    for other in range(size):
        if other == rank:
            continue
        for tag in (5, 6):
            works.append(dist.isend(torch.full((n,), rank * 100 + other * 10 + tag), other, tag=tag))
        for tag in (6, 5):
            expected.append((torch.zeros(n, dtype=torch.int64), other * 100 + rank * 10 + tag))
            works.append(dist.irecv(expected[-1][0], other, tag=tag))
for work in works:
    work.wait()
for tensor, value in expected:
    assert torch.all(tensor == value), (tensor, value)

# A batch, with a tensor that is not contiguous.
inbox = torch.zeros(6, 4).t()
ops = [dist.P2POp(dist.isend, torch.full((4, 6), float(rank)), after), dist.P2POp(dist.irecv, inbox, before)]
for work in dist.batch_isend_irecv(ops):
    work.wait()
assert torch.all(inbox == before)

# Inside a group, with ranks of the world; collectives in between.
group = dist.new_group(list(range(1, size))) if size > 2 else None
if size > 2 and rank >= 1:
    if rank == 1:
        dist.send(torch.tensor([7]), size - 1, group=group)
    elif rank == size - 1:
        got = torch.tensor([0])
        dist.recv(got, 1, group=group)
        assert got.item() == 7
dist.barrier()
try:
    dist.recv(torch.zeros(1))
    raise SystemExit("recv from anybody was taken")
except RuntimeError as error:
    assert "recvAnysource" in str(error), error
dist.destroy_process_group()
print("good")
