// SPDX-License-Identifier: Apache-2.0
//
// The memory of a QEMU machine: a file that QEMU and this process have mapped, so what one stores
// the other sees. The guest's address of a byte is its offset in the file. Ranges of it are given
// out, first fit. Host only; any thread may call any function at any time.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace gofs::ssd {

class GuestRam {
 public:
  /// Up to here machine q35 has plain memory at every address but those of the first MiB, where
  /// firmware and graphics are.
  static constexpr uint64_t kBytesMax = uint64_t{2} << 30;
  static constexpr uint64_t kReservedBytes = uint64_t{1} << 20;
  static constexpr uint64_t kPageBytes = 4096;

  /// Makes the file, which must not exist, and takes the space for all of it. `bytes` is a multiple
  /// of 1 MiB. Throws std::system_error; the file is the caller's to remove.
  GuestRam(const std::string& path, uint64_t bytes);
  ~GuestRam();
  GuestRam(const GuestRam&) = delete;
  GuestRam& operator=(const GuestRam&) = delete;

  uint64_t bytes() const { return bytes_; }
  /// The guest's address of a range of this process's; none if not all of it is memory of the
  /// machine that may be used.
  std::optional<uint64_t> guest_address(const void* memory, uint64_t bytes) const;

  /// A zeroed range at a multiple of kPageBytes; `bytes` is rounded up to one. Throws
  /// std::system_error (ENOMEM). Given back by the same pointer.
  uint8_t* take(uint64_t bytes);
  void release(uint8_t* range);

 private:
  uint64_t bytes_;
  uint8_t* base_ = nullptr;
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> taken_;  // offset of each range -> its end
};

}  // namespace gofs::ssd
