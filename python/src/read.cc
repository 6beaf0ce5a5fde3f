#include "read.h"

#include <algorithm>
#include <cmath>

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "reading.h"

namespace onesum::python {
namespace {

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

void refuse(const char* what, nb::handle found, const char* expected) {
  const std::string type = nb::cast<std::string>(nb::object(found.type().attr("__name__")));
  throw nb::type_error((std::string(what) + ": " + type + " found; expected " + expected).c_str());
}

void refuse_item(const char* what, std::size_t index, const nb::builtin_exception& error) {
  const std::string_view name(what);
  std::string_view message(error.what());
  const bool is_named = message.starts_with(name);
  if (is_named) message.remove_prefix(name.size());
  const std::string text =
      std::string(name) + "[" + std::to_string(index) + "]" + (is_named ? "" : ": ") + std::string(message);
  throw nb::builtin_exception(error.type(), text.c_str());
}

bool is_sequence(nb::handle object) {
  return nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object) ||
         (PySequence_Check(object.ptr()) != 0 && !nb::isinstance<nb::str>(object) &&
          !nb::isinstance<nb::bytes>(object));
}

nb::object items_of(nb::handle given, const char* what, const char* expected) {
  if (!is_sequence(given)) refuse(what, given, expected);
  PyObject* const items = PySequence_Fast(given.ptr(), "expected a sequence");
  if (items == nullptr) throw nb::python_error();
  return nb::steal(items);
}

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

}  // namespace onesum::python
