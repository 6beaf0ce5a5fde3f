#!/usr/bin/env python3
"""Measures the systems that a user might take instead, next to onesum. README.md says how.

    peers.py setup                     install and build the peers below PEERS (default build/peers)
    peers.py run SECTION...            measure; one JSON line for every figure
    peers.py table FILE...             times, as tables
    peers.py ratio FILE...             our time over the best peer's, and where we lose
    peers.py draw FILE... --out STEM   STEM-SECTION-WORLD.svg for every section with several sizes
    peers.py self-test                 the arithmetic of the tables, on lines that are stored
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys

import measuring
import report
import systems

ACTIONS = ("setup", "run", "table", "ratio", "draw", "self-test")


def words(text):
    return text.replace(",", " ").split()


def known_peers(text):
    names = words(text)
    for name in names:
        if systems.base_of(name) not in systems.ALL:
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(systems.ALL)}")
    return names or None


def worlds(text):
    return [int(word) for word in words(text)] or None


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("what", nargs="*", help="sections, or files")
    parser.add_argument("--peers", type=known_peers, metavar="LIST", help="default: all of them, those of the section")
    parser.add_argument("--worlds", type=worlds, metavar="LIST", help="numbers of ranks (default: 2 4)")
    parser.add_argument("--sizes", metavar="LIST", help="bytes, such as 4,1024,1048576")
    parser.add_argument("--shapes", choices=report.SETS, help="tensors of sets and inproc_sets (default: resnet50)")
    parser.add_argument("--rounds", type=int, default=5, help="so often all peers take turns (default: 5)")
    parser.add_argument("--timeout", type=int, default=85, help="seconds of one run (default: 85)")
    parser.add_argument("--retries", type=int, default=2, help="of a run during which others worked (default: 2)")
    parser.add_argument("--noise", type=float, default=0.06,
                        help="share of the machine that others may use meanwhile (default: 0.06)")
    parser.add_argument("--case", default="", help="of table: cases that begin with this")
    parser.add_argument("--out", help="of run: a file, to which lines are added; of draw: what names begin with")
    options = parser.parse_args(arguments)
    if options.action == "run":
        for section in options.what:
            if section not in measuring.SECTIONS:
                parser.error(f"{section} is none of {', '.join(measuring.SECTIONS)}")
    return options


def set_up(options):
    failed = systems.set_up(options.peers or systems.ALL)
    for peer, why in failed.items():
        print(f"peers: {peer} is left out: {why}", file=sys.stderr)
    ready = [peer for peer in systems.ALL if systems.is_ready(peer)]
    print(f"peers: ready in {systems.FOLDER}: {', '.join(ready) or 'none'}", file=sys.stderr)
    return 0 if ready else 1


def run(options):
    measuring.adopt_orphans()
    failures = measuring.Failures()
    with open(options.out, "a", encoding="utf-8") if options.out else contextlib.nullcontext(sys.stdout) as out:
        for section in options.what:
            measuring.run_section(section, options, out, failures)
    if failures.count:
        print("\npeers: what failed, and was left out:", file=sys.stderr)
        for failed in failures.count:
            print("  " + failures.line(failed), file=sys.stderr)
    return 0


def draw(options):
    lines = report.read(options.what)
    for section in ("shm", "tcp", "tcp_cubic", "netns", "inproc"):
        for world, points in report.drawable(lines, section, options.noise).items():
            stem = f"{options.out or 'peers'}-{section}-{world}"
            with open(stem + ".json", "w", encoding="utf-8") as out:
                out.writelines(json.dumps(point) + "\n" for point in points)
            subprocess.run([systems.TOOL, "bench", "--devices", str(world), "--no-measure", "--plot", stem + ".svg",
                            "--compare", stem + ".json"], check=True)
            os.remove(stem + ".json")
            print(stem + ".svg")
    return 0


def main(arguments):
    options = parse(arguments)
    if options.action == "setup":
        return set_up(options)
    if options.action == "run":
        return run(options)
    if options.action == "draw":
        return draw(options)
    if options.action == "self-test":
        import self_test  # pylint: disable=import-outside-toplevel
        return self_test.run()
    try:
        lines = report.read(options.what)
    except OSError as error:
        print(f"peers: {error.filename}: {error.strerror}; expected a file that `run --out` wrote", file=sys.stderr)
        return 2
    print(report.tables(lines, options.case, options.noise) if options.action == "table"
          else report.ratio_table(report.ratios(lines, options.noise)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
