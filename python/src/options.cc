// What a caller may ask of a reduction.
#include <nanobind/stl/chrono.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <onesum/options.h>

#include "bindings.h"
#include "read.h"

namespace onesum::python {
namespace {

void bind_enumerations(nb::module_& module) {
  nb::enum_<ReduceOp>(module, "ReduceOp", R"(What becomes of the replicas of a value.

MIN and MAX are not of complex numbers, and only integers and bool have bits to combine; bool has no SUM and MEAN.

>>> a, b = np.array([6, 1]), np.array([3, 5])
>>> for op in onesum.ReduceOp:
...     print(op.name, onesum.ReductionToOneDevice().reduce(op, [a, b], "CPU:0").numpy().tolist())
SUM [9, 6]
MEAN [4.5, 3.0]
PRODUCT [18, 5]
MIN [3, 1]
MAX [6, 5]
BIT_AND [2, 1]
BIT_OR [7, 5]
BIT_XOR [5, 4]
)")
      .value("SUM", ReduceOp::kSum)
      .value("MEAN", ReduceOp::kMean)
      .value("PRODUCT", ReduceOp::kProduct)
      .value("MIN", ReduceOp::kMin)
      .value("MAX", ReduceOp::kMax)
      .value("BIT_AND", ReduceOp::kBitAnd)
      .value("BIT_OR", ReduceOp::kBitOr)
      .value("BIT_XOR", ReduceOp::kBitXor);
  nb::enum_<Implementation>(module, "Implementation", R"(A hint who should move the data.

>>> onesum.CommunicationOptions().implementation
Implementation.AUTO
)")
      .value("AUTO", Implementation::kAuto)
      .value("RING", Implementation::kRing)
      .value("NCCL", Implementation::kNccl);
  nb::enum_<Numerics>(module, "Numerics", R"(Which orders of additions are allowed.

>>> onesum.CommunicationOptions().numerics
Numerics.CANONICAL
)")
      .value("CANONICAL", Numerics::kCanonical, "The same bits on every layout.")
      .value("FAST", Numerics::kFast, "Any order that is deterministic for the layout.")
      .value("EXACT", Numerics::kExact, "The correctly rounded result; not yet.");
  nb::enum_<SparseRows>(module, "SparseRows", R"(What becomes of rows of IndexedSlices that occur twice.

>>> onesum.CommunicationOptions(sparse_rows=onesum.SparseRows.MERGE_DUPLICATES).sparse_rows
SparseRows.MERGE_DUPLICATES
)")
      .value("CONCATENATE", SparseRows::kConcatenate)
      .value("MERGE_DUPLICATES", SparseRows::kMergeDuplicates);
}

}  // namespace

void bind_options(nb::module_& module) {
  bind_enumerations(module);
  nb::class_<CommunicationOptions>(module, "CommunicationOptions", R"(Options of one call.

They are validated when a call takes them, before any work.

bytes_per_pack  0: decided by the library
timeout         of the whole call, from entry, in seconds or as a timedelta; None: 30 minutes
implementation  a hint
numerics        which orders of additions are allowed
sparse_rows     what becomes of rows that occur twice

>>> options = onesum.CommunicationOptions(timeout=2.5)
>>> options.timeout
datetime.timedelta(seconds=2, microseconds=500000)
)")
      .def(
          "__init__",
          [](CommunicationOptions* self, std::size_t bytes_per_pack, TimeoutLike timeout,
             Implementation implementation, Numerics numerics, SparseRows sparse_rows) {
            new (self) CommunicationOptions{bytes_per_pack, read_timeout(timeout), implementation, numerics,
                                            sparse_rows};
          },
          nb::arg("bytes_per_pack") = 0, nb::arg("timeout").none() = nb::none(),
          nb::arg("implementation") = Implementation::kAuto, nb::arg("numerics") = Numerics::kCanonical,
          nb::arg("sparse_rows") = SparseRows::kConcatenate,
          nb::sig("def __init__(self, bytes_per_pack: int = 0, timeout: float | datetime.timedelta | None = "
                  "None, "
                  "implementation: Implementation = ..., "
                  "numerics: Numerics = ..., "
                  "sparse_rows: SparseRows = ...) -> None"))
      .def_rw("bytes_per_pack", &CommunicationOptions::bytes_per_pack)
      .def_prop_rw(
          "timeout", [](const CommunicationOptions& self) { return self.timeout; },
          [](CommunicationOptions& self, TimeoutLike timeout) { self.timeout = read_timeout(timeout); },
          nb::for_getter(nb::sig("def timeout(self) -> datetime.timedelta | None")),
          nb::for_setter(nb::sig("def timeout(self, timeout: float | datetime.timedelta | None, /) -> None")),
          nb::for_setter(nb::arg("timeout").none()))
      .def_rw("implementation", &CommunicationOptions::implementation)
      .def_rw("numerics", &CommunicationOptions::numerics)
      .def_rw("sparse_rows", &CommunicationOptions::sparse_rows);
}

}  // namespace onesum::python
