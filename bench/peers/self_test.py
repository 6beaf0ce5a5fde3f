"""Shows that the tables say what the lines say, and that a peer that fails or hangs does not end a run. Seconds;
nothing is installed or measured. Run by `peers.py self-test`."""

import argparse
import contextlib
import io
import json

import measuring
import report
import systems


def line(peer, case, us, world=2, nbytes=4, noise=0.0, round_number=0):
    return {"peer": peer, "case": case, "world": world, "bytes": nbytes, "us_median": us, "us_min": us, "reps": 5,
            "round": round_number, "noise": noise}


LINES = [
    # A loss by the median of the quiet rounds: 3 µs against 2 µs; the noisy 0.1 µs of round 2 does not count.
    line("onesum", "shm_in", 3.0), line("onesum", "shm_in", 5.0, round_number=1),
    line("onesum", "shm_in", 0.1, round_number=2, noise=0.5), line("onesum", "shm_in", 1.0, round_number=3),
    line("mpich", "shm_in", 2.0), line("mpich", "shm_in", 2.0, round_number=1), line("impi", "shm_in", 2.5),
    # A win, of another size; where no round was quiet, the quietest counts.
    line("onesum", "shm_in", 10.0, nbytes=2 << 20, noise=0.3),
    line("onesum", "shm_in", 90.0, nbytes=2 << 20, noise=0.9),
    line("mpich", "shm_in", 40.0, nbytes=2 << 20),
    # Sets compete by their best way, whatever it is called.
    line("onesum", "sets_bert_base_batch", 8.0), line("onesum", "sets_bert_base_prepared", 7.0),
    line("gloo", "sets_bert_base_flat", 20.0), line("gloo", "sets_bert_base_ddp_buckets", 14.0),
    # A sum that is not on every replica is not the same work.
    line("onesum", "inproc_in", 1.0), line("onesum", "inproc_in", 2.0, nbytes=2 << 20),
    line("numpy", "inproc_sum_add", 0.1),
    line("torch", "inproc_sum_add_bcast", 4.0), line("torch", "inproc_sum_add_bcast", 5.0, nbytes=2 << 20),
    # Bare UCX is nobody to win or lose against; its best way is shown, in the rows of its section.
    line("onesum", "tcp_in", 6.0), line("onesum", "tcp_out", 9.0), line("gloo", "tcp_in", 8.0),
    line("gloo", "tcp_out", 8.0), line("onesum", "tcp_cubic_in", 6.0), line("gloo", "tcp_cubic_in", 8.0),
    line("ucx", "tcp_in", 5.0), line("ucx+eager", "tcp_in", 4.0), line("ucx+eager", "tcp_in_pieces", 3.0),
    line("ucx+eager", "tcp_in_pieces", 3.0, round_number=1), line("ucx", "tcp_in_direct", 0.1, noise=0.5),
    line("ucx", "tcp_in_direct", 3.5, round_number=1), line("ucx", "tcp_in", 1.0, world=4),
    line("ucx", "tcp_in", 1.0, nbytes=2 << 20),
    # Nobody to compare with.
    line("onesum", "tcp_in_plain", 1.0), line("phys", "memcpy", 0.5), line("bound", "shm_in", 0.5),
]


