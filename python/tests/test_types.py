"""Stubs: those in the package are what the extension has, and a type checker understands them."""

import pathlib
import subprocess
import sys

import onesum

PACKAGE = pathlib.Path(onesum.__file__).parent

GOOD = """
import asyncio
import datetime
import numpy as np
import onesum

ops: onesum.CrossDeviceOps = onesum.MultiWorkerAllReduce(
    ["/job:worker/task:0", "/job:worker/task:1"], 1, all_reduce_spec=("pscpu/pscpu", 2, -1), num_packs=0
)
value = onesum.PerReplica([np.ones(2), onesum.Tensor(np.ones(2), "CPU:1")])
options = onesum.CommunicationOptions(timeout=datetime.timedelta(seconds=3))
result: onesum.Mirrored = ops.reduce(onesum.ReduceOp.SUM, value, "CPU:0", options)
total: float = float(result.numpy().sum())
many: list[onesum.Mirrored] = ops.batch_reduce(onesum.ReduceOp.MEAN, [(value, value), (value, "CPU:0")])


async def main() -> list[onesum.Mirrored]:
    return await ops.batch_reduce_async(onesum.ReduceOp.SUM, [(value, "CPU:0")])


def largest(tensors: list[onesum.Tensor]) -> onesum.Tensor:
    return tensors[0]


def replica_fn(replica: onesum.ReplicaContext) -> onesum.Tensor:
    return replica.all_reduce(onesum.ReduceOp.SUM, np.ones(2))


one = onesum.ReductionToOneDevice(accumulation_fn=largest)
strategy = onesum.MirroredStrategy(["CPU:0", "CPU:1"], one)
with strategy.scope() as same:
    variable = onesum.Variable("v", np.ones(2))
values = same.run(replica_fn)
text: str = ops.plan(onesum.ReduceOp.SUM, [(value, value)]).to_text()
whole, parts = np.empty(4), [[1, 1], [1, 1]]
call: onesum.Collective = onesum.Collective.all_gather([value], [whole], has_equal_parts=True)
ops.run(onesum.Collective.all_to_all([value], [[whole, np.empty(4)]], parts))
work: onesum.Work = ops.start(call, options)
work.when_done(lambda: print("done"))
done: bool = work.wait_for(datetime.timedelta(seconds=3))
prepared: onesum.PreparedReduce = ops.prepare(call)
spec = onesum.CollectiveSpec(onesum.CollectiveKind.SCATTER, onesum.ReduceSpec("f32", 4, ["CPU:0"], ["CPU:0"]))
plans: list[onesum.Plan] = [ops.plan(call), ops.plan(spec), ops.plan(onesum.ReduceOp.MAX, [(value, value)])]
name: str = onesum.to_string(spec.kind) + onesum.to_string(onesum.DType.BOOL)
cluster: onesum.Cluster = onesum.Cluster.from_environment().group([0], "alone", timeout=3)
messages = onesum.PointToPoint(cluster)
messages.send(np.ones(2), to=1, tag=3)
received: onesum.Work = messages.start_recv(np.ones(2), from_=1, options=options)
code: onesum.ErrorCode = onesum.InvalidArgumentError.code
"""

BAD = {
    'ops.reduce("SUM", value, "CPU:0")': "arg-type",
    "ops.reduce(onesum.ReduceOp.SUM, value)": "call-arg",
    "ops.reduce(onesum.ReduceOp.SUM, value, 3)": "arg-type",
    "number: int = ops.reduce(onesum.ReduceOp.SUM, value, value)": "assignment",
    "ops.nothing()": "attr-defined",
    'onesum.CommunicationOptions(timeout="soon")': "arg-type",
    "strategy.run(3)": "arg-type",
    "ops.run(onesum.ReduceOp.SUM)": "arg-type",
    "ops.plan(3)": "call-overload",
    "onesum.Collective.broadcast(np.ones(2), [whole])": "arg-type",
    "call.root = 1": "misc",
    "messages.recv(np.ones(2))": "call-arg",
}


def check(program, tmp_path):
    file = tmp_path / "user.py"
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"MYPYPATH": str(PACKAGE.parent), "PATH": "/usr/bin:/bin"},
    )
    return done.stdout


def test_the_stub_is_what_the_extension_has(tmp_path):
    file = tmp_path / "_core.pyi"
    subprocess.run(
        [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "onesum._core", "-o", str(file)], check=True
    )
    assert file.read_text() == (PACKAGE / "_core.pyi").read_text(), "write it anew: make python-stubs"


def test_users_are_checked(tmp_path):
    """Good programs pass, and every bad line is found."""
    assert "Success" in check(GOOD, tmp_path)
    said = check(GOOD + "".join(line + "\n" for line in BAD), tmp_path)
    first = GOOD.count("\n") + 1
    for number, (line, kind) in enumerate(BAD.items(), first):
        assert any(f"user.py:{number}:" in one and f"[{kind}]" in one for one in said.splitlines()), (line, said)


def test_everything_public_is_listed():
    from onesum import _core

    public = {name for name in vars(_core) if not name.startswith("_")} - {"version"}
    assert public <= set(onesum.__all__)
