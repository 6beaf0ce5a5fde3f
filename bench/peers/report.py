"""What the lines say: tables of times, the ratios of ours to the best of the others, and lines for drawings."""

import collections
import json
import statistics

K, M = 1 << 10, 1 << 20
OURS = "onesum"
BARE = ("ucx", "slots")
# In one process: the ways of others that leave the sum on every replica, as ours do.
MIRRORED = ("inproc_reduce_mirrored", "inproc_batch_reduce", "inproc_sum_add_bcast")
SETS = ("resnet50", "bert_base")


def read(files):
    lines = []
    for file in files:
        with open(file, encoding="utf-8") as text:
            lines += [json.loads(line) for line in text if line.strip()]
    return lines


# Virtual cores are now close to each other and now far apart, as the host places them: a cache line then takes, say,
# 45 ns or 180 ns, and so do calls between processes. Only what was measured alike is compared.
TWICE = 2


def has_moved(distances):
    return len(distances) > 1 and min(distances) > 0 and max(distances) >= TWICE * min(distances)


def by_distance(lines):
    """The lines measured with cores close to each other, far apart, or where that is not known: {"near": lines,
    "far": lines, "": lines}; of cores that stay where they are {"": lines}. Where cores moved meanwhile a line belongs
    nowhere."""
    steady = [line for line in lines if not has_moved(line.get("distances", []))]
    known = [distance for line in steady for distance in line.get("distances", []) if distance > 0]
    if not known or max(known) < TWICE * min(known):
        return {"": steady}
    middle = (min(known) * max(known)) ** 0.5
    places = {"near": [], "far": [], "": []}
    for line in steady:
        distance = max(line.get("distances", [0]))
        places["" if distance == 0 else "near" if distance < middle else "far"].append(line)
    return {place: found for place, found in places.items() if found}


def size(nbytes):
    return f"{nbytes >> 20} MiB" if nbytes >= M else f"{nbytes >> 10} KiB" if nbytes >= K else f"{nbytes} B"


def sample(line):
    return line.get("noise", 0), line["us_median"], line.get("round", 0)


def typical(samples, noise):
    """(median over the quiet rounds, whether there was one); without any, the quietest round's time."""
    quiet = [time for share, time, _ in samples if share <= noise]
    return (statistics.median(quiet), True) if quiet else (min(samples)[1], False)


def tables(lines, wanted="", noise=0.06):
    return "\n".join(tables_of(found, place and f", cores {place}", wanted, noise)
                     for place, found in by_distance(lines).items())


def tables_of(lines, place, wanted, noise):
    groups = {}
    for line in lines:
        peers = groups.setdefault((line["case"], line["world"]), {})
        times = peers.setdefault(line["peer"], collections.defaultdict(list))
        times[line["bytes"]].append(sample(line))
    text = []
    for (case, world), peers in groups.items():
        if not case.startswith(wanted):
            continue
        sizes = sorted({nbytes for times in peers.values() for nbytes in times})
        text += [f"\n**{case}, world {world}{place}** (µs; from 1 MiB: GB/s)\n",
                 "| peer | " + " | ".join(map(size, sizes)) + " |", "|" + "---|" * (len(sizes) + 1)]
        for peer, times in peers.items():
            cells = [cell(nbytes, times[nbytes], noise) if nbytes in times else "" for nbytes in sizes]
            text.append(f"| {peer} | " + " | ".join(cells) + " |")
    return "\n".join(text)


def cell(nbytes, samples, noise):
    time, is_quiet = typical(samples, noise)
    bandwidth = nbytes / time / 1e3
    number = f"{bandwidth:.{2 if bandwidth > 0.1 else 4}f}" if nbytes >= M else f"{time:.1f}"
    return number + ("" if is_quiet else "~")


def contest(line):
    """The name under which a line competes; none, if what it did is not the same work."""
    case, ours = line["case"], line["peer"] == OURS
    of_set = next(("_" + name for name in SETS if name in case), "")
    if case.startswith("inproc"):
        return "inproc" + of_set if ours or case.startswith(MIRRORED) else None
    return "sets" + of_set if case.startswith("sets_") else case


def is_bare(peer):
    return peer.partition("+")[0] in BARE


def section_of(case):
    return "tcp_cubic" if case.startswith("tcp_cubic") else case.partition("_")[0]


