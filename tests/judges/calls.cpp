// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

namespace gofs::judges {

int Calls::xattrs(const About& about, Xattrs& values) {
  values.clear();
  int64_t bytes = listxattr(about, nullptr, 0);  // how many there are
  if (bytes <= 0) return static_cast<int>(bytes);
  std::string list(vfs::kXattrListBytesMax, '\0');
  bytes = listxattr(about, list.data(), list.size());
  if (bytes < 0) return static_cast<int>(bytes);
  std::string value(vfs::kXattrListBytesMax, '\0');
  for (size_t at = 0; at < static_cast<size_t>(bytes);) {
    const std::string name = list.c_str() + at;
    at += name.size() + 1;
    const int64_t got = getxattr(about, name, value.data(), value.size());
    if (got < 0) return static_cast<int>(got);
    values[name] = value.substr(0, static_cast<size_t>(got));
  }
  return 0;
}

}  // namespace gofs::judges
