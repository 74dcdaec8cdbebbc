// SPDX-License-Identifier: Apache-2.0
//
// Memory that the host, warps and a controller see at different addresses, as with a GPU's memory
// and a physical SSD behind an IOMMU: a file in memory, mapped for each of them. ThreadSanitizer
// takes the views of a byte for different ones: what is released in one is not acquired in the
// other. With it the virtual controller, which runs here, has the view of the warps.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simt/platform.h"
#include "ssd/dma_map.h"
#include "ssd/dma_memory.h"

namespace gofs::testing {

class MappedApart final : public ssd::MemorySource {
 public:
  explicit MappedApart(uint64_t bytes) : bytes_(bytes) {
    const int file = ::memfd_create("mapped_apart", MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(file, static_cast<off_t>(bytes)), 0);
    base_ = map(file);
    warps_ = map(file);
#if defined(GOFS_THREAD_SANITIZER)
    other_ = warps_;
#else
    other_ = map(file);
#endif
    ::close(file);
  }
  MappedApart(const MappedApart&) = delete;
  MappedApart& operator=(const MappedApart&) = delete;
  ~MappedApart() override {
    ::munmap(base_, bytes_);
    ::munmap(warps_, bytes_);
    if (other_ != warps_) ::munmap(other_, bytes_);
  }

  uint8_t* base() const override { return static_cast<uint8_t*>(base_); }
  uint8_t* warp_base() const override { return static_cast<uint8_t*>(warps_); }
  uint64_t bytes() const override { return bytes_; }
  std::string description() const override { return "memory that is mapped several times"; }
  ssd::DmaRange range() const {
    const auto begin = reinterpret_cast<uint64_t>(warps_);
    return {begin, begin + bytes_, reinterpret_cast<uint64_t>(other_)};
  }

 private:
  void* map(int file) const {
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return memory;
  }

  const uint64_t bytes_;
  void* base_;
  void* warps_;
  void* other_;  // the controller's
};

}  // namespace gofs::testing
