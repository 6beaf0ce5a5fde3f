#include "base/xml.h"

namespace onesum {

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      const bool is_control = static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n';
      out += is_control ? '?' : c;
    }
  }
  return out;
}

}  // namespace onesum
