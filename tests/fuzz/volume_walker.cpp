// SPDX-License-Identifier: Apache-2.0
#include "volume_walker.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_set>
#include <utility>

namespace gofs::fuzz {

WalkMemory::WalkMemory(simt::MemorySpace& memory, uint32_t warp_width) : memory_(memory) {
  entries = take<f2fs::NamedEntry>(kEntries);
  read = take<uint8_t>(kReadBytes);
  link = take<char>(vfs::kPathBytesMax);
  offsets = take<uint64_t>(kBatchFiles);
  batch = take<kernels::BatchParams>(1);
  queries = take<kernels::InodeQuery>(kQueries);
  targets = take<char>(size_t{4} * vfs::kPathBytesMax);
  xattrs = take<uint8_t>(size_t{4} * vfs::kXattrListBytesMax);
  inodes = take<kernels::InodesParams>(1);
  hash_files = take<kernels::HashFile>(kQueries);
  hash = take<kernels::HashParams>(1);
  hash_cursor = take<uint32_t>(1);
  hash_buffers = take<uint8_t>(size_t{warp_width} * kHashChunkBytes);
  hash_lanes = take<kernels::HashLane>(warp_width);
  hash_done = take<uint64_t>(1);
}

WalkMemory::~WalkMemory() {
  for (void* block : blocks_) memory_.release(block);
}

template <typename T>
T* WalkMemory::take(size_t count) {
  T* const array = memory_.allocate_array<T>(count);
  blocks_.push_back(array);
  return array;
}

namespace {

struct Entry {
  std::string name;
  uint32_t ino;
  uint8_t type;
};

struct DirectoryToWalk {
  std::string path;
  uint32_t ino;
};

/// What one lane keeps; the answers are uniform, so all lanes keep the same.
class Walker {
 public:
  Walker(const simt::Warp& warp, vfs::Filesystem& fs, const WalkMemory& memory,
         const WalkLimits& limits, const OperationHook& hook)
      : warp_(warp), fs_(fs), memory_(memory), limits_(limits), hook_(hook) {}

  WalkReport run() {
    const uint32_t root = fs_.volume.geometry.root_ino;
    seen_.insert(root);
    pending_.push_back({"/", root});
    note_statfs();
    for (; !pending_.empty(); pending_.pop_front()) {
      if (report_.directories == limits_.directories) {
        report_.cut = true;
        break;
      }
      ++report_.directories;
      walk_directory(pending_.front());
    }
    hash_files();
    warp_.sync();
    report_.corruptions = f2fs::count_findings(*fs_.volume.corruptions);
    warp_.sync();
    ask_nonsense();
    return std::move(report_);
  }

 private:
  // --- Bookkeeping -------------------------------------------------------------------------------

  void mix(uint64_t value) { report_.digest = (report_.digest ^ value) * 0x100000001B3ull + 1; }
  void mix(const void* data, uint64_t bytes) {
    // A sum over words, quick enough under sanitizers.
    const auto* const at = static_cast<const uint8_t*>(data);
    uint64_t sum = bytes;
    uint64_t word = 0;
    for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
      std::memcpy(&word, at + i, 8);
      sum = (sum ^ word) * 0x9E3779B97F4A7C15ull;
    }
    for (uint64_t i = bytes / 8 * 8; i < bytes; ++i) sum = sum * 131 + at[i];
    mix(sum);
  }

  /// Counts an answer and returns it.
  int64_t answer(int64_t result) {
    mix(static_cast<uint64_t>(result));
    if (result >= 0) return result;
    if (result <= -int64_t{WalkReport::kErrnos}) {
      wrong("an answer below all errnos");
      return result;
    }
    ++report_.errors[static_cast<size_t>(-result)];
    return result;
  }
  void wrong(const char* what) {
    if (report_.wrong.empty()) {
      report_.wrong = std::string(what) + ", operation " + std::to_string(report_.operations);
    }
  }
  void turn() {
    ++report_.operations;
    hook_(report_.operations);
  }
  bool leader() const { return warp_.thread_rank() == 0; }

