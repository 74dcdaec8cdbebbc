// SPDX-License-Identifier: Apache-2.0
//
// Scenarios about the volume as a whole: checkpoints, what is full, cleaning, batches, what goes on
// for long.
#include <algorithm>

#include "scenario.h"

namespace gofs::judges {

namespace {

void nothing_at_all(Actor&) {}

void syncs_of_nothing(Actor& actor) {
  for (uint32_t i = 0; i < 3; ++i) actor.sync();
  actor.mkdir("/dir");
  for (uint32_t i = 0; i < 3; ++i) actor.sync();
}

void a_sync_after_everything(Actor& actor) {
  for (uint32_t i = 0; i < 12; ++i) {
    actor.put("/file" + std::to_string(i), actor.bytes(2000 * i));
    actor.sync();
  }
}

/// All is in memory until the volume is unmounted.
void no_sync(Actor& actor) {
  actor.mkdir("/dir");
  for (uint32_t i = 0; i < 40; ++i) {
    actor.put("/dir/file" + std::to_string(i), actor.bytes(3 * kBlock));
  }
}

/// More inodes than the journals of a checkpoint have room for.
void many_inodes(Actor& actor) {
  actor.mkdir("/dir");
  for (uint32_t i = 0; i < 120; ++i) actor.create("/dir/file" + std::to_string(i));
  actor.sync();
  for (uint32_t i = 0; i < 120; ++i) actor.chmod("/dir/file" + std::to_string(i), 0600);
  actor.sync();
  for (uint32_t i = 0; i < 120; i += 3) actor.chmod("/dir/file" + std::to_string(i), 0640);
}

/// Checkpoints come by themselves, in the middle of what is gradual too.
void little_memory(Actor& actor) {
  for (uint32_t i = 0; i < 12; ++i) {
    const std::string dir = "/dir" + std::to_string(i);
    actor.mkdir(dir);
    for (uint32_t k = 0; k < 8; ++k) {
      actor.put(dir + "/file" + std::to_string(k), actor.bytes(100 + 1000 * k));
    }
  }
}

void little_memory_large_files(Actor& actor) {
  for (uint32_t i = 0; i < 3; ++i) {
    const int fd = actor.open("/sparse" + std::to_string(i), kNewFile);
    for (uint32_t k = 0; k < 12; ++k) {
      actor.pwrite(fd, (900 + 1018 * uint64_t{k}) * kBlock, actor.bytes(2 * kBlock));
    }
    actor.ftruncate(fd, 4000 * kBlock);
    actor.close(fd);
  }
}

void grown_old(Actor& actor) {
  for (uint32_t i = 0; i < 60; ++i) {
    actor.put("/old" + std::to_string(i), actor.bytes(1 + 1500 * (i % 9)));
    if (i % 10 == 9) actor.sync();
  }
}

/// One thing and another, as luck has it.
void anything(Actor& actor) {
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 60; ++i) files.push_back("/old" + std::to_string(i));
  for (uint32_t i = 0; i < 60; ++i) {
    const std::string path = files[actor.below(files.size())];
    switch (actor.below(8)) {
      case 0:
        files.push_back("/new" + std::to_string(i));
        actor.put(files.back(), actor.bytes(actor.below(9000)));
        break;
      case 1:
        actor.truncate(path, actor.below(20000));
        break;
      case 2:
        actor.chmod(path, static_cast<uint32_t>(actor.below(01000)));
        break;
      case 3:
        actor.setxattr(path, "user.x", actor.bytes(actor.below(500)));
        break;
      case 4:
        files.push_back("/linked" + std::to_string(i));
        actor.link(path, files.back());
        break;
      case 5:
        actor.sync();
        break;
      default: {
        const int fd = actor.open(path, vfs::kOpenReadWrite);
        actor.pwrite(fd, actor.below(30000), actor.bytes(1 + actor.below(10000)));
        actor.close(fd);
      }
    }
  }
}

/// Takes all that users may have but for about `spare` blocks.
void fill(Actor& actor, uint64_t spare) {
  const int fd = actor.open("/filling", kNewFile);
  uint64_t at = 0;
  for (;;) {
    const uint64_t left = actor.session().statfs().blocks_free;
    if (left <= spare + 8) break;
    const uint64_t blocks = std::min<uint64_t>(left - spare - 8, 512);
    const std::string bytes = actor.bytes(blocks * kBlock);
    const uint64_t written = actor.pwrite(fd, at, bytes);
    at += written;
    if (written != bytes.size()) break;
  }
  actor.close(fd);
}

void nearly_full(Actor& actor) { fill(actor, 40); }

/// Until there is no room, and a little beyond.
void fill_the_rest(Actor& actor) {
  for (uint32_t i = 0; i < 24; ++i) {
    const std::string path = "/last" + std::to_string(i);
    if (!actor.create(path)) break;
    const int fd = actor.open(path, vfs::kOpenReadWrite);
    actor.pwrite(fd, 0, actor.bytes(2 * kBlock));
    actor.close(fd);
    if (i % 6 == 5) actor.sync();
  }
  actor.truncate("/filling", 100 * kBlock);
  actor.sync();
  actor.put("/room again", actor.bytes(5 * kBlock));
}

void overwrite_when_full(Actor& actor) {
  const int fd = actor.open("/filling", vfs::kOpenReadWrite);
  for (uint32_t i = 0; i < 30; ++i) {
    actor.pwrite(fd, actor.below(500) * kBlock, actor.bytes(2 * kBlock));
    if (i % 8 == 7) actor.sync();
  }
  actor.close(fd);
}

void overwrite_and_fsync_when_full(Actor& actor) {
  const int fd = actor.open("/filling", vfs::kOpenReadWrite);
  const int other = actor.open("/other", kNewFile);
  actor.sync();
  for (uint32_t i = 0; i < 30; ++i) {
    actor.pwrite(fd, actor.below(500) * kBlock, actor.bytes(2 * kBlock));
    actor.pwrite(other, 0, actor.bytes(kBlock));
    actor.fsync(i % 3 == 0 ? fd : other);
  }
  actor.close(fd);
  actor.close(other);
}

/// Segments of which a part is in use: small files between large ones, most of which are gone.
void ragged(Actor& actor, uint64_t spare, uint32_t keep_one_of) {
  actor.mkdir("/old");
  uint32_t files = 0;
  for (; actor.session().statfs().blocks_free > spare; ++files) {
    actor.put(numbered("/old/file", files), actor.bytes((files % 3 == 0 ? 3 : 40) * kBlock));
  }
  for (uint32_t i = 0; i < files; ++i) {
    if (i % keep_one_of != 0) actor.unlink(numbered("/old/file", i));
  }
}

void half_empty(Actor& actor) { ragged(actor, 3000, 3); }
void ragged_and_full(Actor& actor) { ragged(actor, 100, 5); }

void clean(Actor& actor) {
  actor.put("/new", actor.bytes(9 * kBlock));
  actor.collect_garbage();
  const int fd = actor.open("/old/file3", vfs::kOpenReadWrite);
  actor.pwrite(fd, kBlock, actor.bytes(kBlock));
  actor.fsync(fd);
  actor.unlink("/old/file6");
  actor.collect_garbage();
  actor.pwrite(fd, 0, actor.bytes(3 * kBlock));
  actor.fsync(fd);
  actor.close(fd);
}

/// What is under way stays where it is going.
void clean_beside_writes(Actor& actor) {
  const int fd = actor.open("/old/file3", vfs::kOpenReadWrite);
  const int first = actor.start_pwrite(fd, 0, actor.bytes(2 * kBlock));
  actor.collect_garbage();
  const int fresh = actor.open("/new", kNewFile);
  const int second = actor.start_pwrite(fresh, 0, actor.bytes(20 * kBlock));
  actor.unlink("/old/file6");
  actor.collect_garbage();
  actor.wait(second);
  actor.collect_garbage();
  actor.wait(first);
  actor.fsync(fd);
  actor.close(fd);
  actor.close(fresh);
}

/// Who writes has to clean first, more than once.
void write_when_ragged(Actor& actor) {
  actor.sync();
  for (uint32_t i = 0; i < 14; ++i) {
    const int fd = actor.open(numbered("/new", i), kNewFile);
    actor.pwrite(fd, 0, actor.bytes(40 * kBlock));
    if (i % 2 == 0) actor.fsync(fd);
    actor.close(fd);
    if (i % 9 == 8) actor.unlink(numbered("/new", i - 1));
  }
}

std::vector<std::string> numbered_names(const std::string& name, uint32_t count) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < count; ++i) names.push_back(numbered(name, i));
  return names;
}

