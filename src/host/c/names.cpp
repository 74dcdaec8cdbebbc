// SPDX-License-Identifier: Apache-2.0
//
// gofs/gofs.h: names of all kinds, one by one and many at once.
#include <cerrno>
#include <cstdint>
#include <vector>

#include "host/c/call.h"
#include "host/c/give.h"

namespace gofs::host::c {

namespace {

int64_t batch_create(Volume& volume, const char* path, const gofs_new_file_t* files, uint64_t count,
                     uint32_t mode, int* errors) {
  if (count != 0 && files == nullptr) return fail(EINVAL, {"files is null"});
  if (count > SIZE_MAX / sizeof(NewFile)) {
    return fail(EINVAL, {"count is more than memory has room for"});
  }
  std::vector<NewFile> list;
  list.reserve(count);  // first: a count that is wrong finds no memory
  for (uint64_t i = 0; i < count; ++i) {
    if (files[i].name == nullptr) return fail(EINVAL, {"a name is null"});
    list.push_back({files[i].name, files[i].data, files[i].bytes});
  }
  const auto answers = volume.batch_create(path, list, mode);
  if (!answers) return fail(answers.error());
  int64_t made = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const int error = (*answers)[i];
    made += error == 0 ? 1 : 0;
    if (errors != nullptr) errors[i] = -error;
  }
  return made;
}

}  // namespace

}  // namespace gofs::host::c

using namespace gofs::host::c;

int gofs_access(gofs_volume* volume, const char* path, int mode) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return volume->volume.access(path, mode); });
}

int gofs_mkdir(gofs_volume* volume, const char* path, uint32_t mode) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return volume->volume.mkdir(path, mode); });
}

int gofs_mknod(gofs_volume* volume, const char* path, uint32_t mode, uint32_t device_major,
               uint32_t device_minor) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return volume->volume.mknod(path, mode, device_major, device_minor); });
}

int gofs_symlink(gofs_volume* volume, const char* target, const char* path) {
  return call({{"volume", volume}, {"target", target}, {"path", path}},
              [&] { return volume->volume.symlink(target, path); });
}

int64_t gofs_readlink(gofs_volume* volume, const char* path, char* buffer, uint64_t bytes) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return give_text(volume->volume.readlink(path), buffer, bytes); });
}

int gofs_link(gofs_volume* volume, const char* existing, const char* path) {
  return call({{"volume", volume}, {"existing", existing}, {"path", path}},
              [&] { return volume->volume.link(existing, path); });
}

int gofs_unlink(gofs_volume* volume, const char* path) {
  return call({{"volume", volume}, {"path", path}}, [&] { return volume->volume.unlink(path); });
}

int gofs_rmdir(gofs_volume* volume, const char* path) {
  return call({{"volume", volume}, {"path", path}}, [&] { return volume->volume.rmdir(path); });
}

int gofs_rename(gofs_volume* volume, const char* from, const char* to, uint32_t flags) {
  return call({{"volume", volume}, {"from", from}, {"to", to}},
              [&] { return volume->volume.rename(from, to, flags); });
}

int64_t gofs_batch_create(gofs_volume* volume, const char* path, const gofs_new_file_t* files,
                          uint64_t count, uint32_t mode, int* errors) {
  return call({{"volume", volume}, {"path", path}},
              [&] { return batch_create(volume->volume, path, files, count, mode, errors); });
}
