// SPDX-License-Identifier: Apache-2.0
//
// Scenarios about contents and sizes that fsync makes durable.
#include <cstdlib>

#include "scenario.h"
#include "vfs/fallocate.h"

namespace gofs::judges {

namespace {

/// What is told of comes after a checkpoint of this mount.
void begin(Actor& actor) {
  actor.put("/beginning", "");
  actor.sync();
}

void a_file(Actor& actor) { actor.put("/file", actor.bytes(40 * kBlock)); }

void a_deep_file(Actor& actor) {
  const int fd = actor.open("/deep", kNewFile);
  for (const uint64_t block : {uint64_t{0}, kDirectNode, kDirectNode + 1018, kIndirectNode,
                               kIndirectNode + 1018, kIndirectNode + 5000, kDoubleIndirectNode}) {
    actor.pwrite(fd, block * kBlock, actor.bytes(2 * kBlock));
  }
  actor.close(fd);
}

/// A file that was there, open, after a checkpoint.
int open_after_sync(Actor& actor, const std::string& path, uint32_t flags = 0) {
  begin(actor);
  return actor.open(path, vfs::kOpenReadWrite | flags);
}

void create(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 10; ++i) {
    const int fd = actor.open(numbered("/new", i), kNewFile);
    actor.pwrite(fd, 0, actor.bytes(1 + 1300 * i));
    if (i % 3 != 2) actor.fsync(fd);
    actor.close(fd);
  }
}

void create_without_contents(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 6; ++i) {
    const int fd = actor.open(numbered("/empty", i), kNewFile, 0600 + i);
    actor.fsync(fd);
    if (i % 2 == 0) actor.pwrite(fd, 0, actor.bytes(10));
    actor.close(fd);
  }
}

void append(Actor& actor) {
  const int fd = open_after_sync(actor, "/file", vfs::kOpenAppend);
  for (uint32_t i = 0; i < 20; ++i) {
    actor.pwrite(fd, 0, actor.bytes(i % 4 == 3 ? 3 * kBlock : kBlock));
    if (i % 2 == 1) actor.fsync(fd);
  }
  actor.close(fd);
}

void append_records(Actor& actor) {
  begin(actor);
  const int fd = actor.open("/log", kNewFile | vfs::kOpenAppend);
  for (uint32_t i = 0; i < 20; ++i) {
    actor.pwrite(fd, 0, actor.bytes(700));
    actor.fsync(fd);
  }
  actor.close(fd);
}

void overwrite(Actor& actor) {
  const int fd = open_after_sync(actor, "/file");
  for (uint32_t i = 0; i < 20; ++i) {
    actor.pwrite(fd, actor.below(40) * kBlock, actor.bytes(kBlock));
    if (i % 3 == 2) actor.fsync(fd);
  }
  actor.close(fd);
}

void overwrite_the_same(Actor& actor) {
  const int fd = open_after_sync(actor, "/file");
  for (uint32_t i = 0; i < 12; ++i) {
    actor.pwrite(fd, 5 * kBlock + 100, actor.bytes(2 * kBlock));
    actor.fsync(fd);
  }
  actor.close(fd);
}

void small_files(Actor& actor) {
  for (uint32_t i = 0; i < 4; ++i) actor.put(numbered("/small", i), actor.bytes(500));
}

/// In the inode, and out of it.
void inline_data(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    const int fd = actor.open(numbered("/small", i), vfs::kOpenReadWrite);
    actor.pwrite(fd, 100, actor.bytes(600));
    actor.fsync(fd);
    actor.pwrite(fd, i % 2 == 0 ? 3000 : 7000, actor.bytes(1000));
    if (i != 3) actor.fsync(fd);
    if (i == 2) actor.pwrite(fd, (kDirectNode + 5) * kBlock, actor.bytes(100));
    actor.fsync(fd);
    actor.close(fd);
  }
}

void holes(Actor& actor) {
  const int fd = open_after_sync(actor, "/file");
  for (const uint64_t block : {90, 50, 170, 880, 52, 950, 171}) {
    actor.pwrite(fd, block * kBlock + 17, actor.bytes(kBlock));
    actor.fsync(fd);
  }
  actor.close(fd);
}

