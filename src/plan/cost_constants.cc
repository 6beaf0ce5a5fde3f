#include "plan/cost_constants.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/refuse.h"

namespace onesum::plan {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxSlots = 65535;
constexpr std::array<std::string_view, 2> kLinkKeys = {"latency", "seconds_per_byte"};
constexpr std::array<std::string_view, 5> kKeys = {"inside", "across", "gamma", "slots", "step"};

// Long values are cut.
std::string shown(const Json& value) {
  constexpr std::size_t kLongest = 60;
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

// One object of the text. `path` is how its keys are named in messages: "", "across.".
class Reader {
 public:
  Reader(const Json& object, std::string path, std::span<const std::string_view> keys)
      : object_(object), path_(std::move(path)) {
    if (!object.is_object()) {
      const std::string name = path_.empty() ? "constants" : path_.substr(0, path_.size() - 1);
      refuse(fmt::format("{}: found {}, expected an object", name, shown(object)));
    }
    for (const auto& [key, value] : object.items()) check_known(key, keys);
  }

  void read_seconds(const char* key, double& seconds) const {
    if (!object_.contains(key)) return;
    const Json& value = object_.at(key);
    const double found = value.is_number() ? value.get<double>() : -1;
    if (!std::isfinite(found) || found < 0) fail(key, value, "seconds, a number from 0");
    seconds = found;
  }

  void read_slots(const char* key, std::size_t& slots) const {
    if (!object_.contains(key)) return;
    const Json& value = object_.at(key);
    const std::uint64_t found = value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
    if (found < 1 || found > kMaxSlots)
      fail(key, value, fmt::format("a whole number from 1 to {}", kMaxSlots));
    slots = found;
  }

  void read_link(const char* key, LinkConstants& link) const {
    if (!object_.contains(key)) return;
    const Reader reader(object_.at(key), path_ + key + ".", kLinkKeys);
    reader.read_seconds("latency", link.latency);
    reader.read_seconds("seconds_per_byte", link.seconds_per_byte);
  }

 private:
  void check_known(const std::string& key, std::span<const std::string_view> keys) const {
    for (const std::string_view known : keys) {
      if (key == known) return;
    }
    const auto likely = nearest(key, keys);
    refuse(fmt::format("{}{}: unknown, expected {}{}", path_, shown(Json(key)), fmt::join(keys, ", "),
                       likely ? fmt::format("; did you mean {}?", *likely) : ""));
  }

  [[noreturn]] void fail(const char* key, const Json& value, std::string_view expected) const {
    refuse(fmt::format("{}{}: found {}, expected {}", path_, key, shown(value), expected));
  }

  const Json& object_;
  std::string path_;
};

Json link_json(const LinkConstants& link) {
  return {{"latency", link.latency}, {"seconds_per_byte", link.seconds_per_byte}};
}

}  // namespace

std::string to_json(const CostConstants& constants) {
  const Json json = {{"inside", link_json(constants.inside)},
                     {"across", link_json(constants.across)},
                     {"gamma", constants.gamma},
                     {"slots", constants.slots},
                     {"step", constants.step}};
  return json.dump();
}

CostConstants constants_from_json(std::string_view text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    refuse(fmt::format("constants: no JSON at byte {}", error.byte));
  } catch (const Json::out_of_range&) {
    refuse("constants: a number is larger than any that can be computed with");
  }
  CostConstants constants;
  const Reader reader(json, "", kKeys);
  reader.read_link("inside", constants.inside);
  reader.read_link("across", constants.across);
  reader.read_seconds("gamma", constants.gamma);
  reader.read_slots("slots", constants.slots);
  reader.read_seconds("step", constants.step);
  return constants;
}

}  // namespace onesum::plan
