// SPDX-License-Identifier: Apache-2.0
#include "host/image/image_builder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>
#include <utility>

#include "format/xattr.h"
#include "host/image/pattern.h"

namespace gofs::image {

using format::InodeLayout;
using format::kBlocksPerSegment;
using format::Log;
using format::NodeBlock;

Content pattern_content(uint64_t seed) {
  return [seed](uint64_t offset_bytes, void* target, size_t bytes) {
    fill_pattern(seed, offset_bytes, target, bytes);
    return 0;
  };
}

Content string_content(std::string bytes) {
  return [text = std::move(bytes)](uint64_t offset_bytes, void* target, size_t count) {
    if (offset_bytes + count > text.size()) return -EIO;
    std::memcpy(target, text.data() + offset_bytes, count);
    return 0;
  };
}

/// A file between planning and its inode.
struct ImageBuilder::OpenFile {
  const FileSpec* spec = nullptr;
  uint32_t ino = 0;
  uint16_t type = 0;
  bool is_inline = false;
  std::unique_ptr<NodeBlock> inode;
  InodeLayout layout{};
  std::vector<BlockRun> runs;  // wanted ones; addresses come as they are written
  NodeTree tree;
  std::vector<BlockRun> written;
};

struct ImageBuilder::InodeRequest {
  uint32_t parent_ino;
  std::string_view name;
  uint16_t type;
  const Attributes& attributes;
  uint32_t links;
  uint8_t inline_flags;
};

namespace {

/// The bytes of an attribute list: header and entries, without an end mark.
std::vector<uint8_t> encode_xattrs(const std::vector<Xattr>& xattrs) {
  std::vector<uint8_t> bytes(sizeof(format::XattrHeader));
  auto& header = *reinterpret_cast<format::XattrHeader*>(bytes.data());
  header.h_magic = format::kXattrMagic;
  header.h_refcount = 1;
  for (const Xattr& xattr : xattrs) {
    format::XattrEntry entry{};
    entry.e_name_index = xattr.index;
    entry.e_name_len = static_cast<uint8_t>(xattr.name.size());
    entry.e_value_size = static_cast<uint16_t>(xattr.value.size());
    const size_t at = bytes.size();
    bytes.resize(at + entry.padded_bytes());
    std::memcpy(bytes.data() + at, &entry, sizeof(entry));
    std::memcpy(bytes.data() + at + sizeof(entry), xattr.name.data(), xattr.name.size());
    std::memcpy(bytes.data() + at + sizeof(entry) + xattr.name.size(), xattr.value.data(),
                xattr.value.size());
  }
  return bytes;
}

Status check_xattrs(const std::vector<Xattr>& xattrs) {
  for (const Xattr& xattr : xattrs) {
    if (xattr.name.size() > 255 || xattr.value.size() > 0xFFFF) {
      return Status::failure(-E2BIG, "extended attribute '" + xattr.name + "' is too large");
    }
  }
  return {};
}

Status check_ranges(const FileSpec& spec, uint64_t block_count) {
  uint64_t end = 0;
  for (const FileRange& range : spec.ranges) {
    if (range.block_count == 0 || range.first_block < end) {
      return Status::failure(-EINVAL, "ranges of a file must ascend and not be empty");
    }
    end = uint64_t{range.first_block} + range.block_count;
  }
  if (end > block_count) return Status::failure(-EINVAL, "a range ends past the end of its file");
  return {};
}

/// Cuts the runs of a file that hold data to pieces of at most `run_blocks`.
std::vector<BlockRun> cut_runs(const std::vector<BlockRun>& runs, uint32_t run_blocks) {
  std::vector<BlockRun> pieces;
  for (const BlockRun& run : runs) {
    if (run.address == format::kNewAddr) continue;
    const uint32_t step = run_blocks == 0 ? run.count : run_blocks;
    for (uint32_t done = 0; done < run.count; done += step) {
      pieces.push_back(BlockRun{run.file_block + done, std::min(step, run.count - done), 0});
    }
  }
  return pieces;
}

/// Appends a run, or lengthens the last one if it goes on there.
void append_run(const BlockRun& run, std::vector<BlockRun>* runs) {
  if (!runs->empty()) {
    BlockRun& last = runs->back();
    const bool adjacent = last.file_block + last.count == run.file_block &&
                          last.address != format::kNewAddr && run.address != format::kNewAddr &&
                          last.address + last.count == run.address;
    if (adjacent) {
      last.count += run.count;
      return;
    }
  }
  runs->push_back(run);
}

}  // namespace

/// Runs `action` unless something failed before; keeps its failure. The only place where exceptions
/// are possible is memory running out.
template <typename Action>
Status ImageBuilder::guarded(Action action) {
  if (!failed_.ok()) return failed_;
  if (finished_) return Status::failure(-EINVAL, "the volume is finished");
  try {
    failed_ = action();
  } catch (const std::bad_alloc&) {
    failed_ = Status::failure(-ENOMEM, "out of memory");
  }
  return failed_;
}

Status ImageBuilder::create(ImageTarget& target, const VolumeOptions& options,
                            std::unique_ptr<ImageBuilder>* builder) {
  std::unique_ptr<ImageBuilder> made(new (std::nothrow) ImageBuilder(target));
  if (made == nullptr) return Status::failure(-ENOMEM, "out of memory");
  GOFS_RETURN_IF_FAILED(made->guarded([&] { return made->begin(options); }));
  *builder = std::move(made);
  return {};
}

Status ImageBuilder::begin(const VolumeOptions& options) {
  GOFS_RETURN_IF_FAILED(writer_.begin(options));
  uint32_t root_ino = 0;
  GOFS_RETURN_IF_FAILED(allocate_ino(&root_ino));
  GOFS_ASSERT(root_ino == format::kRootIno);
  Attributes attributes;
  attributes.mode = 0755;
  // The root is its own parent in "..", but has none in its inode.
  directories_.push_back(PendingDirectory{root_ino, root_ino, "", attributes, {}, 0, {}});
  if ((writer_.feature() & format::kFeatureLostFound) != 0) {
    attributes.mode = 0700;
    GOFS_RETURN_IF_FAILED(add_directory(root(), "lost+found", attributes, {}, nullptr));
  }
  return {};
}

Status ImageBuilder::allocate_ino(uint32_t* ino) {
  *ino = writer_.allocate_nid();
  if (*ino == 0) return Status::failure(-ENOSPC, "the volume has no free node id");
  return {};
}

void ImageBuilder::fill_inode(const InodeRequest& request, NodeBlock* block) const {
  std::memset(block, 0, sizeof(*block));
  format::Inode& inode = block->inode;
  const Timestamp now{writer_.time_s(), 0};
  const Attributes& attributes = request.attributes;
  const Timestamp mtime = attributes.mtime.value_or(now);
  const Timestamp atime = attributes.atime.value_or(now);
  const Timestamp ctime = attributes.ctime.value_or(now);
  inode.i_mode =
      static_cast<uint16_t>(request.type | (attributes.mode & format::kModePermissionMask));
  inode.i_inline = request.inline_flags;
  inode.i_uid = attributes.uid;
  inode.i_gid = attributes.gid;
  inode.i_links = request.links;
  inode.i_atime = atime.seconds;
  inode.i_atime_nsec = atime.nanoseconds;
  inode.i_ctime = ctime.seconds;
  inode.i_ctime_nsec = ctime.nanoseconds;
  inode.i_mtime = mtime.seconds;
  inode.i_mtime_nsec = mtime.nanoseconds;
  inode.i_pino = request.parent_ino;
  inode.i_namelen = static_cast<uint32_t>(request.name.size());
  std::memcpy(inode.i_name, request.name.data(), request.name.size());

  const uint32_t feature = writer_.feature();
  if ((feature & format::kFeatureExtraAttr) == 0) return;
  inode.i_inline = static_cast<uint8_t>(inode.i_inline | format::kInlineExtraAttr);
  format::ExtraAttr& extra = format::extra_attr(inode);
  extra.i_extra_isize = static_cast<uint16_t>(sizeof(format::ExtraAttr));
  constexpr uint8_t kNeedsXattrRoom = format::kInlineXattr | format::kInlineDentry;
  if ((feature & format::kFeatureFlexibleInlineXattr) != 0 &&
      (inode.i_inline & kNeedsXattrRoom) != 0) {
    extra.i_inline_xattr_size = static_cast<uint16_t>(format::kDefaultInlineXattrWords);
  }
  if ((feature & format::kFeatureInodeCrtime) != 0) {
    extra.i_crtime = static_cast<uint64_t>(ctime.seconds);
    extra.i_crtime_nsec = ctime.nanoseconds;
  }
}

/// Adds the attributes to an otherwise complete inode and writes it, with its xattr node if it
/// needs one. i_blocks counts everything but that node.
Status ImageBuilder::write_inode(uint32_t ino, bool of_directory, const std::vector<Xattr>& xattrs,
                                 NodeBlock* block) {
  format::Inode& inode = block->inode;
  if (!xattrs.empty()) {
    GOFS_RETURN_IF_FAILED(check_xattrs(xattrs));
    const std::vector<uint8_t> bytes = encode_xattrs(xattrs);
    const InodeLayout layout = format::inode_layout(inode, writer_.feature());
    const bool has_inline = (inode.i_inline & format::kInlineXattr) != 0;
    const size_t inline_bytes = has_inline ? layout.xattr_bytes : 0;
    const size_t in_inode = std::min(bytes.size(), inline_bytes);
    const size_t in_node = bytes.size() - in_inode;
    if (in_node > format::kXattrNodeBytes) {
      return Status::failure(-ENOSPC, "the extended attributes do not fit");
    }
    std::memcpy(reinterpret_cast<uint8_t*>(block) + layout.xattr_offset, bytes.data(), in_inode);
    if (in_node > 0) {
      const auto node = std::make_unique<NodeBlock>();
      std::memcpy(node->xattrs, bytes.data() + in_inode, in_node);
      const uint32_t nid = writer_.allocate_nid();
      if (nid == 0) return Status::failure(-ENOSPC, "the volume has no free node id");
      GOFS_RETURN_IF_FAILED(writer_.write_node(
          {nid, ino, format::kXattrNodeOffset, of_directory, false}, node.get()));
      inode.i_xattr_nid = nid;
      inode.i_blocks = inode.i_blocks + 1;
    }
  }
  return writer_.write_node({ino, ino, 0, of_directory, false}, block);
}

Status ImageBuilder::add_directory(Directory parent, std::string_view name,
                                   const Attributes& attributes, const DirectoryOptions& options,
                                   Directory* directory) {
  return guarded([&]() -> Status {
    uint32_t ino = 0;
    GOFS_RETURN_IF_FAILED(allocate_ino(&ino));
    PendingDirectory& above = directories_[parent.index];
    GOFS_RETURN_IF_FAILED(above.entries.add(name, ino, format::kTypeDirectory));
    ++above.subdirectories;
    if (directory != nullptr) directory->index = static_cast<uint32_t>(directories_.size());
    const uint32_t parent_ino = above.ino;
    directories_.push_back(
        PendingDirectory{ino, parent_ino, std::string(name), attributes, options, 0, {}});
    return {};
  });
}

void ImageBuilder::set_attributes(Directory directory, const Attributes& attributes) {
  directories_[directory.index].attributes = attributes;
}

Status ImageBuilder::add_file(Directory parent, const FileSpec& file, const FileLayout& layout,
                              FileHandle* handle) {
  const std::span<FileHandle> handles(handle, handle != nullptr ? 1u : 0u);
  return add_files(parent, std::span<const FileSpec>(&file, 1), layout, handles);
}

Status ImageBuilder::add_files(Directory parent, std::span<const FileSpec> files,
                               const FileLayout& layout, std::span<FileHandle> handles) {
  return guarded(
      [&] { return add_files_now(parent, files, format::kModeRegular, layout, handles); });
}

Status ImageBuilder::add_symlink(Directory parent, std::string_view name, std::string_view target,
                                 const Attributes& attributes, bool inline_data,
                                 FileHandle* handle) {
  return guarded([&]() -> Status {
    if (target.empty() || target.size() >= kBlockBytes) {
      return Status::failure(-EINVAL, "a symbolic link's target has 1 to 4095 bytes");
    }
    FileSpec spec;
    spec.name = name;
    spec.size_bytes = target.size();
    spec.content = string_content(std::string(target));
    spec.attributes = attributes;
    spec.inline_data = inline_data;
    const std::span<FileHandle> handles(handle, handle != nullptr ? 1u : 0u);
    return add_files_now(parent, std::span<const FileSpec>(&spec, 1), format::kModeSymlink, {},
                         handles);
  });
}

Status ImageBuilder::add_special(Directory parent, std::string_view name, format::FileMode type,
                                 format::DeviceNumber device, const Attributes& attributes,
                                 FileHandle* handle) {
  return guarded([&]() -> Status {
    format::DeviceSlots slots{0, 0};
    if (type == format::kModeCharDevice || type == format::kModeBlockDevice) {
      if (device.major >= 4096 || device.minor >= 1u << 20) {
        return Status::failure(-EINVAL, "device number out of range");
      }
      slots = format::encode_device(device);
    } else if (type != format::kModeFifo && type != format::kModeSocket) {
      return Status::failure(-EINVAL, "not a special file's type");
    }
    return write_simple(parent, name, type, attributes, slots, handle);
  });
}

Status ImageBuilder::write_simple(Directory parent, std::string_view name, uint16_t type,
                                  const Attributes& attributes, format::DeviceSlots slots,
                                  FileHandle* handle) {
  PendingDirectory& above = directories_[parent.index];
  uint32_t ino = 0;
  GOFS_RETURN_IF_FAILED(allocate_ino(&ino));
  const format::FileType dentry_type = format::file_type_of_mode(type);
  GOFS_RETURN_IF_FAILED(above.entries.add(name, ino, dentry_type));
  const auto block = std::make_unique<NodeBlock>();
  fill_inode({above.ino, name, type, attributes, 1, 0}, block.get());
  const InodeLayout layout = format::inode_layout(block->inode, writer_.feature());
  block->inode.i_addr[layout.word_of_slot(0)] = slots.slot0;
  block->inode.i_addr[layout.word_of_slot(1)] = slots.slot1;
  block->inode.i_blocks = 1;
  if (handle != nullptr) *handle = FileHandle{ino, dentry_type};
  return write_inode(ino, false, {}, block.get());
}

Status ImageBuilder::add_link(Directory parent, std::string_view name, FileHandle file) {
  return guarded([&]() -> Status {
    if (file.ino == 0 || file.type == format::kTypeDirectory) {
      return Status::failure(-EINVAL, "only files can have further names");
    }
    GOFS_RETURN_IF_FAILED(directories_[parent.index].entries.add(name, file.ino, file.type));
    ++extra_links_[file.ino];
    return {};
  });
}

Status ImageBuilder::add_files_now(Directory parent, std::span<const FileSpec> files, uint16_t type,
                                   const FileLayout& layout, std::span<FileHandle> handles) {
  std::vector<OpenFile> open(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    GOFS_RETURN_IF_FAILED(open_file(parent, files[i], type, &open[i]));
  }
  GOFS_RETURN_IF_FAILED(write_batch(open, layout));
  for (size_t i = 0; i < files.size(); ++i) {
    FileHandle* handle = handles.empty() ? nullptr : &handles[i];
    GOFS_RETURN_IF_FAILED(close_file(parent, &open[i], handle));
  }
  return {};
}

Status ImageBuilder::open_file(Directory parent, const FileSpec& spec, uint16_t type,
                               OpenFile* file) {
  const PendingDirectory& above = directories_[parent.index];
  if (spec.name.size() > format::kNameBytesMax) {
    return Status::failure(-ENAMETOOLONG, "name of more than 255 bytes");
  }
  file->spec = &spec;
  file->type = type;
  GOFS_RETURN_IF_FAILED(allocate_ino(&file->ino));
  file->inode = std::make_unique<NodeBlock>();
  const auto xattr_flag = static_cast<uint8_t>(spec.inline_xattr ? format::kInlineXattr : 0);
  const InodeRequest request{above.ino, spec.name, type, spec.attributes, 1, xattr_flag};
  fill_inode(request, file->inode.get());
  format::Inode& inode = file->inode->inode;
  inode.i_size = spec.size_bytes;
  file->layout = format::inode_layout(inode, writer_.feature());

  if (spec.inline_data && !spec.sparse && spec.size_bytes <= file->layout.inline_bytes) {
    file->is_inline = true;
    return {};
  }
  const uint64_t block_count = simt::divide_up(spec.size_bytes, kBlockBytes);
  if (block_count > format::file_blocks_max(file->layout.slot_count)) {
    return Status::failure(-EFBIG, "the file has more blocks than F2FS can map");
  }
  if (spec.sparse) {
    GOFS_RETURN_IF_FAILED(check_ranges(spec, block_count));
    for (const FileRange& range : spec.ranges) {
      file->runs.push_back(BlockRun{range.first_block, range.block_count,
                                    range.reserved ? format::kNewAddr : format::kNullAddr});
    }
  } else if (block_count > 0) {
    file->runs.push_back(BlockRun{0, static_cast<uint32_t>(block_count), format::kNullAddr});
  }
  return plan_node_tree(writer_, file->ino, file->layout.slot_count, file->runs, &file->tree);
}

Status ImageBuilder::write_inline_data(OpenFile* file) {
  format::Inode& inode = file->inode->inode;
  inode.i_inline = static_cast<uint8_t>(inode.i_inline | format::kInlineData);
  const uint64_t bytes = file->spec->size_bytes;
  if (bytes == 0) return {};
  inode.i_inline = static_cast<uint8_t>(inode.i_inline | format::kInlineDataExist);
  if (file->spec->content == nullptr) return {};
  uint8_t* area = reinterpret_cast<uint8_t*>(file->inode.get()) + file->layout.inline_offset;
  const int error = file->spec->content(0, area, bytes);
  return error == 0 ? Status{} : Status::system_failure(error, std::string(file->spec->name));
}

/// Writes blocks that follow each other in the file, to wherever the log goes on.
Status ImageBuilder::write_run(OpenFile* file, uint32_t first_block, uint32_t count, Log log) {
  const FileSpec& spec = *file->spec;
  while (count > 0) {
    const SlotPlace place = find_slot(file->tree, first_block);
    const VolumeWriter::Space space = writer_.reserve(log, std::min(count, place.blocks_left));
    const uint64_t offset = uint64_t{first_block} * kBlockBytes;
    const uint64_t room = uint64_t{space.count} * kBlockBytes;
    const uint64_t bytes = std::min(room, spec.size_bytes - offset);
    if (spec.content != nullptr) {
      const int error = spec.content(offset, space.memory, bytes);
      if (error != 0) return Status::system_failure(error, std::string(spec.name));
    } else {
      std::memset(space.memory, 0, bytes);
    }
    std::memset(space.memory + bytes, 0, room - bytes);
    for (uint32_t i = 0; i < space.count; ++i) {
      space.summaries[i].nid = place.nid;
      space.summaries[i].version = 0;
      space.summaries[i].ofs_in_node = static_cast<uint16_t>(place.slot + i);
    }
    GOFS_RETURN_IF_FAILED(writer_.commit(log, space.count));
    append_run(BlockRun{first_block, space.count, space.address}, &file->written);
    first_block += space.count;
    count -= space.count;
  }
  return {};
}

/// Writes the data of all files. With runs of a given length the files take turns.
Status ImageBuilder::write_batch(std::span<OpenFile> files, const FileLayout& layout) {
  if (layout.run_blocks == 0) {
    for (OpenFile& file : files) {
      for (const BlockRun& run : file.runs) {
        if (run.address == format::kNewAddr) continue;
        GOFS_RETURN_IF_FAILED(write_run(&file, run.file_block, run.count, layout.log));
      }
    }
    return {};
  }
  std::vector<std::vector<BlockRun>> pieces(files.size());
  size_t rounds = 0;
  std::mt19937_64 random(layout.seed);
  for (size_t i = 0; i < files.size(); ++i) {
    pieces[i] = cut_runs(files[i].runs, layout.run_blocks);
    if (layout.shuffle || files.size() == 1) {
      std::shuffle(pieces[i].begin(), pieces[i].end(), random);
    }
    rounds = std::max(rounds, pieces[i].size());
  }
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < files.size(); ++i) {
      if (round >= pieces[i].size()) continue;
      const BlockRun& piece = pieces[i][round];
      GOFS_RETURN_IF_FAILED(write_run(&files[i], piece.file_block, piece.count, layout.log));
    }
  }
  for (OpenFile& file : files) {
    std::sort(file.written.begin(), file.written.end(),
              [](const BlockRun& a, const BlockRun& b) { return a.file_block < b.file_block; });
  }
  return {};
}

