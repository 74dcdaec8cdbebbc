// SPDX-License-Identifier: Apache-2.0
//
// What all calls of gofs/gofs.h have in common: pointers are looked at, nothing is thrown out of
// them, and what went wrong becomes a negative errno whose sentence the thread can ask for.
#pragma once

#include <bit>
#include <cerrno>
#include <cstdint>
#include <initializer_list>

#include "gofs/gofs.h"
#include "gofs/volume.hpp"

/// What C has of a volume.
struct gofs_volume {
  gofs::Volume volume;
};

namespace gofs::host::c {

/// Which function of gofs.h the thread is in, for the sentences of fail().
void begin_call(const char* function) noexcept;

/// Keeps why the call fails as the thread's last error: "gofs_open: path is null", from `words` in
/// a row. Returns the negative errno.
int fail(int code, std::initializer_list<const char*> words) noexcept;
/// The same with a sentence that names what it is about by itself.
int fail(const Error& error) noexcept;
/// The same of the exception that is being handled.
int fail_as_thrown() noexcept;

/// A pointer that a call cannot do without.
struct Needed {
  const char* name;
  const void* pointer;
};

/// What C gets of what a call of C++ returns.
inline int in_c(int result) { return result; }
inline int64_t in_c(int64_t result) { return result; }
inline int in_c(const Expected<void>& done) { return done ? 0 : fail(done.error()); }
inline int in_c(const Expected<int>& fd) { return fd ? *fd : fail(fd.error()); }
inline int64_t in_c(const Expected<uint64_t>& count) {
  return count ? static_cast<int64_t>(*count) : fail(count.error());
}

/// Does what a function of gofs.h does, which is `function`, unless one of `needed` is null.
template <typename Body>
auto call(std::initializer_list<Needed> needed, Body&& body,
          const char* function = __builtin_FUNCTION()) noexcept -> decltype(in_c(body())) {
  begin_call(function);
  for (const Needed& one : needed) {
    if (one.pointer == nullptr) return fail(EINVAL, {one.name, " is null"});
  }
  try {
    return in_c(body());
  } catch (...) {
    return fail_as_thrown();
  }
}

/// Gives C what a call has found, as the struct that has its members in the same places
/// (layouts.cpp). `*out` is left as it is after an error.
template <typename Found, typename Out>
int give(const Expected<Found>& found, Out* out) {
  if (!found) return fail(found.error());
  *out = std::bit_cast<Out>(*found);
  return 0;
}

}  // namespace gofs::host::c
