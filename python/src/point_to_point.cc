// Messages from one worker process to another.
#include <nanobind/stl/shared_ptr.h>

#include <onesum/point_to_point.h>

#include "bindings.h"
#include "call_options.h"
#include "read.h"
#include "waiting.h"
#include "works.h"

namespace onesum::python {
namespace {

// A PointToPoint with the cluster that its Works run on.
struct Messages {
  PointToPoint messages;
  Cluster cluster;
};

void send(Messages& self, ArrayLike tensor, int to, int tag, Options options) {
  const Tensor given = read(tensor, cpu(0), Access::kRead, "tensor");
  waiting([&] { self.messages.send(given, to, tag, or_default(options)); });
}

void recv(Messages& self, ArrayLike tensor, int from, int tag, Options options) {
  const Tensor into = read(tensor, cpu(0), Access::kWrite, "tensor");
  waiting([&] { self.messages.recv(into, from, tag, or_default(options)); });
}

std::shared_ptr<PendingWork> start_send(Messages& self, ArrayLike tensor, int to, int tag, Options options) {
  const Tensor given = read(tensor, cpu(0), Access::kRead, "tensor");
  Work work = waiting([&] { return self.messages.start_send(given, to, tag, or_default(options)); });
  return pending(std::move(work), self.cluster);
}

std::shared_ptr<PendingWork> start_recv(Messages& self, ArrayLike tensor, int from, int tag,
                                        Options options) {
  const Tensor into = read(tensor, cpu(0), Access::kWrite, "tensor");
  Work work = waiting([&] { return self.messages.start_recv(into, from, tag, or_default(options)); });
  return pending(std::move(work), self.cluster);
}

void bind_calls(nb::class_<Messages>& type) {
  type.def("send", &send, nb::arg("tensor"), nb::arg("to"), nb::arg("tag") = 0,
           nb::arg("options").none() = nb::none(),
           R"(Returns when the array may be used again. The first one on a way waits for its recv.

>>> cluster = onesum.Cluster.from_environment()
>>> messages, array = onesum.PointToPoint(cluster), np.full(2, cluster.rank)
>>> if cluster.rank == 0:
...     messages.send(array, to=1)
... else:
...     messages.recv(array, from_=0)
>>> array
array([0, 0])
)")
      .def("recv", &recv, nb::arg("tensor"), nb::arg("from_"), nb::arg("tag") = 0,
           nb::arg("options").none() = nb::none(),
           R"(Waits for its send, of the same type and number of elements, and writes it into the array.

>>> cluster = onesum.Cluster.from_environment()
>>> messages, array = onesum.PointToPoint(cluster), np.full(2, cluster.rank)
>>> if cluster.rank == 0:
...     messages.recv(array, from_=1, tag=7)
... else:
...     messages.send(array, to=0, tag=7)
>>> array
array([1, 1])
)")
      .def("start_send", &start_send, nb::arg("tensor"), nb::arg("to"), nb::arg("tag") = 0,
           nb::arg("options").none() = nb::none(), R"(send without waiting.

>>> cluster = onesum.Cluster.from_environment()
>>> messages, other = onesum.PointToPoint(cluster), 1 - cluster.rank
>>> array = np.empty(2, int)
>>> work = messages.start_send(np.full(2, cluster.rank), to=other)
>>> messages.recv(array, from_=other)
>>> work.wait()
>>> array[0] == other
np.True_
)")
      .def("start_recv", &start_recv, nb::arg("tensor"), nb::arg("from_"), nb::arg("tag") = 0,
           nb::arg("options").none() = nb::none(), R"(recv without waiting.

>>> cluster = onesum.Cluster.from_environment()
>>> messages, other = onesum.PointToPoint(cluster), 1 - cluster.rank
>>> array = np.empty(2, int)
>>> work = messages.start_recv(array, from_=other)
>>> messages.send(np.full(2, cluster.rank), to=other)
>>> work.wait()
>>> array[0] == other
np.True_
)");
}

}  // namespace

void bind_point_to_point(nb::module_& module) {
  nb::class_<Messages> type(module, "PointToPoint", R"(Messages from one worker process to another.

The kth send to a worker with a tag is what its kth recv from this one with that tag gets. Messages of different
workers, directions and tags do not wait for each other, nor for the calls on the cluster. The first failure on
such a way ends it. Of the options the timeout counts.

>>> cluster = onesum.Cluster.from_environment()  # of two workers
>>> messages, other = onesum.PointToPoint(cluster), 1 - cluster.rank
>>> array = np.empty(2, int)
>>> work = messages.start_recv(array, from_=other)
>>> messages.send(np.full(2, cluster.rank), to=other)
>>> work.wait()
>>> array[0] == other
np.True_
)");
  type.def(
      "__init__",
      [](Messages* self, const Cluster& cluster) { new (self) Messages{PointToPoint(cluster), cluster}; },
      nb::arg("cluster"));
  bind_calls(type);
}

}  // namespace onesum::python
