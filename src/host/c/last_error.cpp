// SPDX-License-Identifier: Apache-2.0
//
// The last error of each thread. It needs no constructor, no destructor and no memory, so it works
// in exit handlers, at the end of threads and where memory is what is missing.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

#include "host/c/call.h"

namespace {

constexpr size_t kSentenceBytesMax = 4096;

struct LastError {
  const char* function;  // the latest call of the thread
  int result;            // 0 or a negative errno
  char sentence[kSentenceBytesMax];
};
thread_local LastError last_error;

/// Of a sentence that is too long the two ends are kept: a path may be long, and what is wrong with
/// it comes last.
void keep_sentence(const char* words, size_t length) {
  constexpr char kGap[] = " ... ";
  constexpr size_t kEnd = (kSentenceBytesMax - sizeof(kGap)) / 2;
  char* const to = last_error.sentence;
  if (length < kSentenceBytesMax) {
    std::memcpy(to, words, length);
    to[length] = '\0';
    return;
  }
  std::memcpy(to, words, kEnd);
  std::memcpy(to + kEnd, kGap, sizeof(kGap) - 1);
  std::memcpy(to + kEnd + sizeof(kGap) - 1, words + length - kEnd, kEnd);
  to[2 * kEnd + sizeof(kGap) - 1] = '\0';
}

}  // namespace

namespace gofs::host::c {

void begin_call(const char* function) noexcept { last_error.function = function; }

int fail(int code, std::initializer_list<const char*> words) noexcept {
  char* to = last_error.sentence;
  const char* const end = to + kSentenceBytesMax - 1;
  const auto append = [&](const char* part) {
    const size_t length = std::min(std::strlen(part), static_cast<size_t>(end - to));
    std::memcpy(to, part, length);
    to += length;
  };
  append(last_error.function);
  append(": ");
  for (const char* part : words) append(part);
  *to = '\0';
  return last_error.result = -code;
}

int fail(const Error& error) noexcept {
  keep_sentence(error.message.data(), error.message.size());
  return last_error.result = error.code > 0 ? -error.code : -EIO;
}

int fail_as_thrown() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return fail(ENOMEM, {"not enough memory"});
  } catch (const std::length_error&) {
    return fail(ENOMEM, {"not enough memory"});
  } catch (const std::exception& problem) {
    return fail(EIO, {problem.what()});
  } catch (...) {
    return fail(EIO, {"an exception of no known kind"});
  }
}

}  // namespace gofs::host::c

const char* gofs_version(void) { return GOFS_VERSION; }
const char* gofs_last_error(void) { return last_error.sentence; }
int gofs_last_errno(void) { return last_error.result; }
const char* gofs_error_text(int64_t result) { return gofs::error_text(result); }
