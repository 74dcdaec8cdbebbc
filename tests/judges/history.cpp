// SPDX-License-Identifier: Apache-2.0
#include "history.h"

#include <algorithm>

namespace gofs::judges {

History::History(const Model& start) {
  operations_.push_back({"the volume as it was", OperationKind::kMakesSafe, 0, 0});
  for (const auto& [id, object] : start.objects()) versions_[id].emplace_back(0, object);
}

void History::add(const LoggedOperation& operation, const Model& model,
                  const std::set<uint32_t>& touched) {
  operations_.push_back(operation);
  for (const uint32_t id : touched) {
    versions_[id].emplace_back(operations_.size() - 1, model.at(id));
  }
}

std::pair<size_t, size_t> History::window(uint32_t moment) const {
  size_t safe = 0;
  size_t last = 0;
  for (size_t i = 1; i < operations_.size(); ++i) {
    const LoggedOperation& one = operations_[i];
    if (one.kind == OperationKind::kMakesSafe && one.ended <= moment) safe = i;
    if (one.began < moment) last = i;
  }
  return {safe, std::max(safe, last)};
}

/// With a gradual operation on the way, also what it found.
Versions History::versions_at(size_t operation, uint32_t id) const {
  Versions versions;
  const auto found = versions_.find(id);
  if (found == versions_.end()) return versions;
  const bool gradual = operations_[operation].kind == OperationKind::kGradual;
  for (const Version& version : found->second) {
    if (version.first > operation) break;
    // Each replaces the one before, but for what a gradual operation replaces.
    if (!(gradual && version.first == operation)) versions.clear();
    versions.push_back(&version.second);
  }
  return versions;
}

std::string History::difference_after(uint32_t moment, const FoundTree& tree) const {
  const auto [safe, last] = window(moment);
  std::string problem;
  for (size_t i = last + 1; i-- > safe;) {
    const std::string found =
        difference(tree, Model::kRoot, [&, i = i](uint32_t id) { return versions_at(i, id); });
    if (found.empty()) return {};
    if (i == last || i == safe) {
      problem += "\n  after " + std::to_string(i) + " (" + operations_[i].what + "): " + found;
    }
  }
  return "this is no state that there was:" + problem;
}

}  // namespace gofs::judges