void batches(Actor& actor) {
  actor.mkdir("/batch");
  actor.sync();
  for (uint32_t round = 0; round < 3; ++round) {
    const auto names = numbered_names(numbered("round", round) + " file", 40);
    std::vector<std::string> contents;
    for (uint32_t i = 0; i < names.size(); ++i) contents.push_back(actor.bytes(i % 9 * 1500));
    actor.batch_create("/batch", names, contents);
    const int fd = actor.open("/batch/" + names[7], vfs::kOpenReadWrite);
    actor.fsync(fd);
    actor.close(fd);
    if (round == 1) actor.sync();
  }
}

void large_batch(Actor& actor) {
  const auto names = numbered_names("a file of a batch ", 400);
  std::vector<std::string> contents;
  for (uint32_t i = 0; i < names.size(); ++i) contents.push_back(actor.bytes(i % 4 * 900));
  actor.batch_create("/", names, contents);
}

/// Files whose contents need nodes: made empty, then written.
void batch_of_large_files(Actor& actor) {
  std::vector<std::string> contents;
  for (const uint64_t blocks : {3, 900, 1, 1000}) contents.push_back(actor.bytes(blocks * kBlock));
  actor.batch_create("/", numbered_names("large", 4), contents);
}

void a_batch(Actor& actor) {
  actor.batch_create("/", numbered_names("file", 12),
                     std::vector<std::string>(12, actor.bytes(6 * kBlock)));
}

