// SPDX-License-Identifier: Apache-2.0
//
// Structs as bytes, for messages between processes of one machine and of one version of GoFS. A
// struct is packed by `fields(archive, it)`, which names its members once for both directions.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "ssd/system_failure.h"

namespace gofs::host {

class Packer {
 public:
  template <typename... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  std::string bytes;

 private:
  template <typename Value>
  void put(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value>) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    } else {
      fields(*this, const_cast<Value&>(value));  // which only reads here
    }
  }
  void put(const std::string& text) {
    put(uint64_t{text.size()});
    bytes += text;
  }
  template <typename Value>
  void put(const std::vector<Value>& values) {
    put(uint64_t{values.size()});
    for (const Value& value : values) put(value);
  }
  template <typename Value>
  void put(const std::optional<Value>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
};

class Unpacker {
 public:
  explicit Unpacker(const std::string& bytes) : bytes_(bytes) {}

  /// Throws std::system_error (EPROTO) where there is too little.
  template <typename... Values>
  void operator()(Values&... values) {
    (take(values), ...);
  }
  bool is_at_end() const { return at_ == bytes_.size(); }

 private:
  template <typename Value>
  void take(Value& value) {
    if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value>) {
      std::memcpy(&value, next(sizeof(value)), sizeof(value));
    } else {
      fields(*this, value);
    }
  }
  void take(bool& value) {
    uint8_t byte = 0;
    take(byte);
    value = byte != 0;
  }
  void take(std::string& text) {
    uint64_t size = 0;
    take(size);
    text.assign(next(size), size);
  }
  template <typename Value>
  void take(std::vector<Value>& values) {
    uint64_t count = 0;
    take(count);
    values.clear();
    for (uint64_t i = 0; i < count; ++i) take(values.emplace_back());
  }
  template <typename Value>
  void take(std::optional<Value>& value) {
    bool there = false;
    take(there);
    if (there) take(value.emplace());
  }
  const char* next(uint64_t count) {
    if (count > bytes_.size() - at_) ssd::fail_with(EPROTO, "a message that ends too soon");
    const char* const here = bytes_.data() + at_;
    at_ += count;
    return here;
  }

  const std::string& bytes_;
  size_t at_ = 0;
};

}  // namespace gofs::host
