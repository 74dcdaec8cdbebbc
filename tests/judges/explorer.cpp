// SPDX-License-Identifier: Apache-2.0
#include "explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "aftermath.h"

namespace gofs::judges {

namespace {

/// A number that depends on all of its arguments.
uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u ^ (b + 0x94D049BB133111EBu);
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

/// A scenario that was done once.
struct Recording {
  Disks base;  // what was there before
  ssd::WriteTrace trace;
  std::shared_ptr<History> history;
};

Recording record(const Scenario& scenario, const ExplorerOptions& options) {
  Prepared prepared =
      prepare(scenario, options.seed, options.width, options.striping, options.log_structured);
  Recording recording{prepared.disks, {}, {}};
  Model& model = prepared.model;
  SessionOptions& mount = prepared.mount;
  mount.log_bytes = kScenarioLogBytes;
  mount.hosted = options.hosted;
  Session session(prepared.disks, mount);
  if (session.mounted() != 0 || session.begun().error != 0) {
    throw std::runtime_error("cannot mount what was prepared");
  }
  recording.history = std::make_shared<History>(model, !options.log_structured);
  Actor actor(session, model, recording.history.get(), mix(options.seed, 1));
  scenario.run(actor);
  LoggedOperation leaving{"unmount", OperationKind::kMakesSafe, session.moment(), 0};
  if (session.unmount() != 0) throw std::runtime_error("cannot unmount");
  leaving.ended = session.moment();
  recording.history->add(leaving, model, {});
  recording.trace = session.trace();
  for (ssd::LoggedCommand& command : recording.trace.commands) {
    const bool last = command.disk + 1 == options.striping.disks;
    const bool flush = command.kind == ssd::LoggedKind::kFlush;
    if (options.flushes_lie && last && flush) command.ended = 0;
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

/// Subset 0 keeps all that is not safe, 1 nothing; the others go by their number. The trace, of so
/// many disks, outlives the answer.
ssd::PowerCut::Survives survivors(const ssd::WriteTrace& trace, uint32_t disks, uint64_t seed,
                                  uint32_t moment, uint32_t subset) {
  if (subset < 2) return [subset](uint32_t, uint64_t) { return subset == 0; };
  const uint64_t luck = mix(mix(seed, moment), subset);
  switch (luck % (disks == 1 ? 4 : 5)) {
    case 0:  // each sector by itself
      return [luck](uint32_t command, uint64_t unit) { return mix(luck + command, unit) % 2 == 0; };
    case 1:  // most writes
      return [luck](uint32_t command, uint64_t) { return mix(luck, command) % 8 != 0; };
    case 2:  // few writes
      return [luck](uint32_t command, uint64_t) { return mix(luck, command) % 8 == 0; };
    case 3:  // whole writes
      return [luck](uint32_t command, uint64_t) { return mix(luck, command) % 2 == 0; };
    default:  // all that some of the disks have
      return [luck, &trace](uint32_t command, uint64_t) {
        return mix(luck, trace.commands[command].disk) % 2 == 0;
      };
  }
}

class Explorer {
 public:
  Explorer(const Scenario& scenario, const ExplorerOptions& options)
      : scenario_(scenario),
        options_(options),
        recording_(record(scenario, options)),
        disks_(recording_.base) {}

  ExplorerResult run() {
    for (const ssd::LoggedCommand& command : recording_.trace.commands) {
      result_.writes += command.kind != ssd::LoggedKind::kFlush ? 1 : 0;
    }
    std::vector<uint32_t> moments = moments_of(recording_.trace);
    if (options_.cut) moments = {*options_.cut};
    const size_t most = options_.cuts_max == 0 ? moments.size() : options_.cuts_max;
    const size_t step =
        options_.cut ? 1 : std::max<size_t>(scenario_.cut_every, moments.size() / most);
    for (size_t i = 0; i < moments.size(); i += step) {
      ++result_.cuts;
      const ssd::PowerCut cut(recording_.trace, moments[i]);
      // Without anything that may be lost, there is only one image.
      const uint32_t subsets = cut.unsafe().empty() ? 1 : options_.subsets;
      for (uint32_t subset = 0; subset < subsets; ++subset) {
        if (options_.subset) subset = *options_.subset;
        look_at(moments[i], subset);
        if (result_.failures.size() >= options_.failures_max) return result_;
        if (options_.subset) break;
      }
    }
    return result_;
  }

  std::vector<ExportedImage> export_to(const std::string& folder) {
    std::vector<ExportedImage> images;
    const std::vector<uint32_t> moments = moments_of(recording_.trace);
    for (uint32_t i = 0; i < options_.cuts_max; ++i) {
      const uint32_t moment = moments[(2 * i + 1) * moments.size() / (2 * options_.cuts_max)];
      const uint32_t subset = i % options_.subsets;
      const ssd::PowerCut cut(recording_.trace, moment);
      cut_power(disks_, cut, unit_bytes(recording_.history->needs_whole_blocks()),
                survivors(recording_.trace, disks_.count(), options_.seed, moment, subset));
      const std::string name = fmt::format("{}-{}-{}", scenario_.name, moment, subset);
      images.push_back({folder + "/" + name + ".img", name, moment, recording_.history});
      disks_.joined().save(images.back().path);
      put_back(disks_, recording_.base, recording_.trace);
    }
    return images;
  }

 private:
  /// A cut, and what of the writes it left.
  struct Layer {
    const ssd::WriteTrace& trace;
    ssd::PowerCut cut;
    uint64_t unit_bytes;
    ssd::PowerCut::Survives survives;
  };

  /// What is written wholly or not at all.
  static uint64_t unit_bytes(bool whole_blocks) {
    return whole_blocks ? uint64_t{kBlockBytes} : kSectorBytes;
  }

  /// Whether a file is synced after a cut, too: every other time, so that recovery sees sectors.
  static bool syncs_after(uint32_t moment) { return moment % 2 != 0; }

  void look_at(uint32_t moment, uint32_t subset) {
    std::vector<Layer> layers;
    layers.push_back({recording_.trace, ssd::PowerCut(recording_.trace, moment),
                      unit_bytes(recording_.history->needs_whole_blocks()),
                      survivors(recording_.trace, disks_.count(), options_.seed, moment, subset)});
    const bool judged = options_.fsck_every != 0 && result_.images % options_.fsck_every == 0;
    ++result_.images;
    ssd::WriteTrace mounted;
    std::string problem = check(moment, layers, judged, &mounted);
    for (uint32_t i = 0; problem.empty() && i < options_.nested; ++i) {
      problem = cut_mounts(moment, layers, mix(mix(options_.seed, moment), mix(subset, i)), judged,
                           mounted);
    }
    if (!problem.empty()) fail(moment, subset, problem);
  }

  /// Cuts the mount of an image, and the mount of what that leaves, and so on. What is wrong with
  /// one of them, or nothing.
  std::string cut_mounts(uint32_t moment, std::vector<Layer> layers, uint64_t luck, bool judged,
                         const ssd::WriteTrace& first) {
    std::deque<ssd::WriteTrace> traces{first};
    for (uint32_t depth = 1; depth <= options_.depth; ++depth) {
      luck = mix(luck, depth);
      const ssd::WriteTrace& mounted = traces.back();
      const auto again = static_cast<uint32_t>(luck % (mounted.events + 1));
      const auto subset = static_cast<uint32_t>(luck >> 32) % options_.subsets;
      layers.push_back({mounted, ssd::PowerCut(mounted, again),
                        unit_bytes(syncs_after(moment) || !options_.log_structured),
                        survivors(mounted, disks_.count(), luck, again, subset)});
      ++result_.nested;
      ssd::WriteTrace next;
      const std::string problem = check(moment, layers, judged, &next);
      if (!problem.empty()) return fmt::format("{} cuts in mounts after it: {}", depth, problem);
      traces.push_back(std::move(next));
    }
    return {};
  }

  /// What is wrong with the image that the layers leave, or nothing. Afterwards the disks are what
  /// they were; `trace` hears what was written while the image was mounted.
  std::string check(uint32_t moment, const std::vector<Layer>& layers, bool judged,
                    ssd::WriteTrace* trace) {
    for (const Layer& layer : layers) {
      cut_power(disks_, layer.cut, layer.unit_bytes, layer.survives);
    }
    if (!options_.save.empty()) disks_.joined().save(options_.save);
    std::string problem = judged && layers.size() == 1 ? judge_as_it_is() : "";
    if (problem.empty()) {
      ++result_.written;
      SessionOptions mount;
      mount.width = options_.width;
      mount.log_bytes = kRecoveryLogBytes;
      mount.hosted = options_.hosted;
      mount.log_structured = options_.log_structured;
      problem = mount_and_look(
          disks_, mount,
          [&](const FoundTree& tree) { return recording_.history->difference_after(moment, tree); },
          syncs_after(moment), trace);
    }
    if (problem.empty() && judged) {
      ++result_.judged;
      problem = complaints_of(disks_);
    }
    put_back(disks_, recording_.base, *trace);
    for (const Layer& layer : layers) put_back(disks_, recording_.base, layer.trace);
    return problem;
  }

  /// Before anybody has recovered it.
  std::string judge_as_it_is() {
    Session session(disks_,
                    {.writable = false, .width = options_.width, .hosted = options_.hosted});
    if (session.mounted() != 0) {
      return fmt::format("it cannot be mounted: error {}", session.mounted());
    }
    ++result_.judged;
    return complaints_of(disks_, true);
  }

  void fail(uint32_t moment, uint32_t subset, const std::string& problem) {
    const auto [safe, last] = recording_.history->window(moment);
    std::string command = fmt::format(
        "gofs_crash --scenario {} --seed {} --width {}{}{}{} --cut {} --subset {} --subsets {} "
        "--nested {} --depth {}",
        scenario_.name, options_.seed, options_.width, options_.striping.options(),
        options_.log_structured ? " --lfs" : "", options_.hosted ? " --hosted" : "", moment, subset,
        options_.subsets, options_.nested, options_.depth);
    if (!scenario_.repeatable) command += "  (threads take turns as they like: not each time)";
    result_.failures.push_back(
        fmt::format("{}: cut at {}, subset {}, during \"{}\": {}\n  replay: {}", scenario_.name,
                    moment, subset, recording_.history->operations()[last].what, problem, command));
  }

  const Scenario& scenario_;
  const ExplorerOptions& options_;
  const Recording recording_;
  Disks disks_;  // a copy of what was there before
  ExplorerResult result_;
};

}  // namespace

ExplorerResult explore(const Scenario& scenario, const ExplorerOptions& options) {
  return Explorer(scenario, options).run();
}

std::vector<ExportedImage> export_images(const Scenario& scenario, const ExplorerOptions& options,
                                         const std::string& folder) {
  return Explorer(scenario, options).export_to(folder);
}

std::string judge_recovered(const ExportedImage& image) {
  Disks volume(load_volume(image.path));
  Session session(volume, {.writable = false});
  if (session.mounted() != 0) {
    return fmt::format("{}: it cannot be mounted: error {}", image.cut, session.mounted());
  }
  std::string problem = look_at(session, [&](const FoundTree& tree) {
    return image.history->difference_after(image.moment, tree);
  });
  if (problem.empty()) problem = complaints_of(volume);
  return problem.empty() ? problem : image.cut + ": " + problem;
}

}  // namespace gofs::judges