  static std::string joined(const std::string& directory, const std::string& name) {
    return directory == "/" ? "/" + name : directory + "/" + name;
  }

  // --- Metadata ----------------------------------------------------------------------------------

  void note_stat(const vfs::Stat& stat) {
    mix(stat.ino);
    mix(stat.size_bytes);
    mix(stat.mode);
    mix(stat.links);
    mix(static_cast<uint64_t>(stat.modified.seconds));
    mix(uint64_t{stat.device_major} << 32 | stat.device_minor);
    mix(static_cast<uint64_t>(stat.created.seconds) ^ stat.project_id);
  }

  void note_statfs() {
    turn();
    const vfs::FilesystemStat stat = vfs::statfs(fs_);
    mix(stat.blocks);
    mix(stat.blocks_free);
    mix(stat.files);
    if (stat.blocks_free > stat.blocks) wrong("more blocks free than there are");
  }

  /// stat and, for what is a link, readlink, by path.
  void ask_path(const std::string& path) {
    vfs::Stat stat{};
    turn();
    if (answer(vfs::stat(warp_, fs_, path.c_str(), vfs::LastLink::kKeep, stat)) == 0) {
      note_stat(stat);
    }
    turn();
    vfs::Stat followed{};
    if (answer(vfs::stat(warp_, fs_, path.c_str(), vfs::LastLink::kFollow, followed)) == 0) {
      note_stat(followed);
    }
    turn();
    answer(vfs::access(warp_, fs_, path.c_str(), vfs::kMayRead));
    ask_xattrs(path);
    if ((stat.mode & format::kModeTypeMask) != format::kModeSymlink) return;
    ++report_.links;
    // With a long rest behind the link, which is copied.
    turn();
    const std::string below = path + "/" + std::string(200, 'x');
    answer(vfs::stat(warp_, fs_, below.c_str(), vfs::LastLink::kFollow, followed));
    // The last bytes of the memory: a link that is longer than it may be runs out of it.
    for (const uint32_t capacity : {vfs::kPathBytesMax, 100u}) {
      turn();
      char* const to = memory_.link + vfs::kPathBytesMax - capacity;
      const int64_t length = answer(vfs::readlink(warp_, fs_, path.c_str(), to, capacity));
      warp_.sync();
      if (length > capacity) return wrong("a link longer than its buffer");
      if (length > 0) mix(to, static_cast<uint64_t>(length));
      warp_.sync();
    }
  }

  /// The list of names, then each value, in memory that ends where they end.
  void ask_xattrs(const std::string& path) {
    static_assert(WalkMemory::kReadBytes >= vfs::kXattrListBytesMax);
    turn();
    const int64_t bytes =
        answer(vfs::listxattr(warp_, fs_, path.c_str(), vfs::LastLink::kKeep, nullptr, 0));
    if (bytes > vfs::kXattrListBytesMax) return wrong("a list longer than any");
    if (bytes <= 0) return;
    turn();
    auto* const list = reinterpret_cast<char*>(memory_.read) + WalkMemory::kReadBytes - bytes;
    const int64_t listed = answer(vfs::listxattr(warp_, fs_, path.c_str(), vfs::LastLink::kKeep,
                                                 list, static_cast<uint64_t>(bytes)));
    warp_.sync();
    if (listed > bytes) return wrong("a list longer than its buffer");
    std::vector<std::string> names;
    for (int64_t at = 0; at < listed && names.size() < 40; at += names.back().size() + 1) {
      names.emplace_back(list + at, ::strnlen(list + at, static_cast<size_t>(listed - at)));
      if (names.back().find('.') == std::string::npos) return wrong("an attribute without prefix");
    }
    if (listed > 0 && list[listed - 1] != '\0') return wrong("a list without an end");
    warp_.sync();
    names.emplace_back("user.nosuch");
    names.emplace_back("system.posix_acl_access");
    names.emplace_back("system.advise");
    for (const std::string& name : names) ask_xattr(path, name);
  }

