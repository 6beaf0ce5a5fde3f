"""The c10d backend "onesum" for PyTorch: torch.distributed on CPU tensors with one sum on every rank.

    import onesum.torch
    torch.distributed.init_process_group("onesum")  # or "cpu:onesum,cuda:nccl"

What it does and what it does not: docs/pytorch.md.
"""

from __future__ import annotations

import atexit

try:
    import torch
    import torch.distributed
except ImportError as error:
    raise ImportError(
        f"onesum.torch needs PyTorch, which cannot be imported here: {error}"
    ) from error

from onesum import _bridges

from ._join import find_each_other

_torch = _bridges.extension("torch")

__all__: list[str] = []


def _make_backend(options, _backend_options):  # as c10d calls it for every process group
    timeout = options.timeout.total_seconds()
    ranks = list(options.global_ranks_in_group)
    if options.group_size > 1 and not _torch.has_joined():
        if ranks:
            raise RuntimeError(
                'onesum: the group is no default group, and the default group is not of backend "onesum" '
                "on CPUs; name it in init_process_group, too"
            )
        find_each_other(options.store, options.group_rank, options.group_size, timeout)
    return _torch.make_backend(
        options.group_rank, options.group_size, ranks, options.group_id, timeout
    )


torch.distributed.Backend.register_backend(
    "onesum", _make_backend, extended_api=True, devices=["cpu"]
)
atexit.register(_torch.leave)