/// The nodes are new.
void make_node_levels(Actor& actor) {
  begin(actor);
  const int fd = actor.open("/new", kNewFile);
  for (const uint64_t block : {kDirectNode, kDirectNode + 1018, kIndirectNode, kIndirectNode + 5000,
                               kDoubleIndirectNode + 3, kDoubleIndirectNode + 2'000'000}) {
    actor.pwrite(fd, block * kBlock, actor.bytes(kBlock));
    actor.fsync(fd);
  }
  actor.close(fd);
}

/// The nodes were there.
void change_node_levels(Actor& actor) {
  const int fd = open_after_sync(actor, "/deep");
  for (const uint64_t block : {kDirectNode + 1, kDirectNode + 1018, kIndirectNode,
                               kIndirectNode + 5001, kDoubleIndirectNode + 1, uint64_t{1}}) {
    actor.pwrite(fd, block * kBlock, actor.bytes(kBlock));
    if (block % 2 == 1) actor.fsync(fd);
  }
  actor.fsync(fd);
  actor.pwrite(fd, kDirectNode * kBlock - 5000, actor.bytes(10000));
  actor.pwrite(fd, (kIndirectNode + 1018) * kBlock - 5000, actor.bytes(10000));
  actor.fsync(fd);
  actor.close(fd);
}

void truncate_down(Actor& actor) {
  const int fd = open_after_sync(actor, "/file");
  for (const uint64_t size :
       {39 * kBlock + 5, 30 * kBlock, 29 * kBlock + 1, 4 * kBlock - 1, uint64_t{10}, uint64_t{0}}) {
    actor.ftruncate(fd, size);
    actor.fsync(fd);
  }
  actor.close(fd);
}

void truncate_up(Actor& actor) {
  const int fd = open_after_sync(actor, "/small0");
  for (const uint64_t size : {uint64_t{3000}, 5 * kBlock, 900 * kBlock + 7, 3000 * kBlock}) {
    actor.ftruncate(fd, size);
    actor.fsync(fd);
    actor.pwrite(fd, size - 400, actor.bytes(300));
    if (size % 2 == 0) actor.fsync(fd);
  }
  actor.close(fd);
}

/// Nodes go, and come again.
void truncate_node_levels(Actor& actor) {
  const int fd = open_after_sync(actor, "/deep");
  for (const uint64_t block : {kDoubleIndirectNode, kIndirectNode + 5001, kIndirectNode + 1017,
                               kDirectNode + 1018, kDirectNode + 1, uint64_t{1}}) {
    actor.ftruncate(fd, block * kBlock);
    actor.fsync(fd);
    actor.pwrite(fd, (block + 1) * kBlock, actor.bytes(kBlock));
    if (block % 2 == 0) actor.fsync(fd);
  }
  actor.close(fd);
}

/// Nodes go, and holes come where they were.
void truncate_and_grow(Actor& actor) {
  const int fd = open_after_sync(actor, "/deep");
  for (const uint64_t block :
       {kDoubleIndirectNode, kIndirectNode + 1017, kDirectNode + 1, uint64_t{1}}) {
    actor.ftruncate(fd, block * kBlock + 10);
    if (block % 2 == 0) actor.fsync(fd);
    actor.ftruncate(fd, (kDoubleIndirectNode + 10) * kBlock);
    actor.fsync(fd);
    actor.pwrite(fd, (kIndirectNode + 3) * kBlock, actor.bytes(kBlock));
    actor.fsync(fd);
  }
  actor.close(fd);
}

void truncate_there_and_back(Actor& actor) {
  const int fd = open_after_sync(actor, "/file");
  for (uint32_t i = 0; i < 8; ++i) {
    actor.ftruncate(fd, (i % 2 == 0 ? 3 : 30) * kBlock + 100 * i);
    if (i % 3 == 0) actor.fsync(fd);
    actor.pwrite(fd, 2 * kBlock, actor.bytes(2 * kBlock));
    if (i % 3 == 1) actor.fsync(fd);
  }
  actor.close(fd);
}

/// As editors write a file again.
void empty_and_write(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    const int fd = actor.open("/file", vfs::kOpenReadWrite | vfs::kOpenTruncate);
    actor.pwrite(fd, 0, actor.bytes(5 * kBlock + i));
    actor.fsync(fd);
    actor.close(fd);
  }
}