  void ask_xattr(const std::string& path, const std::string& name) {
    turn();
    const int64_t size = answer(
        vfs::getxattr(warp_, fs_, path.c_str(), vfs::LastLink::kKeep, name.c_str(), nullptr, 0));
    if (size > vfs::kXattrListBytesMax) return wrong("a value longer than any");
    if (size <= 0) return;
    turn();
    uint8_t* const value = memory_.read + WalkMemory::kReadBytes - size;
    const int64_t got = answer(vfs::getxattr(warp_, fs_, path.c_str(), vfs::LastLink::kKeep,
                                             name.c_str(), value, static_cast<uint64_t>(size)));
    warp_.sync();
    if (got > size) return wrong("a value longer than its buffer");
    if (got > 0) mix(value, static_cast<uint64_t>(got));
    warp_.sync();
  }

  // --- Directories -------------------------------------------------------------------------------

  /// All entries, as far as the limit allows.
  std::vector<Entry> list(int fd) {
    std::vector<Entry> entries;
    for (uint32_t call = 0;; ++call) {
      turn();
      // Odd capacities, so that listings stop within blocks.
      const uint32_t capacity = call % 2 == 0 ? WalkMemory::kEntries : 37;
      const int64_t count = vfs::readdir(warp_, fs_, fd, memory_.entries, capacity);
      if (count < 0) answer(count);  // how many come at once depends on the warp's width
      warp_.sync();
      if (count > capacity) wrong("more entries than asked for");
      if (count <= 0 || count > capacity) break;
      for (int64_t i = 0; i < count; ++i) {
        const f2fs::NamedEntry& entry = memory_.entries[i];
        check_entry(entry);
        entries.push_back({std::string(entry.name, entry.name_length), entry.ino, entry.type});
        mix(entry.name, entry.name_length);
        mix(uint64_t{entry.ino} << 8 | entry.type);
      }
      warp_.sync();
      report_.names += static_cast<uint32_t>(count);
      if (report_.names >= limits_.names) {
        report_.cut = true;
        break;
      }
    }
    return entries;
  }

  void check_entry(const f2fs::NamedEntry& entry) {
    const std::string name(entry.name, std::min<size_t>(entry.name_length, sizeof(entry.name)));
    if (entry.name_length == 0 || entry.name_length > format::kNameBytesMax || name == "." ||
        name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos || entry.name[entry.name_length] != '\0') {
      wrong("a name that no file can have");
    }
    if (entry.ino == 0 || entry.type == format::kTypeUnknown || entry.type > format::kTypeSymlink) {
      wrong("an entry without inode or type");
    }
  }

  void walk_directory(const DirectoryToWalk& directory) {
    turn();
    const int64_t fd = answer(vfs::open_inode(warp_, fs_, directory.ino, vfs::kOpenDirectory));
    if (fd < 0) return;
    const std::vector<Entry> entries = list(static_cast<int>(fd));
    turn();
    answer(vfs::lseek(warp_, fs_, static_cast<int>(fd), 0, vfs::kSeekCurrent));
    turn();
    answer(vfs::lseek(warp_, fs_, static_cast<int>(fd), INT64_MIN, vfs::kSeekCurrent));
    seek_through(static_cast<int>(fd), vfs::kSeekData);
    turn();
    answer(vfs::lseek(warp_, fs_, static_cast<int>(fd), INT64_MAX, vfs::kSeekSet));
    turn();
    answer(vfs::readdir(warp_, fs_, static_cast<int>(fd), memory_.entries, WalkMemory::kEntries));
    turn();
    answer(vfs::pread(warp_, fs_, static_cast<int>(fd), memory_.read, 10, 0));
    answer(vfs::close(warp_, fs_, static_cast<int>(fd)));

    // Some names are looked up, among them the last; and some that are not there.
    const size_t step = std::max<size_t>(1, entries.size() / limits_.names_looked_up);
    for (size_t i = entries.size() % step; i < entries.size(); i += step) {
      ask_path(joined(directory.path, entries[i].name));
    }
    for (const char* name : {"no such name", "..", "a/../b"}) {
      turn();
      vfs::Stat stat{};
      const std::string path = joined(directory.path, name);
      answer(vfs::stat(warp_, fs_, path.c_str(), vfs::LastLink::kFollow, stat));
    }
    look_at_inodes(directory, entries);
    batch(directory.path, entries);
  }

