"""Times the all-reduce of a model's gradients as DistributedDataParallel does it, with onesum and with gloo.

    torchrun --standalone --nproc-per-node 2 bench/python/ddp_all_reduce.py [--shapes FILE] [--rounds N]

all-reduces  those that DDP makes for these gradients, of its buckets: all started, then waited for
backward     all of DDP's step for gradients that are there already: it copies them into its buckets and
             divides them, too, which is PyTorch's own work whatever the backend

The backends take turns, round by round, in the same processes. A time is that of the slowest rank; printed
are medians, quartiles and quotients.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import onesum.torch  # noqa: F401


class Gradients(torch.autograd.Function):
    """A loss whose gradient by each parameter is a tensor that is there."""

    @staticmethod
    def forward(ctx, gradients, *parameters):
        ctx.gradients = gradients
        return torch.zeros(())

    @staticmethod
    def backward(ctx, _):
        return (None, *ctx.gradients)


class Model(torch.nn.Module):
    def __init__(self, shapes):
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.zeros(shape) for shape in shapes])
        self.gradients = [torch.rand(shape) for shape in shapes]

    def forward(self):
        return Gradients.apply(self.gradients, *self.weights)


def read_shapes(path: Path) -> list[list[int]]:
    lines = (line.split("#")[0].split() for line in path.read_text().splitlines())
    return [[int(extent) for extent in words[1:]] for words in lines if words]


def slowest(seconds: float, group) -> float:
    time_taken = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(time_taken, dist.ReduceOp.MAX, group=group)
    return time_taken.item()


def buckets_of(model) -> list[torch.Tensor]:
    """Memory as large as the buckets of a model that has made a step or two."""
    sizes = model._get_ddp_logging_data()
    text = sizes.get("rebuilt_bucket_sizes") or sizes["bucket_sizes"]
    return [torch.rand(int(size) // 4) for size in text.split(",")]


def all_reduces(buckets, group):
    works = [dist.all_reduce(bucket, group=group, async_op=True) for bucket in buckets]
    for work in works:
        work.wait()


def backward(model):
    model().backward()


def summary(seconds: list[float]) -> str:
    low, middle, high = statistics.quantiles([s * 1e3 for s in seconds], n=4)
    return f"{middle:8.2f} ms  (quartiles {low:.2f} to {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", type=Path, default=Path(__file__).parents[1] / "shapes" / "resnet50.txt")
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    shapes = read_shapes(arguments.shapes)

    dist.init_process_group("onesum", timeout=datetime.timedelta(minutes=5))
    groups = {"onesum": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    elements = sum(torch.Size(shape).numel() for shape in shapes)
    models, steps = {}, {}
    for name, group in groups.items():
        models[name] = DistributedDataParallel(Model(shapes), process_group=group, gradient_as_bucket_view=True)
        for _ in range(3):
            models[name].zero_grad()
            backward(models[name])
        buckets = buckets_of(models[name])
        steps["all-reduces", name] = lambda buckets=buckets, group=group: all_reduces(buckets, group)
    for name, model in models.items():
        steps["backward", name] = lambda model=model: backward(model)

    times = {key: [] for key in steps}
    for round_number in range(arguments.rounds + 5):
        for key, step in steps.items():
            models[key[1]].zero_grad()
            dist.barrier()
            start = time.perf_counter()
            step()
            taken = slowest(time.perf_counter() - start, groups["onesum"])
            if round_number >= 5:
                times[key].append(taken)

    if dist.get_rank() == 0:
        print(
            f"{len(shapes)} tensors in {len(buckets)} buckets, {elements * 4 / 2**20:.1f} MiB, {dist.get_world_size()} processes, "
            f"PyTorch {torch.__version__}, {arguments.rounds} rounds"
        )
        for (what, name), taken in times.items():
            print(f"{what:12} {name:7}{summary(taken)}")
        for what in ("all-reduces", "backward"):
            quotient = statistics.median(times[what, "onesum"]) / statistics.median(times[what, "gloo"])
            print(f"{what:12} onesum takes {quotient:.3f} of gloo's time")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