void punch_holes(Actor& actor) {
  constexpr uint32_t kPunch = vfs::kFallocatePunchHole | vfs::kFallocateKeepSize;
  const int fd = open_after_sync(actor, "/file");
  actor.fallocate(fd, kPunch, 3 * kBlock, 4 * kBlock);
  actor.fsync(fd);
  actor.fallocate(fd, kPunch, 10 * kBlock + 100, 3 * kBlock);
  actor.fallocate(fd, kPunch, 20 * kBlock + 5, 50);
  actor.fsync(fd);
  actor.pwrite(fd, 4 * kBlock, actor.bytes(kBlock));
  actor.fallocate(fd, kPunch, 38 * kBlock, 100 * kBlock);
  actor.fsync(fd);
  actor.close(fd);
}

void punch_deep_holes(Actor& actor) {
  constexpr uint32_t kPunch = vfs::kFallocatePunchHole | vfs::kFallocateKeepSize;
  const int fd = open_after_sync(actor, "/deep");
  for (const uint64_t block : {kDirectNode, kIndirectNode, kIndirectNode + 5000}) {
    actor.fallocate(fd, kPunch, block * kBlock, 2 * kBlock);
    actor.fsync(fd);
    actor.pwrite(fd, (block + 1) * kBlock, actor.bytes(kBlock));
  }
  actor.fsync(fd);
  actor.close(fd);
}

void zero_ranges(Actor& actor) {
  const int fd = open_after_sync(actor, "/file");
  actor.fallocate(fd, vfs::kFallocateZeroRange, 3 * kBlock + 7, 4 * kBlock);
  actor.fsync(fd);
  actor.pwrite(fd, 5 * kBlock, actor.bytes(kBlock));
  actor.fallocate(fd, vfs::kFallocateZeroRange, 38 * kBlock, 10 * kBlock);
  actor.fsync(fd);
  actor.fallocate(fd, vfs::kFallocateZeroRange | vfs::kFallocateKeepSize, 45 * kBlock, 9 * kBlock);
  actor.fsync(fd);
  actor.close(fd);
}

void reserve(Actor& actor) {
  const int fd = open_after_sync(actor, "/file");
  actor.fallocate(fd, vfs::kFallocateKeepSize, 40 * kBlock, 20 * kBlock);
  actor.fsync(fd);
  actor.pwrite(fd, 41 * kBlock, actor.bytes(3 * kBlock));
  actor.fsync(fd);
  actor.fallocate(fd, 0, 50 * kBlock, 30 * kBlock + 9);
  actor.fsync(fd);
  actor.pwrite(fd, 70 * kBlock, actor.bytes(kBlock));
  actor.ftruncate(fd, 60 * kBlock);
  actor.fsync(fd);
  actor.fallocate(fd, vfs::kFallocateKeepSize, (kDirectNode - 2) * kBlock, 4 * kBlock);
  actor.fsync(fd);
  actor.close(fd);
}

void files_in_turn(Actor& actor) {
  begin(actor);
  int fds[6];
  for (uint32_t i = 0; i < 6; ++i) fds[i] = actor.open(numbered("/file", i), kNewFile);
  for (uint32_t i = 0; i < 24; ++i) {
    const int fd = fds[i % 6];
    actor.pwrite(fd, actor.below(20) * kBlock, actor.bytes(1 + actor.below(2 * kBlock)));
    if (i % 4 != 1) actor.fsync(fds[(i + i / 6) % 6]);
  }
  for (const int fd : fds) actor.close(fd);
}

/// More than one round of recovery takes.
void many_files(Actor& actor) {
  begin(actor);
  actor.mkdir("/many");
  actor.sync();
  for (uint32_t i = 0; i < 150; ++i) {
    const int fd = actor.open(numbered("/many/file", i), kNewFile);
    actor.pwrite(fd, 0, actor.bytes(i % 5 == 0 ? 5000 : 50));
    actor.fsync(fd);
    actor.close(fd);
  }
}

void nothing_new(Actor& actor) {
  const int fd = open_after_sync(actor, "/file");
  for (uint32_t i = 0; i < 4; ++i) actor.fsync(fd);
  actor.pwrite(fd, 0, actor.bytes(10));
  for (uint32_t i = 0; i < 4; ++i) actor.fsync(fd);
  actor.close(fd);
}

