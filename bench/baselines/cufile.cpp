// SPDX-License-Identifier: Apache-2.0
#include "cufile.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "cufile_library.hpp"

namespace gofs::bench {
namespace {

class CufileLane final : public Transfer::Lane {
 public:
  CufileLane(CufileLibrary& library, CUfileHandle_t handle, Pacer& pacer)
      : library_(library), handle_(handle), pacer_(pacer) {}

  int read(uint8_t* slot, uint64_t offset) override {
    const uint64_t end_ns = pacer_.begin(false, offset, kBlockBytes);
    const ssize_t got = library_.read(handle_, slot, kBlockBytes, static_cast<off_t>(offset), 0);
    Pacer::wait_until(end_ns);
    return outcome(got);
  }
  int write(const uint8_t* slot, uint64_t offset, uint64_t) override {
    const uint64_t end_ns = pacer_.begin(true, offset, kBlockBytes);
    const ssize_t put = library_.write(handle_, slot, kBlockBytes, static_cast<off_t>(offset), 0);
    Pacer::wait_until(end_ns);
    return outcome(put);
  }

 private:
  /// libcufile answers with a count, with -1 and errno, or with the negative of an error of its
  /// own.
  static int outcome(ssize_t moved) {
    if (moved == static_cast<ssize_t>(kBlockBytes)) return 0;
    return moved == -1 && errno != 0 ? -errno : -EIO;
  }

  CufileLibrary& library_;
  const CUfileHandle_t handle_;
  Pacer& pacer_;
};

/// A registered file.
class RegisteredFile final : public CufileFile {
 public:
  explicit RegisteredFile(std::unique_ptr<CufileLibrary> library) : library_(std::move(library)) {}
  ~RegisteredFile() override {
    if (registered_) library_->handle_deregister(handle_);
    if (fd_ >= 0) (void)::close(fd_);
  }
  RegisteredFile(const RegisteredFile&) = delete;
  RegisteredFile& operator=(const RegisteredFile&) = delete;

  std::string open(const StampedFile& file) {
    fd_ = ::open(file.path().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
    if (fd_ < 0) return file.path() + ": cannot be opened with O_DIRECT";
    bytes_ = file.bytes();
    CUfileDescr_t description{};
    description.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
    description.handle.fd = fd_;
    const CUfileError_t error = library_->handle_register(&handle_, &description);
    if (error.err != CU_FILE_SUCCESS) return "cuFileHandleRegister: " + describe(error);
    registered_ = true;
    return {};
  }

  std::unique_ptr<Transfer> make_transfer(const ssd::TimingModel& model) override;
  const std::string& mode() const override { return library_->mode(); }
  CufileLibrary& library() { return *library_; }
  CUfileHandle_t handle() const { return handle_; }
  int fd() const { return fd_; }
  uint64_t bytes() const { return bytes_; }

 private:
  const std::unique_ptr<CufileLibrary> library_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
  CUfileHandle_t handle_{};
  bool registered_ = false;
};

class CufileTransfer final : public Transfer {
 public:
  CufileTransfer(RegisteredFile& file, const ssd::TimingModel& model)
      : file_(file), pacer_(model) {}

  uint64_t read_bytes() const override { return file_.bytes(); }
  uint64_t written_bytes() const override { return file_.bytes(); }
  /// Not needed, but what a program does that uses its buffers again and again.
  void attach(void* memory, uint64_t bytes) override {
    attached_ = file_.library().buf_register(memory, bytes, 0).err == CU_FILE_SUCCESS;
  }
  void detach(void* memory) override {
    if (attached_) (void)file_.library().buf_deregister(memory);
  }
  std::unique_ptr<Lane> make_lane() override {
    return std::make_unique<CufileLane>(file_.library(), file_.handle(), pacer_);
  }
  int read_back(uint8_t* block, uint64_t offset) override {
    const ssize_t got = ::pread(file_.fd(), block, kBlockBytes, static_cast<off_t>(offset));
    if (got < 0) return -errno;
    return got == static_cast<ssize_t>(kBlockBytes) ? 0 : -EIO;
  }

 private:
  RegisteredFile& file_;
  Pacer pacer_;
  bool attached_ = false;
};

std::unique_ptr<Transfer> RegisteredFile::make_transfer(const ssd::TimingModel& model) {
  return std::make_unique<CufileTransfer>(*this, model);
}

}  // namespace

std::unique_ptr<CufileFile> open_cufile(const StampedFile& file, Device& device, std::string& why) {
  if (device.backend().is_host()) {
    why = "there is no GPU";
    return nullptr;
  }
  auto library = CufileLibrary::make(why);
  if (library == nullptr) return nullptr;
  auto registered = std::make_unique<RegisteredFile>(std::move(library));
  why = registered->open(file);
  if (!why.empty()) return nullptr;
  return registered;
}

}  // namespace gofs::bench
