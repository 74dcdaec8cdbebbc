// SPDX-License-Identifier: Apache-2.0
//
// Host threads that keep one 4 KiB read or write under way each, between a file and slots of the
// device's memory: what programs do that leave files to the host. How a block gets from one to the
// other is what differs between them.
#pragma once

#include <memory>

#include "baseline.hpp"
#include "device.hpp"

namespace gofs::bench {

/// One block from a file into the device's memory, or the other way.
class Transfer {
 public:
  /// Of one host thread. 0 or a negative errno; -EBADMSG: not the block that was asked for.
  class Lane {
   public:
    virtual ~Lane() = default;
    virtual int read(uint8_t* slot, uint64_t offset) = 0;
    /// The slot holds the block's stamp with this run's number.
    virtual int write(const uint8_t* slot, uint64_t offset, uint64_t run) = 0;
  };

  virtual ~Transfer() = default;
  virtual uint64_t read_bytes() const = 0;
  virtual uint64_t written_bytes() const = 0;
  virtual Expected<void> make_room() { return {}; }
  /// The slots of the run to come, and that it is over.
  virtual void attach(void*, uint64_t) {}
  virtual void detach(void*) {}
  /// Null on failure. The lane goes before this object.
  virtual std::unique_ptr<Lane> make_lane() = 0;
  /// A block that was written, into memory of the host that is aligned to a block.
  virtual int read_back(uint8_t* block, uint64_t offset) = 0;
};

struct HostLoad {
  double seconds = 0.1;
  uint32_t threads_max = 64;
};

/// One run with as many threads as the point asks for, at most threads_max. What came to the
/// device's memory last, for each thread the last kSlotsEach blocks, is looked at there; of what
/// was written a sample is read back. Errors: EIO for wrong blocks too.
Expected<Sample> run_host_load(Device& device, Transfer& transfer, const HostLoad& load,
                               const Point& point);

/// A number for the stamps of a run.
uint64_t next_stamp_run();

inline constexpr uint32_t kSlotsEach = 256;  // 1 MiB for each thread

}  // namespace gofs::bench