  /// What at most kQueries inodes say; the first four with the targets of links.
  std::vector<kernels::InodeQuery> ask_inodes(const std::vector<uint32_t>& inos) {
    GOFS_ASSERT(inos.size() <= WalkMemory::kQueries);
    if (leader()) {
      for (size_t i = 0; i < inos.size(); ++i) {
        memory_.queries[i] = kernels::InodeQuery{};
        memory_.queries[i].ino = inos[i];
        if (i >= 4) continue;
        memory_.queries[i].link_target = memory_.targets + i * vfs::kPathBytesMax;
        memory_.queries[i].link_capacity = vfs::kPathBytesMax;
        memory_.queries[i].xattrs = memory_.xattrs + i * vfs::kXattrListBytesMax;
        memory_.queries[i].xattr_capacity = vfs::kXattrListBytesMax;
      }
      *memory_.inodes =
          kernels::InodesParams{&fs_, memory_.queries, static_cast<uint32_t>(inos.size())};
    }
    warp_.sync();
    kernels::inodes_body(warp_, 0, 1, *memory_.inodes);
    warp_.sync();
    std::vector<kernels::InodeQuery> answers(memory_.queries, memory_.queries + inos.size());
    warp_.sync();
    return answers;
  }

  /// Asks for the inodes of new entries in bulk; files are read, directories put on the list.
  void look_at_inodes(const DirectoryToWalk& directory, const std::vector<Entry>& entries) {
    std::vector<const Entry*> fresh;
    for (const Entry& entry : entries) {
      if (seen_.insert(entry.ino).second) fresh.push_back(&entry);
    }
    for (size_t first = 0; first < fresh.size(); first += WalkMemory::kQueries) {
      const size_t count = std::min<size_t>(WalkMemory::kQueries, fresh.size() - first);
      std::vector<uint32_t> inos;
      for (size_t i = 0; i < count; ++i) inos.push_back(fresh[first + i]->ino);
      turn();
      const std::vector<kernels::InodeQuery> answers = ask_inodes(inos);
      for (size_t i = 0; i < count; ++i) {
        use_inode(directory, *fresh[first + i], answers[i]);
      }
    }
  }

  void use_inode(const DirectoryToWalk& directory, const Entry& entry,
                 const kernels::InodeQuery& query) {
    if (answer(query.error) < 0) return;
    answer(query.link_length);
    if (query.link_length > static_cast<int>(vfs::kPathBytesMax)) wrong("a link's length");
    answer(query.xattr_bytes);
    if (query.xattr_bytes > static_cast<int>(vfs::kXattrListBytesMax)) wrong("attributes' length");
    note_stat(query.stat);
    switch (query.stat.mode & format::kModeTypeMask) {
      case format::kModeDirectory:
        pending_.push_back({joined(directory.path, entry.name), entry.ino});
        break;
      case format::kModeRegular:
        ++report_.files;
        read_file(entry.ino, query.stat.size_bytes);
        to_hash_.push_back(entry.ino);
        break;
      case format::kModeSymlink:
        break;
      default:
        ++report_.specials;
        turn();
        open_and_close(entry.ino, vfs::kOpenReadOnly);
        break;
    }
  }

