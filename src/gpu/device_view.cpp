// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_view.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "gpu/driver_function.h"
#include "gpu/own_calls.h"
#include "ssd/system_failure.h"

namespace gofs::gpu {

namespace {

std::string errno_text(int code) { return std::generic_category().message(code); }

/// The pages of a file that stands for the memory.
class DmaBufView final : public DeviceView {
 public:
  DmaBufView(void* base, uint64_t bytes) : base_(base), bytes_(bytes) {}
  DmaBufView(const DmaBufView&) = delete;
  DmaBufView& operator=(const DmaBufView&) = delete;
  ~DmaBufView() override { ::munmap(base_, bytes_); }
  uint8_t* base() const override { return static_cast<uint8_t*>(base_); }
  const char* way() const override { return "by a dma-buf"; }

 private:
  void* const base_;
  const uint64_t bytes_;
};

/// The driver's function, which only the driver's own library has.
using GetHandle = CUresult (*)(void* handle, CUdeviceptr memory, size_t bytes,
                               CUmemRangeHandleType type, unsigned long long flags);

GetHandle find_get_handle() {
  const OwnCalls own;
  return find_driver_function<GetHandle>("cuMemGetHandleForAddressRange", 11070);
}

std::unique_ptr<DeviceView> try_dma_buf(void* device, uint64_t bytes, std::string& lacks) {
  const GetHandle get_handle = find_get_handle();
  int file = -1;
  if (get_handle == nullptr || get_handle(&file, reinterpret_cast<CUdeviceptr>(device), bytes,
                                          CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) != CUDA_SUCCESS) {
    lacks = "the driver gives no dma-buf of this memory";
    return nullptr;
  }
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = errno;
  ::close(file);  // the mapping keeps it
  if (base != MAP_FAILED) return std::make_unique<DmaBufView>(base, bytes);
  lacks = "the driver does not map a dma-buf (" + errno_text(error) +
          "), as drivers of CUDA 13.3 on can";
  return nullptr;
}

/// libgdrapi, of which only these are used. Its handles are an opaque pointer, and a number in a
/// structure.
struct GdrApi {
  struct Pinned {
    unsigned long number;
  };
  void* (*open)();
  int (*close)(void* gdr);
  int (*pin_buffer)(void* gdr, unsigned long device, size_t bytes, uint64_t token, uint32_t space,
                    Pinned* pinned);
  int (*unpin_buffer)(void* gdr, Pinned pinned);
  int (*map)(void* gdr, Pinned pinned, void** base, size_t bytes);
  int (*unmap)(void* gdr, Pinned pinned, void* base, size_t bytes);
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

/// Once; null with the reason.
const GdrApi* gdr_api(std::string& lacks) {
  static GdrApi api{};
  static const bool there = [] {
    void* const library = ::dlopen("libgdrapi.so.2", RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && find(library, "gdr_open", api.open) &&
           find(library, "gdr_close", api.close) &&
           find(library, "gdr_pin_buffer", api.pin_buffer) &&
           find(library, "gdr_unpin_buffer", api.unpin_buffer) &&
           find(library, "gdr_map", api.map) && find(library, "gdr_unmap", api.unmap);
  }();
  if (!there) lacks = "libgdrapi.so.2 is not installed (gdrdrv-dkms, libgdrapi)";
  return there ? &api : nullptr;
}

class GdrView final : public DeviceView {
 public:
  GdrView(const GdrApi& api, uint64_t bytes) : api_(api), bytes_(bytes) {}
  GdrView(const GdrView&) = delete;
  GdrView& operator=(const GdrView&) = delete;
  ~GdrView() override {
    if (base_ != nullptr) api_.unmap(gdr_, pinned_, base_, bytes_);
    if (is_pinned_) api_.unpin_buffer(gdr_, pinned_);
    if (gdr_ != nullptr) api_.close(gdr_);
  }
  /// Empty, or what went wrong.
  std::string open(void* device) {
    gdr_ = api_.open();
    if (gdr_ == nullptr) return "gdrdrv is not loaded (modprobe gdrdrv)";
    const auto address = reinterpret_cast<unsigned long>(device);
    int error = api_.pin_buffer(gdr_, address, bytes_, 0, 0, &pinned_);
    if (error != 0) return "gdrdrv does not pin it: " + errno_text(error);
    is_pinned_ = true;
    error = api_.map(gdr_, pinned_, &base_, bytes_);
    return error == 0 ? std::string() : "gdrdrv does not map it: " + errno_text(error);
  }
  uint8_t* base() const override { return static_cast<uint8_t*>(base_); }
  const char* way() const override { return "by gdrdrv"; }

 private:
  const GdrApi& api_;
  const uint64_t bytes_;
  void* gdr_ = nullptr;
  GdrApi::Pinned pinned_{};
  bool is_pinned_ = false;
  void* base_ = nullptr;
};

std::unique_ptr<DeviceView> try_gdr(void* device, uint64_t bytes, std::string& lacks) {
  const GdrApi* const api = gdr_api(lacks);
  if (api == nullptr) return nullptr;
  auto view = std::make_unique<GdrView>(*api, bytes);
  lacks = view->open(device);
  if (!lacks.empty()) return nullptr;
  return view;
}

}  // namespace

std::unique_ptr<DeviceView> DeviceView::make(void* device, uint64_t bytes) {
  std::string no_dma_buf;
  std::string no_gdr;
  std::unique_ptr<DeviceView> view = try_dma_buf(device, bytes, no_dma_buf);
  if (view == nullptr) view = try_gdr(device, bytes, no_gdr);
  if (view == nullptr) {
    ssd::fail_with(EOPNOTSUPP,
                   "a GPU's memory cannot be mapped for an SSD: " + no_dma_buf + "; " + no_gdr);
  }
  return view;
}

}  // namespace gofs::gpu