def bare_times(lines, noise):
    """{(section, world, bytes): (time, way)} of the best way of a bare exchange."""
    times = collections.defaultdict(list)
    for line in lines:
        if is_bare(line["peer"]):
            row = section_of(line["case"]), line["world"], line["bytes"]
            times[(*row, line["peer"], line["case"])].append(sample(line))
    best = {}
    for (section, world, nbytes, *way), samples in times.items():
        found = typical(samples, noise)[0], " ".join(way)
        best[section, world, nbytes] = min(found, best.get((section, world, nbytes), found))
    return best


Ratio = collections.namedtuple("Ratio", "case world cores bytes ours way best peer peers_way rounds ratio bare bare_way")


def ratios(lines, noise=0.06):
    """Our best way over the best peer's best way, for every case, world, place of the cores and size that both have;
    with the time of the bare exchange, which is no peer, or None."""
    found = [ratio for cores, alike in by_distance(lines).items() for ratio in ratios_of(alike, cores, noise)]
    return sorted(found, key=lambda ratio: (ratio.case, ratio.world, ratio.cores == "far", ratio.bytes))


def ratios_of(lines, cores, noise):
    times, bare = {}, bare_times(lines, noise)
    for line in lines:
        case = contest(line)
        if case is None or line["peer"] in ("bound", "phys") or is_bare(line["peer"]):
            continue
        ways = times.setdefault((case, line["world"], line["bytes"]), collections.defaultdict(list))
        ways[line["peer"], line["case"]].append(sample(line))
    found = []
    for (case, world, nbytes), ways in sorted(times.items()):
        medians = {way: typical(samples, noise)[0] for way, samples in ways.items()}
        ours = [(time, way) for way, time in medians.items() if way[0] == OURS]
        others = [(time, way) for way, time in medians.items() if way[0] != OURS]
        if ours and others:
            (our_time, our_way), (time, way) = min(ours), min(others)
            rounds = min(len({number for _, _, number in ways[one]}) for one in (our_way, way))
            found.append(Ratio(case, world, cores, nbytes, our_time, our_way[1], time, *way, rounds, our_time / time,
                               *bare.get((section_of(case), world, nbytes), (None, None))))
    return found


def ratio_table(found):
    has_bare = any(r.bare for r in found)
    text = ["| case | world | cores | bytes | onesum µs | best peer µs | which | rounds | ratio |"
            + (" bare µs | which | times bare |" if has_bare else ""), "|---" * (12 if has_bare else 9) + "|"]
    for r in found:
        bare = f" {r.bare:.2f} | {r.bare_way} | {r.ours / r.bare:.2f} |" if r.bare else " | | |" if has_bare else ""
        text.append(f"| {r.case} | {r.world} | {r.cores} | {r.bytes} | {r.ours:.2f} | {r.best:.2f} | {r.peer} {r.peers_way} | "
                    f"{r.rounds} | {r.ratio:.2f}{' **loses**' if r.ratio > 1 else ''} |" + bare)
    if not found:
        return "no case has times of onesum and of another"
    lost = [f"{r.case} {r.world} x {size(r.bytes)}{r.cores and ', ' + r.cores} ({r.ratio:.2f})" for r in found
            if r.ratio > 1]
    which = ": " + ", ".join(lost) if lost else ""
    text.append(f"\nonesum is slower than the best of the others in {len(lost)} of {len(found)} cases{which}.")
    return "\n".join(text)


def drawable(lines, section, noise=0.06):
    """{world: points, as `onesum bench --compare` reads them}, where there are several sizes. Of every system the way
    in place; in one process the ways that compete. With the cores where they were more often."""
    samples = collections.defaultdict(list)
    for line in max(by_distance(lines).values(), key=len):
        case = line["case"]
        is_of_section = contest(line) == "inproc" if section == "inproc" else case == section + "_in"
        if is_of_section and (line["peer"] != OURS or case == section + "_in"):
            samples[line["world"], line["peer"], case, line["bytes"]].append(sample(line))
    worlds = collections.defaultdict(list)
    for (world, peer, case, nbytes), found in samples.items():
        worlds[world].append({"peer": peer, "case": case, "world": world, "bytes": nbytes,
                              "us_median": typical(found, noise)[0]})
    return {world: points for world, points in worlds.items() if len({point["bytes"] for point in points}) > 1}
