// SPDX-License-Identifier: Apache-2.0
#include "suite.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <thread>

#include "basic.hpp"
#include "bench/controller_launch.hpp"
#include "bench_volume.hpp"
#include "companion.hpp"
#include "cufile.hpp"
#include "gofs_files.hpp"
#include "host/backends.h"
#include "host/messages.h"
#include "points.hpp"
#include "raw.hpp"
#include "rpc.hpp"

namespace gofs::bench {
namespace {

constexpr const char* kSuite = "baselines";
/// A disk is slower than what the file is for.
constexpr uint64_t kCufileBytesMax = 1024 * kMiB;

Error bad_option(const std::string& words) { return host::make_error(EINVAL, kSuite, words); }

Expected<void> check(const Options& options) {
  for (const std::string& name : options.only) {
    if (!Options().wants(name)) return bad_option("no baseline is called " + name);
  }
  if (options.runs == 0 || options.threads_max == 0 || options.outstanding.empty()) {
    return bad_option("there is nothing to run");
  }
  if (options.large_bytes == 0 || options.large_bytes % kMiB != 0) {
    return bad_option("the large file is to have whole MiB");
  }
  if (options.controller_warps > kControllerWarpsMax) {
    return bad_option(fmt::format("at most {} controller warps", kControllerWarpsMax));
  }
  const uint64_t blocks = options.written_bytes() / kBlockBytes;
  for (const uint32_t outstanding : options.outstanding) {
    if (outstanding != 0 && outstanding <= blocks) continue;
    return bad_option(
        fmt::format("{} outstanding writes: there are {} blocks to write to", outstanding, blocks));
  }
  return {};
}

class Suite {
 public:
  Suite(const Options& options, const Sinks& sinks) : options_(options), sinks_(sinks) {}

  Expected<void> run() {
    if (auto checked = check(options_); !checked) return checked;
    std::string why;  // better known before any volume is made
    if (host::make_backend(options_.backend, why) == nullptr) {
      return host::make_error(ENODEV, kSuite, why);
    }
    std::vector<ssd::TimingModel> models;
    for (const std::string& name : options_.models) {
      try {
        const bool none = name == "hbm" || name == kFileModel;
        models.push_back(none ? ssd::TimingModel{} : ssd::parse_timing_model(name));
      } catch (const std::exception& problem) {
        return bad_option(fmt::format("model {}: {}", name, problem.what()));
      }
    }
    for (const std::string& model : options_.models) {
      if (auto done = run_model(model); !done) return done;
    }
    return run_cufile(models);
  }

 private:
  Expected<void> run_model(const std::string& model) const {
    if (model == kFileModel) return run_on_file();
    if (auto done = run_on_device(model); !done) return done;
    return run_on_host(model);
  }

  bool wants_any(std::initializer_list<const char*> names) const {
    return std::any_of(names.begin(), names.end(),
                       [this](const char* name) { return options_.wants(name); });
  }

  Expected<std::unique_ptr<BenchVolume>> make_volume(const std::string& backend,
                                                     const std::string& model) const {
    auto volume = BenchVolume::make(options_, backend, model, sinks_.ready);
    if (volume) sinks_.machine((*volume)->state().info());
    return volume;
  }

  /// Whoever issues NVMe commands, all on one virtual SSD.
  Expected<void> run_on_device(const std::string& model) const {
    if (!wants_any({"raw", "gofs", "companion", "companion-lanes"})) return {};
    const auto volume = make_volume(options_.backend, model);
    if (!volume) return volume.error();
    std::string why;
    const auto device = make_device((*volume)->state().backend(), why);
    if (device == nullptr) return host::make_error(ENODEV, kSuite, why);
    const DeviceLoad load{options_.seconds, options_.controller_warps};
    Raw raw(**volume, load);
    GofsFiles files(**volume, load);
    Companion locked(*device, **volume, WarpLock::kHeld, load);
    Companion lanes(*device, **volume, WarpLock::kNone, load);
    return run_wanted(model, {&raw, &files, &locked, &lanes});
  }

  /// The host's baselines, from a volume with the same model.
  Expected<void> run_on_host(const std::string& model) const {
    if (!wants_any({"basic", "rpc"}) || model == "hbm") return {};
    const auto volume = make_volume("cpu", model);
    if (!volume) return volume.error();
    return run_from(model, *make_volume_storage(**volume));
  }

  /// The same from a file, which nothing slows down.
  Expected<void> run_on_file() const {
    if (!wants_any({"basic", "rpc"})) return {};
    const auto file = StampedFile::make(file_path(options_.folder), options_.large_bytes);
    if (!file) return file.error();
    if (sinks_.ready) sinks_.ready((*file)->path());
    const auto small = SmallFiles::make(file_path(options_.folder) + "s", options_.small_files());
    if (!small) return small.error();
    const auto storage = open_file_storage(**file, **small, options_.direct);
    if (!storage) return storage.error();
    return run_from(kFileModel, **storage);
  }

  Expected<void> run_from(const std::string& model, Storage& storage) const {
    std::string why;
    const auto backend = host::make_backend(options_.backend, why);
    if (backend == nullptr) return host::make_error(ENODEV, kSuite, why);
    const auto device = make_device(*backend, why);
    if (device == nullptr) return host::make_error(ENODEV, kSuite, why);
    const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
    const RpcOptions calls{options_.seconds, options_.servers != 0 ? options_.servers : cores};
    Rpc rpc(*device, storage, calls);
    Basic basic(*device, storage, host_load());
    return run_wanted(model, {&rpc, &basic});
  }

  Expected<void> run_cufile(const std::vector<ssd::TimingModel>& models) const {
    if (!options_.wants("cufile")) return {};
    if (options_.cufile_folder.empty()) {
      sinks_.gap("cufile", "no folder on a disk was given");
      return {};
    }
    std::string why;
    const auto backend = host::make_backend(options_.backend, why);
    if (backend == nullptr) return host::make_error(ENODEV, kSuite, why);
    const auto device = make_device(*backend, why);
    if (device == nullptr) return host::make_error(ENODEV, kSuite, why);
    const auto file = StampedFile::make(file_path(options_.cufile_folder),
                                        std::min(options_.large_bytes, kCufileBytesMax));
    if (!file) return file.error();
    const auto open = open_cufile(**file, *device, why);
    if (open == nullptr) {
      sinks_.gap("cufile", why);
      return {};
    }
    if (sinks_.ready) sinks_.ready((*file)->path());
    for (size_t i = 0; i < models.size(); ++i) {
      const std::string& model = options_.models[i];
      if (models[i].is_none() && model != kFileModel) continue;  // which would be the same
      Cufile cufile(*device, *open, models[i], host_load());
      if (auto done = run_wanted(model, {&cufile}); !done) return done;
    }
    return {};
  }

  Expected<void> run_wanted(const std::string& model, std::initializer_list<Baseline*> all) const {
    std::vector<Baseline*> group;
    for (Baseline* const baseline : all) {
      if (options_.wants(baseline->name())) group.push_back(baseline);
    }
    return run_points(options_, model, group, sinks_);
  }

  HostLoad host_load() const { return {options_.seconds, options_.threads_max}; }

  static std::string file_path(const std::string& folder) {
    return fmt::format("{}/gofs-baselines-{}.file", folder, ::getpid());
  }

  const Options& options_;
  const Sinks& sinks_;
};

}  // namespace

Expected<void> run_baselines(const Options& options, const Sinks& sinks) {
  try {
    return Suite(options, sinks).run();
  } catch (const std::bad_alloc&) {
    return host::make_error(ENOMEM, kSuite);
  }
}

}  // namespace gofs::bench
