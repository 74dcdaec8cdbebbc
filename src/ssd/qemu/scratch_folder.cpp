// SPDX-License-Identifier: Apache-2.0
#include "ssd/qemu/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "ssd/qemu/errors.h"

namespace gofs::ssd {

ScratchFolder::ScratchFolder(const std::string& parent) : path_(parent + "/gofs-qemu-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) throw_errno(errno, path_ + ": cannot make a folder");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace gofs::ssd
