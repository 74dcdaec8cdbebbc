// SPDX-License-Identifier: Apache-2.0
//
// The microbenchmarks of the GoFS paper (SOSP '25, Figures 10 and 11) on virtual SSDs: reads and
// writes through the file API, each beside raw NVMe commands that take turns with it on the same
// queues, along one axis at a time. Every block that is read says where it belongs, and what each
// writer wrote last is read back: a wrong byte ends the suite.
//
// And ablations: each mechanism that a mount can do without (vfs/ablations.h), with it and without
// it, at what it is there for; writing over blocks where they lie; and files one by one, beside a
// batch of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/actors.hpp"
#include "bench/spread.hpp"
#include "bench/volume.hpp"
#include "gofs/expected.hpp"
#include "host/volume_state.h"

namespace gofs::bench {

/// The axes.
enum class Sweep : uint32_t {
  kOutstanding,  // how many threads read or write at a time
  kSize,         // bytes of an operation
  kBlocks,       // thread blocks of 256 threads; on a GPU
  kLanes,        // how few of a warp's threads read or write, of so many in all; on a GPU
  kLbas,         // threads that read single LBAs
  kSsds,         // over how many SSDs the volume is striped
  kFiles,        // many small files in a batch
  kAblations,    // no axis
};
inline constexpr uint32_t kSweeps = 8;
/// "outstanding", "size", "blocks", "lanes", "lbas", "ssds", "files", "ablations".
const char* name_of(Sweep sweep);

struct SuiteOptions {
  std::string folder;  // takes the images meanwhile, some GiB
  std::string backend = "auto";
  std::vector<std::string> models = {"none"};
  // Ablations take as many volumes again.
  std::vector<Sweep> sweeps = {Sweep::kOutstanding, Sweep::kSize, Sweep::kBlocks, Sweep::kLanes,
                               Sweep::kLbas,        Sweep::kSsds, Sweep::kFiles};
  std::vector<uint32_t> ssds = {};  // of that axis; none: 1, 2, 4, 8. The others are on one SSD
  uint32_t runs = 5;                // of each point
  double seconds = 0.1;             // of each run
  uint32_t controller_warps = 0;    // bench/controller_warps.h; none for files of a batch
  bool small = false;               // few bytes, few points: to see that all of it works
};

/// What is measured.
enum class SuiteWork : uint32_t { kRead, kWrite };
enum class SuiteActors : uint32_t {
  kThreads,       // write to a file for each of their warps, or read one
  kWarps,         // write to a file each
  kWarpsOfAFile,  // write to one file
  kFiles,         // there are none that count: files are read or made
};
struct SuitePoint {
  Sweep sweep;
  std::string model;
  SuiteWork work;
  bool random;
  uint32_t ssds;
  uint32_t outstanding;  // threads, or files of a batch
  Layout layout;
  uint32_t bytes;  // of an operation, or of a file
  SuiteActors actors = SuiteActors::kThreads;
  /// Of ablations: "one-by-one" for files, "overwrites" where it is mounted as log-structured, else
  /// the name that a spec has for what is done without.
  std::string ablation{};
  bool ablated = false;  // it is done without; else the row is there to compare with
};

/// What it takes to open the files of a batch.
struct BatchOpening {
  double list_seconds = 0;    // for their names,
  double load_seconds = 0;    // and for their inodes
  uint64_t memory_bytes = 0;  // while it is open
};

struct SuiteRow {
  SuitePoint point;
  uint32_t outstanding;  // that the backend could give
  Spread raw;
  Spread file;
  uint32_t controller_warps = 0;
  std::optional<BatchOpening> opening{};  // of the last run, where files of a batch are read
  double ratio() const { return raw.median > 0 ? file.median / raw.median : 0; }
};

struct SuiteSinks {
  std::function<void(const host::VolumeState&)> volume;  // mounted anew, about to be measured
  std::function<void(const SuiteRow&)> row;
};

/// Runs the suite. The first error ends it: EIO also for wrong bytes; EINVAL: more controller warps
/// than kControllerWarpsMax.
Expected<void> run_suite(const SuiteOptions& options, const SuiteSinks& sinks);

}  // namespace gofs::bench
