"""torch.distributed (gloo) all_reduce, float32 SUM, measured as in mpi_bench.c. RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT are in the environment.
gloo_bench.py PEER CASE sizes 4,1024,...   |   gloo_bench.py PEER CASE shapes FILE"""
import json, os, sys, time
import torch, torch.distributed as dist

peer, kase, mode, what = sys.argv[1:5]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
budget = float(os.environ.get("BENCH_BUDGET", "0.3"))
torch.set_num_threads(1)
dist.init_process_group("gloo", rank=rank, world_size=world)


def measure(fn, name, nbytes, tensors):
    for t in tensors: t.fill_(rank + 1)
    fn()
    assert all(float(t.view(-1)[-1]) == world * (world + 1) / 2 for t in tensors), "wrong sum"
    for t in tensors: t.zero_()
    warm = 20 if nbytes < 1 << 20 else 2
    t0 = time.perf_counter()
    for _ in range(warm): fn()
    reps = torch.tensor([max(5, min(5000, int(budget / ((time.perf_counter() - t0) / warm))))])
    dist.broadcast(reps, 0)
    dist.barrier()
    ts = []
    for _ in range(int(reps)):
        t0 = time.perf_counter(); fn(); ts.append((time.perf_counter() - t0) * 1e6)
    ts = torch.tensor(ts, dtype=torch.float64)
    dist.all_reduce(ts, dist.ReduceOp.MAX)
    ts = sorted(ts.tolist())
    if rank == 0:
        print(json.dumps(dict(peer=peer, case=f"{kase}_{name}", world=world, bytes=nbytes,
                              us_median=round(ts[len(ts) // 2], 2), us_min=round(ts[0], 2), reps=len(ts))), flush=True)


if mode == "sizes":
    for n in map(int, what.split(",")):
        t = torch.zeros(n // 4)
        measure(lambda: dist.all_reduce(t), "in", n, [t])
else:
    shapes = [tuple(map(int, l.split()[1:])) for l in open(what)]
    grads = [torch.zeros(s) for s in shapes]
    total = sum(g.numel() for g in grads)
    flat = torch.zeros(total)
    measure(lambda: dist.all_reduce(flat), "flat", 4 * total, [flat])

    def per_tensor():
        for g in grads: dist.all_reduce(g)

    def per_tensor_async():
        for w in [dist.all_reduce(g, async_op=True) for g in grads]: w.wait()

    # DDP: gradients in reverse order, first bucket 1 MiB, then 25 MiB; copied in, reduced asynchronously, copied out
    buckets, cur, size, cap = [], [], 0, 1 << 20
    for g in reversed(grads):
        cur.append(g); size += 4 * g.numel()
        if size >= cap: buckets.append(cur); cur, size, cap = [], 0, 25 << 20
    if cur: buckets.append(cur)
    bufs = [torch.zeros(sum(g.numel() for g in b)) for b in buckets]

    def ddp(copy):
        works = []
        for b, buf in zip(buckets, bufs):
            if copy: torch.cat([g.view(-1) for g in b], out=buf)
            works.append(dist.all_reduce(buf, async_op=True))
        for w in works: w.wait()
        if copy:
            for b, buf in zip(buckets, bufs):
                for g, v in zip(b, buf.split([g.numel() for g in b])): g.view(-1).copy_(v)

    measure(per_tensor, "per_tensor", 4 * total, grads)
    measure(per_tensor_async, "per_tensor_async", 4 * total, grads)
    measure(lambda: dist.all_reduce_coalesced(grads), "coalesced", 4 * total, grads)
    measure(lambda: ddp(False), "ddp_buckets_nocopy", 4 * total, bufs)
    measure(lambda: ddp(True), "ddp_buckets", 4 * total, grads)
dist.destroy_process_group()
