// SPDX-License-Identifier: Apache-2.0
//
// What a scenario did, one operation after another, with the moments of the SSD's log around each,
// and all versions of each object that they made; so that of any moment's cut it can be said what
// a volume may hold afterwards.
#pragma once

#include <cstdint>
#include <map>
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
};

class History {
 public:
  /// Begins with what is on the disk.
  explicit History(const Model& start);
  /// After an operation: what it has changed.
  void add(const LoggedOperation& operation, const Model& model, const std::set<uint32_t>& touched);

  const std::vector<LoggedOperation>& operations() const { return operations_; }
  /// The last operation that must be there after a cut at `moment`, and the last that may be.
  std::pair<size_t, size_t> window(uint32_t moment) const;
  /// How the tree differs from what a cut at `moment` may leave, or nothing.
  std::string difference_after(uint32_t moment, const FoundTree& tree) const;

 private:
  using Version = std::pair<size_t, Object>;  // since which operation

  Versions versions_at(size_t operation, uint32_t id) const;

  std::vector<LoggedOperation> operations_;
  std::map<uint32_t, std::vector<Version>> versions_;
};

}  // namespace gofs::judges
