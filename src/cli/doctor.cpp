// SPDX-License-Identifier: Apache-2.0
//
// gofs doctor: says, a line each, what this machine can run, and why not what it cannot. With the
// address of an SSD: the same of that one (doctor_ssd.cpp).
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <new>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/finding.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/text.h"
#include "host/backends.h"
#include "host/clock_keeper.h"
#include "host/messages.h"
#include "host/volume_state.h"
#include "ssd/hosted/io_engine.h"

namespace gofs::cli {
namespace {

/// Brings a small SSD up on the backend: all of it but a volume. What is wrong, or nothing, and
/// then how exactly its clock is known.
std::string try_backend(const std::string& name, uint64_t& clock_error_ns) {
  MountOptions options;
  options.backend = name;
  const auto state = host::VolumeState::mount("ram:16M", options, host::MountKind::kDeviceOnly);
  if (!state) return state.error().message;
  const auto clocks = host::sample_clocks(**state);
  if (!clocks) return clocks.error().message;
  clock_error_ns = clocks->error_ns;
  return {};
}

Finding look_at_backend(const std::string& name, bool needed) {
  const std::string title = name + " backend";
  std::string error;
  const auto backend = host::make_backend(name, error);
  if (backend == nullptr) return {title, false, error, needed};
  std::string detail = backend->description();
  if (!backend->is_host()) {
    constexpr size_t kPinnedBytes = size_t{64} << 20;
    try {
      backend->shared_memory().release(backend->shared_memory().allocate(kPinnedBytes));
      detail += ", pinned memory available";
    } catch (const std::bad_alloc&) {
      return {title, false, detail + ", but 64 MiB of memory cannot be pinned", needed};
    }
  }
  uint64_t clock_error_ns = 0;
  const std::string problem = try_backend(name, clock_error_ns);
  if (!problem.empty()) return {title, false, problem, needed};
  detail +=
      fmt::format(", its clock is known to {:.1f} us", static_cast<double>(clock_error_ns) * 1e-3);
  return {title, true, detail};
}

/// Whether all of the programs are there; the first line that one says of itself.
Finding look_for(const std::string& title, const std::vector<std::string>& programs,
                 const std::string& version_option, const std::string& package,
                 const std::string& purpose) {
  std::string missing;
  std::string version;
  for (const std::string& program : programs) {
    const auto path = find_program(program);
    if (!path) {
      missing += (missing.empty() ? "" : ", ") + program;
    } else if (version.empty() && !version_option.empty()) {
      const auto lines = lines_of(run_program({*path, version_option}).output);
      for (const std::string& line : lines) {
        if (version.empty() && !line.empty()) version = line;
      }
    }
  }
  if (!missing.empty()) {
    return {title, false, fmt::format("{} missing ({}), needed {}", missing, package, purpose)};
  }
  return {title, true, version.empty() ? "found" : version};
}

/// What carries out the commands of hosted SSDs.
Finding look_for_uring() {
  const int refusal = ssd::uring_refusal();
  if (refusal == 0) return {"io_uring", true, "files and block devices are read and written by it"};
  return {"io_uring", false,
          fmt::format("refused ({}): threads that wait read and write files and block devices",
                      host::errno_words(refusal))};
}

/// Whether SSDs could move data to and from the GPU's memory by themselves.
Finding look_for_gpudirect(const std::string& root) {
  struct stat status {};
  const bool loaded = ::stat((root + "/proc/driver/nvidia-fs").c_str(), &status) == 0;
  return {"GPUDirect", loaded,
          loaded ? "nvidia-fs is loaded; GoFS copies through memory of the host all the same"
                 : "no nvidia-fs: data of files and block devices goes through memory of the host"};
}

std::vector<Finding> examine(const std::string& root) {
  return {
      look_at_backend("cpu", true),
      look_at_backend("cuda", false),
      look_for_ssds(root),
      look_for_uring(),
      look_for_gpudirect(root),
      look_for("f2fs-tools", {"mkfs.f2fs", "fsck.f2fs", "sload.f2fs"}, "-V",
               "Debian package f2fs-tools", "by 'gofs check' and the tests"),
      look_for("kernel judge", {"qemu-system-x86_64", "busybox", "modinfo", "xz"}, "--version",
               "Debian packages qemu-system-x86, busybox-static, kmod, xz-utils",
               "to have the Linux kernel write test volumes"),
      look_for("CUDA compiler", {"nvcc"}, "", "CUDA toolkit 13, or the wheels of 'make setup'",
               "to build device code outside this repository"),
  };
}

}  // namespace

void run_doctor(Session& session, const DoctorOptions& options) {
  // For tests: a folder with the sys/, proc/ and dev/ of another machine.
  const char* const folder = std::getenv("GOFS_SYSTEM_ROOT");
  const std::string root = folder != nullptr ? folder : "";
  const std::vector<Finding> findings =
      options.address.empty() ? examine(root) : examine_ssd(root, options.address);
  nlohmann::ordered_json list;
  for (const Finding& finding : findings) {
    list.push_back(
        {{"name", finding.name}, {"ok", finding.ok}, {"detail", escaped(finding.detail)}});
    if (session.json) continue;
    print(fmt::format("{:<14} {:<4} {}\n", finding.name, finding.ok ? "yes" : "no",
                      escaped(finding.detail)));
  }
  if (session.json) print(list.dump(2) + "\n");
  for (const Finding& finding : findings) {
    if (finding.needed && !finding.ok) session.exit_status = kExitFailure;
  }
}

}  // namespace gofs::cli
