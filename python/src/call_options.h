// The options of one call, which Python may leave out.
#pragma once

#include <onesum/options.h>

namespace onesum::python {

using Options = const CommunicationOptions*;  // None is null

inline const CommunicationOptions& or_default(Options options) {
  static const CommunicationOptions kDefault;
  return options == nullptr ? kDefault : *options;
}

}  // namespace onesum::python
