// SPDX-License-Identifier: Apache-2.0
//
// The images of a volume that a benchmark makes for itself; removed with the object.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace gofs::bench {

class Images {
 public:
  Images(const std::string& folder, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      paths_.push_back(fmt::format("{}/gofs-bench-{}-{}.img", folder, ::getpid(), i));
    }
  }
  ~Images() {
    for (const std::string& path : paths_) (void)::unlink(path.c_str());
  }
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  std::vector<std::string> paths_;
};

}  // namespace gofs::bench
