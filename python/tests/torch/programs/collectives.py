"""Every collective with every type, against NumPy and, where it has it, gloo. Prints what is wrong."""

import sys

import torch
import torch.distributed as dist
from reference import ALL, FLOATS, GLOO_REDUCES, INTEGERS, MOVED, operations, reduced, same, values

import onesum.torch  # noqa: F401

SHAPES = [(), (0,), (1,), (3, 7), (4099,)]
faults = []
seed = 0

dist.init_process_group("onesum")
rank, size = dist.get_rank(), dist.get_world_size()
gloo = dist.new_group(backend="gloo")


def seeds():
    """One for every rank, new for every case."""
    global seed
    seed += 1
    return [seed * 100 + r for r in range(size)]


def expect(what, got, wanted):
    pairs = zip(got, wanted, strict=True) if isinstance(got, (list, tuple)) else [(got, wanted)]
    if not all(same(g, w) for g, w in pairs):
        faults.append(f"rank {rank} of {size}: {what}: {got}, expected {wanted}")


def strided(tensor):
    """The same elements, not one after the other."""
    if tensor.dim() != 2:
        return tensor.clone()
    return tensor.t().contiguous().t()


def reductions():
    for dtype in ALL:
        for op in operations(dtype):
            reduce_op = getattr(dist.ReduceOp, op)
            for shape in SHAPES:
                all_values = [values(dtype, shape, s) for s in seeds()]
                wanted = reduced(op, all_values)
                mine = all_values[rank].clone()
                dist.all_reduce(mine, reduce_op)
                expect(f"all_reduce {op} {dtype} {shape}", mine, wanted)
                mine = strided(all_values[rank])
                dist.all_reduce(mine, reduce_op)
                expect(f"all_reduce, strided, {op} {dtype} {shape}", mine, wanted)
                if dtype in GLOO_REDUCES and 0 not in shape:
                    theirs = all_values[rank].clone()
                    dist.all_reduce(theirs, reduce_op, group=gloo)
                    if dtype == torch.bool:
                        theirs = theirs.view(torch.uint8) != 0  # gloo adds up bytes
                    expect(f"gloo's all_reduce {op} {dtype} {shape}", mine.contiguous(), theirs)
                root = size - 1
                mine = all_values[rank].clone()
                dist.reduce(mine, root, reduce_op)
                if rank == root:
                    expect(f"reduce {op} {dtype} {shape}", mine, wanted)


def coalesced_reductions():
    for dtype in ALL:
        lists = [[values(dtype, shape, s) for shape in SHAPES] for s in seeds()]
        mine = [tensor.clone() for tensor in lists[rank]]
        dist.all_reduce_coalesced(mine)
        expect(f"all_reduce_coalesced {dtype}", mine, [reduced("SUM", list(each)) for each in zip(*lists)])
        mine = [strided(tensor) for tensor in lists[rank]]
        with dist._coalescing_manager():
            for tensor in mine:
                dist.all_reduce(tensor, dist.ReduceOp.MAX if not dtype.is_complex else dist.ReduceOp.SUM)
        op = "SUM" if dtype.is_complex else "MAX"
        expect(f"coalescing manager {dtype}", mine, [reduced(op, list(each)) for each in zip(*lists)])


def scattered_reductions():
    for dtype in ALL:
        for op in operations(dtype):
            reduce_op = getattr(dist.ReduceOp, op)
            for shape in [(0,), (1,), (3, 7), (1031,)]:
                lists = [[values(dtype, shape, s * 10 + part) for part in range(size)] for s in seeds()]
                wanted = reduced(op, [parts[rank] for parts in lists])
                result = torch.empty(shape, dtype=dtype)
                dist.reduce_scatter(result, [strided(part) for part in lists[rank]], reduce_op)
                expect(f"reduce_scatter {op} {dtype} {shape}", result, wanted)
                whole = torch.stack(lists[rank])
                result = strided(torch.empty(shape, dtype=dtype))
                dist.reduce_scatter_tensor(result, whole, reduce_op)
                expect(f"reduce_scatter_tensor {op} {dtype} {shape}", result, wanted)
                part = whole[rank]  # where it belongs
                dist.reduce_scatter_tensor(part, whole, reduce_op)
                expect(f"reduce_scatter_tensor, in place, {op} {dtype} {shape}", part, wanted)
        inputs = [[values(dtype, (size, n), s * 10 + n) for n in (3, 50)] for s in seeds()]
        results = [torch.empty(n, dtype=dtype) for n in (3, 50)]
        with dist._coalescing_manager():
            for result, its in zip(results, inputs[rank]):
                dist.reduce_scatter_tensor(result, its)
        wanted = [reduced("SUM", [its[i][rank] for its in inputs]) for i in range(2)]
        expect(f"reduce_scatter_tensor, coalesced, {dtype}", results, wanted)


