// SPDX-License-Identifier: Apache-2.0
//
// What gofs_baselines measures, and how.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/volume.hpp"

namespace gofs::bench {

inline constexpr uint32_t kSmallFileBytes = 16'384;

struct Options {
  std::string folder = "/dev/shm";  // takes the images and files meanwhile
  std::string backend = "auto";     // where device code runs, and whose memory gets the data
  std::vector<std::string> models = {"none", "file"};  // the last one is kFileModel
  std::vector<uint32_t> outstanding = {1, 4, 16, 32, 256, 1'024, 8'192, 32'768};
  std::vector<uint32_t> lanes_per_warp = {0, 1};  // of a GPU's threads; 0: whole warps, first
  std::vector<std::string> works = {"read", "write"};
  std::vector<std::string> patterns = {"random", "sequential"};  // and "files", of reads
  std::vector<std::string> only = {"raw", "gofs",  "companion", "companion-lanes",
                                   "rpc", "basic", "cufile"};
  uint32_t runs = 3;                   // of each point
  double seconds = 0.1;                // of each run
  uint64_t large_bytes = 4096 * kMiB;  // of the file that is read
  uint32_t files = 100'000;            // of pattern files, each of kSmallFileBytes
  uint32_t controller_warps = 0;       // beside raw, gofs and the companions
  uint32_t threads_max = 64;           // host threads of basic and cufile
  uint32_t servers = 0;                // host threads of rpc; 0: as many as the machine has cores
  bool direct = false;                 // kFileModel's file is open with O_DIRECT where that can be
  std::string cufile_folder;           // on a disk's file system; empty: no cufile
  bool json = false;

  bool wants(const std::string& name) const {
    return std::find(only.begin(), only.end(), name) != only.end();
  }
  uint32_t small_files() const {
    return std::find(patterns.begin(), patterns.end(), "files") != patterns.end() ? files : 0;
  }
  /// Of each file that is written: as large as the one that is read, but no larger than this.
  uint64_t written_bytes() const { return std::min(large_bytes, 1024 * kMiB); }
};

}  // namespace gofs::bench
