// SPDX-License-Identifier: Apache-2.0
#include "ssd/claimed_image.h"

#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "ssd/device_use.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

namespace {

/// `holder`: "mounted at /home", or nothing.
[[noreturn]] void fail_in_use(const std::string& path, const std::string& holder) {
  fail_with(EBUSY, path + ": in use" + (holder.empty() ? "" : ": " + holder));
}

std::vector<Descriptor>& inherited_claims() {
  static std::vector<Descriptor> claims;
  return claims;
}

/// The file at `path` by the claim that this process has inherited, if it has; else none.
Descriptor inherited(const std::string& path) {
  struct stat wanted {};
  if (inherited_claims().empty() || ::stat(path.c_str(), &wanted) != 0) return {};
  for (const Descriptor& claim : inherited_claims()) {
    struct stat status {};
    if (::fstat(claim.get(), &status) != 0 || !is_same_file(status, wanted)) continue;
    Descriptor file(::fcntl(claim.get(), F_DUPFD_CLOEXEC, 0));
    if (!file.is_open()) fail_with(errno, path);
    return file;
  }
  return {};
}

/// Tries until it is done, or has failed for longer than Linux takes to let go of what a process
/// had that was killed with requests under way (io_uring). errno is that of the last try.
template <typename Try>
bool try_for_a_moment(Try once) {
  constexpr int kTries = 50;
  constexpr std::chrono::milliseconds kPause{5};
  for (int left = kTries; !once(); --left) {
    if ((errno != EBUSY && errno != EWOULDBLOCK) || left == 0) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

/// Whoever writes has it alone.
void lock(int file, const std::string& path, FileAccess access, bool shared) {
  const int wanted = (shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  if (try_for_a_moment([&] { return ::flock(file, wanted) == 0; })) return;
  if (errno != EWOULDBLOCK) fail_with(errno, path);
  if (access == FileAccess::kReadWrite) fail_in_use(path, {});
  fail_with(EBUSY, path + ": mounted for writing");
}

/// Opens a file, or a device that nothing else writes to. What is there is looked at before: an
/// open() of a FIFO waits, and that of some devices does something.
Descriptor open_kind(const std::string& path, FileAccess access, IfMissing missing) {
  struct stat before {};
  const bool there = ::stat(path.c_str(), &before) == 0;
  const bool makes = missing == IfMissing::kMake && !there && errno == ENOENT;
  if (!there && !makes) fail_with(errno, path);
  if (there && S_ISDIR(before.st_mode)) fail_with(EISDIR, path);
  const bool device = there && S_ISBLK(before.st_mode);
  if (there && !device && !S_ISREG(before.st_mode)) {
    fail_with(ENODEV, path + ": neither a regular file nor a block device");
  }
  const bool writes = access == FileAccess::kReadWrite;
  int flags = (writes ? O_RDWR : O_RDONLY) | O_NONBLOCK;
  if (makes) flags |= O_CREAT;
  // Linux refuses it while it has the device itself. Of a file it means nothing without O_CREAT.
  if (writes && device) flags |= O_EXCL;
  Descriptor file;
  std::string holder;
  try_for_a_moment([&] {
    file = Descriptor::open(path, flags, 0666);
    if (file.is_open() || errno != EBUSY || !device) return true;
    holder = holder_of_device("", before.st_rdev);
    errno = EBUSY;
    return !holder.empty();  // Linux has it, and keeps it
  });
  if (!file.is_open() && errno == EBUSY && device) fail_in_use(path, holder);
  if (!file.is_open()) fail_with(errno, path);
  return file;
}

}  // namespace

ClaimedImage::ClaimedImage(const std::string& path, FileAccess access, IfMissing missing)
    : file_(inherited(path)), is_inherited_(file_.is_open()) {
  if (!is_inherited_) file_ = open_kind(path, access, missing);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail_with(errno, path);
  device_ = S_ISBLK(status.st_mode);
  if (!device_ && !S_ISREG(status.st_mode)) fail_with(ENODEV, path + ": replaced meanwhile");
  bytes_ = static_cast<uint64_t>(status.st_size);
  if (device_ && ::ioctl(file_.get(), BLKGETSIZE64, &bytes_) != 0) fail_with(errno, path);
  end_ = bytes_;
  const bool writes = access == FileAccess::kReadWrite;
  if (!is_inherited_) lock(file_.get(), path, access, !writes);
  if (device_) lock_below(path, status, access);
  if (writes) refuse_used(path, status);
}

/// The position of the descriptor means nothing, and this takes a third of what fstat() does.
bool ClaimedImage::was_cut() const {
  if (device_ && !below_.is_open()) return false;
  const off_t end = ::lseek(device_ ? below_.get() : file_.get(), 0, SEEK_END);
  return end >= 0 && static_cast<uint64_t>(end) < end_;
}

std::vector<int> ClaimedImage::descriptors() const {
  std::vector<int> all;
  if (file_.is_open()) all.push_back(file_.get());
  if (below_.is_open()) all.push_back(below_.get());
  return all;
}

ClaimedImage::~ClaimedImage() {
  if (is_inherited_) return;
  if (below_.is_open()) ::flock(below_.get(), LOCK_UN);
  if (file_.is_open()) ::flock(file_.get(), LOCK_UN);
}

/// A mount of the file itself may be older than the loop device. Those who have parts of one file
/// do not meet each other.
void ClaimedImage::lock_below(const std::string& path, const struct stat& status,
                              FileAccess access) {
  const LoopFile file = file_of_loop_device("", status.st_rdev);
  if (file.path.empty()) return;
  below_ = is_inherited_ ? inherited(file.path) : Descriptor();
  if (!below_.is_open()) {
    below_ = Descriptor::open(file.path, O_RDONLY | O_NONBLOCK);
    if (!below_.is_open()) return;  // it is not ours to lock
    lock(below_.get(), path, access, access == FileAccess::kReadOnly || !file.whole);
  }
  const off_t end = ::lseek(below_.get(), 0, SEEK_END);
  if (end >= 0) end_ = std::min(file.offset + bytes_, static_cast<uint64_t>(end));
}

void ClaimedImage::refuse_used(const std::string& path, const struct stat& status) const {
  const std::string loop = loop_device_of("", status);
  if (!loop.empty()) fail_in_use(path, loop + " has it");
}

void inherit_claims(std::vector<Descriptor> claims) { inherited_claims() = std::move(claims); }

}  // namespace gofs::ssd
