// SPDX-License-Identifier: Apache-2.0
//
// A call as a host program makes it: with the program's own pointers. Whoever passes it on makes
// a record of it (request/request.h).
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "request/request.h"

namespace gofs::host {

/// What the verb does not take is left as it is.
struct CallRequest {
  request::Verb verb;
  const std::string* path = nullptr;
  uint32_t number = 0;                 // an inode, where a call takes one instead of a path
  bool keep_link = false;              // of a symbolic link itself
  const std::string* other = nullptr;  // another path, or a link's target
  const std::string* name = nullptr;   // of an extended attribute
  uint32_t flags = 0;
  uint32_t mode = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  int descriptor = -1;
  void* buffer = nullptr;       // results of up to `bytes` go there
  const void* input = nullptr;  // or `bytes` come from there
  uint64_t bytes = 0;
  bool is_direct = false;  // threads of the host do not reach the buffer: EFAULT where who performs
                           // the call does not either
  int64_t offset = 0;
  int other_descriptor = -1;
  int64_t other_offset = 0;
  uint64_t length = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  TimeStamp accessed{};
  TimeStamp modified{};
};

struct CallAnswer {
  int64_t result;  // as the verb says, or a negative errno
  uint64_t bytes;  // of the request's, those that the call was about: it may take a part only
};

/// Why the texts of a request cannot be those of any call, as a negative errno; 0: they may be.
inline int check_texts(const CallRequest& call) {
  const auto holds_nul = [](const std::string* text) {
    return text != nullptr && text->find('\0') != std::string::npos;
  };
  if (holds_nul(call.path) || holds_nul(call.other)) return request::path_rule().holds_nul;
  return holds_nul(call.name) ? request::name_rule().holds_nul : 0;
}

/// Hands a text over, as far as there is room for it. How many bytes.
inline uint32_t copy_text(const std::string& text, const request::TextRule& rule, char* to) {
  const size_t bytes = std::min<size_t>(text.size(), rule.room_bytes - 1);
  std::memcpy(to, text.data(), bytes);
  return static_cast<uint32_t>(bytes);
}

/// Whether the call works in a buffer of whoever passes it on. What is no verb is for whoever would
/// perform it to refuse.
inline bool wants_room(const CallRequest& call) {
  return static_cast<uint32_t>(call.verb) < request::kVerbs &&
         (request::row_of(call.verb).takes & request::kRoom) != 0;
}

/// What is passed on through `room`, since the other side does not reach the program's memory: the
/// call takes as much as has room, and what it reads is put there.
inline void stage_data(const CallRequest& call, request::Request& record, void* room,
                       uint64_t room_bytes) {
  if (wants_room(call)) {
    record.bytes = std::min(call.length, room_bytes);
    return;
  }
  if (call.input == nullptr && call.buffer == nullptr) return;
  record.bytes = std::min(call.bytes, room_bytes);
  if (call.input != nullptr) std::memcpy(room, call.input, record.bytes);
}

/// And what such a call has left there.
inline void take_results(const CallRequest& call, const request::Request& record, int64_t answer,
                         const void* room) {
  if (call.input != nullptr || call.buffer == nullptr) return;
  const uint64_t written = request::bytes_written(call.verb, answer);
  std::memcpy(call.buffer, room, std::min(written, record.bytes));
}

/// The record of a call, but for its texts and its buffer.
inline request::Request record_of(const CallRequest& call) {
  request::Request record{};
  record.verb = call.verb;
  record.bits = call.keep_link ? request::kKeepLink : uint16_t{0};
  record.descriptor = call.descriptor;
  record.number = call.number;
  record.flags = call.flags;
  record.mode = call.mode;
  record.uid = call.uid;
  record.gid = call.gid;
  record.device_major = call.device_major;
  record.device_minor = call.device_minor;
  record.bytes = call.bytes;
  record.offset = call.offset;
  record.other_descriptor = call.other_descriptor;
  record.other_offset = call.other_offset;
  record.length = call.length;
  record.accessed = call.accessed;
  record.modified = call.modified;
  return record;
}

}  // namespace gofs::host
