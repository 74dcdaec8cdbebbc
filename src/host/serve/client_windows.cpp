// SPDX-License-Identifier: Apache-2.0
#include "host/serve/client_windows.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "host/messages.h"
#include "serve/ring.h"

namespace gofs::host {

namespace {

constexpr const char* kSubject = "a client's window";

}  // namespace

bool ClientWindows::open_one(uint32_t channel, uint32_t number, const Window& window) {
  kernels::ChannelParams opening{};
  opening.step = kernels::ChannelStep::kOpenWindow;
  opening.number = channel;
  opening.window = number;
  opening.memory = window.memory->data() + window.offset;
  opening.bytes = window.bytes;
  return step_(channel, opening);
}

/// Closes it in all of these channels. Whether no call there is about it any more. A backend that
/// has failed runs none.
bool ClientWindows::close_in(uint32_t number, std::span<const uint32_t> channels) {
  bool is_left = true;
  for (const uint32_t channel : channels) {
    kernels::ChannelParams closing{};
    closing.step = kernels::ChannelStep::kCloseWindow;
    closing.number = channel;
    closing.window = number;
    const bool ran = step_(channel, closing);
    is_left = is_left && (ran ? closing.done != 0 : backend_.has_failed());
  }
  return is_left;
}

Expected<uint32_t> ClientWindows::open(std::unique_ptr<kernels::WarpMemory> memory, uint64_t offset,
                                       uint64_t bytes, std::span<const uint32_t> channels) {
  if (bytes == 0 || offset > memory->bytes() || bytes > memory->bytes() - offset) {
    return make_error(EINVAL, kSubject, "the memory is smaller");
  }
  std::erase_if(windows_, [&](const auto& one) {
    return one.second.closes && close_in(one.first, channels);
  });
  uint32_t number = 1;
  while (windows_.contains(number)) ++number;
  if (number >= serve::kWindowsMax) {
    return make_error(EMFILE, kSubject, "there are as many as can be");
  }
  Window& added =
      windows_.emplace(number, Window{std::move(memory), offset, bytes, false}).first->second;
  for (const uint32_t channel : channels) {
    if (open_one(channel, number, added)) continue;
    added.closes = true;  // where it was opened
    return make_error(EIO, kSubject, "the backend could not open it");
  }
  return number;
}

bool ClientWindows::open_in(uint32_t channel) {
  return std::ranges::all_of(windows_, [&](const auto& one) {
    return one.second.closes || open_one(channel, one.first, one.second);
  });
}

uint64_t ClientWindows::bytes() const {
  uint64_t bytes = 0;
  for (const auto& [number, window] : windows_) bytes += window.closes ? 0 : window.bytes;
  return bytes;
}

bool ClientWindows::close(uint32_t number, std::span<const uint32_t> channels) {
  const auto found = windows_.find(number);
  if (found == windows_.end() || std::exchange(found->second.closes, true)) return false;
  if (close_in(number, channels)) windows_.erase(found);
  return true;
}

}  // namespace gofs::host
