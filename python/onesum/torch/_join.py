"""How the ranks of a first process group find each other.

What `onesum run` or torchrun on one machine has set is enough by itself. Otherwise the ranks tell each other
through c10d's store what the library wants to know, and it goes where the library looks: into variables that
begin with ONESUM_ (docs/configuration.md).
"""

from __future__ import annotations

import os
import secrets
import socket


def find_each_other(store, rank: int, size: int, timeout: float) -> None:
    os.environ.setdefault("ONESUM_JOIN_TIMEOUT", f"{max(timeout, 0.001):.3f}")
    if "ONESUM_RANK" in os.environ or _is_on_one_machine(rank, size):
        return
    machine = _machine()
    store.set(f"onesum/machine/{rank}", machine)
    if rank == 0:
        store.set("onesum/job", secrets.token_hex(16))
    machines = [store.get(f"onesum/machine/{r}").decode() for r in range(size)]
    os.environ["ONESUM_JOB"] = "torch-" + store.get("onesum/job").decode()
    os.environ["ONESUM_RANK"] = str(rank)
    os.environ["ONESUM_SIZE"] = str(size)
    if all(other == machine for other in machines):
        return
    if "ONESUM_ADDRESS" not in os.environ:
        if rank == 0:
            store.set("onesum/address", _free_address(store))
        os.environ["ONESUM_ADDRESS"] = store.get("onesum/address").decode()
    if "ONESUM_SECRET" not in os.environ and "ONESUM_SECRET_FILE" not in os.environ:
        if rank == 0:
            store.set("onesum/secret", secrets.token_hex(32))
        os.environ["ONESUM_SECRET"] = store.get("onesum/secret").decode()


def _is_on_one_machine(rank: int, size: int) -> bool:
    """Whether torchrun has started just these ranks, here: then the library needs nothing more."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    values = tuple(os.environ.get(name) for name in names)
    return "TORCHELASTIC_RUN_ID" in os.environ and values == (str(rank), str(size), str(size))


def _machine() -> str:
    """The same for processes that can meet at an abstract Unix socket, and for no others."""
    if "ONESUM_MACHINE" in os.environ:
        return os.environ["ONESUM_MACHINE"]
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    return f"{boot} {os.readlink('/proc/self/ns/net')} {os.getuid()}"


def _free_address(store) -> str:
    """An address of this machine by which the others know it, with a port that is free now."""
    hosts = [_host_of(store), os.environ.get("MASTER_ADDR"), socket.getfqdn(), socket.gethostname()]
    for host in filter(None, hosts):
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind) as probe:
                probe.bind(address)
                port = probe.getsockname()[1]
        except OSError:
            continue  # no name, or another machine's
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    raise RuntimeError(
        "onesum: the ranks are on several machines, and none of rank 0's names is an address of it; "
        "set ONESUM_ADDRESS to HOST:PORT of rank 0 on all of them"
    )


def _host_of(store) -> str | None:
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return getattr(store, "host", None)
