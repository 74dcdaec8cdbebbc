// SPDX-License-Identifier: Apache-2.0
//
// Scenarios about what is in files.
#include <algorithm>

#include "scenario.h"

namespace gofs::judges {

namespace {

void create(Actor& actor) {
  for (uint32_t i = 0; i < 16; ++i) {
    actor.put("/small" + std::to_string(i), actor.bytes(100 + 300 * i));
    if (i % 5 == 4) actor.sync();
  }
}

void append(Actor& actor) {
  const int fd = actor.open("/log", kNewFile | vfs::kOpenAppend);
  for (uint32_t i = 0; i < 24; ++i) {
    actor.pwrite(fd, 0, actor.bytes(kBlock));
    if (i % 6 == 5) actor.sync();
  }
  actor.close(fd);
}

/// From inline data on, and across blocks.
void append_records(Actor& actor) {
  const int fd = actor.open("/log", kNewFile | vfs::kOpenAppend);
  for (uint32_t i = 0; i < 24; ++i) {
    actor.pwrite(fd, 0, actor.bytes(700));
    if (i % 5 == 4) actor.sync();
  }
  actor.close(fd);
}

void one_file_of_40_blocks(Actor& actor) { actor.put("/file", actor.bytes(40 * kBlock)); }

void overwrite(Actor& actor) {
  const int fd = actor.open("/file", vfs::kOpenReadWrite);
  for (uint32_t i = 0; i < 20; ++i) {
    actor.pwrite(fd, actor.below(40) * kBlock, actor.bytes(kBlock));
    if (i % 7 == 6) actor.sync();
  }
  actor.close(fd);
}

void overwrite_parts(Actor& actor) {
  const int fd = actor.open("/file", vfs::kOpenReadWrite);
  for (uint32_t i = 0; i < 16; ++i) {
    actor.pwrite(fd, actor.below(36 * kBlock), actor.bytes(1 + actor.below(3 * kBlock)));
    if (i % 5 == 4) actor.sync();
  }
  actor.close(fd);
}

void overwrite_again_and_again(Actor& actor) {
  const int fd = actor.open("/file", vfs::kOpenReadWrite);
  for (uint32_t i = 0; i < 10; ++i) {
    actor.pwrite(fd, 5 * kBlock, actor.bytes(2 * kBlock));
    if (i % 2 == 1) actor.sync();
  }
  actor.close(fd);
}

void truncate_down(Actor& actor) {
  for (const uint64_t size : {39 * kBlock + 5, 30 * kBlock, 29 * kBlock + 1, 4 * kBlock - 1}) {
    actor.truncate("/file", size);
    actor.sync();
  }
  actor.truncate("/file", 10);
  actor.truncate("/file", 0);
  actor.sync();
}

void truncate_up(Actor& actor) {
  const int fd = actor.open("/new", kNewFile);
  actor.pwrite(fd, 0, actor.bytes(1000));
  actor.sync();
  for (const uint64_t size : {3000 * uint64_t{1}, 5 * kBlock, 900 * kBlock + 7}) {
    actor.ftruncate(fd, size);
    actor.pwrite(fd, size - 500, actor.bytes(300));
    actor.sync();
  }
  actor.truncate("/file", 60 * kBlock);
  actor.close(fd);
}

void truncate_there_and_back(Actor& actor) {
  const int fd = actor.open("/file", vfs::kOpenReadWrite);
  for (uint32_t i = 0; i < 8; ++i) {
    actor.ftruncate(fd, (i % 2 == 0 ? 3 : 30) * kBlock + 100 * i);
    actor.pwrite(fd, 2 * kBlock, actor.bytes(2 * kBlock));
    if (i % 3 == 2) actor.sync();
  }
  actor.close(fd);
}

void open_to_empty(Actor& actor) {
  for (uint32_t i = 0; i < 4; ++i) {
    const int fd = actor.open("/file", vfs::kOpenReadWrite | vfs::kOpenTruncate);
    actor.pwrite(fd, 0, actor.bytes(5 * kBlock + i));
    actor.close(fd);
    if (i % 2 == 0) actor.sync();
  }
}

void inline_to_blocks(Actor& actor) {
  for (uint32_t i = 0; i < 6; ++i) {
    const std::string path = "/inline" + std::to_string(i);
    actor.put(path, actor.bytes(600));
    actor.sync();
    const int fd = actor.open(path, vfs::kOpenReadWrite);
    actor.pwrite(fd, 100, actor.bytes(300));
    actor.pwrite(fd, i % 2 == 0 ? 3000 : 5000, actor.bytes(1000));
    actor.close(fd);
  }
  actor.sync();
}

void holes(Actor& actor) {
  const int fd = actor.open("/holes", kNewFile);
  for (const uint64_t block : {9, 3, 17, 900, 2, 950, 18}) {
    actor.pwrite(fd, block * kBlock + 17, actor.bytes(kBlock));
    if (block % 2 == 1) actor.sync();
  }
  actor.close(fd);
}

void all_node_levels(Actor& actor) {
  const int fd = actor.open("/deep", kNewFile);
  for (const uint64_t block : {kDirectNode, kDirectNode + 1018, kIndirectNode, kIndirectNode + 5000,
                               kDoubleIndirectNode + 3, kDoubleIndirectNode + 2'000'000}) {
    actor.pwrite(fd, block * kBlock, actor.bytes(kBlock));
    if (block % 2 == 0) actor.sync();
  }
  actor.sync();
  for (const uint64_t block : {kDoubleIndirectNode + 4, kIndirectNode + 5000, kDirectNode + 1}) {
    actor.ftruncate(fd, block * kBlock);
    actor.sync();
  }
  actor.ftruncate(fd, 0);
  actor.close(fd);
}

void large_file(Actor& actor) {
  const int fd = actor.open("/large", kNewFile);
  for (uint32_t i = 0; i < 10; ++i) {
    actor.pwrite(fd, (kDirectNode - 100 + 25 * i) * kBlock, actor.bytes(25 * kBlock));
    if (i % 4 == 3) actor.sync();
  }
  actor.close(fd);
}

void two_descriptors(Actor& actor) {
  const int one = actor.open("/file", vfs::kOpenReadWrite);
  const int other = actor.open("/file", vfs::kOpenWriteOnly | vfs::kOpenAppend);
  for (uint32_t i = 0; i < 8; ++i) {
    actor.pwrite(one, i * 5 * kBlock, actor.bytes(3000));
    actor.pwrite(other, 0, actor.bytes(1500));
    if (i == 4) actor.sync();
  }
  actor.close(one);
  actor.close(other);
}

/// Each team's records are whole in the end, in its order.
void two_teams_append(Actor& actor) {
  constexpr uint32_t kRecords = 6;
  constexpr size_t kRecordBytes = 900;
  const int fds[] = {actor.open("/log", kNewFile | vfs::kOpenAppend),
                     actor.open("/log", vfs::kOpenWriteOnly | vfs::kOpenAppend)};
  for (uint32_t round = 0; round < 3; ++round) {
    const std::string records[] = {actor.bytes(kRecords * kRecordBytes),
                                   actor.bytes(kRecords * kRecordBytes)};
    const uint32_t id = actor.id_of(fds[0]);
    const uint64_t before = actor.model().at(id).content.size();
    actor.together(
        "two teams append", 2,
        [&](uint32_t team) {
          for (uint32_t i = 0; i < kRecords; ++i) {
            const auto record =
                std::string_view(records[team]).substr(i * kRecordBytes, kRecordBytes);
            if (actor.session().pwrite(fds[team], record, 0) != kRecordBytes) std::abort();
          }
        },
        [&] {
          // Whose turn it was each time, the file itself tells.
          std::string all(2 * kRecords * kRecordBytes, '\0');
          const int reader = actor.session().open("/log", vfs::kOpenReadOnly);
          actor.session().pread(reader, all.data(), all.size(), before);
          actor.session().close(reader);
          uint32_t next[] = {0, 0};
          std::string merged;
          while (merged.size() < all.size()) {
            const uint32_t team =
                next[0] < kRecords && all.compare(merged.size(), kRecordBytes, records[0],
                                                  next[0] * kRecordBytes, kRecordBytes) == 0
                    ? 0
                    : 1;
            if (next[team] == kRecords) break;
            merged += records[team].substr(next[team]++ * kRecordBytes, kRecordBytes);
          }
          actor.model().write(id, before, merged);
        });
    if (round == 1) actor.sync();
  }
  actor.close(fds[0]);
  actor.close(fds[1]);
}

void two_teams_with_files_of_their_own(Actor& actor) {
  const int fds[] = {actor.open("/one", kNewFile), actor.open("/two", kNewFile)};
  for (uint32_t round = 0; round < 3; ++round) {
    const std::string parts[] = {actor.bytes(12 * kBlock), actor.bytes(12 * kBlock)};
    actor.together(
        "two teams write", 2,
        [&](uint32_t team) {
          for (uint64_t at = 0; at < parts[team].size(); at += kBlock) {
            const auto part = std::string_view(parts[team]).substr(at, kBlock);
            if (actor.session().pwrite(fds[team], part, at) != int64_t{kBlock}) std::abort();
          }
        },
        [&] {
          for (uint32_t team = 0; team < 2; ++team) {
            actor.model().write(actor.id_of(fds[team]), 0, parts[team]);
          }
        });
    actor.sync();
  }
  actor.close(fds[0]);
  actor.close(fds[1]);
}

/// Some are under way while others are waited for, durable, or synced.
void write_later(Actor& actor) {
  const int fd = actor.open("/file", vfs::kOpenReadWrite);
  const int other = actor.open("/other", kNewFile | vfs::kOpenAppend);
  for (uint32_t i = 0; i < 4; ++i) {
    const int first = actor.start_pwrite(fd, (2 + i) * kBlock, actor.bytes(5 * kBlock));
    const int second = actor.start_pwrite(fd, (20 + 9 * i) * kBlock, actor.bytes(6 * kBlock));
    const int third = actor.start_pwrite(other, 0, actor.bytes((1 + i) * kBlock));
    if (i != 2) actor.sync();
    actor.wait(second);
    if (i % 2 == 1) actor.fsync(fd);
    actor.pwrite(fd, 15 * kBlock, actor.bytes(kBlock));
    actor.wait(third);
    if (i != 3) actor.sync();
    actor.wait(first);
  }
  actor.fsync(other);
  actor.close(fd);
  actor.close(other);
}

/// Far apart, with nodes that are missing; the last two are never waited for.
void write_later_or_never(Actor& actor) {
  const int fd = actor.open("/deep", kNewFile);
  for (const uint64_t block : {uint64_t{3}, kDirectNode - 1, kIndirectNode + 1017}) {
    const int started = actor.start_pwrite(fd, block * kBlock, actor.bytes(3 * kBlock));
    actor.put(numbered("/beside", static_cast<uint32_t>(block)), actor.bytes(kBlock));
    actor.sync();
    actor.wait(started);
  }
  actor.start_pwrite(fd, 3 * kBlock, actor.bytes(2 * kBlock));
  actor.start_pwrite(fd, (kIndirectNode + 5000) * kBlock, actor.bytes(2 * kBlock));
  actor.close(fd);
  actor.put("/last", actor.bytes(kBlock));
  actor.sync();
  actor.put("/very_last", actor.bytes(kBlock));
}

void write_later_and_durably(Actor& actor) {
  actor.sync();
  const int fd = actor.open("/file", vfs::kOpenReadWrite | vfs::kOpenDataSync);
  for (uint32_t i = 0; i < 6; ++i) {
    const int first = actor.start_pwrite(fd, 3 * i * kBlock, actor.bytes(2 * kBlock));
    const int second = actor.start_pwrite(fd, (38 + 2 * i) * kBlock, actor.bytes(3 * kBlock));
    if (i == 3) actor.sync();
    actor.wait(i % 2 == 0 ? first : second);
    actor.wait(i % 2 == 0 ? second : first);
  }
  actor.close(fd);
}

constexpr Scenario kFiles[] = {
    {"create", create},
    {"append", append},
    {"append_records", append_records},
    {"overwrite", overwrite, one_file_of_40_blocks},
    {"overwrite_parts", overwrite_parts, one_file_of_40_blocks},
    {"overwrite_again_and_again", overwrite_again_and_again, one_file_of_40_blocks},
    {"truncate_down", truncate_down, one_file_of_40_blocks},
    {"truncate_up", truncate_up, one_file_of_40_blocks},
    {"truncate_there_and_back", truncate_there_and_back, one_file_of_40_blocks},
    {"open_to_empty", open_to_empty, one_file_of_40_blocks},
    {"inline_to_blocks", inline_to_blocks},
    {"holes", holes},
    {"all_node_levels", all_node_levels},
    {"large_file", large_file},
    {"two_descriptors", two_descriptors, one_file_of_40_blocks},
    {"write_later", write_later, one_file_of_40_blocks},
    {"write_later_or_never", write_later_or_never},
    {"write_later_and_durably", write_later_and_durably, one_file_of_40_blocks},
    {.name = "two_teams_append", .run = two_teams_append, .repeatable = false},
    {.name = "two_teams_with_files_of_their_own",
     .run = two_teams_with_files_of_their_own,
     .repeatable = false},
};

}  // namespace

std::span<const Scenario> file_scenarios() { return kFiles; }

}  // namespace gofs::judges
