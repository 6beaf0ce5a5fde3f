"""Runs peers in turns: sections, rounds, and one run with what else the machine did meanwhile."""

import atexit
import collections
import ctypes
import fcntl
import itertools
import os
import resource
import shlex
import signal
import subprocess
import sys
import time

import report
import systems

K, M = 1 << 10, 1 << 20
SIZES = f"4,{K},{16 * K},{256 * K},{M},{16 * M},{64 * M},{256 * M}"

Section = collections.namedtuple("Section", "peers worlds mode what")
SECTIONS = {
    "phys": Section("phys", "2", "sizes", "-"),
    "shm": Section("ompi5 ompi4 mpich impi oneccl gloo tf_mwms slots", "2 4", "sizes", SIZES),
    "tcp": Section("ompi5 ompi4 mpich impi gloo ucx", "2 4", "sizes", SIZES),
    "tcp_cubic": Section("ompi5 ompi4 mpich impi gloo ucx", "2 4", "sizes", SIZES),
    "inproc": Section("tf torch numpy", "2 4", "sizes", f"4,{K},{M},{64 * M}"),
    "inproc_sets": Section("tf torch numpy", "2 4", "shapes", "resnet50"),
    "sets": Section("ompi5 ompi4 mpich impi gloo tf_mwms", "2 4", "shapes", "resnet50"),
    "netns": Section("ompi4 ompi5 mpich impi gloo", "2", "sizes", f"4,{K},{16 * K},{256 * K},{M},{16 * M}"),
}
GIVE_UP_AFTER = 2  # failed runs of the same peer, section and world


def can_run(peer, section):
    """Whether a peer that was asked for by name has anything to do in a section."""
    base = systems.base_of(peer)
    if section.startswith("inproc"):
        return base in systems.IN_ONE_PROCESS
    if base in systems.BOUNDS:
        return section in systems.SECTIONS_OF_BOUNDS[base] and (base != "ucx" or peer in systems.UCX)
    if section == "netns":
        return peer in [*systems.MPI, "gloo"]
    if section == "sets" and base == "oneccl":
        return False  # its program measures sizes only
    return section != "phys" and base in systems.BETWEEN_PROCESSES


def peers_of(section, wanted=None):
    """Ours first. `wanted` are names as the user gave them; none means the section's own."""
    if section == "phys":
        return ["phys"]
    names = SECTIONS[section].peers.split() if wanted is None else [p for p in wanted if can_run(p, section)]
    return ["onesum", *names] if names else []


def ways_of(peer, world, cores):
    if peer == "ucx":
        return [*systems.UCX]
    return [peer, peer + "+yield"] if peer in systems.YIELDING and world > cores else [peer]


def with_ways(peers, world, cores):
    """Also bare UCX with other settings, and where ranks are more than cores those that give the core away while
    waiting."""
    return list(dict.fromkeys(itertools.chain.from_iterable(ways_of(peer, world, cores) for peer in peers)))


# ---- one run ----


def processor_times():
    with open("/proc/stat", encoding="ascii") as stat:
        return [int(x) for x in stat.readline().split()[1:9]]


def time_of_children():
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) * os.sysconf("SC_CLK_TCK")


def share_in_use():
    before = processor_times()
    time.sleep(0.25)
    spent = [b - a for a, b in zip(before, processor_times())]
    return 1 - (spent[3] + spent[4]) / max(1, sum(spent))


def wait_for_quiet(lock, patience=60):
    """Returns with the lock, once others leave the machine alone or patience is over."""
    until = time.monotonic() + patience
    while True:
        if lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
        if share_in_use() < 0.1 or time.monotonic() > until:
            return
        if lock:
            fcntl.flock(lock, fcntl.LOCK_UN)
        time.sleep(1)


def adopt_orphans():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of what ends them
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def end_orphans():
    """Ends the processes that a launcher has left behind, which are ours by now, and then their children."""
    while True:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
            left = [int(pid) for pid in children.read().split()]
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


def run_to_the_end(command, environment):
    """Whatever happens, no process of the command is left."""
    process = subprocess.Popen(command, env=dict(os.environ, **environment), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, errors = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, out, errors)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # timeout has made a group of them
            process.wait()
        end_orphans()


