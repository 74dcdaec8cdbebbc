// SPDX-License-Identifier: Apache-2.0
//
// One thread of the differential test: makes random calls in its own directory, and the same on its
// model. What differs is thrown as a Difference. To add a call: a line in the table and a function.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "found_tree.h"
#include "model.h"
#include "session.h"

namespace gofs::judges {

class Difference : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Walker {
 public:
  /// Its directory is made by enter(). `strangers`: calls are made by several users, by turns.
  Walker(uint64_t seed, uint32_t number, bool strangers = false);

  /// What all later calls are made of; it holds what the last one did.
  void enter(Calls& calls);
  /// Makes one call.
  void step();
  /// Makes a file of its directory, or another content of it.
  void put_file(const std::string& name, std::string_view content);
  /// Closes what is open.
  void leave();
  /// Whether the directory is what the model has.
  void check();
  /// Whether a volume that is mounted for reading refuses what would change it.
  void check_read_only();

  uint64_t operations() const { return operations_; }
  uint64_t refused() const { return refused_; }
  uint64_t full() const { return full_; }

  /// What can be done, and how often it is.
  struct Operation {
    const char* name;
    uint32_t weight;
    void (Walker::*run)();
    bool only_gofs = false;
  };
  static std::span<const Operation> operations_table();
  /// How often each was, as the table has them.
  const std::vector<uint64_t>& counts() const { return counts_; }

 private:
  struct OpenFile {
    int fd;
    uint32_t id;
    uint32_t flags;
    uint64_t position;
  };
  using Call = std::function<int64_t()>;
  using Expect = std::function<int64_t(int64_t answer)>;
  using Wanted = std::function<bool(const Object&)>;

  // walker_files.cpp
  void open();
  void close();
  void pwrite();
  void write();
  void pwritev();
  void writev();
  void pwrite_async();
  void pread();
  void read();
  void lseek();
  void seek_data();
  void ftruncate();
  void truncate();
  void fallocate();
  void copy_range();
  void fsync();
  void create_batch();
  void read_batch();
  void write_batch();
  void collect_garbage();
  void sync();
  // walker_lanes.cpp
  void pwrite_lanes();
  void pread_lanes();
  // walker_groups.cpp
  void write_by_scope();
  void read_by_scope();
  void write_side_by_side();
  void append_side_by_side();
  // walker_names.cpp
  void mkdir();
  void mknod();
  void symlink();
  void link();
  void unlink();
  void rmdir();
  void rename();
  void stat();
  void access();
  void readlink();
  void readdir();
  // walker_attributes.cpp
  void chmod();
  void chown();
  void utimens();
  void setxattr();
  void set_list();
  void getxattr();
  void removexattr();

  int64_t both(const std::string& what, const Call& call, const Expect& expect);
  [[noreturn]] void differ(const std::string& what) const;
  uint64_t below(uint64_t limit) { return random_() % limit; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  template <typename T, size_t N>
  T one_of(const T (&choices)[N]) {
    return choices[below(N)];
  }
  uint32_t pick(const Wanted& wanted);
  std::string decorated(std::string path);
  bool is_home(const std::string& path) const;
  std::string some_path();
  std::string some_directory();
  std::string new_path();
  About some_about();
  static std::string words_about(const About& about);
  const OpenFile* find_open(const About& about) const;
  bool is_path_only(const About& about) const;
  uint32_t some_mode();
  std::string some_list();
  std::string some_xattr_of(uint32_t id);
  size_t xattr_bytes(const About& about) const;
  std::string bytes(size_t count);
  uint64_t some_offset(uint64_t size);
  OpenFile* some_open();
  enum class Way { kAt, kAtPosition, kPartsAt, kPartsAtPosition };
  void write_to(OpenFile& file, Way way);
  uint64_t moved_on(const Calls::Buffers& parts, int64_t written) const;
  void compare_read(const std::string& what, const OpenFile& file, uint64_t offset,
                    const std::string& buffer, const Call& call);
  struct SeenPart {
    uint64_t offset;
    std::string data;
  };
  void take_lost_setid(uint32_t id);
  bool has_later_rounds(Scope scope) const;
  void take_later_rounds(uint32_t id, uint64_t offset, std::string_view data, uint64_t done,
                         uint64_t old_end);
  void read_beside(const OpenFile& file, uint64_t from, std::vector<SeenPart>& seen) const;
  std::vector<BatchItem> some_items(uint32_t directory, std::vector<uint32_t>& ids);
  int part_written(const std::string& path, const std::string& bytes, std::string& part);
  void drop_if_gone(uint32_t id);

  const std::string home_;
  const bool strangers_;
  std::mt19937_64 random_;
  Calls* calls_ = nullptr;
  Session* gofs_ = nullptr;  // null: another file system
  Model model_;
  Who who_;
  uint32_t home_id_ = 0;
  std::vector<OpenFile> files_;
  std::vector<uint64_t> counts_;
  uint64_t operations_ = 0;
  uint64_t refused_ = 0;
  uint64_t full_ = 0;
};

/// An answer, with its meaning.
std::string words_of(int64_t answer);

}  // namespace gofs::judges
