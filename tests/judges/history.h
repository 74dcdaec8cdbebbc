// SPDX-License-Identifier: Apache-2.0
//
// What a scenario did, one operation after another, with the moments of the SSD's log around each,
// and all versions of each object that they made; so that of any moment's cut it can be said what
// a volume may hold afterwards: what there was after one of the operations (a checkpoint), none
// older than the last that made all durable, and on it files as they were when they were synced.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "found_tree.h"

namespace gofs::judges {

enum class OperationKind : uint8_t {
  kAtOnce,     // a crash leaves it undone or done
  kGradual,    // a crash may leave each object that it changes anywhere on the way
  kMakesSafe,  // when it has ended, all before it is durable
};

struct LoggedOperation {
  std::string what;
  OperationKind kind = OperationKind::kAtOnce;
  uint32_t began = 0;  // no write at this moment or before is part of it
  uint32_t ended = 0;  // it had returned
  /// Objects that are durable when it has ended, with all that was done to them before.
  std::set<uint32_t> synced = {};
  /// The same, but for their times.
  std::set<uint32_t> synced_contents = {};
};

inline constexpr uint32_t kNeverEnded = ~0u;

/// An object as a gradual operation has it for a while, beside what it was and what it will be.
using OnTheWay = std::vector<std::pair<uint32_t, Object>>;

/// Bytes that nothing writes over later, and no cut from a moment on may lose.
struct KeptBytes {
  std::string path;
  uint64_t offset;
  std::string bytes;
  uint32_t since = kNeverEnded;  // until then only where the power does not fail
};

class History {
 public:
  /// Begins with what is on the disk. `writes_over`: sectors of a file that were written over where
  /// they lay may be there, each by itself, before the file is durable again.
  explicit History(const Model& start, bool writes_over = false);
  /// After an operation: what it has changed.
  void add(const LoggedOperation& operation, const Model& model, const std::set<uint32_t>& touched,
           const OnTheWay& on_the_way = {});

  /// Of what was written within one operation.
  void keep(const std::vector<KeptBytes>& bytes) {
    kept_.insert(kept_.end(), bytes.begin(), bytes.end());
  }

  const std::vector<LoggedOperation>& operations() const { return operations_; }
  /// Whether single files were made durable, or written over: either counts on whole blocks.
  bool needs_whole_blocks() const;
  /// The last operation that must be there after a cut at `moment`, and the last that may be.
  std::pair<size_t, size_t> window(uint32_t moment) const;
  /// How the tree differs from what a cut at `moment` may leave, or nothing.
  std::string difference_after(uint32_t moment, const FoundTree& tree) const;
  /// As difference_after(), of a volume whose power did not fail. The last operation may have
  /// failed (it never ended); `kept`: all others have to be there.
  std::string difference_at_the_end(bool kept, const FoundTree& tree) const;

 private:
  using Version = std::pair<size_t, Object>;  // since which operation
  /// When a file was synced.
  struct SyncPoint {
    size_t operation;
    uint32_t id;
    bool must;   // that operation had returned
    bool times;  // those too
  };
  class Recovered;

  Versions versions_at(size_t operation, uint32_t id) const;
  const Object* object_at(size_t operation, uint32_t id) const;
  std::vector<SyncPoint> sync_points(size_t base, size_t last, uint32_t moment) const;
  std::string difference_between(size_t safe, size_t last, uint32_t moment,
                                 const FoundTree& tree) const;
  std::string difference_on(size_t base, size_t last, uint32_t moment, const FoundTree& tree) const;

  std::string lost_bytes(uint32_t moment, const FoundTree& tree) const;

  std::vector<LoggedOperation> operations_;
  std::map<uint32_t, std::vector<Version>> versions_;
  std::vector<KeptBytes> kept_;
  const bool writes_over_;
};

}  // namespace gofs::judges