def copies():
    for dtype in [*ALL, *MOVED]:
        for shape in [(0,), (1,), (3, 7), (1031,)]:
            all_values = [values(dtype, shape, s) for s in seeds()]
            own = all_values[rank]
            for root in range(size):
                mine = strided(own)
                dist.broadcast(mine, root)
                expect(f"broadcast {dtype} {shape}", mine, all_values[root])
                results = [torch.empty(shape, dtype=dtype) for _ in range(size)] if rank == root else None
                dist.gather(own, results, root)
                if rank == root:
                    expect(f"gather {dtype} {shape}", results, all_values)
                result = strided(torch.empty(shape, dtype=dtype))
                dist.scatter(result, all_values if rank == root else None, root)
                expect(f"scatter {dtype} {shape}", result, own)
            results = [strided(torch.empty(shape, dtype=dtype)) for _ in range(size)]
            dist.all_gather(results, strided(own))
            expect(f"all_gather {dtype} {shape}", results, all_values)
            whole = torch.empty((size, *shape), dtype=dtype)
            dist.all_gather(list(whole.unbind()), own)
            expect(f"all_gather into parts of one {dtype} {shape}", list(whole.unbind()), all_values)
            whole = torch.empty((size, *shape), dtype=dtype)
            dist.all_gather_into_tensor(whole, own)
            expect(f"all_gather_into_tensor {dtype} {shape}", list(whole.unbind()), all_values)
            whole = torch.empty((size, *shape), dtype=dtype)
            whole[rank] = own
            dist.all_gather_into_tensor(whole, whole[rank])
            expect(f"all_gather_into_tensor, in place, {dtype} {shape}", list(whole.unbind()), all_values)
        lists = [[values(dtype, (n,), s * 10 + n) for n in (3, 50)] for s in seeds()]
        results = [torch.empty((size, n), dtype=dtype) for n in (3, 50)]
        with dist._coalescing_manager():
            for result, its in zip(results, lists[rank]):
                dist.all_gather_into_tensor(result, its)
        for i in range(2):
            expect(f"all_gather_into_tensor, coalesced, {dtype}", list(results[i].unbind()), [l[i] for l in lists])


def exchanges():
    for dtype in [*ALL, *MOVED]:
        for n in (0, 1, 5, 700):
            lists = [[values(dtype, (n,), s * 10 + to) for to in range(size)] for s in seeds()]
            wanted = [parts[rank] for parts in lists]
            results = [torch.empty(n, dtype=dtype) for _ in range(size)]
            dist.all_to_all(results, lists[rank])
            expect(f"all_to_all {dtype} {n}", results, wanted)
            result = torch.empty((size, n), dtype=dtype)
            dist.all_to_all_single(result, torch.stack(lists[rank]))
            expect(f"all_to_all_single {dtype} {n}", list(result.unbind()), wanted)
        # rank r sends r + d + 1 rows of two to rank d
        own_seeds = seeds()
        lists = [[values(dtype, (r + d + 1, 2), own_seeds[r] * 10 + d) for d in range(size)] for r in range(size)]
        wanted = [parts[rank] for parts in lists]
        results = [torch.empty_like(part) for part in wanted]
        dist.all_to_all(results, lists[rank])
        expect(f"all_to_all, uneven, {dtype}", results, wanted)
        sizes_in = [part.shape[0] for part in lists[rank]]
        sizes_out = [part.shape[0] for part in wanted]
        result = torch.empty((sum(sizes_out), 2), dtype=dtype)
        joined = torch.empty((sum(sizes_in), 2), dtype=dtype)
        for to, part in zip(joined.split(sizes_in), lists[rank]):
            to.copy_(part)
        dist.all_to_all_single(result, joined, sizes_out, sizes_in)
        expect(f"all_to_all_single with splits {dtype}", list(result.split(sizes_out)), wanted)


def uneven_gathers():
    parts = [values(torch.float32, (r + 2,), s) for r, s in enumerate(seeds())]
    results = [torch.empty_like(part) for part in parts]
    dist.all_gather(results, parts[rank])
    expect("all_gather, uneven", results, parts)


def with_factor():
    all_values = [values(torch.float32, (100,), s) for s in seeds()]
    mine = all_values[rank].clone()
    dist.all_reduce(mine, dist._make_nccl_premul_sum(0.5))
    expect("all_reduce PREMUL_SUM", mine, reduced("SUM", [tensor * 0.5 for tensor in all_values]))


def sparse():
    for shape, dims in [((50, 3), 1), ((7, 6, 2), 2), ((40,), 1)]:
        dense = []
        for s in seeds():
            tensor = values(torch.float32, shape, s)
            tensor[values(torch.int64, shape[:1], s + 7) > 0] = 0
            dense.append(tensor)
        mine = dense[rank].to_sparse(dims)
        dist.all_reduce(mine)
        expect(f"sparse all_reduce {shape} {dims}", mine.to_dense(), reduced("SUM", dense))
        if not mine.is_coalesced():
            faults.append("the sum of sparse tensors is not coalesced")


def objects():
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * (rank * 1000)})
    if [o["rank"] for o in gathered] != list(range(size)):
        faults.append(f"all_gather_object: {gathered}")
    box = [f"from {rank}"]
    dist.broadcast_object_list(box, size - 1)
    if box != [f"from {size - 1}"]:
        faults.append(f"broadcast_object_list: {box}")


def refused():
    wrong = [
        (lambda: dist.all_reduce(torch.ones(3, dtype=torch.int32), dist.ReduceOp.AVG), "AVG"),
        (lambda: dist.all_reduce(torch.ones(3).to(torch.float8_e4m3fn)), "reduced"),
        (lambda: dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND), ""),
    ]
    for call, text in wrong:
        try:
            call()
            faults.append(f"a wrong call was taken: {text}")
        except (TypeError, RuntimeError) as error:
            if text not in str(error):
                faults.append(f"the error is {error}")


assert FLOATS and INTEGERS
for part in (
    reductions,
    coalesced_reductions,
    scattered_reductions,
    copies,
    exchanges,
    uneven_gathers,
    with_factor,
    sparse,
    objects,
    refused,
):
    part()
dist.barrier()
dist.destroy_process_group()
print("\n".join(faults))
sys.exit(1 if faults else 0)