def distance_of_cores():
    """Nanoseconds that a cache line takes from one core to the other; 0: not known."""
    if len(os.sched_getaffinity(0)) < 2 or not systems.is_ready("phys"):
        return 0
    try:
        return int(subprocess.run(systems.DISTANCE, capture_output=True, text=True, timeout=10, check=True).stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0


def timed(command, environment, timeout):
    """Runs a shell line alone on the machine. Also returns the share of it that something else used meanwhile, and
    how far apart the cores were before and after."""
    lock = open(os.environ["MEASURE_LOCK"], "a", encoding="ascii") if os.environ.get("MEASURE_LOCK") else None
    try:
        wait_for_quiet(lock)
        distances = [distance_of_cores()]
        before, own_before = processor_times(), time_of_children()
        result = run_to_the_end(["timeout", "-k", "5", str(timeout), "bash", "-c", command], environment)
        spent, own = [b - a for a, b in zip(before, processor_times())], time_of_children() - own_before
        distances.append(distance_of_cores())
    finally:
        if lock:
            lock.close()
    noise = max(0.0, (sum(spent) - spent[3] - spent[4] - own) / max(1, sum(spent)))
    return result, noise, distances


# ---- a section ----


class Failures:
    """Runs that went wrong, which do not end the measurement."""

    def __init__(self):
        self.count = collections.Counter()
        self.reports = {}

    def add(self, run, result, timeout):
        self.count[run] += 1
        said = (result.stderr.strip() or result.stdout.strip()).splitlines()
        why = f"no end after {timeout} s" if result.returncode in (124, 137) else f"exit code {result.returncode}"
        self.reports[run] = f"{why}{': ' + ' | '.join(said[-3:])[-400:] if said else ''}"
        print(f"peers: {self.line(run)}", file=sys.stderr, flush=True)

    def line(self, run):
        section, world, peer = run
        return f"{section}, world {world}, {peer}: failed {self.count[run]} time(s), the last with {self.reports[run]}"

    def given_up(self, run):
        return self.count[run] >= GIVE_UP_AFTER


def command_of(section, peer, world, case, what):
    mode = SECTIONS[section].mode
    if section == "netns":
        return systems.command_on_machines(peer, case, mode, what)
    command, environment = systems.command(peer, world, case, mode, what, tcp=section.startswith("tcp"))
    if section == "tcp_cubic":  # a network namespace of its own, whose congestion control is set
        prepare = "ip link set lo up; sysctl -qw net.ipv4.tcp_congestion_control=cubic; "
        command = "unshare --net bash -c " + shlex.quote(prepare + command)
    return command, environment


def workload(section, options):
    """(case, list of sizes or file of shapes)"""
    mode, what = SECTIONS[section].mode, SECTIONS[section].what
    if mode == "sizes":
        return section, options.sizes if options.sizes and section != "phys" else what
    name = options.shapes or what
    return f"{section}_{name}", os.path.join(systems.SHAPES, name + ".txt")


def write_lines(result, round_number, noise, distances, out):
    for line in result.stdout.splitlines():
        if line.startswith("{") and line.endswith("}"):
            out.write(f'{line[:-1]},"round":{round_number},"noise":{noise:.3f},"distances":{distances}}}\n')
    out.flush()


def run_section(section, options, out, failures):
    case, what = workload(section, options)
    peers = peers_of(section, options.peers)
    missing = [peer for peer in peers if not systems.is_ready(peer)]
    for peer in missing:
        print(f"peers: {section} without {peer}, which is not set up", file=sys.stderr)
    peers = [peer for peer in peers if peer not in missing]
    if set(peers) <= {"onesum"}:
        print(f"peers: {section}: nobody to measure", file=sys.stderr)
        return
    if section == "netns":
        systems.shell(systems.MACHINES)
        atexit.register(lambda: subprocess.run(systems.NO_MACHINES, shell=True, stderr=subprocess.DEVNULL, check=False))
    worlds = options.worlds if options.worlds and section not in ("phys", "netns") else \
        [int(world) for world in SECTIONS[section].worlds.split()]
    rounds = 1 if section == "phys" else options.rounds
    cores = len(os.sched_getaffinity(0))
    turns = [(world, peer) for world in worlds
             for peer in (peers if section == "netns" else with_ways(peers, world, cores))]
    for round_number, (world, peer) in itertools.product(range(rounds), turns):
        run = (section, world, peer)
        if failures.given_up(run):
            continue
        print(f"peers: {section}, round {round_number + 1} of {rounds}, world {world}: {peer}", file=sys.stderr,
              flush=True)
        for _ in range(options.retries + 1):
            result, noise, distances = timed(*command_of(section, peer, world, case, what), options.timeout)
            write_lines(result, round_number, noise, distances, out)
            if result.returncode:
                failures.add(run, result, options.timeout)
            if (noise <= options.noise and not report.has_moved(distances)) or result.returncode:
                break