void write_batches(Actor& actor) {
  for (uint32_t round = 0; round < 3; ++round) {
    std::vector<std::string> contents;
    for (uint32_t i = 0; i < 12; ++i) contents.push_back(actor.bytes((1 + i % 3) * kBlock + i));
    actor.batch_write("/", numbered_names("file", 12), contents);
    const int fd = actor.open(numbered("/file", round), vfs::kOpenReadOnly);
    actor.fsync(fd);
    actor.close(fd);
  }
}

/// A crash leaves them to be freed by who mounts, in portions.
void large_orphans(Actor& actor) {
  std::vector<int> fds;
  for (uint32_t i = 0; i < 3; ++i) {
    fds.push_back(actor.open(numbered("/large", i), kNewFile));
    for (uint32_t k = 0; k < 4; ++k) {
      actor.pwrite(fds[i], (kDirectNode + 1018 * k) * kBlock, actor.bytes(3 * kBlock));
    }
  }
  for (uint32_t i = 0; i < 3; ++i) actor.unlink(numbered("/large", i));
  actor.sync();
  actor.put("/new", actor.bytes(5000));
  for (const int fd : fds) actor.close(fd);
}

constexpr Scenario kVolume[] = {
    {"nothing_at_all", nothing_at_all},
    {"syncs_of_nothing", syncs_of_nothing},
    {"a_sync_after_everything", a_sync_after_everything},
    {"no_sync", no_sync},
    {"many_inodes", many_inodes},
    {"little_memory", little_memory, nullptr, 64},
    {"little_memory_large_files", little_memory_large_files, nullptr, 64},
    {"anything", anything, grown_old},
    {"anything_in_little_memory", anything, grown_old, 64},
    {"fill_the_rest", fill_the_rest, nearly_full},
    {"overwrite_when_full", overwrite_when_full, nearly_full},
    {"overwrite_and_fsync_when_full", overwrite_and_fsync_when_full, nearly_full},
    {"collect_garbage", clean, half_empty},
    {"clean_beside_writes", clean_beside_writes, half_empty},
    {.name = "write_when_ragged",
     .run = write_when_ragged,
     .prepare = ragged_and_full,
     .cut_every = 5},
    {"batches", batches},
    {.name = "large_batch", .run = large_batch, .cut_every = 4},
    {.name = "batch_of_large_files", .run = batch_of_large_files, .cut_every = 5},
    {"write_batches", write_batches, a_batch},
    {"large_orphans", large_orphans},
    {"large_orphans_little_memory", large_orphans, nullptr, 64},
};

}  // namespace

std::span<const Scenario> volume_scenarios() { return kVolume; }

}  // namespace gofs::judges