  void open_and_close(uint32_t ino, uint32_t flags) {
    const int64_t fd = answer(vfs::open_inode(warp_, fs_, ino, flags));
    if (fd >= 0) answer(vfs::close(warp_, fs_, static_cast<int>(fd)));
  }

  // --- Files -------------------------------------------------------------------------------------

  /// Reads `bytes` (at most kReadBytes) to the end of the read memory.
  void read_at(int fd, uint64_t offset, uint32_t bytes) {
    turn();
    uint8_t* const to = memory_.read + (WalkMemory::kReadBytes - bytes);
    const int64_t got = answer(vfs::pread(warp_, fs_, fd, to, bytes, offset));
    warp_.sync();
    if (got > static_cast<int64_t>(bytes)) return wrong("more bytes than asked for");
    if (got > 0) {
      mix(to, static_cast<uint64_t>(got));
      report_.bytes_read += static_cast<uint64_t>(got);
    }
    warp_.sync();
  }

  void read_file(uint32_t ino, uint64_t size) {
    turn();
    const int64_t opened = answer(vfs::open_inode(warp_, fs_, ino, vfs::kOpenReadOnly));
    if (opened < 0) return;
    const int fd = static_cast<int>(opened);
    vfs::Stat stat{};
    turn();
    answer(vfs::fstat(warp_, fs_, fd, stat));
    turn();
    vfs::Identity file{};
    if (vfs::identity(warp_, fs_, fd, file) != 0 || file.ino != ino) wrong("another identity");
    const int64_t again = answer(vfs::open_identity(warp_, fs_, file, vfs::kOpenReadOnly));
    if (again >= 0) answer(vfs::close(warp_, fs_, static_cast<int>(again)));
    read_at(fd, 0, WalkMemory::kReadBytes);
    read_at(fd, 1, 4099);  // bounces
    // Where the trees of nodes begin, and the end.
    constexpr uint64_t kEdges[] = {format::kInodeSlots - 50, format::kInodeSlots - 1,
                                   format::kInodeSlots + format::kDirectBlocks,
                                   format::kInodeSlots + 2 * format::kDirectBlocks + 3061,
                                   format::kInodeSlots + 2 * format::kDirectBlocks +
                                       format::kIndirectBlocks + 5 * format::kDirectBlocks};
    for (const uint64_t block : kEdges) {
      if (block * kBlockBytes < size) read_at(fd, block * kBlockBytes, 3 * kBlockBytes);
    }
    if (size > WalkMemory::kReadBytes) read_at(fd, size - 5000, 5005);
    read_at(fd, ~uint64_t{0} >> 1, 1);
    read_lanes(fd, size);
    read_later(fd, size);
    seek_through(fd, vfs::kSeekData);
    answer(vfs::close(warp_, fs_, fd));
  }

  /// A read of its own for each lane.
  void read_lanes(int fd, uint64_t size) {
    turn();
    const uint32_t share = WalkMemory::kReadBytes / 32;
    const vfs::ReadRequest request{fd, memory_.read + uint64_t{warp_.thread_rank()} * share, share,
                                   size / 2 + uint64_t{warp_.thread_rank()} * 8191};
    const int64_t got = vfs::pread_lanes(warp_, fs_, request);
    if (got > static_cast<int64_t>(share)) wrong("more bytes than a lane asked for");
    const int error = simt::first_error(warp_, got < 0 ? static_cast<int>(got) : 0);
    // Lanes read at different places: only what one lane would see is compared.
    if (error < 0) ++report_.errors[static_cast<size_t>(-error)];
    warp_.sync();
  }

