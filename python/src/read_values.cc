// The part of read.h that reads values and where they go.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <onesum/variable.h>

#include "read.h"
#include "read_only.h"
#include "reading.h"

namespace onesum::python {
namespace {

bool is_list(nb::handle object) {
  return nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
}

// An array, or a value with several components, has items too, but is one thing.
void refuse_one_value(nb::handle given, const char* what, const char* expected) {
  if (is_list(given)) return;
  if (PyObject_CheckBuffer(given.ptr()) != 0 || nb::hasattr(given, "__dlpack__") ||
      nb::isinstance<DistributedValues>(given)) {
    refuse(what, given, expected);
  }
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

}  // namespace

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
  refuse_one_value(given.object, what, kExpected);
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
  if (is_list(object))
    return nb::len(object) == 0 ? PerReplica()
                                : PerReplica(read_components(ValuesLike{object}, {}, access, what));
  return PerReplica(std::vector<Value>{read(ValueLike{object}, cpu(0), access, what)});
}

std::vector<PerReplica> read(PerReplicasLike given, Access access, const char* what) {
  constexpr const char* kExpected = "a list with a value for each tensor, such as [value]";
  refuse_one_value(given.object, what, kExpected);
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
  refuse_one_value(given.object, "pairs", kExpected);
  const nb::object fields = items_of(given.object, "pairs", kExpected);
  if (nb::len(fields) != 2) refuse("pairs", given.object, kExpected);
  const nb::object value = fields[0];
  const nb::object destination = fields[1];
  return {read(PerReplicaLike{value}, Access::kRead, "value"), read(DestinationLike{destination})};
}

std::vector<ValueDestination> read(PairsLike given) {
  constexpr const char* kExpected = "a list of pairs, such as [(value, destination)]";
  refuse_one_value(given.object, "pairs", kExpected);
  return for_each(given.object, "pairs", kExpected,
                  [](nb::handle item, std::size_t) { return read(PairLike{item}); });
}

}  // namespace onesum::python
