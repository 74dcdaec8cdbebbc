// SPDX-License-Identifier: Apache-2.0
#include "host/image/host_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "ssd/descriptor.h"

namespace gofs::image {
namespace {

Timestamp timestamp(const timespec& time) {
  return Timestamp{time.tv_sec, static_cast<uint32_t>(time.tv_nsec)};
}

Attributes attributes_of(const struct stat& about) {
  Attributes attributes;
  attributes.mode = static_cast<uint16_t>(about.st_mode & format::kModePermissionMask);
  attributes.uid = about.st_uid;
  attributes.gid = about.st_gid;
  attributes.atime = timestamp(about.st_atim);
  attributes.mtime = timestamp(about.st_mtim);
  attributes.ctime = timestamp(about.st_ctim);
  return attributes;
}

/// The names in a directory, sorted, without the dots.
Status list_directory(const std::string& path, std::vector<std::string>* names) {
  DIR* stream = opendir(path.c_str());
  if (stream == nullptr) return Status::system_failure(-errno, path);
  int error = 0;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream);
    if (entry == nullptr) {
      error = errno;
      break;
    }
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names->push_back(name);
  }
  closedir(stream);
  if (error != 0) return Status::system_failure(-error, path);
  std::sort(names->begin(), names->end());
  return {};
}

/// The blocks of a file that its host keeps data for. False if the host cannot tell.
bool find_data_ranges(int fd, uint64_t size_bytes, std::vector<FileRange>* ranges) {
  const auto end = static_cast<off_t>(size_bytes);
  for (off_t at = 0; at < end;) {
    const off_t data = lseek(fd, at, SEEK_DATA);
    if (data < 0) return errno == ENXIO;  // a hole up to the end
    const off_t hole = lseek(fd, data, SEEK_HOLE);
    if (hole <= data) return false;
    auto first = static_cast<uint64_t>(data) / kBlockBytes;
    const uint64_t last =
        simt::divide_up(std::min(static_cast<uint64_t>(hole), size_bytes), kBlockBytes);
    if (last > std::numeric_limits<uint32_t>::max()) return false;
    if (!ranges->empty()) {
      const FileRange& before = ranges->back();
      first = std::max(first, uint64_t{before.first_block} + before.block_count);
    }
    if (first < last) {
      ranges->push_back(
          FileRange{static_cast<uint32_t>(first), static_cast<uint32_t>(last - first)});
    }
    at = hole;
  }
  return true;
}

