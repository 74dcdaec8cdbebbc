// SPDX-License-Identifier: Apache-2.0
//
// An NVMe controller that threads of the host are, over a file or block device of any size: the
// third kind beside the virtual one, which warps step, and physical ones. Registers, queues, PRPs
// and status codes are NVMe's; the admin commands are carried out by the virtual controller's code
// (admin.h), the I/O commands by hosted_worker.h. Host only.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "simt/memory.h"
#include "ssd/hosted/hosted_worker.h"
#include "ssd/virtual_ssd.h"

namespace gofs::ssd {

enum class EngineKind : uint32_t {
  kBest,   // io_uring, or threads where that is refused; of a file in memory as kMemory
  kUring,  // or an error
  kThreads,
  kMemory,  // small requests by the controller's own threads, others as kBest
};

struct HostedOptions {
  uint32_t threads = 1;
  uint32_t queue_pairs_max = 128;
  uint32_t queue_entries_max = 1024;
  uint32_t mdts = 7;       // a command moves up to 2^mdts pages
  uint32_t lba_bytes = 0;  // 512 or 4096, not less than sectors of the storage; 0: the least
  bool always_polls = false;
  /// Whether those who ring doorbells wake threads that sleep (ControllerRef::step()): threads of
  /// this process can, a GPU's warps cannot.
  bool is_nudged = true;
  EngineKind engine = EngineKind::kBest;
  EngineMaker make_engine{};  // instead, for tests
  /// Memory that most commands will name.
  std::span<uint8_t> buffers{};
};

class HostedController {
 public:
  /// The registers and the controller's state lie in `memory`, which host and warps reach by the
  /// same pointers. Throws std::system_error, std::bad_alloc.
  HostedController(std::unique_ptr<BackingStore> store, simt::MemorySpace& memory,
                   const HostedOptions& options);
  /// Its threads end. It is not used any more.
  ~HostedController();
  HostedController(const HostedController&) = delete;
  HostedController& operator=(const HostedController&) = delete;

  ControllerRef ref() const { return ref_; }
  /// Not after stop(), as what follows.
  const BackingStore& store() const { return *store_; }
  const char* engine_name() const { return workers_.front()->engine_name(); }
  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()); }
  /// Why it is not io_uring, where it is not; empty: it is, or was not asked for.
  const std::string& why_no_uring() const { return why_no_uring_; }
  /// Wakes all threads that sleep: commands are about to come.
  void wake();
  /// Its threads end, and the store is closed. The registers stay as they are.
  void stop();
  /// Of commands that have completed.
  VirtualSsdCounters counters() const;
  /// Of these and those under way. From any thread, also after stop().
  MeasuredCommands measured() const;

 private:
  static int sync_store(void* self);
  static int nudge(void* call);
  VirtualSsdConfig config_of(const HostedOptions& options) const;
  EngineMaker choose_engine(const HostedOptions& options);
  EngineMaker suit_store(const HostedOptions& options, EngineMaker maker) const;
  void start_threads(const HostedOptions& options);

  std::unique_ptr<BackingStore> store_;
  simt::MemorySpace& memory_;
  std::string why_no_uring_;
  ControllerRef state_{};  // with the state that a virtual one has
  ControllerRef ref_{};    // without: no warp steps it
  BusyTime busy_;
  std::deque<CommandMeter> meters_;  // of the workers, which come and go
  std::vector<std::unique_ptr<HostedWorker>> workers_;
};

}  // namespace gofs::ssd
