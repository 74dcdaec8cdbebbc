// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a volume whose SSD is a copy in memory, as on a GPU, with calls that do not pass
// the host's queue for launches, as those of a program's kernels do not.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "gpu/image_copy.h"
#include "host/backend_for_test.h"
#include "kernels/call.h"
#include "ssd/media_host.h"

namespace gofs::host {

/// How the copy is made.
struct CopyControls {
  std::atomic<int> pause_us{0};              // before each part
  std::atomic<uint64_t> bytes_max{1 << 30};  // as ImageCopy::collect()
  std::atomic<int> reserve_error{0};         // of the host's disk
  std::atomic<int> write_error{0};
  std::atomic<int> syncs{0};
};

/// A file whose errors are set from outside.
class ControlledFile final : public ssd::FileBackEnd {
 public:
  ControlledFile(std::unique_ptr<ssd::FileBackEnd> file, CopyControls& controls)
      : file_(std::move(file)), controls_(controls) {}
  uint64_t size() const override { return file_->size(); }
  int read(uint64_t offset, std::span<const iovec> parts) override {
    return file_->read(offset, parts);
  }
  int write(uint64_t offset, std::span<const iovec> parts) override {
    const int error = controls_.write_error;
    return error != 0 ? error : file_->write(offset, parts);
  }
  int zero(uint64_t offset, uint64_t bytes) override { return file_->zero(offset, bytes); }
  int reserve(uint64_t, uint64_t) override { return controls_.reserve_error; }
  int sync() override {
    ++controls_.syncs;
    return 0;  // as far as a test can tell
  }

 private:
  const std::unique_ptr<ssd::FileBackEnd> file_;
  CopyControls& controls_;
};

class CopiedImage final : public kernels::LoadedMedia, private kernels::MemoryCopier {
 public:
  CopiedImage(const std::string& path, CopyControls& controls)
      : controls_(controls),
        file_(ssd::make_positional_file(ssd::ClaimedImage(path, ssd::FileAccess::kReadWrite)),
              controls),
        memory_media_(memory_, file_.size()),
        media_(memory_media_.media()),
        marks_(memory_.allocate_array<uint32_t>((media_.bytes >> ssd::kMarkShift) + 1)) {
    const iovec all{media_.base, media_.bytes};
    if (file_.read(0, {&all, 1}) != 0) throw std::bad_alloc();
    media_.marks = marks_;
    changes_ = std::make_unique<gpu::ImageCopy>(gpu::ImageCopy::Source{media_, false}, file_);
  }
  ~CopiedImage() override { memory_.release(marks_); }

  const ssd::Media& media() const override { return media_; }
  bool is_copy() const override { return true; }
  std::string collect(kernels::MemoryCopier* warp) override {
    by_ = warp;
    return changes_->collect(controls_.bytes_max, *this);
  }
  bool is_in_place() const override { return changes_->is_in_place(); }
  std::string sync() override { return changes_->write(); }
  bool may_try_again() const override { return !changes_->has_given_up(); }

 private:
  std::string pull(void* to, const void* from, uint64_t bytes) override {
    const int pause_us = controls_.pause_us;
    if (pause_us != 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    if (by_ != nullptr) return by_->pull(to, from, bytes);
    std::memcpy(to, from, bytes);
    return {};
  }

  kernels::MemoryCopier* by_ = nullptr;
  CopyControls& controls_;
  ControlledFile file_;
  simt::HostMemorySpace memory_;
  ssd::MemoryMedia memory_media_;
  ssd::Media media_;
  uint32_t* const marks_;
  std::unique_ptr<gpu::ImageCopy> changes_;
};

class CopyingBackend final : public BackendForTest {
 public:
  explicit CopyingBackend(CopyControls& controls) : controls_(controls) {}
  std::unique_ptr<kernels::LoadedMedia> load_media(const kernels::MediaRequest& request,
                                                   std::string&) override {
    return std::make_unique<CopiedImage>(request.path, controls_);
  }

 private:
  CopyControls& controls_;
};

}  // namespace gofs::host
