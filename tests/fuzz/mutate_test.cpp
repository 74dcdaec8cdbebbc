// SPDX-License-Identifier: Apache-2.0
//
// Goal: whatever is wrong with an image, reading it ends, in time, with answers that are allowed,
// and touches no memory that is not its own. Method: sound images are changed in place by thousands
// of small programs (mutator.h), mounted, walked (volume_walker.h) and changed back. A sanitizer,
// an assert, a walk of too many commands, a lock or page that stays taken, an errno that blames the
// reader, or a step of more than half a minute is a finding; all print the program that leads
// there.
//
//   mutate_test                                a few thousand, as in `make test`
//   mutate_test --count 40000 --seed 7         so many of each base image, and all single fields
//   mutate_test --base extra --first 123 --count 1 --seed 7   number 123 of them again
//   mutate_test --program 80000000...          one program, as findings print it
//   mutate_test --sweep-step 16                every so many of the single fields, not every 480th
//   --width N: warps of N threads; --save FOLDER: findings go there, as inputs of volume_fuzz
#include <gtest/gtest.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base_image.h"
#include "fuzz_volume.h"
#include "mutator.h"
#include "testing/repetitions.hpp"

// Of the sanitizers, where there are any.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace gofs::fuzz {
namespace {

struct Options {
  uint64_t count = testing::repetitions(500, 200);  // random programs for each base image
  uint64_t first = 0;
  uint64_t seed = 1;
  uint32_t width = 1;
  uint32_t sweep_step = testing::repetitions(480, 1440);  // every so many of the single fields
  bool asked = false;   // for a number of programs: nothing else is run
  std::string base;     // empty: all
  std::string program;  // hexadecimal
  std::string save;
};
Options options;

// --- Last words ----------------------------------------------------------------------------------

struct Running {
  std::atomic<const Program*> program{nullptr};
  std::atomic<int64_t> since_s{0};
  std::atomic<bool> told{false};
};
Running running;

int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Of this process: what else runs on the machine does not count.
double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string hexadecimal(const Program& program) {
  std::string text;
  for (const uint8_t byte : encode(program)) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    text += digits;
  }
  return text;
}

/// Not safe in a signal handler, but the process ends anyway.
void say_last_words() {
  const Program* const program = running.program;
  if (program == nullptr || running.told.exchange(true)) return;
  std::fprintf(stderr, "\nmutate_test: while running; again with: mutate_test --program %s\n",
               hexadecimal(*program).c_str());
}

void on_abort(int) {
  say_last_words();
  std::signal(SIGABRT, SIG_DFL);
  std::raise(SIGABRT);
}

constexpr int64_t kSecondsMax = 30;  // for one program, which takes milliseconds

void on_alarm(int) {
  if (running.program != nullptr && now_s() - running.since_s > kSecondsMax) {
    std::fprintf(stderr, "mutate_test: no end after %d s\n", static_cast<int>(kSecondsMax));
    std::abort();
  }
}

void watch() {
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(say_last_words);
  std::signal(SIGABRT, on_abort);
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval interval{{1, 0}, {1, 0}};
  ::setitimer(ITIMER_REAL, &interval, nullptr);
}

// --- A base image and what is done with it -------------------------------------------------------

/// What many outcomes have in common.
struct Tally {
  uint64_t images = 0;
  uint64_t mounted = 0;
  uint64_t reported = 0;  // mounted, and damage was reported
  uint64_t changed = 0;   // mounted, and some answer differs from the sound image's
  uint64_t commands_max = 0;
  uint64_t cut = 0;
  double seconds = 0;
  double slowest_s = 0;
  std::string most_commands;
  std::string slowest;
  std::array<uint64_t, 16> problems{};
};

/// A new copy of a base image. f2fs-tools make another one each time, with other times and numbers:
/// within a process it is always the same.
void copy_base(Base base, uint8_t* memory) {
  static std::vector<uint8_t> made[kBaseCount];
  std::vector<uint8_t>& image = made[static_cast<size_t>(base)];
  if (image.empty()) {
    image.resize(base_bytes(base));
    make_base(base, image.data());
  }
  std::memcpy(memory, image.data(), image.size());
}

