"""Several groups at once, on subsets of ranks, in orders of their own; groups again after the end of all."""

import torch
import torch.distributed as dist

import onesum.torch  # noqa: F401

for life in range(2):
    dist.init_process_group("onesum" if life == 0 else "cpu:onesum,cuda:gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    assert size == 4

    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    odd = dist.new_group([3, 1, 2])  # c10d sorts them
    twin = dist.new_group()
    single = [dist.new_group([r]) for r in range(size)]

    mine = torch.tensor([float(10**rank)])
    dist.all_reduce(mine, group=pairs[rank // 2])
    assert mine.item() == (11 if rank < 2 else 1100), mine

    if rank != 0:
        mine = torch.tensor([float(10**rank)])
        dist.all_reduce(mine, group=odd)
        assert mine.item() == 1110, mine
        mine = torch.tensor([rank])
        dist.broadcast(mine, 3, group=odd)  # a rank of the world
        assert mine.item() == 3, mine
        assert dist.get_rank(odd) == rank - 1

    mine = torch.tensor([rank])
    dist.all_reduce(mine, group=single[rank])
    assert mine.item() == rank

    # Two groups of the same ranks do not wait for each other: half of the ranks begin with one of them.
    one, other = torch.ones(50000), torch.ones(3)
    calls = [(one, None), (other, twin)]
    if rank % 2 == 1:
        calls.reverse()
    works = [dist.all_reduce(tensor, group=group, async_op=True) for tensor, group in calls]
    for work in works:
        work.wait()
    assert torch.all(one == 4) and torch.all(other == 4)

    # A group that only its members make.
    local = dist.new_group([rank // 2 * 2, rank // 2 * 2 + 1], use_local_synchronization=True)
    mine = torch.tensor([rank])
    dist.all_reduce(mine, group=local)
    assert mine.item() == (1 if rank < 2 else 5)

    dist.destroy_process_group(odd) if rank != 0 else None
    dist.barrier()
    dist.destroy_process_group()
print("good")
