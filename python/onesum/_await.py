"""How asyncio waits for a Work: on a descriptor, without a thread and without looking again and again."""

from __future__ import annotations

import asyncio
import os

from onesum._core import Mirrored, Work


async def results(work: Work) -> list[Mirrored]:
    """What `await work` gives."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    try:
        loop.add_reader(event, lambda: done.done() or done.set_result(None))
        work._notify(event)
        await done
    finally:
        loop.remove_reader(event)
        os.close(event)
    return work.results()
