// SPDX-License-Identifier: Apache-2.0
#include "faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <stdexcept>

#include "aftermath.h"

namespace gofs::judges {

namespace {

constexpr uint64_t kForGood = ~uint64_t{0};

constexpr uint32_t mask_of(format::nvme::IoOpcode opcode) {
  return 1u << static_cast<uint32_t>(opcode);
}

/// What may fail, and how often.
struct Kind {
  const char* name;
  uint32_t opcode_mask;
  uint64_t count;
  ssd::FaultAction action = ssd::FaultAction::kStatus;
};
constexpr Kind kKinds[] = {
    {"write", mask_of(format::nvme::IoOpcode::kWrite), 1},
    {"writes", mask_of(format::nvme::IoOpcode::kWrite), kForGood},
    {"read", mask_of(format::nvme::IoOpcode::kRead), 1},
    {"reads", mask_of(format::nvme::IoOpcode::kRead), kForGood},
    {"flush", mask_of(format::nvme::IoOpcode::kFlush), 1},
    {"all", ~0u, kForGood},
    {"death", ~0u, kForGood, ssd::FaultAction::kFatal},
};

/// How long it takes to find out that an SSD is dead: long enough for what one thread asks for.
constexpr uint64_t kDeadAfterNs = 50'000'000;

class FaultExplorer {
 public:
  FaultExplorer(const Scenario& scenario, const FaultsOptions& options)
      : scenario_(scenario),
        options_(options),
        prepared_(prepare(scenario, options.seed, options.width, options.striping,
                          options.log_structured)),
        disks_(prepared_.disks) {}

  FaultsResult run() {
    for (const Kind& kind : kKinds) {
      if (options_.kind && *options_.kind != kind.name) continue;
      if (options_.command) {
        run_with(kind, {options_.disk, *options_.command});
        continue;
      }
      // Nothing is hit, only counted.
      const std::vector<uint64_t> counts = run_with({kind.name, kind.opcode_mask, 0}, {});
      const uint64_t commands = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
      const uint64_t most = options_.commands_max == 0 ? commands : options_.commands_max;
      const uint64_t step = std::max<uint64_t>(1, commands / std::max<uint64_t>(most, 1));
      for (uint64_t command = step / 2; command < commands; command += step) {
        run_with(kind, place_of(command, counts));
        if (result_.failures.size() >= options_.failures_max) return result_;
      }
    }
    return result_;
  }

 private:
  struct Place {
    uint32_t disk = 0;
    uint64_t command = 0;  // of the kind, on that disk
  };
  /// Where one of all commands is, counted a disk after the other.
  static Place place_of(uint64_t command, const std::vector<uint64_t>& counts) {
    Place place{0, command};
    for (; place.command >= counts[place.disk]; ++place.disk) place.command -= counts[place.disk];
    return place;
  }

  /// Answers how many commands of the kind each disk got.
  std::vector<uint64_t> run_with(const Kind& kind, const Place& place) {
    ++result_.runs;
    Model model = prepared_.model;
    History history(model, !options_.log_structured);
    ssd::WriteTrace trace;
    std::vector<uint64_t> commands;
    bool kept = false;
    std::string stopped = "nothing failed";
    std::string problem;
    {
      SessionOptions mount = prepared_.mount;
      mount.log_bytes = kScenarioLogBytes;
      mount.faults = true;
      mount.hosted = options_.hosted;
      Session session(disks_, mount);
      if (session.mounted() != 0 || session.begun().error != 0) {
        throw std::runtime_error("cannot mount what was prepared");
      }
      // On a machine that has other things to do a mount takes longer.
      if (kind.action == ssd::FaultAction::kFatal) session.set_timeout(kDeadAfterNs);
      Actor actor(session, model, &history, options_.seed);
      actor.expect_faults();
      session.plan_fault(place.disk, {.opcode_mask = kind.opcode_mask,
                                      .skip = place.command,
                                      .count = kind.count,
                                      .action = kind.action});
      try {
        scenario_.run(actor);
      } catch (const Faulted& fault) {
        ++result_.errors;
        stopped = fault.what();
      } catch (const std::exception& wrong) {
        problem = wrong.what();
      }
      commands = session.fault_matches();
      // Runs differ in the commands they need: what is written where depends on the processor that
      // a thread is on. One that was not met would fail the look.
      const bool met = commands[place.disk] > place.command;
      if (problem.empty() && met && kind.count != kForGood) problem = look_on(session, history);
      kept = session.unmount() == 0;
      result_.kept += kept ? 1 : 0;
      trace = session.trace();
    }
    if (problem.empty()) problem = judge(history, kept);
    put_back(disks_, prepared_.disks, trace);
    if (!problem.empty()) fail(kind, place, stopped, problem);
    return commands;
  }

  /// The volume that met the fault, and is used on.
  static std::string look_on(Session& session, const History& history) {
    session.give_up_writes();  // their ranges are locked
    std::string problem = look_at(
        session, [&](const FoundTree& tree) { return history.difference_at_the_end(true, tree); });
    const int made = problem.empty() ? make_something(session) : 0;
    const bool fine = made == 0 || made == -EIO || made == -EROFS;
    if (!fine) problem = fmt::format("mkdir answers {}", made);
    return problem.empty() ? problem : "while it is still mounted: " + problem;
  }

  /// The volume afterwards, with devices that are well again.
  std::string judge(const History& history, bool kept) {
    if (!options_.save.empty()) disks_.joined().save(options_.save);
    const bool judged = options_.fsck_every != 0 && result_.runs % options_.fsck_every == 0;
    SessionOptions mount;
    mount.width = options_.width;
    mount.log_bytes = kRecoveryLogBytes;
    mount.log_structured = options_.log_structured;
    mount.hosted = options_.hosted;
    ssd::WriteTrace trace;
    std::string problem = mount_and_look(
        disks_, mount,
        [&](const FoundTree& tree) { return history.difference_at_the_end(kept, tree); }, true,
        &trace);
    if (problem.empty() && judged) problem = complaints_of(disks_);
    put_back(disks_, prepared_.disks, trace);
    return problem.empty() || !kept ? problem : "unmounted well, but " + problem;
  }

  void fail(const Kind& kind, const Place& place, const std::string& stopped,
            const std::string& problem) {
    result_.failures.push_back(fmt::format(
        "{}: {} {} of disk {} failed, stopped by \"{}\": {}\n  replay: gofs_crash --faults "
        "--scenario {} --seed {} --width {}{}{}{} --kind {} --on-disk {} --command {}",
        scenario_.name, kind.name, place.command, place.disk, stopped, problem, scenario_.name,
        options_.seed, options_.width, options_.striping.options(),
        options_.log_structured ? " --lfs" : "", options_.hosted ? " --hosted" : "", kind.name,
        place.disk, place.command));
  }

  const Scenario& scenario_;
  const FaultsOptions& options_;
  const Prepared prepared_;
  Disks disks_;  // a copy of what was prepared
  FaultsResult result_;
};

}  // namespace

FaultsResult explore_faults(const Scenario& scenario, const FaultsOptions& options) {
  // Threads would end at different places.
  if (!scenario.takes_faults()) return {};
  return FaultExplorer(scenario, options).run();
}

}  // namespace gofs::judges