void right_after_the_mount(Actor& actor) {
  const int fd = actor.open("/file", vfs::kOpenReadWrite);
  for (uint32_t i = 0; i < 4; ++i) {
    actor.pwrite(fd, i * kBlock, actor.bytes(kBlock));
    actor.fsync(fd);
  }
  actor.close(fd);
}

void between_checkpoints(Actor& actor) {
  const int fd = open_after_sync(actor, "/file");
  const int other = actor.open("/other", kNewFile);
  for (uint32_t i = 0; i < 12; ++i) {
    actor.pwrite(fd, i * kBlock, actor.bytes(kBlock));
    actor.pwrite(other, i * kBlock, actor.bytes(kBlock));
    actor.fsync(i % 2 == 0 ? fd : other);
    if (i % 3 == 2) actor.sync();
  }
  actor.close(fd);
  actor.close(other);
}

/// The fsync log goes on from one segment to the next.
void long_log(Actor& actor) {
  const int fd = open_after_sync(actor, "/file");
  for (uint32_t i = 0; i < 560; ++i) {
    actor.pwrite(fd, i % 3 * kBlock, actor.bytes(30));
    if (i % 7 != 0 || i > 480) actor.fsync(fd);
  }
  actor.close(fd);
}

void data_sync_writes(Actor& actor) {
  const int fd = open_after_sync(actor, "/file", vfs::kOpenDataSync);
  for (uint32_t i = 0; i < 8; ++i) {
    actor.pwrite(fd, actor.below(60) * kBlock, actor.bytes(1 + actor.below(3 * kBlock)));
  }
  actor.close(fd);
}

/// Overwriting needs no inode, all else does; both in turns.
void sync_contents(Actor& actor) {
  const int fd = open_after_sync(actor, "/deep");
  constexpr uint64_t kPlaces[] = {kDirectNode, kDirectNode + 1018, kIndirectNode, 1,
                                  kIndirectNode + 5000};
  for (uint32_t i = 0; i < 16; ++i) {
    const uint64_t block = kPlaces[i % 5] + i / 8;
    if (i == 6) actor.chmod("/deep", 0600);
    if (i == 9) actor.utimens("/deep", {1'000'000'000, 1}, {1'100'000'000, 2});
    actor.pwrite(fd, block * kBlock + 100 * i, actor.bytes(i % 4 == 1 ? 2 * kBlock : 500));
    if (i == 11) actor.ftruncate(fd, (kIndirectNode + 2000) * kBlock);
    if (i % 4 == 3) {
      actor.fsync(fd);
    } else {
      actor.fdatasync(fd);
    }
    if (i == 12) actor.fdatasync(fd);
  }
  actor.close(fd);
}

void sync_contents_of_new_files(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 4; ++i) {
    const int fd = actor.open(numbered("/new", i), kNewFile);
    actor.fdatasync(fd);
    actor.pwrite(fd, i * kDirectNode * kBlock, actor.bytes(3 * kBlock));
    if (i % 2 == 0) actor.fdatasync(fd);
    actor.pwrite(fd, (i * kDirectNode + 1) * kBlock, actor.bytes(kBlock));
    actor.fdatasync(fd);
    actor.close(fd);
  }
}

void deep_data_sync_writes(Actor& actor) {
  const int fd = open_after_sync(actor, "/deep", vfs::kOpenDataSync);
  for (uint32_t i = 0; i < 8; ++i) {
    actor.pwrite(fd, (i % 3 == 0 ? kIndirectNode : kDirectNode) * kBlock + 10 * i,
                 actor.bytes(1 + actor.below(3 * kBlock)));
  }
  actor.close(fd);
}

void sync_writes_to_new_files(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 6; ++i) {
    const int fd = actor.open(numbered("/new", i), kNewFile | vfs::kOpenSync | vfs::kOpenAppend);
    actor.pwrite(fd, 0, actor.bytes(200 + 2000 * i));
    actor.pwrite(fd, 0, actor.bytes(3000));
    actor.close(fd);
  }
}

