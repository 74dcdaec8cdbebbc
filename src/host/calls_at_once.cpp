// SPDX-License-Identifier: Apache-2.0
#include "host/calls_at_once.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "host/volume_state.h"
#include "kernels/bodies.h"

namespace gofs::host {

namespace {

/// What one launch makes: its memory is bounded.
constexpr size_t kCallsMax = 16384;
constexpr uint64_t kTextBytesMax = uint64_t{8} << 20;
/// What it is worth starting a thread of the host for.
constexpr uint64_t kCallsOfThread = 8;
/// The largest struct that a call answers with.
constexpr uint64_t kStructBytes = 256;
static_assert(sizeof(Stat) <= kStructBytes);

uint64_t room_of(const std::string* text, const request::TextRule& rule) {
  return text == nullptr ? 0 : std::min<uint64_t>(text->size() + 1, rule.room_bytes);
}
uint64_t text_bytes_of(const CallRequest& request) {
  return room_of(request.path, request::path_rule()) +
         room_of(request.other, request::path_rule()) + room_of(request.name, request::name_rule());
}

/// Puts a text at `to`, which moves on.
const char* put(const std::string* text, const request::TextRule& rule, char*& to) {
  if (text == nullptr) return nullptr;
  char* const here = to;
  to += copy_text(*text, rule, here);
  *to++ = '\0';
  return here;
}

}  // namespace

struct CallsAtOnce::Room {
  Room(simt::MemorySpace& memory, size_t count, uint64_t text_bytes)
      : params(memory, 1),
        calls(memory, count),
        answers(memory, count),
        structs(memory, count * kStructBytes),
        texts(memory, text_bytes) {}

  bool is_enough(size_t count, uint64_t text_bytes) const {
    return count <= calls.size() && text_bytes <= texts.size();
  }

  SharedArray<kernels::CallsParams> params;
  SharedArray<request::Arguments> calls;
  SharedArray<int64_t> answers;
  SharedArray<uint8_t> structs;
  SharedArray<char> texts;
};

CallsAtOnce::CallsAtOnce() = default;
CallsAtOnce::~CallsAtOnce() = default;

bool CallsAtOnce::takes(const CallRequest& request) {
  if (static_cast<uint32_t>(request.verb) >= request::kVerbs || request.input != nullptr) {
    return false;
  }
  const request::VerbRow& row = request::row_of(request.verb);
  const bool writes_struct = row.whole != 0 && request.buffer != nullptr;
  return (row.takes & request::kRoom) == 0 && (request.buffer == nullptr || writes_struct) &&
         request.bytes <= kStructBytes && request.verb != request::Verb::kSync &&
         request.verb != request::Verb::kStatfs;
}

void CallsAtOnce::make(VolumeState& volume, std::span<const CallRequest* const> requests,
                       std::span<CallAnswer> answers) {
  const std::lock_guard lock(mutex_);
  for (size_t first = 0; first < requests.size();) {
    uint64_t text_bytes = 0;
    size_t end = first;
    while (end < requests.size() && end - first < kCallsMax && text_bytes < kTextBytesMax) {
      text_bytes += text_bytes_of(*requests[end++]);
    }
    make_portion(volume, requests.subspan(first, end - first), answers.subspan(first, end - first),
                 text_bytes);
    first = end;
  }
}

void CallsAtOnce::make_portion(VolumeState& volume, std::span<const CallRequest* const> requests,
                               std::span<CallAnswer> answers, uint64_t text_bytes) {
  kernels::Backend& backend = volume.backend();
  const size_t count = requests.size();
  if (room_ == nullptr || !room_->is_enough(count, text_bytes)) {
    room_.reset();
    room_ = std::make_unique<Room>(backend.shared_memory(), std::bit_ceil(count),
                                   std::bit_ceil(text_bytes + 1));
  }
  Room& room = *room_;
  char* text = room.texts.data();
  for (size_t i = 0; i < count; ++i) {
    const CallRequest& request = *requests[i];
    room.calls[i] = {record_of(request), put(request.path, request::path_rule(), text),
                     put(request.other, request::path_rule(), text),
                     put(request.name, request::name_rule(), text),
                     request.buffer != nullptr ? room.structs.data() + i * kStructBytes : nullptr};
    room.answers[i] = -EIO;
  }
  room.params[0] = {volume.filesystem(), room.calls.data(), room.answers.data(),
                    static_cast<uint32_t>(count)};
  kernels::Grid grid = backend.full_grid();
  const uint32_t warps_of_block = std::max(grid.threads_per_block / backend.warp_width(), 1u);
  const uint64_t calls_of_block = warps_of_block * (backend.is_host() ? kCallsOfThread : 1);
  grid.blocks = static_cast<uint32_t>(
      std::min<uint64_t>(grid.blocks, (count + calls_of_block - 1) / calls_of_block));
  const bool ran = volume.run(kernels::bodies::kCalls, grid, room.params.data());
  for (size_t i = 0; i < count; ++i) {
    const CallRequest& request = *requests[i];
    answers[i] = {ran ? room.answers[i] : VolumeState::kNotRun, request.bytes};
    take_results(request, room.calls[i].request, answers[i].result,
                 room.structs.data() + i * kStructBytes);
  }
}

void CallsAtOnce::settle() {
  const std::lock_guard lock(mutex_);
  room_.reset();
}

}  // namespace gofs::host
