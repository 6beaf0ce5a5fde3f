#include "read.h"

#include <algorithm>
#include <cmath>

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <onesum/variable.h>

#include "read_only.h"

namespace onesum::python {
namespace {

[[noreturn]] void refuse(const std::string& what, nb::handle found, const char* expected) {
  const std::string type = nb::cast<std::string>(nb::object(found.type().attr("__name__")));
  throw nb::type_error((what + ": " + type + " found; expected " + expected).c_str());
}

bool is_sequence(nb::handle object) {
  return nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object) ||
         (PySequence_Check(object.ptr()) != 0 && !nb::isinstance<nb::str>(object) &&
          !nb::isinstance<nb::bytes>(object));
}

// An array, or a value with several components, has items too, but is one thing.
bool is_one_value(nb::handle object) {
  return PyObject_CheckBuffer(object.ptr()) != 0 || nb::hasattr(object, "__dlpack__") ||
         nb::isinstance<DistributedValues>(object);
}

// A tuple or list of the items.
nb::object items_of(nb::handle given, const char* what, const char* expected) {
  if (!is_sequence(given)) refuse(what, given, expected);
  PyObject* const items = PySequence_Fast(given.ptr(), "expected a sequence");
  if (items == nullptr) throw nb::python_error();
  return nb::steal(items);
}

template <class Fn>
auto for_each(nb::handle given, const char* what, const char* expected, const Fn& fn) {
  const nb::object items = items_of(given, what, expected);
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
  std::vector<decltype(fn(nb::handle(), std::size_t{}))> read;
  read.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    read.push_back(fn(PySequence_Fast_GET_ITEM(items.ptr(), i), static_cast<std::size_t>(i)));
  return read;
}

// Python's integers, NumPy's, and whatever else says that it is one.
template <class Integer>
Integer read_integer(nb::handle item, const char* what, const char* expected) {
  const nb::object number = nb::steal(PyNumber_Index(item.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    refuse(what, item, expected);
  }
  Integer read{};
  if (!nb::try_cast(number, read)) {
    throw nb::value_error(
        (std::string(what) + ": " + nb::str(number).c_str() + " found; expected " + expected).c_str());
  }
  return read;
}

void check_access(const Value& value, Access access, const char* what) {
  if (access == Access::kRead) return;
  const auto check = [&](const Tensor& tensor) {
    if (tensor && is_read_only(tensor)) {
      throw nb::value_error((std::string(what) + ": the memory on " + tensor.device().to_string() +
                             " is read-only; results need memory that can be written")
                                .c_str());
    }
  };
  if (const auto* tensor = std::get_if<Tensor>(&value)) return check(*tensor);
  check(std::get<IndexedSlices>(value).values);
  check(std::get<IndexedSlices>(value).indices);
}

PerReplica checked(PerReplica value, Access access, const char* what) {
  for (const Value& component : value.values()) check_access(component, access, what);
  return value;
}

AllReduceSpec read_line(nb::handle given) {
  constexpr const char* kExpected = "an algorithm, or (algorithm, shards, limit)";
  if (nb::isinstance<AllReduceSpec>(given)) return *nb::inst_ptr<AllReduceSpec>(given);
  AllReduceSpec line;
  if (nb::try_cast(given, line.alg)) return line;
  const nb::object fields = items_of(given, "all_reduce_spec", kExpected);
  const std::size_t count = nb::len(fields);
  if (count < 1 || count > 3 || !nb::try_cast(fields[0], line.alg) ||
      (count > 1 && !nb::try_cast(fields[1], line.shards)) ||
      (count > 2 && !nb::try_cast(fields[2], line.limit))) {
    refuse("all_reduce_spec", given, kExpected);
  }
  return line;
}

// ("pscpu/pscpu", 2, -1) is one line, ("pscpu", "xring") is no list of lines: those have limits.
bool is_one_line(nb::handle given) {
  return nb::isinstance<AllReduceSpec>(given) ||
         (is_sequence(given) && nb::len(given) > 0 && nb::isinstance<nb::str>(nb::object(given[0])));
}

}  // namespace

const Device& cpu(std::size_t index) {
  static auto* const all = new std::vector<Device>;  // with the GIL; never destroyed
  while (all->size() <= index) all->emplace_back("CPU:" + std::to_string(all->size()));
  return (*all)[index];
}

Device read(DeviceLike given, const char* what) {
  if (nb::isinstance<Device>(given.object)) return *nb::inst_ptr<Device>(given.object);
  std::string_view text;
  if (!nb::try_cast(given.object, text)) refuse(what, given.object, "a device such as \"CPU:0\"");
  return Device(text);
}

std::vector<Device> read(DevicesLike given, const char* what) {
  return for_each(given.object, what, "a list of devices, such as [\"CPU:0\"]",
                  [&](nb::handle item, std::size_t) { return read(DeviceLike{item}, what); });
}

std::vector<std::string> read_names(DevicesLike given, const char* what) {
  return for_each(given.object, what, "a list of devices, such as [\"CPU:0\"]",
                  [&](nb::handle item, std::size_t) {
                    std::string text;
                    return nb::try_cast(item, text) ? text : read(DeviceLike{item}, what).to_string();
                  });
}

DType read(DTypeLike given) {
  DType dtype{};
  if (nb::try_cast(given.object, dtype, false)) return dtype;
  if (const auto found = numpy_dtype(given.object)) return *found;
  refuse("dtype", given.object, "an onesum.DType, a NumPy dtype or a name such as \"float32\"");
}

Shape read(ShapeLike given) {
  if (nb::isinstance<Shape>(given.object)) return *nb::inst_ptr<Shape>(given.object);
  constexpr const char* kExpected = "an onesum.Shape, or integers";
  std::int64_t one = 0;
  if (nb::isinstance<nb::int_>(given.object) && nb::try_cast(given.object, one)) return Shape({one});
  const std::vector<std::int64_t> extents = for_each(
      given.object, "shape", kExpected,
      [&](nb::handle item, std::size_t) { return read_integer<std::int64_t>(item, "shape", kExpected); });
  return Shape(extents);
}

std::chrono::nanoseconds read(TimeoutLike given) {
  constexpr const char* kExpected = "seconds or a datetime.timedelta";
  constexpr double kForEver = 1e9;  // seconds; clocks can still add it
  const bool is_delta = nb::hasattr(given.object, "total_seconds");
  const nb::object seconds =
      is_delta ? nb::object(given.object.attr("total_seconds")()) : nb::borrow(given.object);
  // Text that reads as a number is no number.
  const nb::object number =
      nb::steal(PyNumber_Check(seconds.ptr()) != 0 ? PyNumber_Float(seconds.ptr()) : nullptr);
  if (!number.is_valid()) {
    PyErr_Clear();
    refuse("timeout", given.object, kExpected);
  }
  const auto wanted = nb::cast<double>(number);
  if (std::isnan(wanted)) throw nb::value_error("timeout: nan found; expected seconds");
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::clamp(wanted, -kForEver, kForEver)));
}