/// Reads all of a range; a file that became shorter meanwhile is an error.
int read_fully(int fd, uint64_t offset_bytes, void* target, size_t bytes) {
  auto* to = static_cast<uint8_t*>(target);
  while (bytes > 0) {
    const ssize_t done = pread(fd, to, bytes, static_cast<off_t>(offset_bytes));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return -errno;
    if (done == 0) return -EIO;
    to += done;
    offset_bytes += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
  return 0;
}

class TreeCopy {
 public:
  TreeCopy(ImageBuilder& builder, const HostTreeOptions& options, HostTreeCounts* counts)
      : builder_(builder), options_(options), counts_(counts) {}

  Status run(Directory into, const std::string& host_path) {
    struct stat about {};
    if (stat(host_path.c_str(), &about) != 0) return Status::system_failure(-errno, host_path);
    builder_.set_attributes(into, attributes_of(about));
    waiting_.push_back({into, host_path});
    while (!waiting_.empty()) {
      const auto [directory, path] = std::move(waiting_.back());
      waiting_.pop_back();
      std::vector<std::string> names;
      GOFS_RETURN_IF_FAILED(list_directory(path, &names));
      for (const std::string& name : names) {
        Status status = copy_entry(directory, path + "/" + name, name);
        if (!status.ok()) {
          status.message = path + "/" + name + ": " + status.message;
          return status;
        }
      }
    }
    return {};
  }

 private:
  Status copy_entry(Directory parent, const std::string& path, const std::string& name) {
    struct stat about {};
    if (lstat(path.c_str(), &about) != 0) return Status::system_failure(-errno, "lstat");
    const Attributes attributes = attributes_of(about);
    if (S_ISDIR(about.st_mode)) {
      DirectoryOptions options;
      options.inline_dentries = options_.inline_dentries;
      Directory made;
      GOFS_RETURN_IF_FAILED(builder_.add_directory(parent, name, attributes, options, &made));
      waiting_.push_back({made, path});
      ++counts_->directories;
      return {};
    }
    const auto identity = std::make_pair(about.st_dev, about.st_ino);
    if (about.st_nlink > 1) {
      if (const auto known = known_.find(identity); known != known_.end()) {
        ++counts_->hard_links;
        return builder_.add_link(parent, name, known->second);
      }
    }
    FileHandle handle;
    if (S_ISREG(about.st_mode)) {
      GOFS_RETURN_IF_FAILED(copy_file(parent, path, name, about, &handle));
      ++counts_->files;
      counts_->bytes += static_cast<uint64_t>(about.st_size);
    } else if (S_ISLNK(about.st_mode)) {
      GOFS_RETURN_IF_FAILED(copy_symlink(parent, path, name, attributes, &handle));
      ++counts_->symlinks;
    } else {
      const auto type = static_cast<format::FileMode>(about.st_mode & format::kModeTypeMask);
      GOFS_RETURN_IF_FAILED(builder_.add_special(
          parent, name, type, {major(about.st_rdev), minor(about.st_rdev)}, attributes, &handle));
      ++counts_->specials;
    }
    if (about.st_nlink > 1) known_.emplace(identity, handle);
    return {};
  }

  Status copy_file(Directory parent, const std::string& path, const std::string& name,
                   const struct stat& about, FileHandle* handle) {
    const auto file = ssd::Descriptor::open(path, O_RDONLY | O_NOFOLLOW);
    if (!file.is_open()) return Status::system_failure(-errno, "open");
    FileSpec spec;
    spec.name = name;
    spec.size_bytes = static_cast<uint64_t>(about.st_size);
    spec.attributes = attributes_of(about);
    spec.inline_data = options_.inline_data;
    spec.content = [&file](uint64_t offset_bytes, void* target, size_t bytes) {
      return read_fully(file.get(), offset_bytes, target, bytes);
    };
    // Fewer blocks than the size asks for: it has holes.
    if (static_cast<uint64_t>(about.st_blocks) * 512 < spec.size_bytes) {
      spec.sparse = find_data_ranges(file.get(), spec.size_bytes, &spec.ranges);
    }
    return builder_.add_file(parent, spec, options_.layout, handle);
  }

  Status copy_symlink(Directory parent, const std::string& path, const std::string& name,
                      const Attributes& attributes, FileHandle* handle) {
    std::vector<char> target(kBlockBytes);
    const ssize_t bytes = readlink(path.c_str(), target.data(), target.size());
    if (bytes < 0) return Status::system_failure(-errno, "readlink");
    return builder_.add_symlink(parent, name,
                                std::string_view(target.data(), static_cast<size_t>(bytes)),
                                attributes, options_.inline_data, handle);
  }

  ImageBuilder& builder_;
  const HostTreeOptions& options_;
  HostTreeCounts* const counts_;
  std::vector<std::pair<Directory, std::string>> waiting_;
  std::map<std::pair<dev_t, ino_t>, FileHandle> known_;  // files with several names
};

}  // namespace

Status add_host_tree(ImageBuilder& builder, Directory into, const std::string& host_path,
                     const HostTreeOptions& options, HostTreeCounts* counts) {
  HostTreeCounts unused;
  try {
    TreeCopy copy(builder, options, counts != nullptr ? counts : &unused);
    return copy.run(into, host_path);
  } catch (const std::bad_alloc&) {
    return Status::failure(-ENOMEM, "out of memory");
  }
}

}  // namespace gofs::image
