// SPDX-License-Identifier: Apache-2.0
//
// A file of a test, gone at its end. For tests of ssd/ only.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gofs::ssd {

class TemporaryFile {
 public:
  /// In the folder `folder`, with a / at its end.
  explicit TemporaryFile(const std::string& folder = ::testing::TempDir())
      : path_(folder + "gofs_file_XXXXXX") {
    const int descriptor = ::mkstemp(path_.data());
    EXPECT_GE(descriptor, 0);
    ::close(descriptor);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }
  void resize(uint64_t bytes) {
    ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(bytes)), 0);
  }
  void write(uint64_t offset, const std::vector<uint8_t>& data) {
    const int descriptor = ::open(path_.c_str(), O_WRONLY);
    ASSERT_EQ(::pwrite(descriptor, data.data(), data.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(data.size()));
    ::close(descriptor);
  }
  std::vector<uint8_t> read(uint64_t offset, size_t bytes) {
    std::vector<uint8_t> data(bytes);
    const int descriptor = ::open(path_.c_str(), O_RDONLY);
    EXPECT_EQ(::pread(descriptor, data.data(), bytes, static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes));
    ::close(descriptor);
    return data;
  }

 private:
  std::string path_;
};

}  // namespace gofs::ssd
