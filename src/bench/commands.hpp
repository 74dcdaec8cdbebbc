// SPDX-License-Identifier: Apache-2.0
//
// What `gofs bench` can be told. grammar.cpp turns arguments into these options; a command that
// cannot do what it was asked throws cli::Failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/session.h"

namespace gofs::bench {

struct BenchOptions {
  std::vector<std::string> kinds = {"raw", "file"};
  std::string file;       // the largest, if not given
  std::string directory;  // the one with most files, if not given
  std::string pattern = "both";
  std::string scope = "thread";
  uint32_t outstanding = 1024;
  uint64_t block_bytes = 4096;
  double seconds = 0.5;
  uint64_t operations = 0;  // 0: as many as fit into `seconds`
  uint64_t seed = 1;
  uint32_t repetitions = 3;
  uint32_t files_max = 1u << 17;
};
void run_bench(cli::Session& session, const BenchOptions& options);

struct MicroOptions {
  std::string folder = "/dev/shm";
  std::vector<std::string> models = {"none"};
  std::vector<std::string> sweeps;  // all axes, if not given
  std::vector<uint32_t> ssds;       // 1, 2, 4 and 8, if not given
  uint32_t runs = 5;
  double seconds = 0.1;
  uint32_t controller_warps = 0;
  bool small = false;
};
void run_micro(cli::Session& session, const MicroOptions& options);

struct StreamCommand {
  std::string folder = "/dev/shm";
  std::vector<std::string> models = {"none"};
  std::vector<std::string> shapes;  // the usual ones, if not given
  std::vector<std::string> works;   // all, if not given
  uint64_t file_bytes = uint64_t{4} << 30;
  uint32_t runs = 5;
};
void run_stream(cli::Session& session, const StreamCommand& command);

struct RecordCommand {
  std::string folder = "/dev/shm";
  std::vector<std::string> models = {"none"};
  uint32_t runs = 5;
  double seconds = 0.05;
  bool small = false;
};
void run_record_bench(cli::Session& session, const RecordCommand& command);

struct StorageCommand {
  std::vector<std::string> works;  // all but batches, if not given
  std::vector<uint32_t> outstanding = {1, 4, 16, 32, 64, 128, 256};
  uint64_t file_bytes = uint64_t{1} << 30;
  uint32_t files = 10'000;
  double seconds = 0.5;
};
void run_storage_bench(cli::Session& session, const StorageCommand& command);

}  // namespace gofs::bench
