// SPDX-License-Identifier: Apache-2.0
//
// One thread of the differential test: makes random calls in its own directory, and the same on its
// model. What differs is thrown as a Difference.
#pragma once

#include <cstdint>
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
  /// Its directory is made by enter().
  Walker(uint64_t seed, uint32_t number);

  /// The volume that all later calls are about; it holds what the last one did.
  void enter(Session& session);
  /// Makes one call.
  void step();
  /// Makes a file of its directory, or another content of it.
  void put_file(const std::string& name, std::string_view content);
  /// Closes what is open.
  void leave();
  /// Whether the directory is what the model has.
  void check();

  uint64_t operations() const { return operations_; }
  uint64_t refused() const { return refused_; }
  uint64_t full() const { return full_; }

 private:
  struct OpenFile {
    int fd;
    uint32_t id;
    uint32_t flags;
    uint64_t position;
  };
  /// What can be done, and how often it is. To add one: a line here and a function.
  struct Operation {
    const char* name;
    uint32_t weight;
    void (Walker::*run)();
  };
  static std::span<const Operation> operations_table();

  void open();
  void close();
  void pwrite();
  void write();
  void pread();
  void lseek();
  void ftruncate();
  void truncate();
  void mkdir();
  void mknod();
  void symlink();
  void link();
  void unlink();
  void rmdir();
  void rename();
  void chmod();
  void chown();
  void utimens();
  void setxattr();
  void removexattr();
  void stat();
  void readlink();
  void sync();

  template <typename Call, typename Expect>
  int64_t both(const std::string& what, Call call, Expect expect);
  uint64_t below(uint64_t limit) { return random_() % limit; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  template <typename Wanted>
  uint32_t pick(Wanted wanted);
  std::string decorated(std::string path);
  bool is_home(const std::string& path) const;
  std::string some_path();
  std::string some_directory();
  std::string new_path();
  std::string bytes(size_t count);
  uint64_t some_offset(uint64_t size);
  OpenFile* some_open();
  void write_to(OpenFile& file, bool at_position);
  void drop_if_gone(uint32_t id);

  const std::string home_;
  std::mt19937_64 random_;
  Session* session_ = nullptr;
  Model model_;
  uint32_t home_id_ = 0;
  std::vector<OpenFile> files_;
  uint64_t operations_ = 0;
  uint64_t refused_ = 0;
  uint64_t full_ = 0;
};

}  // namespace gofs::judges