std::optional<std::chrono::milliseconds> read_timeout(TimeoutLike given) {
  if (given.object.is_none()) return {};
  return std::chrono::ceil<std::chrono::milliseconds>(read(given));
}

std::vector<std::vector<std::size_t>> read(SplitsLike given) {
  constexpr const char* kExpected = "for each replica of this process a sequence of numbers of elements";
  return for_each(given.object, "splits", kExpected, [&](nb::handle replica, std::size_t) {
    return for_each(replica, "splits", kExpected, [](nb::handle item, std::size_t) {
      return read_integer<std::size_t>(item, "splits", "numbers of elements");
    });
  });
}

std::vector<int> read(RanksLike given) {
  constexpr const char* kExpected = "a sequence of ranks";
  return for_each(given.object, "ranks", kExpected,
                  [&](nb::handle item, std::size_t) { return read_integer<int>(item, "ranks", kExpected); });
}

AllReduceSpecs read(SpecsLike given) {
  if (nb::isinstance<AllReduceSpecs>(given.object)) return *nb::inst_ptr<AllReduceSpecs>(given.object);
  std::string text;
  if (nb::try_cast(given.object, text)) return text;
  if (is_one_line(given.object)) return read_line(given.object);
  return for_each(given.object, "all_reduce_spec", "text, or a sequence of (algorithm, shards, limit)",
                  [](nb::handle item, std::size_t) { return read_line(item); });
}

Tensor read(ArrayLike given, const Device& device, Access access, const char* what) {
  if (!nb::isinstance<Tensor>(given.object)) return tensor_of(given.object, device, access, what);
  const Tensor& tensor = *nb::inst_ptr<Tensor>(given.object);
  check_access(tensor, access, what);
  return tensor;
}

