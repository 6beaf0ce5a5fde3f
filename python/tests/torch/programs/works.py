"""Works, futures, orders of calls, hooks, sequence numbers, flight recorder."""

import pickle

import torch
import torch.distributed as dist

import onesum.torch  # noqa: F401

dist.init_process_group("onesum")
rank, size = dist.get_rank(), dist.get_world_size()
total = size * (size + 1) // 2

# Many at once, done in call order, each with its own result.
tensors = [torch.full((1000 * i + 1,), float((rank + 1) * (i + 1))) for i in range(20)]
works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
works[-1].wait()
assert all(work.is_completed() for work in works)
for i, (work, tensor) in enumerate(zip(works, tensors)):
    assert work.wait() and work.is_success() and work.exception() is None
    assert work.result()[0].data_ptr() == tensor.data_ptr(), "the result is another tensor"
    assert torch.all(tensor == total * (i + 1)), tensor

# Two calls on the same memory, one that is copied in and out: the second sees what the first did.
square = torch.full((8, 8), float(rank + 1)).t()[::2]
first = dist.all_reduce(square, async_op=True)
second = dist.all_reduce(square, async_op=True)
second.wait()
assert torch.all(square == total * size) and first.is_completed()

# Futures, with callbacks in the order that they were added.
seen = []
tensor = torch.full((3,), float(rank + 1))
future = dist.all_reduce(tensor, async_op=True).get_future()
doubled = future.then(lambda f: f.value()[0] * 2).then(lambda f: seen.append(1) or f.value())
assert torch.all(doubled.wait() == 2 * total) and seen == [1]
assert torch.all(torch.futures.wait_all([future])[0][0] == total)

# A sync call after async ones waits for them.
a, b = torch.ones(100000), torch.ones(4)
work = dist.all_reduce(a, async_op=True)
dist.all_reduce(b)
assert work.is_completed() and torch.all(a == size) and torch.all(b == size)

# Leaves that need gradients, and tensors of inference mode.
leaf = torch.ones(4, 4, requires_grad=True)
with torch.no_grad():
    dist.all_reduce(leaf)
assert torch.all(leaf.detach() == size)
with torch.inference_mode():
    inferred = torch.ones(4, 4).t()[::2]
dist.all_reduce(inferred)
assert torch.all(inferred == size)

# What c10d asks for.
backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
assert backend.name() == "onesum", backend.name()
before = backend._get_sequence_number_for_group()
dist.barrier()
dist.all_reduce(torch.ones(1))
assert backend._get_sequence_number_for_group() == before + 2

entries = pickle.loads(torch._C._distributed_c10d._dump_fr_trace(backend="onesum"))["entries"]
states = {entry["state"] for entry in entries}
assert len(entries) >= 20 and states == {"completed"}, (len(entries), states)
assert any("all_reduce" in entry["profiling_name"] for entry in entries), entries[-1]["profiling_name"]

with torch.profiler.profile() as profile:
    dist.all_reduce(torch.ones(10))
assert any("onesum:all_reduce" in event.name for event in profile.events())

dist.destroy_process_group()
print("good")
