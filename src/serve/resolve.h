// SPDX-License-Identifier: Apache-2.0
//
// Makes what a client asks for into arguments of a call. The request is a copy that no one changes
// any more; each part of it is checked here, and nowhere else.
#pragma once

#include "serve/channel.h"

namespace gofs::serve {

namespace detail {

/// Copies a text out of those of `slot`, of which the first are in `along`, with a NUL behind it.
/// 0, or a negative errno. Collective, uniform.
GOFS_HD inline int copy_text(simt::AnyWarp auto warp, const Ring& ring, uint32_t slot,
                             const uint64_t* along, const request::Text& text, char* room,
                             const request::TextRule& rule) {
  if (text.at > kTextBytes || text.bytes > kTextBytes - text.at) return -EFAULT;
  if (text.at % kTextAlign != 0 || text.bytes >= rule.room_bytes) return -EFAULT;
  static_assert(kTextAlign == sizeof(uint64_t) && kTextBytes % kTextAlign == 0);
  const auto* const from =
      reinterpret_cast<const uint64_t*>(ring.texts + uint64_t{slot} * kTextBytes);
  bool any_nul = false;
  for (uint32_t at = warp.thread_rank() * kTextAlign; at < text.bytes;
       at += warp.size() * kTextAlign) {
    // Once, since it may change; what is behind the text is not looked at.
    const uint32_t place = text.at + at;
    const uint64_t word = place < kTextsAlong ? along[place / kTextAlign]
                                              : simt::load_system_relaxed(from[place / kTextAlign]);
    const uint32_t count = simt::min(kTextAlign, text.bytes - at);
    for (uint32_t i = 0; i < count; ++i) {
      room[at + i] = static_cast<char>(word >> 8 * i);
      any_nul = any_nul || room[at + i] == '\0';
    }
  }
  if (warp.thread_rank() == 0) room[text.bytes] = '\0';
  const bool bad = warp.any(any_nul);
  warp.sync();
  return bad ? rule.holds_nul : 0;
}

/// Window `number` of a channel, which the call has entered then; null: there is none. Collective,
/// uniform.
GOFS_HD inline const Window* enter_numbered(simt::AnyWarp auto warp, Channel& channel,
                                            uint32_t number, CallRoom& room) {
  Window& window = channel.windows[number];
  if (number == 0) return &window;
  uint32_t entered = 0;
  if (warp.thread_rank() == 0) {
    entered = enter_gate(window.gate) ? 1 : 0;
    if (entered != 0) room.window = &window;
  }
  entered = warp.shfl(entered, 0);
  warp.sync();  // what one lane has acquired, for all
  return entered != 0 ? &window : nullptr;
}

}  // namespace detail

/// Fills `call` for the request in `call.request`, with texts in `room`. 0, or what is the answer
/// instead. It may have entered a window, which serve_call() leaves. Collective, uniform.
GOFS_HD inline int resolve(simt::AnyWarp auto warp, Channel& channel, const request::VerbRow* rows,
                           uint32_t slot, CallRoom& room, request::Arguments& call) {
  const request::Request& wanted = call.request;
  if (static_cast<uint32_t>(wanted.verb) >= request::kVerbs) return -ENOSYS;
  const request::VerbRow& row = rows[static_cast<uint32_t>(wanted.verb)];
  const auto text = [&](uint32_t kind, const request::Text& from, char* to,
                        const request::TextRule& rule, const char*& argument) {
    if ((row.takes & kind) == 0) return 0;
    argument = to;
    return detail::copy_text(warp, channel.ring, slot, room.texts, from, to, rule);
  };
  int error = text(request::kPath, wanted.path, room.path, request::path_rule(), call.path);
  if (error != 0) return error;
  error = text(request::kOther, wanted.other, room.other, request::path_rule(), call.other);
  if (error != 0) return error;
  error = text(request::kName, wanted.name, room.name, request::name_rule(), call.name);
  if (error != 0) return error;
  if ((row.takes & (request::kInput | request::kOutput | request::kRoom)) != 0 &&
      wanted.bytes != 0) {
    // No call takes longer than one that uses all of the ring's buffer.
    if (wanted.buffer >= kWindowsMax || wanted.bytes > channel.ring.buffer_bytes) return -EFAULT;
    const Window* const window = detail::enter_numbered(warp, channel, wanted.buffer, room);
    if (window == nullptr || wanted.buffer_offset > window->bytes ||
        wanted.bytes > window->bytes - wanted.buffer_offset) {
      return -EFAULT;
    }
    call.buffer = window->memory + wanted.buffer_offset;
    if (request::writes_structs(row) && reinterpret_cast<uintptr_t>(call.buffer) % 8 != 0) {
      return -EINVAL;
    }
    if ((row.takes & request::kSteady) != 0 && wanted.bytes <= kSteadyBytes) {
      const auto* const changing = static_cast<const uint8_t*>(call.buffer);
      for (uint64_t i = warp.thread_rank(); i < wanted.bytes; i += warp.size()) {
        room.steady[i] = changing[i];
      }
      warp.sync();
      call.buffer = room.steady;
    }
  }
  return 0;
}

}  // namespace gofs::serve