void side_by_side(Actor& actor, uint32_t flags) {
  begin(actor);
  constexpr uint32_t kTeams = 3;
  std::vector<int> fds;
  for (uint32_t i = 0; i < kTeams; ++i) {
    fds.push_back(actor.open(numbered("/team", i), kNewFile | flags));
  }
  for (uint32_t round = 0; round < 3; ++round) {
    std::vector<std::string> parts;
    for (uint32_t i = 0; i < kTeams; ++i) parts.push_back(actor.bytes((3 + i) * kBlock));
    actor.together(
        "teams write and sync", kTeams,
        [&](uint32_t team) {
          const std::string& part = parts[team];
          for (uint64_t at = 0; at < part.size(); at += kBlock) {
            const auto block = std::string_view(part).substr(at, kBlock);
            if (actor.session().pwrite(fds[team], block, at) != int64_t{kBlock}) std::abort();
            if (flags == 0 && actor.session().fsync(fds[team]) != 0) std::abort();
          }
        },
        [&] {
          for (uint32_t i = 0; i < kTeams; ++i) {
            actor.model().write(actor.id_of(fds[i]), 0, parts[i]);
          }
        },
        fds);
  }
  for (const int fd : fds) actor.close(fd);
}

void teams_fsync(Actor& actor) { side_by_side(actor, 0); }
void teams_write_in_sync(Actor& actor) { side_by_side(actor, vfs::kOpenDataSync); }

/// Checkpoints come in between, by themselves.
void little_memory(Actor& actor) {
  begin(actor);
  for (uint32_t i = 0; i < 24; ++i) {
    const int fd = actor.open(numbered("/file", i), kNewFile);
    actor.pwrite(fd, (i % 4) * kDirectNode * kBlock, actor.bytes(2 * kBlock));
    if (i % 2 == 0) actor.fsync(fd);
    actor.close(fd);
  }
}

constexpr Scenario kFsync[] = {
    {"fsync_create", create},
    {"fsync_create_without_contents", create_without_contents},
    {"fsync_append", append, a_file},
    {"fsync_append_records", append_records},
    {"fsync_overwrite", overwrite, a_file},
    {"fsync_overwrite_the_same", overwrite_the_same, a_file},
    {"fsync_inline_data", inline_data, small_files},
    {"fsync_holes", holes, a_file},
    {"fsync_make_node_levels", make_node_levels},
    {"fsync_change_node_levels", change_node_levels, a_deep_file},
    {"fsync_truncate_down", truncate_down, a_file},
    {"fsync_truncate_up", truncate_up, small_files},
    {"fsync_truncate_node_levels", truncate_node_levels, a_deep_file},
    {"fsync_truncate_and_grow", truncate_and_grow, a_deep_file},
    {"fsync_truncate_there_and_back", truncate_there_and_back, a_file},
    {"fsync_empty_and_write", empty_and_write, a_file},
    {"fsync_punch_holes", punch_holes, a_file},
    {"fsync_punch_deep_holes", punch_deep_holes, a_deep_file},
    {"fsync_zero_ranges", zero_ranges, a_file},
    {"fsync_reserve", reserve, a_file},
    {"fsync_files_in_turn", files_in_turn},
    {.name = "fsync_many_files", .run = many_files, .cut_every = 4},
    {"fsync_nothing_new", nothing_new, a_file},
    {"fsync_right_after_the_mount", right_after_the_mount, a_file},
    {"fsync_between_checkpoints", between_checkpoints, a_file},
    {.name = "fsync_long_log", .run = long_log, .prepare = a_file, .cut_every = 8},
    {"data_sync_writes", data_sync_writes, a_file},
    {"fdatasync", sync_contents, a_deep_file},
    {"fdatasync_create", sync_contents_of_new_files},
    {"deep_data_sync_writes", deep_data_sync_writes, a_deep_file},
    {"sync_writes_to_new_files", sync_writes_to_new_files},
    {.name = "teams_fsync", .run = teams_fsync, .repeatable = false},
    {.name = "teams_write_in_sync", .run = teams_write_in_sync, .repeatable = false},
    {"fsync_little_memory", little_memory, nullptr, 64},
};

}  // namespace

std::span<const Scenario> fsync_scenarios() { return kFsync; }

}  // namespace gofs::judges