def check(what, found, expected):
    if found != expected:
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def check_ratios():
    found = {(r.case, r.world, r.bytes): r for r in report.ratios(LINES)}
    check("contests", sorted(found), [("inproc", 2, 4), ("inproc", 2, 2 << 20), ("sets_bert_base", 2, 4),
                                      ("shm_in", 2, 4), ("shm_in", 2, 2 << 20),
                                      ("tcp_cubic_in", 2, 4), ("tcp_in", 2, 4), ("tcp_out", 2, 4)])
    small = found["shm_in", 2, 4]
    check("small", (small.ours, small.best, small.peer, small.ratio, small.rounds), (3.0, 2.0, "mpich", 1.5, 2))
    check("large", found["shm_in", 2, 2 << 20].ratio, 0.25)
    bert = found["sets_bert_base", 2, 4]
    check("sets", (bert.way, bert.peers_way), ("sets_bert_base_prepared", "sets_bert_base_ddp_buckets"))
    check("sets", bert.ratio, 0.5)
    check("in one process", (found["inproc", 2, 4].peer, found["inproc", 2, 4].ratio), ("torch", 0.25))
    table = report.ratio_table(report.ratios(LINES)).splitlines()
    check("losers", [row.split("|")[1].strip() for row in table if "**loses**" in row], ["shm_in", "tcp_out"])
    check("the last line", table[-1],
          "onesum is slower than the best of the others in 2 of 8 cases: "
          "shm_in 2 x 4 B (1.50), tcp_out 2 x 4 B (1.12).")
    check("nobody", report.ratio_table([]), "no case has times of onesum and of another")


def check_bare():
    found = report.ratios(LINES)
    check("bare UCX", {r.case: (r.bare, r.bare_way) for r in found if r.bare},
          {case: (3.0, "ucx+eager tcp_in_pieces") for case in ("tcp_in", "tcp_out")})
    table = report.ratio_table(found).splitlines()
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table if row.startswith("|")]
    check("columns", {len(row) for row in rows}, {12})
    check("times bare UCX", {row[0]: row[9:] for row in rows if row[0].startswith("tcp")},
          {"tcp_in": ["3.00", "ucx+eager tcp_in_pieces", "2.00"],
           "tcp_out": ["3.00", "ucx+eager tcp_in_pieces", "3.00"], "tcp_cubic_in": ["", "", ""]})
    without = [one for one in LINES if not report.is_bare(one["peer"])]
    check("columns without it", "bare" in report.ratio_table(report.ratios(without)), False)


def check_distances():
    """Near 1 µs against 2 µs, far 8 µs against 4 µs; the cores moved during what would be the best of all."""
    def at(distances, peer, us, round_number):
        return dict(line(peer, "shm_in", us, round_number=round_number), distances=distances)
    lines = [at([45, 50], "onesum", 1.0, 0), at([41, 44], "impi", 2.0, 0), at([170, 190], "onesum", 8.0, 1),
             at([180, 200], "impi", 4.0, 1), at([45, 180], "impi", 0.1, 2), at([0, 0], "impi", 0.1, 3)]
    check("near and far", [(r.cores, r.ours, r.best, r.ratio) for r in report.ratios(lines)],
          [("near", 1.0, 2.0, 0.5), ("far", 8.0, 4.0, 2.0)])
    check("the losers", report.ratio_table(report.ratios(lines)).splitlines()[-1],
          "onesum is slower than the best of the others in 1 of 2 cases: shm_in 2 x 4 B, far (2.00).")
    check("its tables", report.tables(lines).count("| onesum |"), 2)
    check("what is drawn", [p["us_median"] for p in report.drawable(
        [*lines, at([45, 45], "impi", 3.0, 4), dict(at([45, 45], "impi", 9.0, 4), bytes=8)], "shm")[2]], [1.0, 2.5, 9.0])
    check("where they stay", [r.cores for r in report.ratios(lines[:2])], [""])


def check_tables():
    text = report.tables(LINES, "shm")
    check("a row", "| mpich | 2.0 | 52.43 |" in text, True)
    check("a row without a quiet round", "| onesum | 3.0 | 209.72~ |" in text, True)
    points = report.drawable(LINES, "shm")[2]
    check("points", sorted((p["peer"], p["bytes"]) for p in points if p["peer"] in ("onesum", "mpich")),
          [("mpich", 4), ("mpich", 2 << 20), ("onesum", 4), ("onesum", 2 << 20)])
    check("ways in one process", {p["peer"] for p in report.drawable(LINES, "inproc")[2]}, {"onesum", "torch"})


