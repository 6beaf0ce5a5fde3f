"""TensorFlow MultiWorkerMirroredStrategy all_reduce (its CPU collectives: gRPC, ring), float32 SUM, inside tf.function.
TF_CONFIG in the environment.  mwms_bench.py PEER CASE sizes 4,1024,...   |   mwms_bench.py PEER CASE shapes FILE"""
import json, math, os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf

peer, kase, mode, what = sys.argv[1:5]
options = tf.distribute.experimental.CommunicationOptions(
    implementation=tf.distribute.experimental.CommunicationImplementation.RING)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
task = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
world = strategy.num_replicas_in_sync
SUM = tf.distribute.ReduceOp.SUM


def runner(xs):
    def of_replica(values):
        return tf.distribute.get_replica_context().all_reduce(SUM, [tf.identity(t) for t in values])

    @tf.function
    def f(xs):
        return strategy.run(of_replica, args=(xs,))
    return lambda: f(xs)


def measure(fn, name, nbytes):
    assert float(tf.reshape(fn()[0], [-1])[0]) == world * (world + 1) / 2
    for _ in range(3): fn()
    reps = max(5, min(100, int(40e6 / max(nbytes, 1)) + 5))  # fixed by size: the workers must agree
    ts = []
    for _ in range(reps):
        t0 = time.perf_counter(); fn()[0].numpy(); ts.append((time.perf_counter() - t0) * 1e6)
    ts.sort()
    if task == 0:
        print(json.dumps(dict(peer=peer, case=f"{kase}_{name}", world=world, bytes=nbytes,
                              us_median=round(ts[len(ts) // 2], 2), us_min=round(ts[0], 2), reps=reps)), flush=True)


if mode == "sizes":
    for n in map(int, what.split(",")):
        measure(runner([tf.fill([n // 4], float(task + 1))]), "in", n)
else:
    shapes = [tuple(map(int, l.split()[1:])) for l in open(what)]
    measure(runner([tf.fill(s, float(task + 1)) for s in shapes]), "batch", 4 * sum(map(math.prod, shapes)))
