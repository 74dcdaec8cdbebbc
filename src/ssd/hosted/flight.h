// SPDX-License-Identifier: Apache-2.0
//
// A command on its way through the host's storage: what is to be moved still, and from or to where.
// It may take several requests: where one moves less than it was to, and a request for each range
// that is to read zeros. Host only.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ssd/fetch.h"
#include "ssd/hosted/backing_store.h"
#include "ssd/hosted/bounce_pool.h"
#include "ssd/hosted/io_engine.h"
#include "ssd/io_command.h"

namespace gofs::ssd {

class Flight {
 public:
  IoCommand command;
  Claim claim;  // of this command alone
  uint64_t began_ns = 0;

  /// Finds what the command, which does not fail, is about. Its status says what is wrong with it.
  void begin(const VirtualController& controller, const StorageTraits& storage,
             BouncePool& bounces);
  /// The next request of the command. False: there is none, and it is done.
  bool next(IoRequest& request);
  /// What a failure of the request is about.
  BackingStore::Asked asked() const;
  /// What became of the request: `result` as IoCompletion has it. 0, or a negative errno that ends
  /// the command.
  int note(int64_t result);
  /// The command has ended: memory that it took is given back.
  void end() {
    if (bounces_ != nullptr) bounces_->give(std::move(bounce_));
    bounce_ = {};
  }

 private:
  enum class Stage : uint8_t { kMove, kZero, kWriteZeros, kSync, kDone };

  void gather();
  void bounce();
  void take_parts(uint64_t bytes);
  bool next_range();
  void end_of_stage();

  Stage stage_ = Stage::kDone;
  bool reads_ = false;
  uint32_t lba_shift_ = 0;
  uint32_t memory_alignment_ = 1;
  uint64_t offset_ = 0;  // where on the store it goes on
  uint64_t left_ = 0;    // bytes from there
  uint32_t retries_ = 0;
  uint32_t ranges_ = 0;  // that were begun, of Dataset Management
  size_t first_part_ = 0;
  std::vector<iovec> parts_;
  std::vector<iovec> wanted_;  // the command's own, where they go by a bounce
  BouncePool* bounces_ = nullptr;
  BouncePool::Bounce bounce_;
};

}  // namespace gofs::ssd
