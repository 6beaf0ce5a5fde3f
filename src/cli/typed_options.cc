#include "cli/typed_options.h"

#include <CLI/CLI.hpp>

namespace onesum::cli {
namespace {

void text_option(CLI::App& app, const char* name, Text& to, const char* placeholder,
                 const char* description) {
  app.add_option(name, to, description)->option_text(placeholder);
}

void add_call_options(CLI::App& app, Typed& typed) {
  text_option(app, "--shapes", typed.shapes, "FILE",
              "the tensors that FILE lists: a name and extents a line");
  text_option(app, "--dtype", typed.dtype, "TYPE", "element type: float32 (default), bfloat16, int64, ...");
  text_option(app, "--op", typed.op, "OP",
              "all-reduce by sum (default), mean, product, min, max, bitand, bitor, bitxor; or broadcast, "
              "reduce_scatter, all_gather, scatter, all_to_all; bench also: send_recv");
}

void add_plan(CLI::App& app, Typed& typed) {
  CLI::App& plan = *app.add_subcommand("plan", "Show what a reduction would do: steps, bytes, order, time");
  plan.footer(
      "The output is a plan in its text form, with remarks (#), which --file reads back; or, with\n"
      "--explain, words.\n\n"
      "Example:\n"
      "  onesum plan --devices 4 --bytes 8M --in-place --verify --draw plan.svg\n"
      "  onesum plan --devices 4 --bytes 8M > plan.txt; onesum plan --file plan.txt --verify\n"
      "  onesum plan --spec nccl/rechd --workers 2 --devices 4 --bytes 8M --draw plan.svg\n"
      "  onesum plan --spec nccl/xring --workers 2 --devices 4 --device-type gpu --bytes 8M --verify\n"
      "  onesum plan --spec nccl/machines --workers 4 --machines 2 --devices 2 --bytes 8M --verify\n"
      "  onesum plan --spec pscpu:64k:auto --workers 4 --shapes bench/shapes/resnet50.txt --explain\n"
      "  onesum plan --spec xring --half reduce_scatter --workers 4 --devices 1 --bytes 8M --verify\n"
      "  onesum plan --op reduce_scatter --workers 4 --devices 1 --bytes 8M --verify\n"
      "  onesum plan --spec rechd --workers 4096 --devices 1 --bytes 1G --simulate --latency 5us \\\n"
      "    --bandwidth 12.5GB/s");
  text_option(plan, "--devices", typed.devices, "N",
              "devices of this process, or of each worker, one replica each (default 2)");
  text_option(plan, "--spec", typed.spec, "TEXT",
              "all-reduce: xring, nccl/rechd, pscpu:2k:direct#2, auto, ... (default: sum on one device)");
  text_option(plan, "--workers,-n", typed.workers, "W", "workers, embedded in this process");
  add_call_options(plan, typed);
  text_option(plan, "--machines", typed.machines, "M",
              "the workers are on M machines, evenly divided in rank order (default 1)");
  text_option(plan, "--device-type", typed.device_type, "TYPE",
              "cpu (default) or gpu, where nccl is NCCL's own");
  text_option(plan, "--bytes", typed.bytes, "B", "one tensor of B bytes (4, 64k, 8M, ...) on each device");
  plan.add_flag("--in-place", typed.in_place, "results replace their inputs");
  text_option(plan, "--to", typed.to, "DEVICE", "where the result goes (default: every device)");
  text_option(plan, "--reduce-to", typed.reduce_to, "DEVICE",
              "where the sum is formed (default: the result's first)");
  text_option(plan, "--num-packs", typed.num_packs, "P",
              "cut the tensors, concatenated, into P packs (default 0: each by itself)");
  text_option(plan, "--numerics", typed.numerics, "WORD", "canonical (default) or fast");
  text_option(plan, "--half", typed.half, "HALF",
              "only reduce_scatter or all_gather of xring, rechd or direct");
  text_option(plan, "--file", typed.file, "FILE",
              "read a plan instead; --bytes then sizes each of its packs");
  plan.add_flag("--verify", typed.verify, "prove that the plan is right, and say so");
  plan.add_flag("--explain", typed.explain, "only say in words what would be done, and why");
  plan.add_flag("--text", typed.text, "with --explain: print the plan too");
  plan.add_flag("--simulate", typed.simulate,
                "only what it would cost; xring and rechd for thousands of workers");
  text_option(plan, "--latency", typed.latency, "TIME", "of links across workers, such as 5us");
  text_option(plan, "--bandwidth", typed.bandwidth, "SPEED", "of links across workers, such as 10GB/s");
  text_option(plan, "--inside-latency", typed.inside_latency, "TIME", "of links inside a worker");
  text_option(plan, "--inside-bandwidth", typed.inside_bandwidth, "SPEED", "of links inside a worker");
  text_option(plan, "--reduce-speed", typed.reduce_speed, "SPEED",
              "memory that a worker reads and writes, such as 20GB/s");
  text_option(plan, "--constants", typed.constants, "FILE.json",
              "all of these (default: this machine's; see onesum info)");
  text_option(plan, "--draw", typed.draw, "FILE.svg", "draw the plan");
  plan.add_flag("--json", typed.json, "print one JSON object");
}

void add_info(CLI::App& app, Typed& typed) {
  CLI::App& info = *app.add_subcommand("info", "Show version, build, processor, GPUs and settings");
  info.footer(
      "Predicted times and the spec \"auto\" use constants of the machine: latency and speed of links, of\n"
      "memory and of steps. --measure writes them to $XDG_CACHE_HOME/onesum/machine.json (default\n"
      "~/.cache), which every process reads that uses the library.\n\n"
      "--cluster shows what the launcher of this process (onesum run, a TF_CONFIG, torchrun, srun, mpirun) "
      "says\n"
      "of the workers that take part; run it in place of the program.\n\n"
      "Example:\n  onesum info --json\n  onesum info --measure\n  mpirun -n 2 onesum info --cluster");
  info.add_flag("--measure", typed.measure, "find the machine's constants by timing calls, and keep them");
  info.add_flag("--cluster", typed.cluster, "who takes part, where worker 0 is, and which variables say so");
  info.add_flag("--json", typed.json, "print one JSON object");
}

void add_bench(CLI::App& app, Typed& typed) {
  CLI::App& bench =
      *app.add_subcommand("bench", "Measure reductions, and how close they come to the machine's limit");
  bench.footer(
      "--workers W starts W workers on this machine, which end with the bench. Under a launcher (onesum "
      "run,\n"
      "mpirun, torchrun, srun, a TF_CONFIG) the bench runs on the workers that it has started, and rank 0\n"
      "prints. Without either, one process does it all, with --devices N.\n\n"
      "All workers make the same calls: in each round they wait for each other, make one call that does not\n"
      "count, then call back to back. The time of a call is that of the slowest worker; median, min and p99\n"
      "are over 5 to 5000 samples. Calls shorter than 20 us are timed in groups, of which a sample is the\n"
      "mean.\n\n"
      "Before and after the measurement, the results of a call are compared bit by bit with an independent\n"
      "sum (of whole numbers where the additions are not in the canonical order); \"wrong\" counts elements\n"
      "of all workers, and any of them makes the exit code 1. Memory is allocated by malloc, touched, and\n"
      "aligned to cache lines.\n\n"
      "algbw is the size of one replica over the time, busbw that times 2(n-1)/n for n replicas. The bound\n"
      "is what hand-written loops need in the same rounds; workers first meet in shared memory there. "
      "memory\n"
      "is the most that one process held beyond its tensors.\n\n"
      "--device-type gpu measures on GPU:0, GPU:1, ... of each process, which are those that\n"
      "CUDA_VISIBLE_DEVICES lets it see. Workers that the bench starts get GPUs of their own; those of a\n"
      "launcher use what the launcher has set for each. A call is done when its results are complete; bound\n"
      "and memory are not known.\n\n"
      "Example:\n"
      "  onesum bench -n 4 --transport shm --sizes 8,64k,16M\n"
      "  onesum bench -n 2 --json > ours.json; onesum bench -n 2 --spec xring --plot x.svg --compare "
      "ours.json\n"
      "  onesum run -n 4 -- onesum bench --sizes 8,1M\n"
      "  onesum bench --devices 4 --shapes bench/shapes/resnet50.txt --json --bound\n"
      "  onesum bench --spec nccl/rechd --workers 4 --embedded --devices 2 --sizes 4,64k,8M\n"
      "  onesum bench --device-type gpu --devices 8 --spec nccl --sizes 8,64k,16M,1G\n"
      "  onesum bench --device-type gpu -n 2 --devices 4 --spec nccl/xring --sizes 16M");
  text_option(bench, "--workers,-n", typed.workers, "W", "worker processes to start on this machine");
  bench.add_flag("--embedded", typed.embedded, "the workers are embedded in this process instead");
  text_option(bench, "--devices", typed.devices, "N",
              "devices of each worker, one replica each (default 1; in one process 2)");
  text_option(bench, "--device-type", typed.device_type, "TYPE", "cpu (default) or gpu");
  text_option(bench, "--transport", typed.transport, "NAME",
              "between worker processes: auto (default), shm, tcp or ucx");
  text_option(bench, "--spec", typed.spec, "TEXT",
              "all-reduce: xring, nccl/rechd, pscpu:2k:direct#2, ... (default: auto; in one process the sum "
              "on one device)");
  text_option(bench, "--sizes", typed.sizes, "LIST",
              "bytes per device, such as 4,1k,8M (default 4,1k,64k,1M,8M,64M)");
  add_call_options(bench, typed);
  text_option(bench, "--case", typed.case_name, "NAME",
              "what the names of the results begin with (default workers; in one process inproc)");
  text_option(bench, "--iterations", typed.iterations, "I", "samples per case and size (default: --budget)");
  text_option(bench, "--budget", typed.budget, "SECONDS",
              "per case and size (default: BENCH_BUDGET, else 0.3)");
  text_option(bench, "--rounds", typed.rounds, "R", "cases take turns so often (default 3)");
  bench.add_flag("--check", typed.check, "compare results, before and after the measurement (default)");
  bench.add_flag("--no-check", typed.no_check, "do not");
  bench.add_flag("--huge-pages", typed.huge_pages, "ask the system for huge pages");
  bench.add_flag("--json", typed.json, "print one JSON object a line");
  bench.add_flag("--bound", typed.bound, "with --json: also measure and print the bounds");
  text_option(bench, "--plot", typed.plot, "FILE.svg", "draw times and bandwidths over size");
  text_option(bench, "--compare", typed.compare, "FILE.json",
              "with --plot: draw these, too; JSON lines as --json prints them");
  bench.add_flag("--no-measure", typed.no_measure, "with --compare: draw these alone, and measure nothing");
}

void add_run(CLI::App& app, Typed& typed) {
  CLI::App& run = *app.add_subcommand("run", "Run a program as several workers on this machine");
  run.footer(
      "Usage: onesum run -n W [OPTIONS] -- PROGRAM [ARGUMENTS]\n\n"
      "Each worker gets its rank, their number and the job's name in ONESUM_RANK, ONESUM_SIZE and\n"
      "ONESUM_JOB, and its share of the cores: their number in ONESUM_THREADS, and where there are as many\n"
      "cores as workers, or each core can have as many workers as any other, it runs on no others; unless\n"
      "ONESUM_THREADS is set. Worker 0 reads standard input, the others read nothing. Lines are printed "
      "when\n"
      "they are complete.\n\n"
      "When a worker fails, the others get SIGTERM, and SIGKILL if they do not end; the exit code is that "
      "of\n"
      "the worker that failed first (128 + signal if it was killed). SIGINT, SIGTERM, SIGHUP, SIGQUIT,\n"
      "SIGUSR1 and SIGUSR2 are passed on to all workers; a second SIGINT kills them. Whatever workers\n"
      "started ends with them.\n\n"
      "Example:\n"
      "  onesum run -n 4 -- ./train --epochs 3\n"
      "  onesum run -n 2 --keep-going -- sh -c './train > log.$ONESUM_RANK'");
  text_option(run, "--workers,-n", typed.workers, "W", "how many workers to start");
  text_option(run, "--grace", typed.grace, "SECONDS",
              "between SIGTERM and SIGKILL when a worker has failed (default 5)");
  run.add_flag("--keep-going", typed.keep_going,
               "a failing worker does not end the rest; the exit code is the highest");
  run.add_flag("--no-prefix", typed.no_prefix, "do not put the rank before each line");
  run.add_flag("--json", typed.json, "print lines and endings, one JSON object a line");
}

}  // namespace

void add_subcommands(CLI::App& app, Typed& typed) {
  add_run(app, typed);
  add_plan(app, typed);
  add_info(app, typed);
  add_bench(app, typed);
}

}  // namespace onesum::cli
