// SPDX-License-Identifier: Apache-2.0
//
// How text, values and structs that may grow cross the boundary to C.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "host/c/call.h"

namespace gofs::host::c {

/// Copies to C, which has room for `bytes` at `buffer`. -EFAULT; -ERANGE: that is too little.
inline int64_t copy_out(const char* from, uint64_t length, void* buffer, uint64_t bytes) {
  if (buffer == nullptr) return fail(EFAULT, {"the buffer is null"});
  if (length > bytes) return fail(ERANGE, {"the buffer has too little room"});
  std::memcpy(buffer, from, length);
  return 0;
}

/// The length of a value, which goes to `buffer`; if `bytes` is 0 that is not looked at.
inline int64_t give_value(const std::string& value, void* buffer, uint64_t bytes) {
  const int64_t error = bytes != 0 ? copy_out(value.data(), value.size(), buffer, bytes) : 0;
  return error < 0 ? error : static_cast<int64_t>(value.size());
}

/// The same with a NUL at the end, for which there must be room.
inline int64_t give_text(const std::string& text, char* buffer, uint64_t bytes) {
  const int64_t error = bytes != 0 ? copy_out(text.c_str(), text.size() + 1, buffer, bytes) : 0;
  return error < 0 ? error : static_cast<int64_t>(text.size());
}

inline int64_t give_value(const Expected<std::string>& value, void* buffer, uint64_t bytes) {
  return value ? give_value(*value, buffer, bytes) : fail(value.error());
}

inline int64_t give_text(const Expected<std::string>& text, char* buffer, uint64_t bytes) {
  return text ? give_text(*text, buffer, bytes) : fail(text.error());
}

/// Bytes of a struct that may grow, in the first version that had it.
template <typename Struct>
inline constexpr uint64_t kFirstBytes = 0;
template <>
inline constexpr uint64_t kFirstBytes<gofs_mount_options_t> = 112;
template <>
inline constexpr uint64_t kFirstBytes<gofs_cleaning_options_t> = 16;
template <>
inline constexpr uint64_t kFirstBytes<gofs_cleaning_report_t> = 64;
template <>
inline constexpr uint64_t kFirstBytes<gofs_clock_report_t> = 40;
template <>
inline constexpr uint64_t kFirstBytes<gofs_statistics_t> = 456;

/// What the caller's struct says of its size, or a negative errno: it is shorter than any version,
/// or longer than any will be.
template <typename Struct>
int64_t struct_bytes_of(const Struct* from) {
  constexpr uint64_t kStructBytesMax = 4096;
  uint64_t bytes = 0;
  std::memcpy(&bytes, from, sizeof(bytes));
  if (bytes < kFirstBytes<Struct>)
    return fail(EINVAL, {"struct_bytes is less than the struct's size"});
  if (bytes > kStructBytesMax) return fail(E2BIG, {"struct_bytes is more than a struct may have"});
  return static_cast<int64_t>(bytes);
}

/// Takes a struct of the caller's, shorter or longer than ours, as one of ours; null is one of
/// zeros. -E2BIG where what we do not know is not 0.
template <typename Struct>
int take_struct(const Struct* from, Struct& taken) {
  taken = Struct{};
  if (from == nullptr) return 0;
  const int64_t length = struct_bytes_of(from);
  if (length < 0) return static_cast<int>(length);
  const auto bytes = static_cast<uint64_t>(length);
  const auto* const raw = reinterpret_cast<const unsigned char*>(from);
  for (uint64_t i = sizeof(Struct); i < bytes; ++i) {
    if (raw[i] != 0) return fail(E2BIG, {"the struct asks for what this version does not know"});
  }
  std::memcpy(&taken, raw, std::min<uint64_t>(bytes, sizeof(Struct)));
  return 0;
}

/// Fills a struct of the caller's, shorter or longer than ours, but for `struct_bytes`. What we do
/// not know becomes 0.
template <typename Struct>
int give_struct(Struct given, Struct* to) {
  const int64_t length = struct_bytes_of(to);
  if (length < 0) return static_cast<int>(length);
  const auto bytes = static_cast<uint64_t>(length);
  given.struct_bytes = bytes;
  auto* const raw = reinterpret_cast<unsigned char*>(to);
  std::memset(raw, 0, bytes);
  std::memcpy(raw, &given, std::min<uint64_t>(bytes, sizeof(Struct)));
  return 0;
}

}  // namespace gofs::host::c
