// SPDX-License-Identifier: Apache-2.0
#include "explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "disk.h"

namespace gofs::judges {

namespace {

constexpr uint64_t kVolumeBytes = uint64_t{64} << 20;
constexpr uint64_t kLogBytes = uint64_t{48} << 20;
constexpr uint64_t kRecoveryLogBytes = uint64_t{6} << 20;
constexpr uint64_t kSectorBytes = 512;
constexpr const char* kAfterwards = "/made after the crash";

/// A number that depends on all of its arguments.
uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u ^ (b + 0x94D049BB133111EBu);
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

/// A scenario that was done once.
struct Recording {
  std::vector<uint8_t> base;  // what was there before
  ssd::WriteTrace trace;
  std::unique_ptr<History> history;
};

void demand(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

Recording record(const Scenario& scenario, const ExplorerOptions& options) {
  Recording recording;
  recording.base = make_empty_volume(kVolumeBytes);
  std::vector<uint8_t> work = recording.base;
  SessionOptions mount;
  mount.width = options.width;
  mount.cache_pages = scenario.cache_pages;
  Model model;
  if (scenario.prepare != nullptr) {
    Session session(work.data(), work.size(), mount);
    demand(session.mounted() == 0 && session.begun().error == 0, "cannot mount a new volume");
    Actor actor(session, model, nullptr, options.seed);
    scenario.prepare(actor);
    demand(session.unmount() == 0, "cannot unmount what was prepared");
    recording.base = work;
  }
  mount.log_bytes = kLogBytes;
  Session session(work.data(), work.size(), mount);
  demand(session.mounted() == 0 && session.begun().error == 0, "cannot mount what was prepared");
  recording.history = std::make_unique<History>(model);
  Actor actor(session, model, recording.history.get(), mix(options.seed, 1));
  scenario.run(actor);
  LoggedOperation leaving{"unmount", OperationKind::kMakesSafe, session.moment(), 0};
  demand(session.unmount() == 0, "cannot unmount");
  leaving.ended = session.moment();
  recording.history->add(leaving, model, {});
  recording.trace = session.trace();
  for (ssd::LoggedCommand& command : recording.trace.commands) {
    if (!options.flushes_lie) break;
    command.durable = 0;
    if (command.kind == ssd::LoggedKind::kFlush) command.ended = 0;
  }
  return recording;
}

/// Moments after which something may be otherwise: after a write has begun, and after a flush or a
/// write that is durable has ended.
std::vector<uint32_t> moments_of(const ssd::WriteTrace& trace) {
  std::vector<uint32_t> moments{0};
  for (const ssd::LoggedCommand& command : trace.commands) {
    const bool flush = command.kind == ssd::LoggedKind::kFlush;
    if (!flush) moments.push_back(command.began);
    if ((flush || command.durable != 0) && command.ended != 0) moments.push_back(command.ended);
  }
  std::sort(moments.begin(), moments.end());
  return moments;
}

/// Subset 0 keeps all that is not safe, 1 nothing; the others go by their number.
ssd::PowerCut::Survives survivors(uint64_t seed, uint32_t moment, uint32_t subset) {
  if (subset < 2) return [subset](uint32_t, uint64_t) { return subset == 0; };
  const uint64_t luck = mix(mix(seed, moment), subset);
  switch (luck % 4) {
    case 0:  // each sector by itself
      return [luck](uint32_t command, uint64_t unit) { return mix(luck + command, unit) % 2 == 0; };
    case 1:  // most writes
      return [luck](uint32_t command, uint64_t) { return mix(luck, command) % 8 != 0; };
    case 2:  // few writes
      return [luck](uint32_t command, uint64_t) { return mix(luck, command) % 8 == 0; };
    default:  // whole writes
      return [luck](uint32_t command, uint64_t) { return mix(luck, command) % 2 == 0; };
  }
}

class Explorer {
 public:
  Explorer(const Scenario& scenario, const ExplorerOptions& options)
      : scenario_(scenario),
        options_(options),
        recording_(record(scenario, options)),
        disk_(recording_.base) {}

  ExplorerResult run() {
    for (const ssd::LoggedCommand& command : recording_.trace.commands) {
      result_.writes += command.kind != ssd::LoggedKind::kFlush ? 1 : 0;
    }
    std::vector<uint32_t> moments = moments_of(recording_.trace);
    if (options_.cut) moments = {*options_.cut};
    const size_t most = options_.cuts_max == 0 ? moments.size() : options_.cuts_max;
    const size_t step = std::max<size_t>(1, moments.size() / most);
    for (size_t i = 0; i < moments.size(); i += step) {
      ++result_.cuts;
      const ssd::PowerCut cut(recording_.trace, moments[i]);
      // Without anything that may be lost, there is only one image.
      const uint32_t subsets = cut.unsafe().empty() ? 1 : options_.subsets;
      for (uint32_t subset = 0; subset < subsets; ++subset) {
        if (options_.subset) subset = *options_.subset;
        look_at(moments[i], cut, subset);
        if (result_.failures.size() >= options_.failures_max) return result_;
        if (options_.subset) break;
      }
    }
    return result_;
  }

 private:
  void look_at(uint32_t moment, const ssd::PowerCut& cut, uint32_t subset) {
    const auto survives = survivors(options_.seed, moment, subset);
    cut.apply({disk_.data(), disk_.bytes()}, kSectorBytes, survives);
    if (!options_.save.empty()) disk_.save(options_.save);
    const bool judged = options_.fsck_every != 0 && result_.images % options_.fsck_every == 0;
    ++result_.images;
    ssd::WriteTrace mounted;
    std::string problem = check(moment, judged, &mounted);
    disk_.put_back(mounted);
    disk_.put_back(recording_.trace);
    // While that image was mounted, or what it wrote at its end.
    for (uint32_t i = 0; problem.empty() && i < options_.nested && mounted.events != 0; ++i) {
      const uint64_t luck = mix(mix(options_.seed, moment), mix(subset, i));
      const auto again = static_cast<uint32_t>(luck % (mounted.events + 1));
      cut.apply({disk_.data(), disk_.bytes()}, kSectorBytes, survives);
      ssd::PowerCut(mounted, again)
          .apply({disk_.data(), disk_.bytes()}, kSectorBytes,
                 survivors(luck, again, static_cast<uint32_t>(luck >> 32) % options_.subsets));
      ++result_.nested;
      ssd::WriteTrace second;
      problem = check(moment, judged, &second);
      if (!problem.empty()) problem = fmt::format("a cut in the mount after it: {}", problem);
      disk_.put_back(second);
      disk_.put_back(mounted);
      disk_.put_back(recording_.trace);
    }
    if (!problem.empty()) fail(moment, subset, problem);
  }

  /// What is wrong with the image, or nothing. Afterwards it may be another; `trace` hears what was
  /// written while it was mounted, if it could be.
  std::string check(uint32_t moment, bool judged, ssd::WriteTrace* trace) {
    {
      Session session(disk_.data(), disk_.bytes(), {.writable = false, .width = options_.width});
      if (session.mounted() != 0) {
        return fmt::format("it cannot be mounted: error {}", session.mounted());
      }
    }
    if (judged) {
      ++result_.judged;
      std::string problem = disk_.complaints(true);
      if (!problem.empty()) return problem;
    }
    return write(moment, judged, trace);
  }

  std::string compare(Session& session, uint32_t moment) {
    FoundTree tree;
    std::string problem = read_tree(session, "/", tree);
    if (problem.empty()) set_aside_what_we_made(tree);
    if (problem.empty()) problem = recording_.history->difference_after(moment, tree);
    if (problem.empty() && session.findings() != 0) problem = "damage was found";
    return problem;
  }

  /// What an earlier mount of the image has made may be there.
  static void set_aside_what_we_made(FoundTree& tree) {
    FoundObject& root = tree.objects.at(tree.root);
    const auto entry = root.entries.find(kAfterwards + 1);
    if (entry == root.entries.end()) return;
    tree.objects.erase(entry->second);
    root.entries.erase(entry);
    --root.stat.links;
    tree.root_has_its_times = false;
  }

  /// Mounts the image for writing, and goes on with it.
  std::string write(uint32_t moment, bool judged, ssd::WriteTrace* trace) {
    ++result_.written;
    SessionOptions mount;
    mount.width = options_.width;
    mount.log_bytes = kRecoveryLogBytes;
    Session session(disk_.data(), disk_.bytes(), mount);
    if (session.mounted() != 0 || session.begun().error != 0) {
      return fmt::format("it cannot be written to: problem {}, error {}",
                         static_cast<int>(session.begun().problem), session.begun().error);
    }
    std::string problem = compare(session, moment);
    if (problem.empty()) problem = go_on(session);
    (void)session.unmount();
    if (problem.empty() && judged) problem = disk_.complaints(false);
    *trace = session.trace();
    return problem;
  }

  static std::string go_on(Session& session) {
    const int made = session.mkdir(kAfterwards, 0700);
    // A full volume has no room for it; and it is there where the mount that made it was cut.
    const bool fine = made == 0 || made == -ENOSPC || made == -EEXIST;
    if (!fine) return fmt::format("mkdir afterwards answers {}", made);
    const int left = session.unmount();
    return left == 0 ? std::string() : fmt::format("unmounting answers {}", left);
  }

  void fail(uint32_t moment, uint32_t subset, const std::string& problem) {
    const auto [safe, last] = recording_.history->window(moment);
    std::string command = fmt::format(
        "gofs_crash --scenario {} --seed {} --width {} --cut {} --subset {} --nested {}",
        scenario_.name, options_.seed, options_.width, moment, subset, options_.nested);
    if (!scenario_.repeatable) command += "  (threads take turns as they like: not each time)";
    result_.failures.push_back(
        fmt::format("{}: cut at {}, subset {}, during \"{}\": {}\n  replay: {}", scenario_.name,
                    moment, subset, recording_.history->operations()[last].what, problem, command));
  }

  const Scenario& scenario_;
  const ExplorerOptions& options_;
  const Recording recording_;
  Disk disk_;
  ExplorerResult result_;
};

}  // namespace

ExplorerResult explore(const Scenario& scenario, const ExplorerOptions& options) {
  return Explorer(scenario, options).run();
}

}  // namespace gofs::judges
