// SPDX-License-Identifier: Apache-2.0
//
// A folder of this process's own, removed with all that is in it when it goes. Host only.
#pragma once

#include <string>

namespace gofs::ssd {

class ScratchFolder {
 public:
  /// In folder `parent`. Throws std::system_error.
  explicit ScratchFolder(const std::string& parent);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

}  // namespace gofs::ssd
