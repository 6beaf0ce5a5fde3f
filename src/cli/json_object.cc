#include "cli/json_object.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace onesum::cli {

struct JsonObject::Impl {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();

  template <class T>
  void set(std::string_view key, T&& value) {
    json[std::string(key)] = std::forward<T>(value);
  }
};

JsonObject::JsonObject() : impl_(std::make_unique<Impl>()) {}
JsonObject::JsonObject(JsonObject&&) noexcept = default;
JsonObject& JsonObject::operator=(JsonObject&&) noexcept = default;
JsonObject::~JsonObject() = default;

JsonObject& JsonObject::set(std::string_view key, std::string_view value) {
  impl_->set(key, std::string(value));
  return *this;
}

JsonObject& JsonObject::set(std::string_view key, bool value) {
  impl_->set(key, value);
  return *this;
}

JsonObject& JsonObject::set(std::string_view key, double value) {
  impl_->set(key, value);
  return *this;
}

JsonObject& JsonObject::set_number(std::string_view key, std::int64_t value) {
  impl_->set(key, value);
  return *this;
}

JsonObject& JsonObject::set(std::string_view key, const JsonObject& value) {
  impl_->set(key, value.impl_->json);
  return *this;
}

JsonObject& JsonObject::set(std::string_view key, const std::vector<JsonObject>& values) {
  auto array = nlohmann::ordered_json::array();
  for (const JsonObject& value : values) array.push_back(value.impl_->json);
  impl_->set(key, std::move(array));
  return *this;
}

JsonObject& JsonObject::set(std::string_view key, const std::vector<std::string>& values) {
  impl_->set(key, values);
  return *this;
}

std::string JsonObject::line() const {
  return impl_->json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

double rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::round(value * scale) / scale;
}

}  // namespace onesum::cli
