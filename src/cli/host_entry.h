// SPDX-License-Identifier: Apache-2.0
//
// What comes to stand in a directory of the host wholly or not at all: it is made under a hidden
// name, gets its contents and attributes, and then takes its place, with that of what was there.
#pragma once

#include <cerrno>
#include <string>

#include "cli/output_file.h"
#include "ssd/descriptor.h"

namespace gofs::cli {

/// A name that only this command knows; it goes with this object.
class HiddenEntry {
 public:
  /// In the open directory `directory`, of which it keeps a descriptor of its own.
  explicit HiddenEntry(int directory);
  ~HiddenEntry();
  HiddenEntry(const HiddenEntry&) = delete;
  HiddenEntry& operator=(const HiddenEntry&) = delete;

  /// Has `make`, which answers as mkfifoat(2) does, make it. False: errno says why.
  template <typename Make>
  bool make(const Make& make) {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
      name_ = random_name();
      if (make(directory_.get(), name_.c_str()) == 0) return true;
      if (errno != EEXIST) break;
    }
    name_.clear();
    return false;
  }
  /// What was made, without regard to what it is (O_PATH); closed where errno says why not.
  ssd::Descriptor look() const;
  /// Gives it the name `name` instead. False: errno says why.
  bool place(const std::string& name);

 private:
  static std::string random_name();

  ssd::Descriptor directory_;
  std::string name_;  // empty: there is none
};

/// A regular file that is made so.
class NewHostFile final : public OutputFile {
 public:
  /// `path` is for messages.
  NewHostFile(int directory, std::string path);

  /// False: errno says why it cannot be made in this directory.
  bool make();
  int descriptor() const { return file_.get(); }
  void write(const uint8_t* data, uint64_t bytes, uint64_t offset) override;
  void finish(uint64_t bytes) override;
  void place(const std::string& name);

 private:
  const std::string path_;
  HiddenEntry entry_;
  ssd::Descriptor file_;
};

}  // namespace gofs::cli
