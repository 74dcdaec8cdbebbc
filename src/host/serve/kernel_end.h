// SPDX-License-Identifier: Apache-2.0
//
// A channel as the host gives it to the kernels of its program (serve/kernel_channel.h): their view
// of the ring, in memory of theirs, and a thread that tells them when the server has ended.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "host/process_mark.h"
#include "host/serve/channel_client.h"
#include "host/serve/control.h"
#include "host/serve/shared_memory.h"
#include "host/shared_array.h"
#include "kernels/backend.h"
#include "serve/kernel_channel.h"

namespace gofs::host {

/// What a server gives for a channel of kernels.
struct KernelEnds {
  KernelRing ring;
  ssd::Descriptor memory;  // of the ring
};

class KernelEnd {
 public:
  /// Asks the server by `line`, whose connection hangs up when it ends, and outlives this.
  /// `backend` is that of the kernels. `descriptor_base`: serve/descriptor_base.h. Throws
  /// std::system_error or std::bad_alloc.
  KernelEnd(std::unique_ptr<kernels::Backend> backend, ControlLine& line, int descriptor_base);
  /// With what the server has given already. `connection` as above; or none, where the server is in
  /// the same process and ends later.
  KernelEnd(std::unique_ptr<kernels::Backend> backend, KernelEnds ends,
            const ssd::Descriptor& connection, int descriptor_base);
  /// No kernel uses the handle any more.
  ~KernelEnd();
  KernelEnd(const KernelEnd&) = delete;
  KernelEnd& operator=(const KernelEnd&) = delete;

  VolumeHandle handle() const;

  /// As ChannelClient has them. By one thread at a time; kernels may run.
  void add_window(const WindowOfClient& window);
  void remove_window(uint32_t number);

 private:
  /// What a child of fork() leaves alone: it cannot use a GPU of its parent's.
  struct State;

  void watch(const ssd::Descriptor& connection);

  const ProcessMark process_ = ProcessMark::of_this_process();
  std::unique_ptr<State> state_;
  ssd::Descriptor stop_;
  std::thread watching_;
};

}  // namespace gofs::host
