// Text inside drawings.
#pragma once

#include <string>
#include <string_view>

namespace onesum {

// As the contents of an XML element. Characters that XML does not have become question marks.
std::string xml_escaped(std::string_view text);

}  // namespace onesum
