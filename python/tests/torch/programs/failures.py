"""argv[1] says what goes wrong; prints the error that Python sees."""

import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

import onesum.torch  # noqa: F401

what = sys.argv[1]
seconds = 4 if what.startswith("late") else 600
dist.init_process_group("onesum", timeout=datetime.timedelta(seconds=seconds))
rank, size = dist.get_rank(), dist.get_world_size()


def late():
    """The last rank does not come."""
    dist.all_reduce(torch.ones(10))
    if rank == size - 1:
        time.sleep(12)
        return
    dist.all_reduce(torch.ones(10))


def late_barrier():
    if rank == size - 1:
        time.sleep(12)
        return
    dist.barrier()


def late_work():
    work = None
    if rank != size - 1:
        work = dist.all_reduce(torch.ones(10), async_op=True)
        try:
            work.wait(datetime.timedelta(milliseconds=200))
        except dist.DistBackendError as error:
            print("first:", error)
    if rank == size - 1:
        time.sleep(1)
        dist.all_reduce(torch.ones(10))
    else:
        work.wait()
        print("then it was done")


def differ():
    dist.all_reduce(torch.ones(10 + rank))


def differ_in_type():
    dist.all_reduce(torch.ones(10, dtype=torch.float32 if rank == 0 else torch.float64))


def killed():
    dist.all_reduce(torch.ones(10))
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(1000):
        dist.all_reduce(torch.ones(1000))


def left():
    """The last rank ends while the others wait for it."""
    if rank != size - 1:
        dist.all_reduce(torch.ones(10))


def unfinished():
    """Everybody ends with a call under way that cannot end."""
    if rank != size - 1:
        dist.all_reduce(torch.ones(10), async_op=True)
        dist.isend(torch.ones(10), size - 1)
    time.sleep(1)


def killed_training():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(200, 200))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(1000):
        if step == 3 and rank == size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(torch.ones(4, 200)).sum().backward()
        optimizer.step()


try:
    globals()[what]()
except RuntimeError as error:
    print(type(error).__name__, error)
