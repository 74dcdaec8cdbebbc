// SPDX-License-Identifier: Apache-2.0
//
// The file or block device below a hosted SSD: claimed, opened past Linux's page cache where that
// can be, and what Linux says of it. Host only.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "format/nvme.h"
#include "simt/platform.h"
#include "ssd/claimed_image.h"

namespace gofs::ssd {

struct StorageTraits {
  uint64_t bytes = 0;
  uint32_t lba_bytes = 512;       // 512 to 4096: requests are whole ones
  uint32_t memory_alignment = 1;  // of what a request names, address and length
  bool direct = false;            // past the page cache (O_DIRECT)
  bool is_device = false;
  bool in_memory = false;  // a file of tmpfs: there is no storage to wait for
  bool read_only = false;
  bool volatile_cache = true;  // what is written lasts after fdatasync() only
  bool discards = true;        // it may make use of being told what is free
};

/// From several threads at once.
class BackingStore {
 public:
  /// Throws std::system_error, as ClaimedImage does; EINVAL: it is smaller than a block.
  BackingStore(const std::string& path, FileAccess access);

  const std::string& path() const { return path_; }
  const StorageTraits& traits() const { return traits_; }
  int descriptor() const { return file_.get(); }
  /// "O_DIRECT", or that it is buffered, and why.
  std::string access_words() const;

  /// Makes durable what was written. 0 or a negative errno.
  int sync();
  enum class Asked : uint8_t { kRead, kWrite, kDurableWrite, kSync };
  /// What was asked of it has failed with `error`, a negative errno. The status that the command
  /// gets.
  format::nvme::Status note_failure(Asked asked, int error);
  /// Whether a failure has shown that the device is not there any more.
  bool is_gone() const { return gone_.load(std::memory_order_relaxed); }
  /// Why nothing may be written any more, a negative errno: a failed sync() does not say what was
  /// lost, and a file that was cut is no volume any more. 0: it may.
  int write_refusal() { return lost_.load(std::memory_order_relaxed); }
  /// Looks whether the file has become shorter; a write would make it longer again.
  void look_for_cut();
  /// Whether a write up to `end` is one that Linux would end the process for (RLIMIT_FSIZE).
  bool exceeds_limit(uint64_t end) const { return end > limit_; }
  /// In words, the last failure; empty: there was none.
  std::string problem() const;

 private:
  void open_direct();
  bool has_gone(int error) const;

  const std::string path_;
  ClaimedImage file_;
  StorageTraits traits_;
  std::string why_buffered_;
  uint64_t limit_ = UINT64_MAX;
  std::atomic<bool> gone_{false};
  std::atomic<int> lost_{0};
  std::atomic<int> last_error_{0};
};

}  // namespace gofs::ssd
