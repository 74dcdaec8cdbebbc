// SPDX-License-Identifier: Apache-2.0
#include "path_reads.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <numeric>
#include <utility>

#include "begin_ranges.hpp"

namespace gofs::python {

PathReads::PathReads(Volume& volume, std::vector<std::string>& paths, std::vector<PathRead>& reads,
                     uint64_t stream)
    : volume_(volume),
      paths_(paths),
      reads_(reads),
      stream_(stream),
      firsts_(paths.size() + 1),
      left_(paths.size()) {
  for (const PathRead& read : reads) ++firsts_[read.path + 1];
  std::partial_sum(firsts_.begin(), firsts_.end(), firsts_.begin());
  std::iota(left_.begin(), left_.end(), size_t{0});
}

PathReads::Portion::~Portion() {
  try {
    if (call) (void)call->wait();
    if (!descriptors.empty()) (void)volume_.close_many(descriptors);  // which were read
  } catch (...) {
    // They are closed with the volume.
  }
}

Expected<void> PathReads::read() {
  std::unique_ptr<Portion> before;
  while (!left_.empty() && !error_) {
    std::unique_ptr<Portion> next = open_some(before != nullptr && !before->files.empty());
    begin(*next);
    if (before != nullptr) finish(*before);
    before = std::move(next);
  }
  if (before != nullptr) finish(*before);
  if (error_) return *error_;
  return {};
}

/// Those for which no descriptor is left come again, while others are open that are closed soon.
std::unique_ptr<PathReads::Portion> PathReads::open_some(bool others) {
  const size_t count = std::min(left_.size(), kFilesAtOnce);
  auto portion = std::make_unique<Portion>(volume_);
  portion->files.reserve(count);  // so that nothing fails once they are open
  portion->descriptors.reserve(count);
  const auto end = left_.begin() + static_cast<ptrdiff_t>(count);
  const std::vector<size_t> wanted(left_.begin(), end);
  left_.erase(left_.begin(), end);
  std::vector<std::string> paths;
  paths.reserve(count);
  for (const size_t file : wanted) paths.push_back(std::move(paths_[file]));
  const auto opened = volume_.open_many(paths, O_RDONLY);
  for (size_t k = 0; k < count; ++k) {
    if (!opened[k]) continue;
    portion->files.push_back(wanted[k]);
    portion->descriptors.push_back(*opened[k]);
  }
  others = others || !portion->files.empty();
  for (size_t k = 0; k < count; ++k) {
    if (opened[k]) continue;
    const int code = opened[k].error().code;
    if (code == EMFILE && others) {
      left_.push_back(wanted[k]);
      paths_[wanted[k]] = std::move(paths[k]);
    } else {
      for_each_read(wanted[k], [&](PathRead& read) { read.result = -int64_t{code}; });
    }
  }
  return portion;
}

void PathReads::begin(Portion& portion) {
  if (portion.files.empty()) return;
  std::vector<IoRange> ranges;
  ranges.reserve(portion.files.size());
  for (size_t k = 0; k < portion.files.size(); ++k) {
    for_each_read(portion.files[k], [&](const PathRead& read) {
      ranges.push_back({portion.descriptors[k], read.memory, read.bytes, read.offset});
    });
  }
  auto begun = begin_ranges(volume_, false, ranges, stream_);
  if (begun) {
    portion.call = *std::move(begun);
  } else {
    keep(begun.error());
  }
}

void PathReads::finish(Portion& portion) {
  if (!portion.call) return;
  const auto moved = portion.call->wait();
  portion.call.reset();
  if (!moved) keep(moved.error());
  size_t next = 0;
  for (size_t k = 0; moved && k < portion.files.size(); ++k) {
    for_each_read(portion.files[k], [&](PathRead& read) { read.result = (*moved)[next++]; });
  }
}

void PathReads::keep(const Error& error) {
  if (!error_) error_ = error;
}

}  // namespace gofs::python
