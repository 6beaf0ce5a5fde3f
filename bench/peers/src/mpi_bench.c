/* MPI_Allreduce, float32 SUM.  mpi_bench PEER CASE sizes 4,1024,...   |   mpi_bench PEER CASE shapes FILE
 * Every rank times every call; a sample is the slowest rank; one JSON line per size from rank 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, world;
static const char *peer, *kase;
static double budget; /* seconds per line */
static int cmp(const void* a, const void* b) {
  double x = *(double*)a, y = *(double*)b;
  return (x > y) - (x < y);
}

typedef void (*Fn)(void);
static float *src, *dst;
static int count, *lens, nlens;
static void in_place(void) { MPI_Allreduce(MPI_IN_PLACE, dst, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void out_of_place(void) { MPI_Allreduce(src, dst, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void per_tensor(void) {
  float* p = dst;
  for (int i = 0; i < nlens; p += lens[i++])
    MPI_Allreduce(MPI_IN_PLACE, p, lens[i], MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void pack_flat(void) { /* the tensors are copied into one buffer, reduced, and copied back */
  size_t o = 0;
  for (int i = 0; i < nlens; o += lens[i++]) memcpy(dst + o, src + o, 4l * lens[i]);
  in_place();
  o = 0;
  for (int i = 0; i < nlens; o += lens[i++]) memcpy(src + o, dst + o, 4l * lens[i]);
}

static void measure(Fn fn, const char* what) {
  static double t[5000], m[5000];
  size_t bytes = 4l * count;
  int reps;
  for (int i = 0; i < count; i++) src[i] = dst[i] = rank + 1;
  fn();
  for (int i = 0; i < count; i += 1 + count / 1000)
    if (dst[i] != world * (world + 1) / 2) {
      fprintf(stderr, "wrong sum\n");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  memset(src, 0, bytes);
  memset(dst, 0, bytes);
  double t0 = MPI_Wtime();
  int warm = bytes < (1 << 20) ? 20 : 2;
  for (int i = 0; i < warm; i++) fn();
  reps = budget / ((MPI_Wtime() - t0) / warm);
  reps = reps < 5 ? 5 : reps > 5000 ? 5000 : reps;
  MPI_Bcast(&reps, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < reps; i++) {
    t0 = MPI_Wtime();
    fn();
    t[i] = (MPI_Wtime() - t0) * 1e6;
  }
  MPI_Reduce(t, m, reps, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank) return;
  qsort(m, reps, sizeof *m, cmp);
  printf(
      "{\"peer\":\"%s\",\"case\":\"%s_%s\",\"world\":%d,\"bytes\":%zu,\"us_median\":%.2f,\"us_min\":%.2f,"
      "\"reps\":%d}\n",
      peer, kase, what, world, bytes, m[reps / 2], m[0], reps);
  fflush(stdout);
}
static void alloc(size_t n) {
  src = aligned_alloc(4096, (n * 4 + 4095) & ~4095ul);
  dst = aligned_alloc(4096, (n * 4 + 4095) & ~4095ul);
  count = n;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (argc < 5) return 2;
  peer = argv[1];
  kase = argv[2];
  budget = getenv("BENCH_BUDGET") ? atof(getenv("BENCH_BUDGET")) : 0.3;
  if (!strcmp(argv[3], "sizes")) {
    for (char* s = strtok(argv[4], ","); s; s = strtok(0, ",")) {
      alloc(atol(s) / 4);
      measure(in_place, "in");
      measure(out_of_place, "out");
      free(src);
      free(dst);
    }
  } else { /* lines "name d0 d1 ..." */
    FILE* f = fopen(argv[4], "r");
    char line[512];
    size_t n = 0;
    lens = malloc(4096 * sizeof *lens);
    while (fgets(line, sizeof line, f)) {
      long k = 1;
      strtok(line, " \n");
      for (char* d; (d = strtok(0, " \n"));) k *= atol(d);
      lens[nlens++] = k;
      n += k;
    }
    alloc(n);
    measure(in_place, "flat");
    measure(per_tensor, "per_tensor");
    measure(pack_flat, "pack_flat");
  }
  MPI_Finalize();
  return 0;
}
