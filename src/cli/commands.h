// SPDX-License-Identifier: Apache-2.0
//
// The commands of `gofs`, a file each, and the options of each. grammar.cpp turns arguments into
// these options; a command that cannot do what it was asked throws Failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/changes.h"

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

struct WatchOptions {
  double seconds = 1;  // between two lines
  uint64_t count = 0;  // of lines; 0: until it is interrupted
};
void run_watch(Session& session, const WatchOptions& options);

struct TopOptions {
  double seconds = 1;    // between two looks
  bool on_page = false;  // for browsers, instead of the terminal
  std::string web;       // its address and port; empty: the usual ones
};
void run_top(Session& session, const TopOptions& options);

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
  std::string into;  // a file of the volume for what is found; empty: stdout
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

struct PutOptions {
  std::vector<std::string> paths;  // of the host, and at last one of the volume
  bool recursive = false;
};
void run_put(Session& session, const PutOptions& options);

struct MkdirOptions {
  std::vector<std::string> paths;
  std::string mode = "755";  // that changed_mode() understands
  bool parents = false;
};
void run_mkdir(Session& session, const MkdirOptions& options);

struct LnOptions {
  std::string target;
  std::string path;
  bool symbolic = false;
};
void run_ln(Session& session, const LnOptions& options);

struct RmOptions {
  std::vector<std::string> paths;
  bool recursive = false;
  bool force = false;  // what is not there is no error
};
void run_rm(Session& session, const RmOptions& options);

struct RmdirOptions {
  std::vector<std::string> paths;
};
void run_rmdir(Session& session, const RmdirOptions& options);

struct MvOptions {
  std::vector<std::string> paths;  // the last one is where the others go
  bool no_clobber = false;
  bool exchange = false;
};
void run_mv(Session& session, const MvOptions& options);

struct TruncateOptions {
  std::string path;
  uint64_t size_bytes = 0;
};
void run_truncate(Session& session, const TruncateOptions& options);

struct ChmodOptions {
  std::string mode;  // that changed_mode() understands
  ChangeOptions change;
};
void run_chmod(Session& session, const ChmodOptions& options);
/// The permissions that `text` makes of those in `mode`; no value if it makes no sense.
std::optional<uint32_t> changed_mode(const std::string& text, uint32_t mode, bool directory);

struct Owner {
  uint32_t uid;  // or kKeepId
  uint32_t gid;
};
struct ChownOptions {
  std::string owner;  // that parse_owner() understands
  ChangeOptions change;
  bool no_dereference = false;
};
void run_chown(Session& session, const ChownOptions& options);
std::optional<Owner> parse_owner(const std::string& text);

struct TouchOptions {
  std::string time;  // that parse_time() understands; empty: now
  bool accessed = false;
  bool modified = false;  // neither or both: both
  ChangeOptions change;
  bool no_create = false;
  bool no_dereference = false;
};
void run_touch(Session& session, const TouchOptions& options);
/// Seconds since 1970, with up to nine digits after a point.
std::optional<TimeStamp> parse_time(const std::string& text);

struct GcOptions {
  uint32_t segments_max = 0;  // 0: all that are worth it
  bool emptiest_first = false;
};
void run_gc(Session& session, const GcOptions& options);

struct CtlOptions {
  std::string what;  // "status", "drain" or "stop"
};
void run_ctl(Session& session, const CtlOptions& options);

struct DoctorOptions {
  std::string address;  // of a PCI function; empty: the machine
};
void run_doctor(Session& session, const DoctorOptions& options);

}  // namespace gofs::cli