  void read_later(int fd, uint64_t size) {
    turn();
    uint8_t* const to = memory_.read + (WalkMemory::kReadBytes - 5 * kBlockBytes);
    const uint64_t offset = size / 3 / kBlockBytes * kBlockBytes;
    const vfs::Ticket ticket = vfs::pread_async(warp_, fs_, fd, to, 5 * kBlockBytes, offset);
    const int64_t got = answer(vfs::wait(warp_, fs_, ticket));
    warp_.sync();
    if (got > static_cast<int64_t>(5 * kBlockBytes)) return wrong("more bytes than asked for");
    if (got > 0) mix(to, static_cast<uint64_t>(got));
    warp_.sync();
  }

  /// From data to hole to data.
  void seek_through(int fd, int whence) {
    int64_t at = 0;
    for (uint32_t i = 0; i < limits_.seeks; ++i) {
      turn();
      const int64_t next = answer(vfs::lseek(warp_, fs_, fd, at, whence));
      if (next < 0) break;
      if (next < at) return wrong("seeking forward went back");
      at = next;
      whence = whence == vfs::kSeekData ? vfs::kSeekHole : vfs::kSeekData;
    }
  }

  // --- In bulk -----------------------------------------------------------------------------------

  void batch(const std::string& path, const std::vector<Entry>& entries) {
    // Once by listing, once by names, if the directory holds files.
    std::vector<std::string> names;
    for (const Entry& entry : entries) {
      if (names.size() < 8 && entry.type == format::kTypeRegular) names.push_back(entry.name);
    }
    if (names.empty()) return;
    names.push_back("missing");
    std::vector<const char*> texts;
    for (const std::string& name : names) texts.push_back(name.c_str());
    for (const bool by_name : {false, true}) {
      kernels::BatchParams params{};
      params.path = path.c_str();
      params.names = texts.data();
      params.count = by_name ? static_cast<uint32_t>(names.size()) : WalkMemory::kBatchFiles;
      params.offsets = memory_.offsets;
      const int64_t bd = answer(run_step(params, kernels::BatchStep::kBegin));
      if (bd < 0) return;
      params.descriptor = static_cast<int>(bd);
      if (by_name) {
        run_step(params, kernels::BatchStep::kFind);
      } else {
        run_step(params, kernels::BatchStep::kSurvey);
        answer(run_step(params, kernels::BatchStep::kList));
      }
      read_batch(params);
      answer(run_step(params, kernels::BatchStep::kEnd));
    }
  }

  /// Pointers in `params` are those of the lane: all lanes' point to the same texts.
  int64_t run_step(const kernels::BatchParams& params, kernels::BatchStep step) {
    turn();
    warp_.sync();
    if (leader()) {
      *memory_.batch = params;
      memory_.batch->fs = &fs_;
      memory_.batch->step = step;
    }
    warp_.sync();
    kernels::batch_body(warp_, 0, 1, *memory_.batch);
    warp_.sync();
    return memory_.batch->result;
  }

  void read_batch(kernels::BatchParams& params) {
    run_step(params, kernels::BatchStep::kLoad);
    vfs::BatchTable& table = *fs_.batches;
    const vfs::Batch& opened = *vfs::find_batch_descriptor(table, params.descriptor);
    // What does not fit is left out, as a caller with little memory would.
    uint64_t end = 0;
    const uint32_t count = opened.count;
    for (uint32_t i = 0; i < count; ++i) {
      vfs::BatchEntry& file = table.files[opened.first + i];
      const uint64_t size = file.error == 0 ? file.size_bytes : 0;
      const bool fits = size <= WalkMemory::kReadBytes - end;
      warp_.sync();
      if (leader()) {
        memory_.offsets[i] = end;
        if (!fits) file.error = -EFBIG;
      }
      warp_.sync();
      if (fits) end += size;
    }
    // The files end where the memory ends.
    params.buffer = memory_.read + (WalkMemory::kReadBytes - end);
    run_step(params, kernels::BatchStep::kRead);
    const uint64_t got = memory_.batch->bytes;
    if (got > end) wrong("a batch read more than there is");
    bool whole = true;
    for (uint32_t i = 0; i < count; ++i) {
      const int error = table.files[opened.first + i].error;
      whole = whole && error == 0;
      answer(error);
    }
    if (whole) mix(params.buffer, end);
    report_.bytes_read += got;
    warp_.sync();
  }