class Bench {
 public:
  Bench(Base base, uint32_t width, const WalkLimits& limits = {})
      : base_(base),
        memory_(static_cast<uint8_t*>(std::aligned_alloc(kBlockBytes, base_bytes(base))),
                &std::free) {
    copy_base(base, memory_.get());
    image_ = std::make_unique<EditableImage>(memory_.get(), base_bytes(base));
    mutator_ = std::make_unique<Mutator>(*image_);
    FuzzVolumeOptions volume_options;
    volume_options.warp_width = width;
    volume_options.limits = limits;
    volume_ = std::make_unique<FuzzVolume>(memory_.get(), base_bytes(base), volume_options);
    sound_ = volume_->run(base_bytes(base), 0, [] {});
    sum_ = sum();
  }

  const Outcome& sound() const { return sound_; }
  const uint8_t* image() const { return memory_.get(); }
  const ImageMap& map() const { return image_->map(); }
  const Mutator& mutator() const { return *mutator_; }
  FuzzVolume& volume() { return *volume_; }

  Outcome run(Program program, const char* what, uint64_t number) {
    program.base = static_cast<uint8_t>(base_);
    running.since_s = now_s();
    running.program = &program;
    const double begin = cpu_seconds();
    Outcome outcome = run_program(*image_, *volume_, program);
    const double seconds = cpu_seconds() - begin;
    running.program = nullptr;
    count(outcome, seconds, std::string(what) + " " + std::to_string(number), program);
    if (!outcome.wrong.empty()) {
      ADD_FAILURE() << outcome.wrong << "\n  " << base_name(base_) << ", " << what << " " << number
                    << ": " << mutator_->describe(program)
                    << "\n  again with: mutate_test --program " << hexadecimal(program);
      save(program, what, number);
    }
    return outcome;
  }

  /// The reader has written nothing, and we have put everything back.
  void check_unchanged() const { EXPECT_EQ(sum(), sum_) << "the image has changed"; }

  void print() const {
    std::printf(
        "%-11s %7llu images in %.1f CPU seconds (%.0f/s): %llu mounted, %llu of these answered "
        "otherwise, %llu reported damage, %llu cut\n",
        base_name(base_), number(tally_.images), tally_.seconds,
        static_cast<double>(tally_.images) / std::max(tally_.seconds, 1e-9), number(tally_.mounted),
        number(tally_.changed), number(tally_.reported), number(tally_.cut));
    std::printf("            most commands %llu (sound: %llu) in %s\n", number(tally_.commands_max),
                number(sound_.commands), tally_.most_commands.c_str());
    std::printf("            slowest %.3f s in %s\n            mount refusals by problem:",
                tally_.slowest_s, tally_.slowest.c_str());
    for (const uint64_t count : tally_.problems) std::printf(" %llu", number(count));
    std::printf("\n");
  }
  const Tally& tally() const { return tally_; }

 private:
  static unsigned long long number(uint64_t value) { return value; }

