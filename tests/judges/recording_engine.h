// SPDX-License-Identifier: Apache-2.0
//
// Below hosted SSDs: writes down what they ask of the host's storage, so that what a power cut
// could have left can be built (ssd/power_cut.h) as of a virtual SSD's log. Linux promises no more
// than NVMe: what has completed before a sync begins is safe when that has ended.
#pragma once

#include <memory>
#include <mutex>

#include "ssd/hosted/io_engine.h"
#include "ssd/power_cut.h"

namespace gofs::judges {

/// What all disks of a volume were asked for, in one order. From several threads at once.
class RequestLog {
 public:
  static constexpr size_t kNotLogged = ~size_t{0};

  /// Its number, or kNotLogged for what changes nothing.
  size_t begin(uint32_t disk, const ssd::IoRequest& request);
  /// `result` as IoCompletion has it.
  void end(size_t number, int64_t result);
  uint32_t moment();
  ssd::WriteTrace trace();

 private:
  std::mutex mutex_;
  ssd::WriteTrace trace_;
};

/// Has `engine` do the work for disk `disk`. The log outlives it.
std::unique_ptr<ssd::IoEngine> make_recording_engine(RequestLog& log, uint32_t disk,
                                                     std::unique_ptr<ssd::IoEngine> engine);

}  // namespace gofs::judges
