// oneCCL allreduce on host buffers, float32 SUM; MPI only to start up and to gather times.  ccl_bench PEER
// CASE sizes 4,1024,...
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <vector>

#include <mpi.h>
#include <oneapi/ccl.hpp>

int main(int argc, char** argv) {
  int rank, world;
  if (argc < 5) return 2;
  ccl::init();
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  ccl::shared_ptr_class<ccl::kvs> kvs;
  ccl::kvs::address_type addr;
  if (!rank) {
    kvs = ccl::create_main_kvs();
    addr = kvs->get_address();
  }
  MPI_Bcast(addr.data(), addr.size(), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank) kvs = ccl::create_kvs(addr);
  auto comm = ccl::create_communicator(world, rank, kvs);
  double budget = getenv("BENCH_BUDGET") ? atof(getenv("BENCH_BUDGET")) : 0.3;
  std::stringstream ss(argv[4]);
  for (std::string s; std::getline(ss, s, ',');) {
    size_t bytes = atol(s.c_str()), n = bytes / 4;
    std::vector<float> src(n, rank + 1), dst(n);
    for (int inplace = 1; inplace >= 0; inplace--) {
      auto fn = [&] {
        ccl::allreduce(inplace ? dst.data() : src.data(), dst.data(), n, ccl::reduction::sum, comm).wait();
      };
      std::fill(src.begin(), src.end(), rank + 1);
      dst = src;
      fn();
      if (dst[n - 1] != world * (world + 1) / 2) {
        fprintf(stderr, "wrong sum\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
      std::fill(src.begin(), src.end(), 0);
      dst = src;
      int warm = bytes < (1 << 20) ? 20 : 2;
      double t0 = MPI_Wtime();
      for (int i = 0; i < warm; i++) fn();
      int reps = std::clamp(int(budget / ((MPI_Wtime() - t0) / warm)), 5, 5000);
      MPI_Bcast(&reps, 1, MPI_INT, 0, MPI_COMM_WORLD);
      MPI_Barrier(MPI_COMM_WORLD);
      std::vector<double> t(reps), m(reps);
      for (auto& x : t) {
        t0 = MPI_Wtime();
        fn();
        x = (MPI_Wtime() - t0) * 1e6;
      }
      MPI_Reduce(t.data(), m.data(), reps, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      std::sort(m.begin(), m.end());
      if (!rank)
        printf(
            "{\"peer\":\"%s\",\"case\":\"%s_%s\",\"world\":%d,\"bytes\":%zu,\"us_median\":%.2f,\"us_min\":%."
            "2f,\"reps\":%d}\n",
            argv[1], argv[2], inplace ? "in" : "out", world, bytes, m[reps / 2], m[0], reps),
            fflush(stdout);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