  uint64_t sum() const {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < base_bytes(base_); i += 8) {
      uint64_t word;
      std::memcpy(&word, memory_.get() + i, 8);
      sum = (sum ^ word) * 0x9E3779B97F4A7C15ull + 1;
    }
    return sum;
  }

  void count(const Outcome& outcome, double seconds, const std::string& id,
             const Program& program) {
    const auto name = [&] {
      return id + ": " + mutator_->describe(program) + " = " + hexadecimal(program);
    };
    ++tally_.images;
    tally_.seconds += seconds;
    if (outcome.mounted) {
      ++tally_.mounted;
      if (outcome.walk.corruptions != 0) ++tally_.reported;
      if (outcome.walk.digest != sound_.walk.digest) ++tally_.changed;
    } else {
      ++tally_.problems[static_cast<size_t>(outcome.mount.problem) % tally_.problems.size()];
    }
    if (outcome.walk.cut) ++tally_.cut;
    if (outcome.commands > tally_.commands_max) {
      tally_.commands_max = outcome.commands;
      tally_.most_commands = name();
    }
    if (seconds > tally_.slowest_s) {
      tally_.slowest_s = seconds;
      tally_.slowest = name();
    }
  }

  void save(const Program& program, const char* what, uint64_t number) const {
    if (options.save.empty()) return;
    const std::vector<uint8_t> bytes = encode(program);
    std::ofstream(options.save + "/" + base_name(base_) + "-" + what + "-" + std::to_string(number),
                  std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  const Base base_;
  std::unique_ptr<uint8_t, decltype(&std::free)> memory_;
  std::unique_ptr<EditableImage> image_;
  std::unique_ptr<Mutator> mutator_;
  std::unique_ptr<FuzzVolume> volume_;
  Outcome sound_;
  uint64_t sum_ = 0;
  Tally tally_;
};

/// Each random program has a number, and its seed follows from that and from --seed.
uint64_t seed_of(Base base, uint64_t number) {
  Random mixer(options.seed * 0x10001 + static_cast<uint64_t>(base));
  return mixer.next() + number * 0x9E3779B97F4A7C15ull;
}

class MutateTest : public ::testing::TestWithParam<Base> {
 protected:
  void SetUp() override {
    if (!options.base.empty() && options.base != base_name(GetParam())) GTEST_SKIP() << "not asked";
    if (!can_make(GetParam())) GTEST_SKIP() << "SKIPPED: f2fs-tools are not installed";
  }
  void must_be_asked_for_nothing() {
    if (options.asked || !options.program.empty()) GTEST_SKIP() << "not asked";
  }
};

INSTANTIATE_TEST_SUITE_P(bases, MutateTest,
                         ::testing::Values(Base::kPlain, Base::kExtra, Base::kMoved, Base::kTools,
                                           Base::kToolsExtra),
                         [](const ::testing::TestParamInfo<Base>& base) {
                           std::string name = base_name(base.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(MutateTest, a_sound_image_is_read_whole_and_alike_at_every_width) {
  must_be_asked_for_nothing();
  if (IsSkipped()) return;
  Bench bench(GetParam(), 1);
  const Outcome& sound = bench.sound();
  ASSERT_TRUE(sound.mounted) << static_cast<int>(sound.mount.problem);
  EXPECT_EQ(sound.wrong, "");
  EXPECT_EQ(sound.walk.corruptions, 0u);
  EXPECT_EQ(sound.walk.errors[EUCLEAN], 0u);
  EXPECT_FALSE(sound.walk.cut);
  EXPECT_EQ(sound.walk.directories, bench.map().directories.size());
  uint64_t links = 0;
  for (const uint32_t block : bench.map().blocks[static_cast<size_t>(Place::kInode)]) {
    const uint32_t mode = node_at(bench.image(), block).inode.i_mode;
    if ((mode & format::kModeTypeMask) == format::kModeSymlink) ++links;
  }
  EXPECT_GT(sound.walk.names, 300u);
  EXPECT_GT(sound.walk.bytes_read, 200'000u);
  EXPECT_GT(sound.walk.files_hashed, 15u);
  EXPECT_EQ(sound.walk.files + sound.walk.directories + sound.walk.specials + links,
            bench.map().blocks[static_cast<size_t>(Place::kInode)].size())
      << "each inode is met once";
  // The same again, after another image: nothing is left of it.
  EXPECT_EQ(bench.volume().run(base_bytes(GetParam()), 0, [] {}).walk, sound.walk);
  Bench team(GetParam(), 4);
  EXPECT_EQ(team.sound().walk.digest, sound.walk.digest);
  EXPECT_EQ(team.sound().walk.errors, sound.walk.errors);
}

TEST_P(MutateTest, mutated_images_are_survived) {
  if (!options.program.empty()) GTEST_SKIP() << "not asked";
  Bench bench(GetParam(), options.width);
  for (uint64_t i = options.first; i < options.first + options.count; ++i) {
    bench.run(bench.mutator().random_program(seed_of(GetParam(), i)), "random", i);
  }
  bench.print();
  bench.check_unchanged();
  if (options.count < 200) return;
  // Else we would be testing something else than we think.
  const Tally& tally = bench.tally();
  EXPECT_GT(tally.mounted, tally.images / 2);
  EXPECT_GT(tally.changed, tally.images / 5);
  EXPECT_GT(tally.reported, tally.images / 10);
}

TEST_P(MutateTest, single_fields_at_extremes_are_survived) {
  if (!options.program.empty() || options.first != 0) GTEST_SKIP() << "not asked";
  Bench bench(GetParam(), options.width);
  const std::vector<Program> programs = bench.mutator().sweep();
  const uint64_t step = options.asked ? 1 : options.sweep_step;
  for (uint64_t i = 0; i < programs.size(); i += step) bench.run(programs[i], "field", i);
  bench.print();
  bench.check_unchanged();
}

TEST_P(MutateTest, truncated_devices_are_survived) {
  must_be_asked_for_nothing();
  if (IsSkipped()) return;
  Bench bench(GetParam(), 1);
  const format::Geometry& geometry = bench.map().geometry;
  uint64_t number = 0;
  for (const uint64_t block :
       {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{geometry.segment0_blkaddr},
        uint64_t{geometry.sit_blkaddr}, uint64_t{geometry.nat_blkaddr},
        uint64_t{geometry.ssa_blkaddr}, uint64_t{geometry.main_blkaddr}, geometry.main_end()}) {
    for (const int64_t off : {-4096, -512, -1, 0, 1, 511, 512}) {
      if (static_cast<int64_t>(block * kBlockBytes) + off < 512) continue;
      Program program;
      Edit edit;
      edit.verb = Verb::kTruncate;
      edit.device_bytes = block * kBlockBytes + static_cast<uint64_t>(off);
      program.edits.push_back(edit);
      const bool whole = edit.device_bytes >= geometry.main_end() * kBlockBytes;
      EXPECT_EQ(bench.run(program, "truncated", number++).mounted, whole) << edit.device_bytes;
    }
  }
}

/// What a warp of four lanes finds is what one lane finds.
TEST_P(MutateTest, mutated_images_are_read_alike_at_every_width) {
  must_be_asked_for_nothing();
  if (IsSkipped()) return;
  Bench one(GetParam(), 1);
  Bench four(GetParam(), 4);
  for (uint64_t i = 0; i < 3; ++i) {
    Program program = one.mutator().random_program(seed_of(GetParam(), 1'000'000 + i));
    program.late = 0;  // operations are not counted alike
    const Outcome narrow = one.run(program, "narrow", i);
    const Outcome wide = four.run(program, "wide", i);
    EXPECT_EQ(narrow.mounted, wide.mounted) << hexadecimal(program);
    EXPECT_EQ(narrow.walk.digest, wide.walk.digest)
        << one.mutator().describe(program) << "\n  " << hexadecimal(program);
  }
}

/// The inode of the file `name` of the root, and its number among the inodes.
BlockRef inode_named(const Bench& bench, const std::string& name) {
  const auto& blocks = bench.map().blocks[static_cast<size_t>(Place::kInode)];
  for (size_t i = 0; i < blocks.size(); ++i) {
    const format::Inode& inode = node_at(bench.image(), blocks[i]).inode;
    const std::string theirs(reinterpret_cast<const char*>(inode.i_name), inode.i_namelen);
    if (theirs == name && inode.i_pino == format::kRootIno) {
      return {Place::kInode, static_cast<uint16_t>(i)};
    }
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

Edit bytes_at(const BlockRef& block, size_t offset, std::vector<uint8_t> bytes) {
  Edit edit;
  edit.block = block;
  edit.offset = static_cast<uint16_t>(offset);
  edit.bytes = std::move(bytes);
  return edit;
}

/// Whoever has looked at an inode and looks again may find another: the image is shared, or the
/// device lies. At every moment of a walk over the root, a file of blocks becomes a small inline
/// one.
TEST(MutateLate, a_file_that_becomes_inline_is_survived_at_every_moment) {
  if (options.asked || !options.program.empty()) GTEST_SKIP() << "not asked";
  Bench bench(Base::kPlain, 1, {.directories = 1, .names_looked_up = 2});
  const BlockRef file = inode_named(bench, "gap");
  Program program;
  program.edits.push_back(bytes_at(file, offsetof(format::Inode, i_inline), {format::kInlineData}));
  program.edits.push_back(
      bytes_at(file, offsetof(format::Inode, i_size), {100, 0, 0, 0, 0, 0, 0, 0}));
  uint64_t noticed = 0;
  uint64_t damaged = 0;
  for (uint32_t late = 1; late <= bench.sound().walk.operations; ++late) {
    program.late = static_cast<uint16_t>(late);
    const WalkReport walk = bench.run(program, "late", late).walk;
    noticed += walk.digest != bench.sound().walk.digest ? 1 : 0;
    damaged += walk.errors[EUCLEAN] != 0 ? 1 : 0;
  }
  EXPECT_GT(noticed, 10u);
  // When it happens between a batch's look at the inode and its reading of the data, what was to be
  // read is not there any more. (AddressSanitizer does not see a page from which one runs into the
  // next: they are one array.)
  EXPECT_GT(damaged, 0u);
}

/// Work goes by what is on the volume, not by what inodes claim.
TEST(MutateClaims, only_files_that_the_volume_can_hold_get_block_maps) {
  if (options.asked || !options.program.empty()) GTEST_SKIP() << "not asked";
  std::vector<uint8_t> memory(base_bytes(Base::kPlain) + kBlockBytes);
  uint8_t* const image =
      memory.data() + kBlockBytes - reinterpret_cast<uintptr_t>(memory.data()) % kBlockBytes;
  copy_base(Base::kPlain, image);
  FuzzVolume volume(image, base_bytes(Base::kPlain), {.map_bytes = uint64_t{32} << 20});
  ASSERT_TRUE(volume.run(base_bytes(Base::kPlain), 0, [] {}).mounted);
  vfs::Filesystem& fs = volume.filesystem();
  const auto words_of_map = [&](const char* path) {
    const int fd = vfs::open_existing(simt::Warp(), fs, path, vfs::kOpenReadOnly);
    EXPECT_GE(fd, 0) << path;
    const uint64_t words = fs.volume.maps.bytes_used() / sizeof(uint32_t);
    EXPECT_EQ(vfs::close(simt::Warp(), fs, fd), 0) << path;
    return words;
  };
  EXPECT_EQ(words_of_map("/direct"), 1024u);  // of 961 blocks
  EXPECT_EQ(words_of_map("/trees"), 0u);      // 25 GiB on 64 MiB
  EXPECT_EQ(words_of_map("/hole"), 0u);
}

TEST(MutateProgram, runs) {
  if (options.program.empty()) GTEST_SKIP() << "not asked";
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < options.program.size(); i += 2) {
    bytes.push_back(
        static_cast<uint8_t>(std::strtoul(options.program.substr(i, 2).c_str(), nullptr, 16)));
  }
  const Program program = decode(bytes);
  Bench bench(static_cast<Base>(program.base % kBaseCount), options.width);
  const Outcome outcome = bench.run(program, "program", 0);
  bench.print();
  std::printf("mount: problem %u, error %d, value %llu; %u corruptions\n",
              static_cast<unsigned>(outcome.mount.problem), outcome.mount.error,
              static_cast<unsigned long long>(outcome.mount.value), outcome.walk.corruptions);
}

TEST(Edit, programs_survive_being_written_down) {
  Random random(options.seed);
  for (uint32_t i = 0; i < 1000; ++i) {
    std::vector<uint8_t> bytes(random.below(200));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
    const std::vector<uint8_t> once = encode(decode(bytes));
    EXPECT_EQ(encode(decode(once)), once);
  }
}

void parse(int argc, char** argv) {
  const auto is = [&](int i, const char* name) {
    return std::strcmp(argv[i], name) == 0 && i + 1 < argc;
  };
  for (int i = 1; i < argc; ++i) {
    if (is(i, "--count")) {
      options.count = std::strtoull(argv[++i], nullptr, 0);
      options.asked = true;
    } else if (is(i, "--first")) {
      options.first = std::strtoull(argv[++i], nullptr, 0);
    } else if (is(i, "--seed")) {
      options.seed = std::strtoull(argv[++i], nullptr, 0);
    } else if (is(i, "--width")) {
      options.width = static_cast<uint32_t>(std::strtoul(argv[++i], nullptr, 0));
    } else if (is(i, "--sweep-step")) {
      options.sweep_step = std::max(static_cast<uint32_t>(std::strtoul(argv[++i], nullptr, 0)), 1u);
    } else if (is(i, "--base")) {
      options.base = argv[++i];
    } else if (is(i, "--program")) {
      options.program = argv[++i];
    } else if (is(i, "--save")) {
      options.save = argv[++i];
    } else {
      std::fprintf(stderr, "mutate_test: what is %s?\n", argv[i]);
      std::exit(2);
    }
  }
}

}  // namespace
}  // namespace gofs::fuzz

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gofs::fuzz::parse(argc, argv);
  gofs::fuzz::watch();
  return RUN_ALL_TESTS();
}