def check_choice():
    check("of the section", measuring.peers_of("inproc"), ["onesum", "tf", "torch", "numpy"])
    check("by name", measuring.peers_of("shm", ["mpich+yield", "numpy", "oneccl"]), ["onesum", "mpich+yield", "oneccl"])
    check("nobody", measuring.peers_of("inproc", ["mpich"]), [])
    check("bare UCX", measuring.peers_of("tcp", ["ucx", "ucx+eager", "ucx+unknown"]), ["onesum", "ucx", "ucx+eager"])
    check("bare UCX elsewhere", [section for section in measuring.SECTIONS if section != "phys" and
                                 measuring.peers_of(section, ["ucx"])], ["tcp", "tcp_cubic"])
    check("bare slots", [section for section in measuring.SECTIONS if section != "phys" and
                         measuring.peers_of(section, ["slots"])], ["shm"])
    check("ways of bare UCX", measuring.with_ways(["onesum", "ucx", "ucx+eager"], 2, 2),
          ["onesum", "ucx", "ucx+eager"])
    check("as many cores", measuring.with_ways(["onesum", "mpich"], 2, 2), ["onesum", "mpich"])
    check("more ranks than cores", measuring.with_ways(["onesum", "mpich", "mpich+yield", "gloo"], 4, 2),
          ["onesum", "mpich", "mpich+yield", "gloo"])
    for peer in systems.ALL + ["onesum", "phys"]:
        for world in (2, 4):
            command, _ = systems.command(peer, world, "shm", "sizes", "4", tcp=True)
            check(f"{peer} has a command", bool(command), True)


def check_run():
    """mpich prints, impi fails, ompi4 hangs; gloo is not there."""
    figure = '{"peer":"%s","case":"shm_in","world":2,"bytes":4,"us_median":%s}'
    ranks = [{"CODE": "0"}, {"CODE": "3"}, {"CODE": "0"}]
    behaviours = {"onesum": f"echo '{figure % ('onesum', 1.0)}'",
                  "mpich": f"echo '{figure % ('mpich', 2.0)}'; echo what is not JSON",
                  "impi": systems.in_parallel("sh -c 'echo broken >&2; exit $CODE'", ranks),
                  "ompi4": "sleep 60 & sleep 60"}
    kept = systems.command, systems.is_ready, measuring.wait_for_quiet, measuring.distance_of_cores
    systems.command = lambda peer, *_, **__: (behaviours[peer], {})
    systems.is_ready = lambda peer: peer in behaviours
    measuring.wait_for_quiet = lambda lock: None
    measuring.distance_of_cores = lambda: 50
    options = argparse.Namespace(peers=["mpich", "impi", "ompi4", "gloo"], sizes="4", shapes=None, worlds=[1], rounds=3,
                                 retries=0, noise=1.0, timeout=2)
    measuring.adopt_orphans()
    out, said, failures = io.StringIO(), io.StringIO(), measuring.Failures()
    try:
        with contextlib.redirect_stderr(said):
            measuring.run_section("shm", options, out, failures)
    finally:
        systems.command, systems.is_ready, measuring.wait_for_quiet, measuring.distance_of_cores = kept
    lines = [json.loads(text) for text in out.getvalue().splitlines()]
    check("lines", [(one["peer"], one["round"]) for one in lines],
          [(peer, number) for number in range(3) for peer in ("onesum", "mpich")])
    check("failures", dict(failures.count), {("shm", 1, "impi"): 2, ("shm", 1, "ompi4"): 2})
    check("why", failures.reports["shm", 1, "impi"], "exit code 3: broken | broken | broken")
    check("hangs", failures.reports["shm", 1, "ompi4"], "no end after 2 s")
    check("not there", "shm without gloo, which is not set up" in said.getvalue(), True)
    check("ratio", report.ratios(lines)[0].ratio, 0.5)


def run():
    for one in (check_ratios, check_bare, check_distances, check_tables, check_choice, check_run):
        one()
    print("peers: good")
    return 0
