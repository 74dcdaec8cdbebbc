// SPDX-License-Identifier: Apache-2.0
//
// Batches of a client's kernels: by names and of a directory, their contents, new files, and what a
// client may do to them that is no kernel of ours.
#include "serve/kernel_batch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "host/serve/kernel_channel_for_test.h"

namespace gofs::host {
namespace {

using serve::BatchShare;
using vfs::BatchSource;

class KernelBatchTest : public KernelChannelTest {
 protected:
  static constexpr uint32_t kWarps = 5;

  static KernelCall opening(const char* path, uint32_t count, BatchSource source) {
    KernelCall call = about(Verb::kBatchOpen, path);
    call.request.length = count;
    call.request.flags = static_cast<uint32_t>(source);
    return call;
  }
  static KernelCall about_file(Verb verb, int bd, uint32_t index) {
    KernelCall call = about(verb, bd);
    call.request.number = index;
    return call;
  }
  /// The sum of what the warps answer, as a kernel of so many.
  template <typename Work>
  int64_t share(int bd, uint32_t count, Work work) {
    std::atomic<int64_t> sum = 0;
    launch(kWarps, [&](const simt::Warp& warp, uint32_t index) {
      const int64_t part = work(warp, BatchShare{bd, count, index, kWarps});
      if (warp.thread_rank() == 0) sum += part;
    });
    return sum;
  }
  BatchFile file(Program& program, int bd, uint32_t index) {
    BatchFile found{};
    launch(1, [&](const simt::Warp& warp, uint32_t) {
      if (warp.thread_rank() != 0) return;
      found = serve::batch_file(simt::PartialWarp::single(), program.channel(), bd, index);
    });
    return found;
  }
  int64_t count(Program& program, int bd) {
    return ask(program, about_file(Verb::kBatchFiles, bd, 0));
  }

  /// Files of different sizes: file i has the bytes from offsets[i] on.
  struct Files {
    explicit Files(std::vector<uint64_t> sizes) : bytes(std::move(sizes)) {
      for (size_t i = 0; i < bytes.size(); ++i) {
        offsets.push_back(contents.size());
        contents += bytes_of(bytes[i], static_cast<uint32_t>(i));
        texts.push_back("file-" + std::to_string(i));
      }
      for (const std::string& text : texts) names.push_back(text.c_str());
    }
    uint32_t count() const { return static_cast<uint32_t>(bytes.size()); }

