"""In-process reductions, float32 SUM over N logical devices / N tensors.
inproc_bench.py {tf|torch|numpy} N sizes 4,1024,...   |   inproc_bench.py {tf|torch|numpy} N shapes FILE"""
import json, math, os, sys, time

lib, N, mode, what = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
budget = float(os.environ.get("BENCH_BUDGET", "0.3"))
sizes = [(s, [(int(s) // 4,)]) for s in what.split(",")] if mode == "sizes" else \
        [("set", [tuple(map(int, l.split()[1:])) for l in open(what)])]
suffix = "" if mode == "sizes" else "_" + os.path.basename(what).split(".")[0]


def measure(fn, name, shapes):
    nbytes = 4 * sum(map(math.prod, shapes))
    t0 = time.perf_counter()
    for _ in range(3): fn()
    reps = max(5, min(5000, int(budget / ((time.perf_counter() - t0) / 3))))
    ts = []
    for _ in range(reps):
        t0 = time.perf_counter(); fn(); ts.append((time.perf_counter() - t0) * 1e6)
    ts.sort()
    print(json.dumps(dict(peer=lib, case="inproc_" + name + suffix, world=N, bytes=nbytes,
                          us_median=round(ts[len(ts) // 2], 2), us_min=round(ts[0], 2), reps=reps)), flush=True)


if lib == "tf":
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import tensorflow as tf
    from tensorflow.python.distribute import values
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0],
                                               [tf.config.LogicalDeviceConfiguration()] * N)
    devs = [f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(N)]
    SUM, op = tf.distribute.ReduceOp.SUM, tf.distribute.ReductionToOneDevice()

    def make(shape):
        out = []
        for i, d in enumerate(devs):
            with tf.device(d): out.append(tf.fill(shape, float(i + 1)))
        return out

    for _, shapes in sizes:
        xs = [make(s) for s in shapes]
        if mode == "sizes":
            pr = values.PerReplica(xs[0])
            got = op.reduce(SUM, pr, pr)
            assert float(got.values[-1][0]) == N * (N + 1) / 2 and len(got.values) == N
            f = tf.function(lambda *a: op.reduce(SUM, values.PerReplica(a), values.PerReplica(a)).values)
            measure(lambda: op.reduce(SUM, pr, pr), "reduce_mirrored_eager", shapes)
            measure(lambda: op.reduce(SUM, pr, devs[0]), "reduce_to_one_eager", shapes)
            measure(lambda: f(*xs[0]), "reduce_mirrored_function", shapes)
        else:
            prs = [values.PerReplica(x) for x in xs]
            pairs = [(p, p) for p in prs]
            def graph(xs):
                ps = [values.PerReplica(x) for x in xs]
                return [m.values for m in op.batch_reduce(SUM, [(p, p) for p in ps])]
            f = tf.function(graph)
            measure(lambda: op.batch_reduce(SUM, pairs), "batch_reduce_eager", shapes)
            measure(lambda: f(xs), "batch_reduce_function", shapes)
elif lib == "torch":
    import torch
    for _, shapes in sizes:
        xs = [[torch.full(s, float(i + 1)) for s in shapes] for i in range(N)]
        def add():
            for j in range(len(shapes)):
                acc = torch.add(xs[0][j], xs[1][j])
                for i in range(2, N): acc += xs[i][j]
        def add_bcast():  # sum once, then copy it to every replica, as a mirrored reduce must
            for j in range(len(shapes)):
                acc = torch.add(xs[0][j], xs[1][j])
                for i in range(2, N): acc += xs[i][j]
                for i in range(N): xs[i][j].copy_(acc)
        def add_into():  # no allocation: everything into replica 0
            for j in range(len(shapes)):
                for i in range(1, N): xs[0][j].add_(xs[i][j])
        def stack():
            for j in range(len(shapes)): torch.stack([x[j] for x in xs]).sum(0)
        def foreach():
            acc = torch._foreach_add(xs[0], xs[1])
            for i in range(2, N): torch._foreach_add_(acc, xs[i])
        for fn in (add, add_into, stack) + ((foreach,) if mode != "sizes" else ()):
            measure(fn, "sum_" + fn.__name__, shapes)
        torch.set_num_threads(1); measure(add, "sum_add_1thread", shapes); torch.set_num_threads(os.cpu_count())
        for x in xs:
            for t in x: t.zero_()
        measure(add_bcast, "sum_add_bcast", shapes)
else:
    import numpy as np
    for _, shapes in sizes:
        xs = [[np.full(s, i + 1, np.float32) for s in shapes] for i in range(N)]
        def add():
            for j in range(len(shapes)):
                acc = xs[0][j] + xs[1][j]
                for i in range(2, N): acc += xs[i][j]
        def add_out():
            for j in range(len(shapes)):
                for i in range(1, N): np.add(xs[0][j], xs[i][j], out=xs[0][j])
        measure(add, "sum_add", shapes); measure(add_out, "sum_add_into", shapes)
