// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "ssd/system_failure.h"

namespace gofs::ssd {

ScratchFolder::ScratchFolder(const std::string& parent) : path_(parent + "/gofs-qemu-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) fail_with(errno, path_ + ": cannot make a folder");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace gofs::ssd