    std::vector<uint64_t> bytes;
    std::vector<uint64_t> offsets;
    std::string contents;
    std::vector<std::string> texts;
    std::vector<const char*> names;
  };
  /// Makes them in `directory`; the batch.
  int make(Program& program, const char* directory, Files& files, uint32_t mode = 0640) {
    const auto bd =
        static_cast<int>(ask(program, opening(directory, files.count(), BatchSource::kNewFiles)));
    EXPECT_GE(bd, Program::kBase);
    const vfs::BatchCreation creation{directory,
                                      files.names.data(),
                                      files.count(),
                                      mode,
                                      data_of(files.contents),
                                      files.offsets.data(),
                                      files.bytes.data()};
    share(bd, files.count(), [&](const simt::Warp& warp, const BatchShare& mine) {
      serve::make_files(warp, program.channel(), mine, creation);
      return 0;
    });
    return bd;
  }
  int open_names(Program& program, const char* directory, const std::vector<const char*>& names) {
    const auto size = static_cast<uint32_t>(names.size());
    const auto bd = static_cast<int>(ask(program, opening(directory, size, BatchSource::kNames)));
    share(bd, size, [&](const simt::Warp& warp, const BatchShare& mine) {
      serve::enter_names(warp, program.channel(), mine, names.data());
      return 0;
    });
    return bd;
  }
  /// What is read of all files of a batch, each to the place that `files` has for it.
  std::string read(Program& program, int bd, const Files& files) {
    std::string found(files.contents.size(), '\0');
    const int64_t got =
        share(bd, files.count(), [&](const simt::Warp& warp, const BatchShare& mine) {
          return serve::read_files(warp, program.channel(), mine, data_of(found),
                                   files.offsets.data());
        });
    EXPECT_EQ(got, static_cast<int64_t>(found.size()));
    return found;
  }
};

TEST_P(KernelBatchTest, files_are_made_found_by_name_and_read) {
  Program program(path_);
  // One is longer than a call takes, and one has no bytes.
  Files files({5, 4096, 200'001, 0, 70'000, 16'384, 1});
  const int made = make(program, "/", files);
  EXPECT_EQ(count(program, made), files.count());
  for (uint32_t i = 0; i < files.count(); ++i) {
    const BatchFile one = file(program, made, i);
    EXPECT_EQ(one.error, 0) << i;
    EXPECT_EQ(one.size_bytes, files.bytes[i]) << i;
    EXPECT_EQ(one.created, 1u) << i;
    EXPECT_NE(one.ino, 0u) << i;
  }
  EXPECT_EQ(read(program, made, files), files.contents);
  EXPECT_EQ(ask(program, about(Verb::kBatchClose, made)), 0);
  EXPECT_EQ(ask(program, about(Verb::kBatchClose, made)), -EBADF);
  EXPECT_EQ(count(program, made), -EBADF);

  const int named = open_names(program, "/", files.names);
  EXPECT_EQ(read(program, named, files), files.contents);
  EXPECT_EQ(file(program, named, 2).size_bytes, 200'001u);
  EXPECT_EQ(file(program, named, 2).created, 0u);
  EXPECT_EQ(file(program, named, files.count()).error, -EINVAL) << "it has no such file";
  // What has been written since is not of the batch.
  const int fd = open(program, "/file-0");
  KernelCall put = about(Verb::kPwrite, fd);
  put.input = "0123456789";
  put.request.bytes = 10;
  EXPECT_EQ(ask(program, put), 10);
  char found[20] = {};
  KernelCall get = about_file(Verb::kBatchPread, named, 0);
  get.output = found;
  get.request.bytes = sizeof(found);
  EXPECT_EQ(ask(program, get), 5);
  EXPECT_STREQ(found, "01234");
  get.request.offset = 5;
  EXPECT_EQ(ask(program, get), 0);
}

TEST_P(KernelBatchTest, a_directory_is_a_batch) {
  Program program(path_);
  KernelCall mkdir = about(Verb::kMkdir, "/d");
  mkdir.request.mode = 0755;
  EXPECT_EQ(ask(program, mkdir), 0);
  Files files(std::vector<uint64_t>(300, 700));
  EXPECT_EQ(ask(program, about(Verb::kBatchClose, make(program, "/d", files))), 0);
  mkdir.path = "/d/below";  // no regular file
  EXPECT_EQ(ask(program, mkdir), 0);
  for (const uint32_t most : {1000u, 40u}) {
    const auto bd = static_cast<int>(ask(program, opening("/d", most, BatchSource::kDirectory)));
    const auto there = static_cast<uint32_t>(count(program, bd));
    EXPECT_EQ(there, std::min(most, 300u));
    share(bd, there, [&](const simt::Warp& warp, const BatchShare& mine) {
      serve::load_listed(warp, program.channel(), mine);
      return 0;
    });
    std::vector<BatchFile> all(there);
    KernelCall list = about_file(Verb::kBatchFiles, bd, 0);
    list.output = all.data();
    list.request.bytes = there * sizeof(BatchFile);
    EXPECT_EQ(ask(program, list), there);
    for (const BatchFile& one : all) {
      EXPECT_EQ(one.error, 0);
      EXPECT_EQ(one.size_bytes, 700u);
    }
    EXPECT_EQ(ask(program, about(Verb::kBatchClose, bd)), 0);
  }
  EXPECT_EQ(ask(program, opening("/d/file-0", 1, BatchSource::kDirectory)), -ENOTDIR);
  EXPECT_EQ(ask(program, opening("/none", 1, BatchSource::kNames)), -ENOENT);
}

TEST_P(KernelBatchTest, a_file_that_cannot_be_opened_or_made_has_its_error) {
  Program program(path_);
  Files files({10, 10});
  const std::string longest(256, 'n');
  const std::vector<const char*> odd = {"file-0", "missing", "", "dir", longest.c_str()};
  KernelCall mkdir = about(Verb::kMkdir, "/dir");
  mkdir.request.mode = 0755;
  EXPECT_EQ(ask(program, mkdir), 0);
  EXPECT_EQ(ask(program, about(Verb::kBatchClose, make(program, "/", files))), 0);
  const int named = open_names(program, "/", odd);
  const int expected[] = {0, -ENOENT, -ENOENT, -EISDIR, -ENAMETOOLONG};
  for (uint32_t i = 0; i < odd.size(); ++i) {
    EXPECT_EQ(file(program, named, i).error, expected[i]) << i;
  }

  Files again({10, 10, 10, 10, 10});
  again.names = {"file-0", "new", "a/b", "", ".."};
  const int made = make(program, "/", again);
  const int errors[] = {-EEXIST, 0, -EINVAL, -ENOENT, -EEXIST};
  for (uint32_t i = 0; i < again.count(); ++i) {
    EXPECT_EQ(file(program, made, i).error, errors[i]) << i;
    EXPECT_EQ(file(program, made, i).created, i == 1 ? 1u : 0u) << i;
  }
  EXPECT_EQ(ask(program, about(Verb::kBatchClose, made)), 0);
  EXPECT_EQ(ask(program, about(Verb::kUnlink, "/file-1")), 0);
  Files gone({10});
  gone.names = {"file-1"};
  const int missing = open_names(program, "/", gone.names);
  KernelCall get = about_file(Verb::kBatchPread, missing, 0);
  char room[16];
  get.output = room;
  get.request.bytes = sizeof(room);
  EXPECT_EQ(ask(program, get), -ENOENT);
}

TEST_P(KernelBatchTest, files_of_a_batch_are_written) {
  Program program(path_);
  Files files({100, 70'000, 0});
  const int bd = make(program, "/", files);
  Files others({50, 200'000, 3});
  EXPECT_EQ(share(bd, 3,
                  [&](const simt::Warp& warp, const BatchShare& mine) {
                    return serve::write_files(warp, program.channel(), mine,
                                              data_of(others.contents), others.offsets.data(),
                                              others.bytes.data());
                  }),
            200'053);
  EXPECT_EQ(file(program, bd, 0).size_bytes, 100u) << "the rest stays";
  EXPECT_EQ(file(program, bd, 1).size_bytes, 200'000u);
  EXPECT_EQ(file(program, bd, 2).size_bytes, 3u);
  Files mixed({100, 200'000, 3});
  mixed.contents =
      others.contents.substr(0, 50) + files.contents.substr(50, 50) + others.contents.substr(50);
  EXPECT_EQ(read(program, bd, mixed), mixed.contents);
}

TEST_P(KernelBatchTest, a_batch_is_its_clients_and_shows_nothing_of_those_before) {
  Program one(path_);
  Files files({10, 10});
  const int first = make(one, "/", files);
  Program other(path_);
  EXPECT_EQ(count(other, first), -EBADF);
  EXPECT_EQ(ask(other, about_file(Verb::kBatchPread, first, 0)), -EBADF);
  EXPECT_EQ(ask(other, about(Verb::kBatchClose, first)), -EBADF);
  EXPECT_EQ(ask(one, about(Verb::kBatchClose, first)), 0);
  // The same room of the table, of which nothing has been entered yet.
  const auto second = static_cast<int>(ask(other, opening("/", 2, BatchSource::kNames)));
  EXPECT_EQ(second, first);
  for (const uint32_t i : {0u, 1u}) {
    EXPECT_EQ(file(other, second, i).ino, 0u);
    EXPECT_EQ(file(other, second, i).error, -ENOENT);
    EXPECT_EQ(ask(other, about_file(Verb::kBatchPread, second, i)), -ENOENT);
    EXPECT_EQ(ask(other, about_file(Verb::kBatchPwrite, second, i)), -ENOENT);
  }
  for (const uint32_t i : {2u, 1u << 20, UINT32_MAX}) {
    for (const Verb verb : {Verb::kBatchPread, Verb::kBatchPwrite}) {
      EXPECT_EQ(ask(other, about_file(verb, second, i)), -EINVAL);
    }
    KernelCall enter = about_file(Verb::kBatchEnter, second, i);
    enter.path = "file-0";
    EXPECT_EQ(ask(other, enter), -EINVAL);
    KernelCall load = about_file(Verb::kBatchLoad, second, i);
    load.request.length = UINT64_MAX;
    EXPECT_EQ(ask(other, load), 0) << "there are none";
    EXPECT_EQ(ask(other, about_file(Verb::kBatchFiles, second, i)), 0);
  }
  EXPECT_EQ(ask(other, opening("/", UINT32_MAX, BatchSource::kNames)), -ENOMEM);
  EXPECT_EQ(ask(other, opening("/", 1, BatchSource{3})), -EINVAL);
  for (const int bd : {-1, 63, 64, 1 << 20}) {
    EXPECT_EQ(ask(other, about(Verb::kBatchClose, bd < 0 ? bd : Program::kBase + bd)), -EBADF);
  }
}

TEST_P(KernelBatchTest, a_batch_that_is_closed_while_it_is_used_harms_nobody) {
  Program program(path_);
  Files files({3000, 3000, 3000});
  EXPECT_EQ(ask(program, about(Verb::kBatchClose, make(program, "/", files))), 0);
  std::atomic<uint32_t> wrong = 0;
  launch(kWarps, [&](const simt::Warp& warp, uint32_t index) {
    const auto call = [&](KernelCall made) { return serve::ask(warp, program.channel(), made); };
    for (int turn = 0; turn < 30; ++turn) {
      // All use one number, which is a batch of theirs, or none, or has not been filled.
      const int bd = Program::kBase;
      if (index == 0) (void)call(opening("/", 3, BatchSource::kNames));
      KernelCall enter = about_file(Verb::kBatchEnter, bd, index % 3);
      enter.path = files.names[index % 3];
      (void)call(enter);
      const int64_t got = call(about_file(Verb::kBatchPread, bd, turn % 3));
      if (got != 0 && got != -EBADF && got != -ENOENT) ++wrong;
      if (index == 1) (void)call(about(Verb::kBatchClose, bd));
    }
  });
  EXPECT_EQ(wrong, 0u);
  for (int bd = 0; bd < 64; ++bd) (void)ask(program, about(Verb::kBatchClose, Program::kBase + bd));
  const int after = open_names(program, "/", files.names);
  EXPECT_EQ(after, Program::kBase);
  EXPECT_EQ(read(program, after, files), files.contents);
}

TEST_P(KernelBatchTest, a_client_that_goes_leaves_no_batch) {
  for (int i = 0; i < 70; ++i) {
    Program program(path_);
    Files files({10});
    files.names = {"one"};
    (void)ask(program, about(Verb::kUnlink, "/one"));
    EXPECT_EQ(file(program, make(program, "/", files), 0).error, 0) << i;
  }
  while (channels_->open_channels() != 0) std::this_thread::yield();
  end_server();
  expect_sound_volume();
}

INSTANTIATE_TEST_SUITE_P(servers, KernelBatchTest, KernelChannelTest::all());

}  // namespace
}  // namespace gofs::host
