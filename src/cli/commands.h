// SPDX-License-Identifier: Apache-2.0
//
// The commands of `gofs`, a file each, and what each can be told. grammar.cpp turns arguments into
// these options; a command that cannot do what it was asked throws Failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/session.h"

namespace gofs::cli {

void run_info(Session& session);

struct LsOptions {
  std::string path = "/";
  bool details = false;
  bool recursive = false;
};
void run_ls(Session& session, const LsOptions& options);

struct StatOptions {
  std::string path;
  bool follow = false;
};
void run_stat(Session& session, const StatOptions& options);

struct CatOptions {
  std::string path;
  uint64_t offset = 0;
  uint64_t length = ~uint64_t{0};
};
void run_cat(Session& session, const CatOptions& options);

struct GetOptions {
  std::string path;
  std::string host_path;
  bool recursive = false;
};
void run_get(Session& session, const GetOptions& options);

struct SumOptions {
  std::string path = "/";
  bool recursive = false;
};
void run_sum(Session& session, const SumOptions& options);

struct CheckOptions {
  bool verbose = false;
};
void run_check(Session& session, const CheckOptions& options);

struct MkfsOptions {
  uint64_t size_bytes = 0;  // 0: that of the file or device
  std::string label;
  std::vector<std::string> features;
  bool force = false;
};
void run_mkfs(Session& session, const MkfsOptions& options);

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
void run_bench(Session& session, const BenchOptions& options);

void run_doctor(Session& session);

}  // namespace gofs::cli