Status ImageBuilder::close_file(Directory parent, OpenFile* file, FileHandle* handle) {
  PendingDirectory& above = directories_[parent.index];
  format::Inode& inode = file->inode->inode;
  uint64_t blocks = 1 + file->tree.nodes.size();
  if (file->is_inline) {
    GOFS_RETURN_IF_FAILED(write_inline_data(file));
  } else {
    // Reserved blocks join those that were written.
    uint64_t reserved = 0;
    for (const BlockRun& run : file->runs) {
      blocks += run.count;
      if (run.address != format::kNewAddr) continue;
      reserved += run.count;
      file->written.push_back(run);
    }
    if (reserved > 0) {
      GOFS_RETURN_IF_FAILED(writer_.count_reserved(reserved));
      std::sort(file->written.begin(), file->written.end(),
                [](const BlockRun& a, const BlockRun& b) { return a.file_block < b.file_block; });
    }
    GOFS_RETURN_IF_FAILED(write_node_tree(writer_, file->tree, file->written, false,
                                          file->layout.word_of_slot(0), &inode));
  }
  inode.i_blocks = blocks;
  GOFS_RETURN_IF_FAILED(write_inode(file->ino, false, file->spec->xattrs, file->inode.get()));
  const format::FileType type = format::file_type_of_mode(file->type);
  if (handle != nullptr) *handle = FileHandle{file->ino, type};
  return above.entries.add(file->spec->name, file->ino, type);
}

