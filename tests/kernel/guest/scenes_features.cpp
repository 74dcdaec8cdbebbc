// SPDX-License-Identifier: Apache-2.0
//
// What needs a feature of the volume or one of F2FS's own system calls.
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "ops.h"
#include "scenes.h"

namespace gofs::judge {
namespace {

constexpr unsigned long kIocGarbageCollect = _IOW(0xf5, 6, uint32_t);
constexpr unsigned long kIocSetPinFile = _IOW(0xf5, 13, uint32_t);
constexpr int kFlagCaseFold = 0x40000000;

void set_flags(const std::string& path, int flags) {
  const Fd file = open_or_die(path, O_RDONLY);
  check(::ioctl(file.get(), FS_IOC_SETFLAGS, &flags), "set flags of " + path);
}

void must_make_file(const std::string& path, size_t size, uint64_t seed) {
  if (!make_file(path, size, seed)) die("full: " + path);
}

void compressed_files(Random& random) {
  make_directory("refused/compressed");
  set_flags("refused/compressed", FS_COMPR_FL);  // what is made inside inherits it
  for (const size_t size : {20000u, 65536u, 500000u}) {
    // The same 64 bytes over and over: sure to be stored compressed.
    std::string data;
    const std::string piece = noise(64, random.next());
    while (data.size() < size) data += piece;
    const Fd file = open_or_die("refused/compressed/" + std::to_string(size), O_CREAT | O_WRONLY);
    if (!write_at(file.get(), data, 0)) die("full");
  }
}

void casefolded_directory(Random& random) {
  make_directory("refused/casefold");
  set_flags("refused/casefold", kFlagCaseFold);
  must_make_file("refused/casefold/MiXed CaSe", 100, random.next());
  must_make_file("refused/casefold/STRASSE", 100, random.next());
}

void encrypted_directory(Random& random) {
  alignas(fscrypt_add_key_arg) char space[sizeof(fscrypt_add_key_arg) + 64] = {};
  auto* argument = reinterpret_cast<fscrypt_add_key_arg*>(space);
  argument->key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER;
  argument->raw_size = 64;
  std::memcpy(argument->raw, noise(64, 1).data(), 64);
  const Fd root = open_or_die(".", O_RDONLY | O_DIRECTORY);
  check(::ioctl(root.get(), FS_IOC_ADD_ENCRYPTION_KEY, argument), "add encryption key");
  make_directory("refused/encrypted");
  fscrypt_policy_v2 policy{};
  policy.version = FSCRYPT_POLICY_V2;
  policy.contents_encryption_mode = FSCRYPT_MODE_AES_256_XTS;
  policy.filenames_encryption_mode = FSCRYPT_MODE_AES_256_CTS;
  policy.flags = FSCRYPT_POLICY_FLAGS_PAD_16;
  std::memcpy(policy.master_key_identifier, argument->key_spec.u.identifier,
              sizeof policy.master_key_identifier);
  {
    const Fd directory = open_or_die("refused/encrypted", O_RDONLY | O_DIRECTORY);
    check(::ioctl(directory.get(), FS_IOC_SET_ENCRYPTION_POLICY, &policy), "set policy");
  }
  must_make_file("refused/encrypted/secret", 10000, random.next());
}

}  // namespace

void flags_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("flags");
  constexpr std::pair<const char*, int> kFlags[] = {{"immutable", FS_IMMUTABLE_FL},
                                                    {"append", FS_APPEND_FL},
                                                    {"nodump", FS_NODUMP_FL},
                                                    {"noatime", FS_NOATIME_FL},
                                                    {"sync", FS_SYNC_FL}};
  for (const auto& [name, flag] : kFlags) {
    must_make_file(std::string("flags/") + name, 6000, random.next());
    set_flags(std::string("flags/") + name, flag);
    const std::string directory = std::string("flags/") + name + "_dir";
    make_directory(directory);
    must_make_file(directory + "/inside", 100, random.next());
    set_flags(directory, flag);
  }
  make_directory("flags/dirsync");
  set_flags("flags/dirsync", FS_DIRSYNC_FL);
  must_make_file("flags/dirsync/file", 100, random.next());
  {
    const Fd file = open_or_die("flags/pinned", O_CREAT | O_RDWR);
    uint32_t pin = 1;
    // Refused (EINVAL) on volumes that must always write elsewhere (mode=lfs).
    if (::ioctl(file.get(), kIocSetPinFile, &pin) < 0 && errno != EINVAL) die("pin");
    // Later kernels (7.2) give a pinned file blocks here alone: a write to a hole is an EIO.
    if (::fallocate(file.get(), 0, 0, 50000) < 0) die("fallocate of a pinned file");
    if (!write_at(file.get(), content(50000, random.next()), 0)) die("full");
  }
  // Let the cleaner move what is there, segment by segment, until it finds nothing more.
  checkpoint(".");
  const Fd root = open_or_die(".", O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 12; ++i) {
    uint32_t wait = 1;
    if (::ioctl(root.get(), kIocGarbageCollect, &wait) < 0) {
      if (errno != EAGAIN && errno != ENODATA && errno != EBUSY) die("garbage collection");
      break;
    }
  }
}

void verity_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("verity");
  for (const size_t size : {0u, 100u, 4096u, 4097u, 200000u, 1000000u}) {
    const std::string path = "verity/" + std::to_string(size);
    must_make_file(path, size, random.next());
    fsverity_enable_arg argument{};
    argument.version = 1;
    argument.hash_algorithm = FS_VERITY_HASH_ALG_SHA256;
    argument.block_size = kBlock;
    const Fd file = open_or_die(path, O_RDONLY);
    check(::ioctl(file.get(), FS_IOC_ENABLE_VERITY, &argument), "enable verity on " + path);
  }
}

void project_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("project");
  for (const uint32_t project : {1u, 42u, 70000u}) {
    const std::string path = "project/" + std::to_string(project);
    make_directory(path);
    const Fd directory = open_or_die(path, O_RDONLY | O_DIRECTORY);
    fsxattr attributes{};
    check(::ioctl(directory.get(), FS_IOC_FSGETXATTR, &attributes), "fsgetxattr");
    attributes.fsx_projid = project;
    attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
    check(::ioctl(directory.get(), FS_IOC_FSSETXATTR, &attributes), "fssetxattr");
    for (int i = 0; i < 10; ++i) {
      must_make_file(path + "/" + std::to_string(i), random.below(9000), random.next());
    }
    make_directory(path + "/dir");
    must_make_file(path + "/dir/inherits", 10, random.next());
  }
}

void refused_scene(const Scene& scene) {
  Random random(scene.seed);
  make_directory("refused");
  make_directory("beside");
  must_make_file("beside/plain", 20000, random.next());
  if (scene.scale & 1) compressed_files(random);
  if (scene.scale & 2) casefolded_directory(random);
  if (scene.scale & 4) encrypted_directory(random);
}

}  // namespace gofs::judge