Value read(ValueLike given, const Device& device, Access access, const char* what) {
  Value value;
  if (nb::isinstance<Tensor>(given.object)) {
    value = *nb::inst_ptr<Tensor>(given.object);
  } else if (nb::isinstance<IndexedSlices>(given.object)) {
    value = *nb::inst_ptr<IndexedSlices>(given.object);
  } else if (nb::isinstance<Mirrored>(given.object)) {
    value = static_cast<const Tensor&>(*nb::inst_ptr<Mirrored>(given.object));
  } else {
    return tensor_of(given.object, device, access, what);
  }
  check_access(value, access, what);
  return value;
}

std::vector<Value> read_components(ValuesLike given, const std::optional<std::vector<Device>>& devices,
                                   Access access, const char* what) {
  constexpr const char* kExpected = "a list with a value for each replica";
  if (is_one_value(given.object)) refuse(what, given.object, kExpected);
  return for_each(given.object, what, kExpected, [&](nb::handle item, std::size_t i) {
    const Device& device = devices && i < devices->size() ? (*devices)[i] : cpu(i);
    return read(ValueLike{item}, device, access, what);
  });
}

PerReplica read(PerReplicaLike given, Access access, const char* what) {
  const nb::handle object = given.object;
  if (nb::isinstance<PerReplica>(object)) return checked(*nb::inst_ptr<PerReplica>(object), access, what);
  if (nb::isinstance<Mirrored>(object)) return checked(*nb::inst_ptr<Mirrored>(object), access, what);
  if (nb::isinstance<Variable>(object)) return checked(*nb::inst_ptr<Variable>(object), access, what);
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object))
    return nb::len(object) == 0 ? PerReplica()
                                : PerReplica(read_components(ValuesLike{object}, {}, access, what));
  return PerReplica(std::vector<Value>{read(ValueLike{object}, cpu(0), access, what)});
}

std::vector<PerReplica> read(PerReplicasLike given, Access access, const char* what) {
  constexpr const char* kExpected = "a list with a value for each tensor, such as [value]";
  if (is_one_value(given.object)) refuse(what, given.object, kExpected);
  return for_each(given.object, what, kExpected,
                  [&](nb::handle item, std::size_t) { return read(PerReplicaLike{item}, access, what); });
}

Destination read(DestinationLike given) {
  const nb::handle object = given.object;
  std::string_view text;
  if (nb::isinstance<nb::str>(object) && nb::try_cast(object, text)) return text;
  if (nb::isinstance<Destination>(object)) return *nb::inst_ptr<Destination>(object);
  if (nb::isinstance<DistributedValues>(object)) return *nb::inst_ptr<DistributedValues>(object);
  if (nb::isinstance<Variable>(object)) return *nb::inst_ptr<Variable>(object);
  if (nb::isinstance<Tensor>(object)) return *nb::inst_ptr<Tensor>(object);
  if (nb::isinstance<IndexedSlices>(object)) return *nb::inst_ptr<IndexedSlices>(object);
  if (nb::isinstance<Device>(object)) return nb::inst_ptr<Device>(object)->to_string();
  refuse("destination", object, "a device string, a value or a variable");
}

ValueDestination read(PairLike given) {
  if (nb::isinstance<ValueDestination>(given.object)) return *nb::inst_ptr<ValueDestination>(given.object);
  constexpr const char* kExpected = "(value, destination)";
  if (is_one_value(given.object)) refuse("pairs", given.object, kExpected);
  const nb::object fields = items_of(given.object, "pairs", kExpected);
  if (nb::len(fields) != 2) refuse("pairs", given.object, kExpected);
  const nb::object value = fields[0];
  const nb::object destination = fields[1];
  return {read(PerReplicaLike{value}, Access::kRead, "value"), read(DestinationLike{destination})};
}

std::vector<ValueDestination> read(PairsLike given) {
  constexpr const char* kExpected = "a list of pairs, such as [(value, destination)]";
  if (is_one_value(given.object)) refuse("pairs", given.object, kExpected);
  return for_each(given.object, "pairs", kExpected,
                  [](nb::handle item, std::size_t) { return read(PairLike{item}); });
}

}  // namespace onesum::python
