// Arguments that Python users may write in several ways. Functions take them as they come; read.h reads them,
// so that what cannot be read is named in the error. The names are those of onesum/typing.py.
#pragma once

#include <nanobind/nanobind.h>

#define ONESUM_ARGUMENT(type, text)                                                         \
  namespace onesum::python {                                                                \
  struct type {                                                                             \
    nanobind::handle object;                                                                \
  };                                                                                        \
  }                                                                                         \
  template <>                                                                               \
  struct nanobind::detail::type_caster<onesum::python::type> {                              \
    NB_TYPE_CASTER(onesum::python::type, const_name(text))                                  \
    bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {                 \
      value.object = source;                                                                \
      return true;                                                                          \
    }                                                                                       \
    static handle from_cpp(onesum::python::type given, rv_policy, cleanup_list*) noexcept { \
      return given.object.inc_ref();                                                        \
    }                                                                                       \
  };

ONESUM_ARGUMENT(ArrayLike, "onesum.typing.ArrayLike")
ONESUM_ARGUMENT(DTypeLike, "onesum.typing.DTypeLike")
ONESUM_ARGUMENT(ShapeLike, "onesum.typing.ShapeLike")
ONESUM_ARGUMENT(DeviceLike, "onesum.typing.DeviceLike")
ONESUM_ARGUMENT(DevicesLike, "collections.abc.Sequence[onesum.typing.DeviceLike]")
ONESUM_ARGUMENT(ValueLike, "onesum.typing.ValueLike")
ONESUM_ARGUMENT(ValuesLike, "collections.abc.Sequence[onesum.typing.ValueLike]")
ONESUM_ARGUMENT(PerReplicaLike, "onesum.typing.PerReplicaLike")
ONESUM_ARGUMENT(PerReplicasLike, "collections.abc.Sequence[onesum.typing.PerReplicaLike]")
ONESUM_ARGUMENT(DestinationLike, "onesum.typing.DestinationLike")
ONESUM_ARGUMENT(PairLike, "onesum.typing.PairLike")
ONESUM_ARGUMENT(PairsLike, "collections.abc.Sequence[onesum.typing.PairLike]")
ONESUM_ARGUMENT(SpecsLike, "onesum.typing.AllReduceSpecsLike")
ONESUM_ARGUMENT(PlannedLike, "onesum.typing.PlannedLike")
ONESUM_ARGUMENT(AccumulationLike, "onesum.typing.AccumulationFn")
ONESUM_ARGUMENT(ReplicaFnLike, "onesum.typing.ReplicaFn")
ONESUM_ARGUMENT(MergeFnLike, "onesum.typing.MergeFn")
ONESUM_ARGUMENT(CallbackLike, "collections.abc.Callable[[], object]")
ONESUM_ARGUMENT(SplitsLike, "collections.abc.Sequence[collections.abc.Sequence[int]]")
ONESUM_ARGUMENT(RanksLike, "collections.abc.Sequence[int]")
ONESUM_ARGUMENT(TimeoutLike, "float | datetime.timedelta")

#undef ONESUM_ARGUMENT
