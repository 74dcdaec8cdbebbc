// SPDX-License-Identifier: Apache-2.0
#include "bench/suite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "bench/controller_launch.hpp"
#include "bench/files.hpp"
#include "bench/images.hpp"
#include "bench/names.hpp"
#include "bench/reads.hpp"
#include "bench/writes.hpp"
#include "host/ablations.h"
#include "host/messages.h"

namespace gofs::bench {
namespace {

constexpr const char* kSuiteSubject = "bench suite";
constexpr uint32_t kThreadsPerBlock = 256;
/// Memory for what is under way at a time.
constexpr uint64_t kUnderWayBytes = uint64_t{256} << 20;

/// How much there is to it, as a whole and in small.
struct Scale {
  BenchContents contents;
  uint64_t written_bytes;    // of all files that are written over
  uint32_t written_files;    // of that many, and once more
  uint32_t coarse_files;     // of that many, for large writes
  uint64_t write_run_bytes;  // most that one run writes
  std::vector<uint32_t> outstanding;
  std::vector<uint32_t> sizes;     // in bytes,
  std::vector<uint32_t> in_sizes;  // and how many requests of them are outstanding
  std::vector<uint32_t> blocks;
  std::vector<uint32_t> lanes;     // in each warp,
  std::vector<uint32_t> in_lanes;  // and how many there are of them
  std::vector<uint32_t> lbas;      // outstanding
  std::vector<uint32_t> ssds;
  uint32_t some;  // outstanding where that is not the axis,
  uint32_t many;  // and where it is to be as much as there can be
};

Scale scale_of(const SuiteOptions& options) {
  Scale scale;
  if (options.small) {
    scale.contents = {16 * kMiB, 64, 16'384, 128 * kMiB, 16 * kMiB};
    scale.written_bytes = 16 * kMiB;
    scale.written_files = 16;
    scale.coarse_files = 2;
    scale.write_run_bytes = 4 * kMiB;
    scale.outstanding = {1, 2};
    scale.sizes = {512, 4096, 65'536};
    scale.blocks = {1};
    scale.lanes = {1, 2};
    scale.in_sizes = {2};
    scale.in_lanes = {2};
    scale.lbas = {2};
    scale.ssds = {1, 3};
    scale.some = 2;
    scale.many = 2;
    return scale;
  }
  scale.contents = {4096 * kMiB, 100'000, 16'384, 6144 * kMiB, 2048 * kMiB};
  scale.written_bytes = 1024 * kMiB;
  scale.written_files = 2'048;
  scale.coarse_files = 32;
  scale.write_run_bytes = 512 * kMiB;
  scale.outstanding = {1, 32, 256, 1'024, 8'192, 32'768};
  scale.sizes = {512, 4096, 16'384, 65'536, 262'144, 1'048'576};
  scale.blocks = {1, 4, 16, 33, 66, 132, 198, 256};
  scale.lanes = {1, 2, 4, 8, 16, 32};
  scale.in_sizes = {1'024};
  scale.in_lanes = {32, 1'024};
  scale.lbas = {1'024, 8'192, 32'768, 131'072};
  scale.ssds = {1, 2, 4, 8};
  scale.some = 1'024;
  scale.many = 32'768;
  return scale;
}

/// How a volume is mounted to be compared with another mount.
struct ComparedMount {
  uint32_t ablations = 0;
  bool log_structured = false;

  bool operator==(const ComparedMount&) const = default;
};

constexpr ComparedMount kUsual{};
constexpr ComparedMount kLogStructured{0, true};
constexpr ComparedMount without(uint32_t ablations, const ComparedMount& mount = kUsual) {
  return {mount.ablations | ablations, mount.log_structured};
}

/// What is measured twice, and how it is mounted then.
struct Comparison {
  ComparedMount usual;
  ComparedMount ablated;
  SuiteWork work;
  SuiteActors actors;
  bool random;
  bool many;  // outstanding

  /// Of what the second mount does without.
  std::string name() const {
    if (ablated == usual) return "one-by-one";
    if (ablated.log_structured != usual.log_structured) return "overwrites";
    return host::ablation_names(ablated.ablations & ~usual.ablations).front();
  }
};

constexpr Comparison kComparisons[] = {
    {kUsual, without(kAblateRangeLocks), SuiteWork::kRead, SuiteActors::kThreads, true, false},
    {kUsual, without(kAblateRangeLocks), SuiteWork::kWrite, SuiteActors::kWarpsOfAFile, true,
     false},
    {kUsual, kLogStructured, SuiteWork::kWrite, SuiteActors::kThreads, true, false},
    // Who writes over a block takes none.
    {kLogStructured, without(kAblateOpenSegments, kLogStructured), SuiteWork::kWrite,
     SuiteActors::kWarps, true, false},
    {kUsual, without(kAblateMergedBlocks), SuiteWork::kRead, SuiteActors::kThreads, false, true},
    {kUsual, without(kAblateSharedDoorbells), SuiteWork::kRead, SuiteActors::kThreads, true, true},
    {kUsual, without(kAblateBlockMaps), SuiteWork::kRead, SuiteActors::kThreads, true, false},
    // Where blocks are in the map, no node is read.
    {without(kAblateBlockMaps), without(kAblateBlockMaps | kAblateLevelWalks), SuiteWork::kRead,
     SuiteActors::kThreads, true, false},
    {kUsual, kUsual, SuiteWork::kRead, SuiteActors::kFiles, false, false},
};

/// Each once, in the order in which they are compared.
std::vector<ComparedMount> compared_mounts() {
  std::vector<ComparedMount> mounts;
  for (const Comparison& one : kComparisons) {
    for (const ComparedMount& mount : {one.usual, one.ablated}) {
      if (std::find(mounts.begin(), mounts.end(), mount) == mounts.end()) mounts.push_back(mount);
    }
  }
  return mounts;
}

Error wrong_bytes(const std::string& what, uint64_t count) {
  return host::make_error(
      EIO, kSuiteSubject,
      fmt::format("{}: {} blocks are not those that were asked for", what, count));
}

/// The points of one mounted volume: of all axes, or where it is to be `compared`, of ablations.
class VolumeSuite {
 public:
  VolumeSuite(const SuiteOptions& options, const Scale& scale, const SuiteSinks& sinks,
              std::string model, uint32_t ssds, std::optional<ComparedMount> compared = {})
      : options_(options),
        scale_(scale),
        sinks_(sinks),
        model_(std::move(model)),
        ssds_(ssds),
        compared_(compared) {}

  Expected<void> run() {
    const Images images(options_.folder, ssds_);
    const auto made = make_bench_volume(images.paths(), scale_.contents);
    if (!made) return made.error();
    raw_start_ = *made;
    if (auto mounted = mount(images); !mounted) return mounted;
    sinks_.volume(*volume_);
    if (auto prepared = prepare(); !prepared) return prepared;
    auto done = compared_ ? run_comparisons(*compared_) : run_sweeps();
    if (!done) return done;
    written_.clear();
    return volume_->unmount();
  }

 private:
  Expected<void> mount(const Images& images) {
    MountOptions mount = bench_mount(options_.backend);
    // Of 100,000 new files, so that no checkpoint falls into making them.
    mount.cache_bytes = options_.small ? 0 : uint64_t{2} << 30;
    mount.descriptors = scale_.written_files + scale_.coarse_files + 64;
    if (compared_) mount.descriptors += 2 * scale_.some;  // of files that are opened one by one
    mount.ablations = compared_.value_or(kUsual).ablations;
    mount.log_structured = compared_.value_or(kUsual).log_structured;
    // All of the volume is written in the end.
    auto volume = mount_bench_volume(images.paths(), model_, mount);
    if (!volume) return volume.error();
    volume_ = std::move(*volume);
    const auto fs = volume_->backend().memory().read_object(volume_->filesystem());
    main_start_ = uint64_t{fs.volume.geometry.main_blkaddr} * kBlockBytes;
    return {};
  }

  Expected<void> prepare() {
    const std::string large = "/large";
    const auto opened = volume_->call({.verb = request::Verb::kOpen, .path = &large});
    if (opened.result < 0) return volume_->explain(opened.result, large);
    large_ = static_cast<int>(opened.result);
    const uint32_t others = compared_ ? 1 : scale_.coarse_files;
    for (const uint32_t count : {scale_.written_files, others}) {
      auto files = BenchFiles::make(*volume_, fmt::format("/written{}", count), count, false);
      if (!files) return files.error();
      written_.push_back(std::move(*files));
    }
    return fill();
  }

  Expected<void> fill() {
    for (const auto& files : written_) {
      if (auto sized = files->resize(scale_.written_bytes / files->count()); !sized) return sized;
      const auto filled = files->fill();
      if (!filled) return filled.error();
    }
    return checkpoint();
  }
  Expected<void> checkpoint() {
    const auto seconds = time_checkpoint(*volume_);
    return seconds ? Expected<void>() : seconds.error();
  }

  Expected<void> run_sweeps() {
    for (const Sweep sweep : options_.sweeps) {
      if (sweep == Sweep::kAblations) continue;  // have volumes of their own
      if (auto done = run_sweep(sweep); !done) return done;
    }
    return {};
  }

  Expected<void> run_sweep(Sweep sweep) {
    Axis axis{sweep};
    if (sweep == Sweep::kSsds) {
      axis.outstanding = {scale_.many};
      return run_points(axis);
    }
    if (sweep == Sweep::kFiles) return run_files();
    if (ssds_ != 1) return {};  // the others are of one SSD
    switch (sweep) {
      case Sweep::kSize:
        axis.random = {true, false};
        axis.outstanding = scale_.in_sizes;
        axis.sizes = scale_.sizes;
        return run_points(axis);
      case Sweep::kOutstanding:
        axis.random = {true, false};
        axis.outstanding = scale_.outstanding;
        return run_points(axis);
      case Sweep::kLbas:
        axis.outstanding = scale_.lbas;
        axis.sizes = {volume_->info().lba_bytes};
        return run_points(axis);
      case Sweep::kBlocks:
        return run_blocks();
      case Sweep::kLanes:
        return run_lanes();
      case Sweep::kSsds:
      case Sweep::kFiles:
      case Sweep::kAblations:
        break;
    }
    return {};
  }

  Expected<void> run_blocks() {
    if (volume_->backend().is_host()) return {};  // which has no thread blocks
    Axis axis{Sweep::kBlocks};
    axis.layout.threads_per_block = kThreadsPerBlock;
    for (const uint32_t blocks : scale_.blocks) {
      axis.outstanding.push_back(blocks * kThreadsPerBlock);
    }
    return run_points(axis);
  }

  Expected<void> run_lanes() {
    if (volume_->backend().is_host()) return {};  // whose warps are threads
    Axis axis{Sweep::kLanes};
    axis.outstanding = scale_.in_lanes;
    for (const uint32_t lanes : scale_.lanes) {
      axis.layout.lanes_per_warp = lanes;
      if (auto done = run_points(axis); !done) return done;
    }
    return {};
  }

  /// Points of a sweep: all that can be combined of these. Writes are of whole blocks.
  struct Axis {
    Sweep sweep;
    std::vector<bool> random{true};
    std::vector<uint32_t> outstanding{};
    std::vector<uint32_t> sizes{static_cast<uint32_t>(kBlockBytes)};
    Layout layout{};
  };

  Expected<void> run_points(const Axis& axis) {
    for (const SuiteWork work : {SuiteWork::kRead, SuiteWork::kWrite}) {
      for (const bool any_place : axis.random) {
        for (const uint32_t bytes : axis.sizes) {
          if (work == SuiteWork::kWrite && bytes % kBlockBytes != 0) continue;
          for (const uint32_t wanted : axis.outstanding) {
            const auto most = static_cast<uint32_t>(kUnderWayBytes / bytes);
            const SuitePoint point{axis.sweep,  model_, work,
                                   any_place,   ssds_,  std::min(wanted, most),
                                   axis.layout, bytes};
            if (auto done = run_point(point); !done) return done;
          }
        }
      }
    }
    return {};
  }

  Expected<void> run_point(const SuitePoint& point) {
    return run_row(point, [&](SuiteRow& row, uint32_t) {
      return point.work == SuiteWork::kRead ? read_once(point, row) : write_once(point, row);
    });
  }

  using Rates = std::pair<double, double>;  // of raw commands and of files

  /// `measure(row, run)` of each run.
  template <typename Measure>
  Expected<void> run_row(const SuitePoint& point, Measure measure) {
    SuiteRow row{point, point.outstanding, {}, {}};
    std::vector<double> raw;
    std::vector<double> file;
    for (uint32_t i = 0; i < std::max(options_.runs, 1u); ++i) {
      const Expected<Rates> rates = measure(row, i);
      if (!rates) return rates.error();
      raw.push_back(rates->first);
      file.push_back(rates->second);
    }
    row.raw = spread_of(raw);
    row.file = spread_of(file);
    sinks_.row(row);
    return {};
  }

  /// What this mount is to be compared at.
  Expected<void> run_comparisons(const ComparedMount& mounted) {
    for (const Comparison& one : kComparisons) {
      for (const bool ablated : {false, true}) {
        if (!((ablated ? one.ablated : one.usual) == mounted)) continue;
        SuitePoint point{Sweep::kAblations,
                         model_,
                         one.work,
                         one.random,
                         ssds_,
                         one.many ? scale_.many : scale_.some,
                         {},
                         kBlockBytes,
                         one.actors,
                         one.name(),
                         ablated};
        auto done = one.actors == SuiteActors::kFiles ? compare_files(point) : run_point(point);
        if (!done) return done;
      }
    }
    return {};
  }

  Expected<void> compare_files(SuitePoint& point) {
    point.outstanding = scale_.contents.small_count;
    point.bytes = scale_.contents.small_bytes;
    return run_row(point, [&](SuiteRow& row, uint32_t) {
      return read_files(row, point.ablated ? Opening::kOneByOne : Opening::kBatch);
    });
  }

  Expected<Rates> read_once(const SuitePoint& point, SuiteRow& row) {
    ReadPlan plan;
    plan.pattern = point.random ? Pattern::kRandom : Pattern::kSequential;
    plan.outstanding = point.outstanding;
    plan.layout = point.layout;
    plan.block_bytes = point.bytes;
    plan.seconds = options_.seconds;
    plan.controller_warps = row.controller_warps = options_.controller_warps;
    const uint64_t span = scale_.contents.large_bytes;
    const auto raw = measure_raw(*volume_, plan, main_start_, span);
    if (!raw) return raw.error();
    plan.check_stamps = true;
    const auto file = measure_file(*volume_, plan, large_, span);
    if (!file) return file.error();
    if (file->wrong_stamps != 0) return wrong_bytes("/large", file->wrong_stamps);
    row.outstanding = file->outstanding;
    return Rates{raw->bytes_per_second(), file->bytes_per_second()};
  }

  Expected<Rates> write_once(const SuitePoint& point, SuiteRow& row) {
    if (auto room = make_room(); !room) return room.error();
    WritePlan plan;
    plan.pattern = point.random ? WritePattern::kRandom : WritePattern::kSequential;
    const bool by_threads = point.actors == SuiteActors::kThreads;
    plan.scope = by_threads ? WriteScope::kThread : WriteScope::kWarp;
    plan.outstanding = point.outstanding;
    plan.layout = point.layout;
    plan.block_bytes = point.bytes;
    plan.seconds = options_.seconds;
    plan.bytes_max = scale_.write_run_bytes;
    plan.controller_warps = row.controller_warps = options_.controller_warps;
    const auto raw = measure_raw_writes(*volume_, plan, raw_start_, scale_.contents.raw_bytes);
    if (!raw) return raw.error();
    const bool few = point.sweep == Sweep::kSize || point.actors == SuiteActors::kWarpsOfAFile;
    const BenchFiles& files = *written_[few ? 1 : 0];
    const auto file = measure_file_writes(*volume_, plan, files);
    if (!file) return file.error();
    row.outstanding = file->outstanding;
    return Rates{raw->bytes_per_second(), file->bytes_per_second()};
  }

  /// Overwriting leaves segments partly empty: they are emptied before anybody has to clean, who
  /// would be measured.
  Expected<void> make_room() {
    if (auto done = checkpoint(); !done) return done;
    if (volume_->free_segments() >= volume_->info().main_segments / 4) return {};
    for (const auto& files : written_) {
      if (auto emptied = files->resize(0); !emptied) return emptied;
    }
    if (auto done = checkpoint(); !done) return done;
    return fill();
  }

  Expected<void> run_files() {
    const uint32_t files = scale_.contents.small_count;
    const uint32_t bytes = scale_.contents.small_bytes;
    for (const SuiteWork work : {SuiteWork::kRead, SuiteWork::kWrite}) {
      const SuitePoint point{Sweep::kFiles,      model_, work, false, ssds_, files, {}, bytes,
                             SuiteActors::kFiles};
      auto done = run_row(point, [&](SuiteRow& row, uint32_t run) {
        return work == SuiteWork::kRead ? read_files(row, Opening::kBefore)
                                        : create_batch(files, bytes, run);
      });
      if (!done) return done;
    }
    return {};
  }

  /// When files that are read are opened.
  enum class Opening : uint32_t {
    kBefore,    // as a batch, and that does not count
    kBatch,     // as a batch
    kOneByOne,  // each by who reads it, and closes it
  };

  /// All that lie in /small.
  Expected<Rates> read_files(SuiteRow& row, Opening opening) {
    const uint32_t files = scale_.contents.small_count;
    const uint32_t bytes = scale_.contents.small_bytes;
    const ReadPlan plan = plan_like_files(files, bytes);
    const auto raw = measure_raw(*volume_, plan, main_start_, plan.buffer_bytes);
    if (!raw) return raw.error();
    if (opening == Opening::kOneByOne) {
      std::vector<std::string> paths;
      for (uint32_t i = 0; i < files; ++i) paths.push_back(small_file_path(i));
      const auto singly = measure_files_one_by_one(*volume_, paths, bytes, scale_.some);
      if (!singly) return singly.error();
      return Rates{raw->bytes_per_second(), singly->bytes_per_second()};
    }
    const auto batch = measure_batch(*volume_, "/small", files, 1);
    if (!batch) return batch.error();
    if (batch->failed_files != 0 || batch->files != files) {
      return host::make_error(
          EIO, "/small",
          fmt::format("{} of {} files read", batch->files - batch->failed_files, files));
    }
    row.opening = {batch->list_seconds, batch->load_seconds, batch->memory_bytes};
    const double before =
        opening == Opening::kBatch ? batch->list_seconds + batch->load_seconds : 0;
    return Rates{raw->bytes_per_second(),
                 static_cast<double>(batch->bytes) / (before + batch->read_seconds)};
  }

  Expected<Rates> create_batch(uint32_t files, uint32_t bytes, uint32_t run) {
    WritePlan plan;
    plan.pattern = WritePattern::kSequential;
    plan.outstanding = std::min(kBatchOutstanding, files);
    plan.block_bytes = bytes;
    plan.bytes_max = uint64_t{files} * bytes;
    plan.seconds = 60;
    const auto raw = measure_raw_writes(*volume_, plan, raw_start_, scale_.contents.raw_bytes);
    if (!raw) return raw.error();
    const std::string directory = fmt::format("/batch{}", run);
    const auto batch = measure_batch_creation(*volume_, directory, files, bytes);
    if (!batch) return batch.error();
    if (auto done = checkpoint(); !done) return done.error();
    return Rates{raw->bytes_per_second(), static_cast<double>(batch->bytes) / batch->seconds};
  }

  const SuiteOptions& options_;
  const Scale& scale_;
  const SuiteSinks& sinks_;
  const std::string model_;
  const uint32_t ssds_;
  const std::optional<ComparedMount> compared_;
  uint64_t raw_start_ = 0;   // where raw writes go,
  uint64_t main_start_ = 0;  // and where raw reads come from: among them /large
  std::unique_ptr<host::VolumeState> volume_;
  int large_ = -1;
  std::vector<std::unique_ptr<BenchFiles>> written_;  // go before the volume
};

}  // namespace

const char* name_of(Sweep sweep) {
  switch (sweep) {
    case Sweep::kOutstanding:
      return "outstanding";
    case Sweep::kSize:
      return "size";
    case Sweep::kBlocks:
      return "blocks";
    case Sweep::kLanes:
      return "lanes";
    case Sweep::kLbas:
      return "lbas";
    case Sweep::kSsds:
      return "ssds";
    case Sweep::kFiles:
      return "files";
    case Sweep::kAblations:
      break;
  }
  return "ablations";
}

Expected<void> run_suite(const SuiteOptions& options, const SuiteSinks& sinks) {
  if (options.controller_warps > kControllerWarpsMax) {
    return host::make_error(EINVAL, kSuiteSubject,
                            fmt::format("at most {} controller warps", kControllerWarpsMax));
  }
  Scale scale = scale_of(options);
  // Each run of axis files makes a batch, with a block of metadata for each file.
  scale.contents.spare_bytes += uint64_t{options.runs} * scale.contents.small_count *
                                (scale.contents.small_bytes + uint64_t{2 * kBlockBytes});
  if (!options.ssds.empty()) scale.ssds = options.ssds;
  const bool by_ssds =
      std::find(options.sweeps.begin(), options.sweeps.end(), Sweep::kSsds) != options.sweeps.end();
  const auto ablations =
      std::count(options.sweeps.begin(), options.sweeps.end(), Sweep::kAblations);
  std::vector<uint32_t> counts = by_ssds ? scale.ssds : std::vector<uint32_t>{1};
  if (static_cast<size_t>(ablations) == options.sweeps.size()) counts.clear();
  const bool others = std::any_of(options.sweeps.begin(), options.sweeps.end(), [](Sweep sweep) {
    return sweep != Sweep::kSsds && sweep != Sweep::kAblations;
  });
  if (others && std::find(counts.begin(), counts.end(), 1u) == counts.end()) counts.push_back(1);
  const auto mounts = ablations != 0 ? compared_mounts() : std::vector<ComparedMount>{};
  for (const std::string& model : options.models) {
    for (const ComparedMount& mounted : mounts) {
      VolumeSuite suite(options, scale, sinks, model, 1, mounted);
      if (auto done = suite.run(); !done) return done;
    }
    for (const uint32_t ssds : counts) {
      VolumeSuite suite(options, scale, sinks, model, ssds);
      if (auto done = suite.run(); !done) return done;
    }
  }
  return {};
}

}  // namespace gofs::bench
