// SPDX-License-Identifier: Apache-2.0
#include "history.h"

#include <algorithm>
#include <deque>
#include <functional>

namespace gofs::judges {

History::History(const Model& start, bool writes_over) : writes_over_(writes_over) {
  operations_.push_back({"the volume as it was", OperationKind::kMakesSafe, 0, 0});
  for (const auto& [id, object] : start.objects()) versions_[id].emplace_back(0, object);
}

void History::add(const LoggedOperation& operation, const Model& model,
                  const std::set<uint32_t>& touched, const OnTheWay& on_the_way) {
  operations_.push_back(operation);
  const size_t number = operations_.size() - 1;
  for (const auto& [id, object] : on_the_way) versions_[id].emplace_back(number, object);
  for (const uint32_t id : touched) versions_[id].emplace_back(number, model.at(id));
}

bool History::needs_whole_blocks() const {
  return writes_over_ ||
         std::any_of(operations_.begin(), operations_.end(), [](const LoggedOperation& one) {
           return !one.synced.empty() || !one.synced_contents.empty();
         });
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

/// When that operation had ended; null: not there yet.
const Object* History::object_at(size_t operation, uint32_t id) const {
  const Versions versions = versions_at(operation, id);
  return versions.empty() ? nullptr : versions.back();
}

std::vector<History::SyncPoint> History::sync_points(size_t base, size_t last,
                                                     uint32_t moment) const {
  std::vector<SyncPoint> points;
  for (size_t i = base + 1; i <= last; ++i) {
    const LoggedOperation& one = operations_[i];
    const bool must = one.ended <= moment;
    for (const uint32_t id : one.synced) points.push_back({i, id, must, true});
    for (const uint32_t id : one.synced_contents) points.push_back({i, id, must, false});
  }
  return points;
}

/// What a mount makes of a checkpoint and the files that were synced after it.
class History::Recovered {
 public:
  Recovered(const History& history, size_t base) : history_(history), base_(base) {}

  /// Puts a file to what it was when it was synced. False: that takes a later checkpoint.
  bool take(const SyncPoint& point) {
    const Object& synced = *history_.object_at(point.operation, point.id);
    // A file without a name is gone, whatever is in it.
    if (synced.names.empty()) return true;
    Versions& versions = versions_of(point.id);
    const Object* const there = versions.empty() ? nullptr : versions.back();
    // Several at once may be on their way to it.
    const Versions taken =
        point.must ? Versions{&synced} : history_.versions_at(point.operation, point.id);
    since_[point.id] = point.operation;
    versions.clear();
    for (const Object* version : taken) {
      Object& object = own_.emplace_back(*version);
      versions.push_back(&object);
      if (!point.times) object.times_known = false;
      if (there == nullptr) continue;
      // The names are still those of the checkpoint.
      object.names = there->names;
      object.links = there->links;
    }
    if (there != nullptr) {
      return std::includes(there->names.begin(), there->names.end(), synced.names.begin(),
                           synced.names.end());
    }
    return std::all_of(synced.names.begin(), synced.names.end(),
                       [&](const auto& name) { return enter(name.first, name.second, point); });
  }

  Versions operator()(uint32_t id) { return versions_of(id); }

  /// With what operations up to `last` have written over since, as far as the file went, and their
  /// times, which are set before.
  Versions written_over(uint32_t id, size_t last) {
    Versions versions = versions_of(id);
    if (versions.empty() || !versions.back()->is_regular()) return versions;
    const Object& there = *versions.back();
    const auto since = since_.find(id);
    const size_t first = since == since_.end() ? base_ : since->second;
    for (const auto& [operation, later] : history_.versions_.at(id)) {
      if (operation <= first || operation > last) continue;
      Object& object = own_.emplace_back(there);
      object.content = later.content;
      object.content.resize(there.content.size());
      object.times_known = later.times_known;
      object.modified = later.modified;
      object.changed = later.changed;
      object.unit_bytes = kSectorBytes;
      versions.push_back(&object);
    }
    return versions;
  }

 private:
  Versions& versions_of(uint32_t id) {
    const auto [place, fresh] = versions_.try_emplace(id);
    if (fresh) place->second = history_.versions_at(base_, id);
    return place->second;
  }

  /// Gives a new file its name.
  bool enter(uint32_t directory, const std::string& name, const SyncPoint& point) {
    Versions& versions = versions_of(directory);
    if (versions.empty()) return false;
    Versions changed;
    for (const Object* version : versions) {
      Object& object = own_.emplace_back(*version);
      const auto [entry, fresh] = object.entries.try_emplace(name, point.id);
      if (!fresh && entry->second != point.id && !gives_way(entry->second, point)) return false;
      entry->second = point.id;
      object.times_known = false;
      changed.push_back(&object);
    }
    versions = changed;
    return true;
  }

  /// Whether what had the name was new as well, and removed before the point.
  bool gives_way(uint32_t id, const SyncPoint& point) {
    return history_.versions_at(base_, id).empty() &&
           history_.object_at(point.operation, id)->names.empty();
  }

  const History& history_;
  const size_t base_;
  std::map<uint32_t, Versions> versions_;
  std::map<uint32_t, size_t> since_;  // files that were taken: as after which operation
  std::deque<Object> own_;
};

/// With the state after `base` as the checkpoint. Files that were being synced may have been, or
/// not: each choice is tried.
std::string History::difference_on(size_t base, size_t last, uint32_t moment,
                                   const FoundTree& tree) const {
  const std::vector<SyncPoint> points = sync_points(base, last, moment);
  const auto open = std::count_if(points.begin(), points.end(),
                                  [](const SyncPoint& point) { return !point.must; });
  std::string problem;
  for (uint32_t choice = 0; choice < 1u << open; ++choice) {
    Recovered recovered(*this, base);
    uint32_t left = choice;
    bool possible = true;
    for (const SyncPoint& point : points) {
      bool taken = point.must;
      if (!taken) {
        taken = (left & 1) != 0;
        left >>= 1;
      }
      if (taken && possible) possible = recovered.take(point);
    }
    const VersionsOf versions_of = [&](uint32_t id) {
      return writes_over_ ? recovered.written_over(id, last) : recovered(id);
    };
    const std::string found = possible ? difference(tree, Model::kRoot, versions_of)
                                       : "a name that was synced is not in it";
    if (found.empty()) return {};
    // Of the two ends: nothing of them was synced, and all.
    if (choice == 0 || choice + 1 == 1u << open) {
      problem += (choice == 0 ? "" : "; with what was being synced, ") + found;
    }
  }
  return problem;
}

std::string History::difference_between(size_t safe, size_t last, uint32_t moment,
                                        const FoundTree& tree) const {
  std::string problem;
  for (size_t i = last + 1; i-- > safe;) {
    const std::string found = difference_on(i, last, moment, tree);
    if (found.empty()) return {};
    if (i == last || i == safe) {
      problem += "\n  after " + std::to_string(i) + " (" + operations_[i].what + "): " + found;
    }
  }
  return "this is no state that there was:" + problem;
}

/// Of the bytes that have to be there at `moment`, what is wrong with the first that are not.
std::string History::lost_bytes(uint32_t moment, const FoundTree& tree) const {
  for (const KeptBytes& one : kept_) {
    if (one.since > moment) continue;
    const auto found =
        std::find_if(tree.objects.begin(), tree.objects.end(),
                     [&](const auto& object) { return object.second.path == one.path; });
    const bool there = found != tree.objects.end() &&
                       found->second.content.read(one.offset, one.bytes.size()) == one.bytes;
    if (there) continue;
    return one.path + ": " + std::to_string(one.bytes.size()) + " bytes at " +
           std::to_string(one.offset) + " are lost, durable since " + std::to_string(one.since);
  }
  return {};
}

std::string History::difference_after(uint32_t moment, const FoundTree& tree) const {
  const auto [safe, last] = window(moment);
  const std::string problem = difference_between(safe, last, moment, tree);
  return problem.empty() ? lost_bytes(moment, tree) : problem;
}

std::string History::difference_at_the_end(bool kept, const FoundTree& tree) const {
  constexpr uint32_t kMoment = kNeverEnded - 1;
  const auto [safe, last] = window(kMoment);
  const bool failed = operations_[last].ended == kNeverEnded;
  const std::string problem =
      difference_between(kept ? last - (failed ? 1 : 0) : safe, last, kMoment, tree);
  return problem.empty() ? lost_bytes(kept ? kNeverEnded : kMoment, tree) : problem;
}

}  // namespace gofs::judges
