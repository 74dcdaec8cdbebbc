// SPDX-License-Identifier: Apache-2.0
//
// What a profiler is told of calls: this program is one, which NVTX finds linked into it.
#define NVTX_NO_IMPL
#include <fcntl.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <vector>

#include "gofs/mkfs.hpp"
#include "gofs/volume.hpp"
#include "host/image/fsck_for_test.h"

namespace gofs::host {
namespace {

struct Range {
  std::string what;
  uint64_t amount;
  size_t depth;  // ranges around it
  bool operator==(const Range&) const = default;
};

/// What the profiler has seen; tests call from one thread.
struct Profile {
  std::vector<std::string> domains;
  std::vector<Range> ranges;
  size_t depth = 0;
} profile;

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  profile.domains.emplace_back(name);
  return reinterpret_cast<nvtxDomainHandle_t>(&profile);
}
int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  EXPECT_EQ(domain, reinterpret_cast<nvtxDomainHandle_t>(&profile));
  EXPECT_EQ(event->messageType, NVTX_MESSAGE_TYPE_ASCII);
  EXPECT_EQ(event->payloadType, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
  profile.ranges.push_back({event->message.ascii, event->payload.ullValue, profile.depth});
  return static_cast<int>(profile.depth++);
}
int NVTX_API pop(nvtxDomainHandle_t domain) {
  EXPECT_EQ(domain, reinterpret_cast<nvtxDomainHandle_t>(&profile));
  EXPECT_GT(profile.depth, 0u);
  return static_cast<int>(--profile.depth);
}

int NVTX_API attach_profiler(NvtxGetExportTableFunc_t export_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned int count = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &count) == 0) return 0;
  *functions[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(create_domain);
  *functions[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(push);
  *functions[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}

TEST(Profiled, calls_are_ranges_of_a_domain) {
  const image::TemporaryPath image;
  MkfsOptions options;
  options.size_bytes = uint64_t{128} << 20;
  ASSERT_TRUE(mkfs(image.path(), options));
  auto volume =
      Volume::mount(image.path() + "?media=memory", {.backend = "cpu", .read_only = false});
  ASSERT_TRUE(volume);
  EXPECT_EQ(profile.domains, std::vector<std::string>{"gofs"});
  EXPECT_EQ(profile.ranges, (std::vector<Range>{{"mount", 0, 0}}));
  EXPECT_EQ(profile.depth, 0u);

  profile.ranges.clear();
  const int fd = volume->open("/file", O_RDWR | O_CREAT).value();
  std::string bytes(5000, 'b');
  EXPECT_TRUE(volume->pwrite(fd, bytes.data(), bytes.size(), 0));
  EXPECT_FALSE(volume->stat("/missing"));
  EXPECT_TRUE(volume->fsync(fd));
  EXPECT_EQ(volume->stat_many({"/file", "/missing", "/"}).size(), 3u);
  EXPECT_TRUE(volume->read_ranges({{fd, bytes.data(), 10, 0}, {fd, bytes.data(), 20, 0}}, nullptr)
                  .value()
                  .wait());
  std::vector<Range> outer;
  for (const Range& range : profile.ranges) {
    if (range.depth == 0) outer.push_back(range);
  }
  EXPECT_EQ(outer, (std::vector<Range>{{"open", 0, 0},
                                       {"pwrite", 5000, 0},
                                       {"stat", sizeof(Stat), 0},
                                       {"fsync", 0, 0},
                                       {"stat", 3, 0},
                                       {"read ranges", 2, 0}}));
  EXPECT_EQ(profile.depth, 0u);

  profile.ranges.clear();
  EXPECT_TRUE(volume->unmount());
  ASSERT_FALSE(profile.ranges.empty());
  EXPECT_EQ(profile.ranges.front(), (Range{"unmount", 0, 0}));
  EXPECT_EQ(profile.depth, 0u);
}

}  // namespace
}  // namespace gofs::host

/// Where NVTX looks for a profiler that is linked into the program.
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = gofs::host::attach_profiler;
