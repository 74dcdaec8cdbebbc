// SPDX-License-Identifier: Apache-2.0
//
// The windows of a client, as its server has them: memory of the client's own, which calls in each
// of its channels may name. By one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "gofs/volume.hpp"
#include "kernels/backend.h"
#include "kernels/channel.h"

namespace gofs::host {

class ClientWindows {
 public:
  /// Makes a step of a channel. False: this launch has failed, or the backend.
  using Step = std::function<bool(uint32_t channel, kernels::ChannelParams& params)>;

  ClientWindows(const kernels::Backend& backend, Step step)
      : backend_(backend), step_(std::move(step)) {}

  /// A window of `bytes` at `offset` in `memory`, in these channels: its number. EINVAL where the
  /// memory is smaller, EMFILE where there are as many windows as can be, EIO.
  Expected<uint32_t> open(std::unique_ptr<kernels::WarpMemory> memory, uint64_t offset,
                          uint64_t bytes, std::span<const uint32_t> channels);
  /// Opens them in another channel of the client. False: a launch has failed.
  bool open_in(uint32_t channel);
  /// No call finds it any more. Its memory is let go now, or, where a call is about it, by the next
  /// open() or with this object. False: there is none of this number.
  bool close(uint32_t number, std::span<const uint32_t> channels);
  /// Of those that calls find.
  uint64_t bytes() const;

 private:
  struct Window {
    std::unique_ptr<kernels::WarpMemory> memory;
    uint64_t offset;
    uint64_t bytes;
    bool closes;
  };

  bool open_one(uint32_t channel, uint32_t number, const Window& window);
  bool close_in(uint32_t number, std::span<const uint32_t> channels);

  const kernels::Backend& backend_;
  const Step step_;
  std::map<uint32_t, Window> windows_;  // by their numbers
};

}  // namespace gofs::host