Status ImageBuilder::write_dentry_blocks(const PendingDirectory& directory,
                                         const DirectoryLayout& layout, const NodeTree& tree,
                                         std::vector<BlockRun>* runs) {
  for (const PlannedDentryBlock& block : layout.blocks) {
    const SlotPlace place = find_slot(tree, block.file_block);
    const VolumeWriter::Space space = writer_.reserve(format::kHotData, 1);
    std::memset(space.memory, 0, kBlockBytes);
    const std::span<const uint32_t> entries(layout.order.data() + block.first, block.count);
    fill_dentry_area(directory.entries, entries, directory.ino,
                     block.file_block == 0 ? directory.parent_ino : 0, format::dentry_block_area(),
                     space.memory);
    space.summaries[0].nid = place.nid;
    space.summaries[0].version = 0;
    space.summaries[0].ofs_in_node = static_cast<uint16_t>(place.slot);
    GOFS_RETURN_IF_FAILED(writer_.commit(format::kHotData, 1));
    append_run(BlockRun{block.file_block, 1, space.address}, runs);
  }
  return {};
}

Status ImageBuilder::write_directory(PendingDirectory* directory) {
  if (Status unique = directory->entries.check_unique(); !unique.ok()) {
    unique.message = "directory '" + directory->name + "': " + unique.message;
    return unique;
  }
  const bool is_root = directory->ino == format::kRootIno;
  const auto block = std::make_unique<NodeBlock>();
  InodeRequest request{is_root ? 0 : directory->parent_ino,
                       directory->name,
                       format::kModeDirectory,
                       directory->attributes,
                       2 + directory->subdirectories,
                       0};
  format::Inode& inode = block->inode;

  if (directory->options.inline_dentries) {
    request.inline_flags = format::kInlineDentry;
    fill_inode(request, block.get());
    const InodeLayout layout = format::inode_layout(inode, writer_.feature());
    const format::DentryArea area = format::inline_dentry_area(layout.inline_bytes);
    if (fits_inline(directory->entries, area)) {
      std::vector<uint32_t> order(directory->entries.entries().size());
      for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
      fill_dentry_area(directory->entries, order, directory->ino, directory->parent_ino, area,
                       reinterpret_cast<uint8_t*>(block.get()) + layout.inline_offset);
      inode.i_size = layout.inline_bytes;
      inode.i_blocks = 1;
      inode.i_current_depth = 1;
      inode.i_dir_level = directory->options.dir_level;
      return write_inode(directory->ino, true, directory->options.xattrs, block.get());
    }
    request.inline_flags = 0;
  }

  fill_inode(request, block.get());
  const InodeLayout layout = format::inode_layout(inode, writer_.feature());
  DirectoryLayout places;
  GOFS_RETURN_IF_FAILED(
      lay_out_directory(directory->entries, directory->options.dir_level, &places));
  std::vector<BlockRun> wanted;
  wanted.reserve(places.blocks.size());
  for (const PlannedDentryBlock& one : places.blocks) {
    wanted.push_back(BlockRun{one.file_block, 1, format::kNullAddr});
  }
  NodeTree tree;
  GOFS_RETURN_IF_FAILED(plan_node_tree(writer_, directory->ino, layout.slot_count, wanted, &tree));
  std::vector<BlockRun> runs;
  GOFS_RETURN_IF_FAILED(write_dentry_blocks(*directory, places, tree, &runs));
  GOFS_RETURN_IF_FAILED(write_node_tree(writer_, tree, runs, true, layout.word_of_slot(0), &inode));
  inode.i_size = (uint64_t{places.blocks.back().file_block} + 1) * kBlockBytes;
  inode.i_blocks = 1 + places.blocks.size() + tree.nodes.size();
  inode.i_current_depth = places.depth;
  inode.i_dir_level = directory->options.dir_level;
  return write_inode(directory->ino, true, directory->options.xattrs, block.get());
}

Status ImageBuilder::finish() {
  Status status = guarded([&]() -> Status {
    for (PendingDirectory& directory : directories_) {
      GOFS_RETURN_IF_FAILED(write_directory(&directory));
      directory.entries.clear();
    }
    for (const auto& [ino, count] : extra_links_) {
      GOFS_RETURN_IF_FAILED(writer_.add_links(ino, count));
    }
    return writer_.finish();
  });
  finished_ = true;
  return status;
}

}  // namespace gofs::image