  void hash_files() {
    if (to_hash_.empty()) return;
    turn();
    const auto count =
        static_cast<ptrdiff_t>(std::min<size_t>(to_hash_.size(), WalkMemory::kQueries));
    // Asked again at once before: hashing takes as long as a file is said to be, and what it was
    // said to be when its directory was walked may have changed.
    const std::vector<kernels::InodeQuery> answers =
        ask_inodes({to_hash_.begin(), to_hash_.begin() + count});
    std::vector<uint32_t> inos;
    for (const kernels::InodeQuery& query : answers) {
      if (query.error == 0 && query.stat.size_bytes <= limits_.hashed_bytes) {
        inos.push_back(query.ino);
      }
    }
    if (inos.empty()) return;
    if (leader()) {
      for (size_t i = 0; i < inos.size(); ++i) {
        memory_.hash_files[i] = kernels::HashFile{};
        memory_.hash_files[i].ino = inos[i];
      }
      *memory_.hash_cursor = 0;
      *memory_.hash_done = 0;
      *memory_.hash = kernels::HashParams{&fs_,
                                          memory_.hash_files,
                                          static_cast<uint32_t>(inos.size()),
                                          warp_.size(),
                                          memory_.hash_cursor,
                                          WalkMemory::kHashChunkBytes,
                                          memory_.hash_buffers,
                                          memory_.hash_lanes,
                                          memory_.hash_done};
    }
    warp_.sync();
    kernels::hash_body(warp_, 0, 1, *memory_.hash);
    warp_.sync();
    for (size_t i = 0; i < inos.size(); ++i) {
      const kernels::HashFile& file = memory_.hash_files[i];
      if (answer(file.error) == 0) {
        mix(file.digest, sizeof(file.digest));
        ++report_.files_hashed;
      }
    }
    warp_.sync();
  }

  /// Arguments that are wrong whatever the volume is like.
  void ask_nonsense() {
    vfs::Stat stat{};
    const uint32_t nids = fs_.volume.geometry.nid_count();
    for (const uint32_t ino : {0u, 1u, 2u, nids - 1, nids, 0xFFFFFFFFu}) {
      turn();
      const int fd = vfs::open_inode(warp_, fs_, ino, vfs::kOpenPath);
      mix(static_cast<uint64_t>(fd));
      if (fd >= 0) answer(vfs::close(warp_, fs_, fd));
    }
    for (const uint64_t ino : {uint64_t{1}, uint64_t{nids}, (uint64_t{1} << 32) + 3}) {
      turn();
      vfs::Identity file{{}, ino, 0, 0};
      std::copy(std::begin(fs_.volume.uuid), std::end(fs_.volume.uuid), file.uuid);
      if (vfs::open_identity(warp_, fs_, file, vfs::kOpenPath) != -ESTALE) {
        wrong("an answer about a number that no inode has");
      }
    }
    turn();
    if (vfs::fstat(warp_, fs_, 1 << 20, stat) != -EBADF || vfs::close(warp_, fs_, -1) != -EBADF) {
      wrong("a descriptor that is none");
    }
  }

  const simt::Warp& warp_;
  vfs::Filesystem& fs_;
  const WalkMemory& memory_;
  const WalkLimits& limits_;
  const OperationHook& hook_;
  WalkReport report_;
  std::deque<DirectoryToWalk> pending_;
  std::unordered_set<uint32_t> seen_;
  std::vector<uint32_t> to_hash_;
};

}  // namespace

WalkReport walk_volume(const simt::Warp& warp, vfs::Filesystem& fs, const WalkMemory& memory,
                       const WalkLimits& limits, const OperationHook& hook) {
  return Walker(warp, fs, memory, limits, hook).run();
}

}  // namespace gofs::fuzz
