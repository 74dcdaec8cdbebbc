// SPDX-License-Identifier: Apache-2.0
//
// The differential test for a few seconds; gofs_differential goes on for as long as one likes.
#include "differential.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <random>
#include <system_error>

#include "disk.h"
#include "host/image/fsck_for_test.h"
#include "merged_records.h"
#include "simt/platform.h"
#include "walker.h"

namespace gofs::judges {
namespace {

uint64_t some_seed() {
  const char* const wanted = std::getenv("GOFS_SEED");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : std::random_device()();
}

void expect_no_difference(DifferentialOptions options) {
  options.seed = some_seed();
  const DifferentialResult result = run_differential(options);
  EXPECT_EQ(result.difference, "");
  EXPECT_GE(result.operations, options.operations);
}

TEST(DifferentialTest, one_thread_does_what_the_model_does) {
  GOFS_NEED_TOOL("fsck.f2fs");
  DifferentialOptions options;
  options.operations = 4000;
  expect_no_difference(options);
}

TEST(DifferentialTest, several_threads_do_what_their_models_do) {
  GOFS_NEED_TOOL("fsck.f2fs");
  DifferentialOptions options;
  options.operations = 3000;
  options.variation.threads = 4;
  options.check_every = 200;
  options.checks_per_mount = 2;
  expect_no_difference(options);
}

TEST(DifferentialTest, volumes_of_all_kinds_make_no_difference) {
  GOFS_NEED_TOOL("fsck.f2fs");
  DifferentialOptions options;
  options.operations = 3000;
  options.vary = true;
  options.check_every = 200;
  options.checks_per_mount = 2;
  options.mounts_per_volume = 1;
  expect_no_difference(options);
}

TEST(DifferentialTest, little_memory_makes_no_difference) {
  GOFS_NEED_TOOL("fsck.f2fs");
  DifferentialOptions options;
  options.operations = 1500;
  options.variation.threads = 2;
  options.variation.cache_pages = 128;
  expect_no_difference(options);
}

TEST(DifferentialTest, striped_volumes_do_what_the_model_does) {
  GOFS_NEED_TOOL("fsck.f2fs");
  DifferentialOptions options;
  options.operations = 1200;
  options.variation.threads = 2;
  options.variation.striping = {.disks = 3, .chunk_bytes = 8192};
  options.check_every = 200;
  options.checks_per_mount = 2;
  expect_no_difference(options);
}

TEST(DifferentialTest, calls_of_several_users_through_channels_do_what_the_model_does) {
  GOFS_NEED_TOOL("fsck.f2fs");
#if defined(GOFS_THREAD_SANITIZER)
  // No call holds descriptors that several users share. What hands them from one thread of the
  // server's to the next is what a client is told, through memory that is mapped twice.
  GTEST_SKIP() << "SKIPPED: a channel is mapped twice";
#endif
  DifferentialOptions options;
  options.operations = 1500;
  options.variation.threads = 3;
  options.variation.served = true;
  options.check_every = 200;
  options.checks_per_mount = 2;
  expect_no_difference(options);
}

TEST(DifferentialTest, little_calls_of_one_clients_wide_warps_do_what_the_model_does) {
  GOFS_NEED_TOOL("fsck.f2fs");
  DifferentialOptions options;
  options.operations = 800;
  options.variation.width = 4;
  options.variation.threads = 2;
  options.variation.served = true;
  options.variation.strangers = false;
  options.variation.kernel_part_bytes = 64 * 1024;
  expect_no_difference(options);
}

TEST(DifferentialTest, wide_warps_do_what_the_model_does) {
  GOFS_NEED_TOOL("fsck.f2fs");
  DifferentialOptions options;
  options.operations = 600;
  options.variation.width = 4;
  options.variation.threads = 2;
  expect_no_difference(options);
}

// The model itself: the same calls of a tmpfs, in a process that sees nothing else from then on.
TEST(DifferentialTest, the_model_does_what_linux_does) {
  constexpr int kMayNot = 77;
  const uint64_t seed = some_seed();
  std::fflush(nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      DifferentialOptions options;
      options.seed = seed;
      options.operations = 3000;
      const DifferentialResult result = judge_model(options);
      std::fprintf(stderr, "%s\n", result.difference.c_str());
      _exit(result.difference.empty() ? 0 : 1);
    } catch (const std::system_error&) {
      _exit(kMayNot);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kMayNot) {
    GTEST_SKIP() << "SKIPPED: this user may not mount a tmpfs";
  }
  EXPECT_EQ(status, 0);
}

// Each of three writers has its own order; that of all of them is any.
TEST(DifferentialTest, records_of_a_log_are_whole_and_in_each_writers_order) {
  const WritersRecords writers = {{"a", "ab"}, {"a", "b"}, {"cd"}};
  for (const char* const log : {"aababcd", "aabbacd", "cdabaab", "aaabbcd", "acdaabb"}) {
    const bool right = std::string(log) != "aabbacd";  // where "ab" is torn
    EXPECT_EQ(record_ends(writers, log).has_value(), right) << log;
  }
  for (const char* const log : {"", "aababc", "aababcdd", "baaabcd", "aababdc", "abaabcd "}) {
    EXPECT_FALSE(record_ends(writers, log)) << log;
  }
  EXPECT_EQ(record_ends({{"ab", "c"}, {}}, "abc"), (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(record_ends({{}, {}}, ""), std::vector<uint64_t>{});
}

// The judge itself: whatever is changed behind the model's back has to be seen.
TEST(DifferentialTest, what_the_model_did_not_do_is_a_difference) {
  GOFS_NEED_TOOL("mkfs.f2fs");
  const Disks empty(make_empty_volume(uint64_t{64} << 20));
  const std::function<int(Session&)> changes[] = {
      [](Session& session) { return session.chmod("/thread0", 0123); },
      [](Session& session) { return session.chown("/thread0/file", 5, 6); },
      [](Session& session) { return session.mkdir("/thread0/nobody's", 0700); },
      [](Session& session) { return session.link("/thread0/file", "/thread0/link"); },
      [](Session& session) { return session.truncate("/thread0/file", 1); },
      [](Session& session) { return session.setxattr("/thread0/file", "user.x", "y", 0); },
      [](Session& session) {
        return session.utimens("/thread0/file", {1, 2}, {3, 4});
      },
      [](Session& session) {
        const int fd = session.open("/thread0/file", vfs::kOpenWriteOnly);
        const int64_t written = session.pwrite(fd, "z", 2);
        return written == 1 ? session.close(fd) : -1;
      },
  };
  for (const auto& change : changes) {
    Disks disks(empty);
    Session session(disks, {});
    Walker walker(1, 0);
    walker.enter(session);
    walker.put_file("file", "abcdef");
    for (uint32_t i = 0; i < 100; ++i) walker.step();
    walker.put_file("file", "ghijkl");
    walker.check();
    EXPECT_EQ(change(session), 0);
    EXPECT_THROW(walker.check(), Difference);
  }
}

}  // namespace
}  // namespace gofs::judges
