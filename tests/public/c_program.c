// SPDX-License-Identifier: Apache-2.0
//
// A program in C99 that does with a volume what the header lets it do. c_api_test.cpp runs it.
#include "c_program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gofs/gofs.h"

#define TEXT_OF_NUMBER(number) #number
#define TEXT_OF(macro) TEXT_OF_NUMBER(macro)
// A statement that does not hold is the answer of the function.
#define CHECK(statement)                                       \
  do {                                                         \
    if (!(statement)) {                                        \
      return "c_program.c:" TEXT_OF(__LINE__) ": " #statement; \
    }                                                          \
  } while (0)

static const char* files_are_written_and_read(gofs_volume* volume) {
  char buffer[64] = {0};
  gofs_stat_t stat;
  gofs_identity_t identity;
  int again;
  const int fd = gofs_open(volume, "/file",
                           GOFS_OPEN_READ_WRITE | GOFS_OPEN_CREATE | GOFS_OPEN_EXCLUSIVE, 0640);
  CHECK(fd >= 0);
  CHECK(gofs_write(volume, fd, "hello, ", 7) == 7);
  CHECK(gofs_write(volume, fd, "world", 5) == 5);
  CHECK(gofs_pwrite(volume, fd, "H", 1, 0) == 1);
  CHECK(gofs_pread(volume, fd, buffer, sizeof(buffer), 7) == 5);
  CHECK(memcmp(buffer, "world", 5) == 0);
  CHECK(gofs_lseek(volume, fd, -5, GOFS_SEEK_END) == 7);
  CHECK(gofs_read(volume, fd, buffer, 3) == 3 && memcmp(buffer, "wor", 3) == 0);
  CHECK(gofs_lseek(volume, fd, 0, GOFS_SEEK_CURRENT) == 10);
  CHECK(gofs_fstat(volume, fd, &stat) == 0);
  CHECK(stat.size_bytes == 12 && (stat.mode & 0777) == 0640 && stat.links == 1);
  CHECK(gofs_fdatasync(volume, fd) == 0 && gofs_fsync(volume, fd) == 0);
  CHECK(gofs_fallocate(volume, fd, GOFS_FALLOCATE_KEEP_SIZE, 0, 1 << 20) == 0);
  CHECK(gofs_fallocate(volume, fd, GOFS_FALLOCATE_PUNCH_HOLE, 0, 1) == -EOPNOTSUPP);
  CHECK(gofs_ftruncate(volume, fd, 5) == 0);
  CHECK(gofs_pread(volume, fd, buffer, sizeof(buffer), 0) == 5);
  CHECK(memcmp(buffer, "Hello", 5) == 0);
  CHECK(gofs_identity(volume, fd, &identity) == 0 && identity.ino == stat.ino);
  again = gofs_open_inode(volume, &identity, GOFS_OPEN_READ_ONLY);
  CHECK(again >= 0 && gofs_pread(volume, again, buffer, sizeof(buffer), 0) == 5);
  CHECK(gofs_close(volume, again) == 0);
  CHECK(gofs_open_inode(volume, &identity, GOFS_OPEN_TRUNCATE) == -EINVAL);
  ++identity.generation;
  CHECK(gofs_open_inode(volume, &identity, GOFS_OPEN_READ_ONLY) == -ESTALE);
  CHECK(gofs_truncate(volume, "/file", 100000) == 0);
  CHECK(gofs_lseek(volume, fd, 0, GOFS_SEEK_END) == 100000);
  CHECK(gofs_pread(volume, fd, NULL, 0, 0) == 0);
  CHECK(gofs_close(volume, fd) == 0);
  CHECK(gofs_close(volume, fd) == -EBADF && gofs_last_errno() == -EBADF);
  return NULL;
}

static const char* names_are_made_and_removed(gofs_volume* volume) {
  char target[16];
  gofs_stat_t stat;
  CHECK(gofs_mkdir(volume, "/folder", 0755) == 0);
  CHECK(gofs_mknod(volume, "/folder/fifo", 0010644, 0, 0) == 0);
  CHECK(gofs_mknod(volume, "/folder/disk", 0060600, 8, 1) == 0);
  CHECK(gofs_stat(volume, "/folder/disk", &stat) == 0);
  CHECK(stat.device_major == 8 && stat.device_minor == 1);
  CHECK(gofs_symlink(volume, "../file", "/folder/soft") == 0);
  CHECK(gofs_readlink(volume, "/folder/soft", NULL, 0) == 7);
  CHECK(gofs_readlink(volume, "/folder/soft", target, 7) == -ERANGE);
  CHECK(gofs_readlink(volume, "/folder/soft", target, 8) == 7 && strcmp(target, "../file") == 0);
  CHECK(gofs_link(volume, "/file", "/folder/hard") == 0);
  CHECK(gofs_stat(volume, "/folder/soft", &stat) == 0 && stat.links == 2);
  CHECK(gofs_lstat(volume, "/folder/soft", &stat) == 0 && stat.size_bytes == 7);
  CHECK(gofs_access(volume, "/folder/hard", GOFS_MAY_READ | GOFS_MAY_WRITE) == 0);
  CHECK(gofs_access(volume, "/nothing", 0) == -ENOENT);
  CHECK(gofs_rename(volume, "/folder/hard", "/folder/fifo", GOFS_RENAME_NO_REPLACE) == -EEXIST);
  CHECK(gofs_rename(volume, "/folder/hard", "/folder/fifo", GOFS_RENAME_EXCHANGE) == 0);
  CHECK(gofs_rename(volume, "/folder/fifo", "/moved", 0) == 0);
  CHECK(gofs_rmdir(volume, "/folder") == -ENOTEMPTY);
  CHECK(gofs_unlink(volume, "/folder") == -EISDIR);
  CHECK(gofs_unlink(volume, "/folder/hard") == 0);
  return NULL;
}

static const char* attributes_are_set(gofs_volume* volume) {
  const gofs_time_stamp_t times[2] = {{1000, 5}, {-7, 999999999}};
  const gofs_time_stamp_t omitted[2] = {{0, GOFS_TIME_OMIT}, {0, GOFS_TIME_NOW}};
  gofs_stat_t stat;
  const int fd = gofs_open(volume, "/file", GOFS_OPEN_READ_WRITE, 0);
  CHECK(fd >= 0);
  CHECK(gofs_chmod(volume, "/file", 0700) == 0 && gofs_fchmod(volume, fd, 0444) == 0);
  CHECK(gofs_chown(volume, "/file", 1, 2) == 0 && gofs_fchown(volume, fd, GOFS_KEEP_ID, 3) == 0);
  CHECK(gofs_lchown(volume, "/folder/soft", 4, 5) == 0);
  CHECK(gofs_utimens(volume, "/file", times) == 0);
  CHECK(gofs_fstat(volume, fd, &stat) == 0);
  CHECK((stat.mode & 07777) == 0444 && stat.uid == 1 && stat.gid == 3);
  CHECK(stat.accessed.seconds == 1000 && stat.accessed.nanoseconds == 5);
  CHECK(stat.modified.seconds == -7 && stat.modified.nanoseconds == 999999999);
  CHECK(gofs_futimens(volume, fd, omitted) == 0 && gofs_stat(volume, "/file", &stat) == 0);
  CHECK(stat.accessed.seconds == 1000 && stat.modified.seconds > 1000000000);
  CHECK(gofs_lutimens(volume, "/folder/soft", times) == 0);
  CHECK(gofs_lstat(volume, "/folder/soft", &stat) == 0);
  CHECK(stat.uid == 4 && stat.gid == 5 && stat.modified.seconds == -7);
  CHECK(gofs_lutimens(volume, "/folder/soft", NULL) == 0);
  CHECK(gofs_lstat(volume, "/folder/soft", &stat) == 0 && stat.accessed.seconds > 1000000000);
  CHECK(gofs_close(volume, fd) == 0);
  return NULL;
}

static const char* extended_attributes_are_kept(gofs_volume* volume) {
  char buffer[64];
  const int fd = gofs_open(volume, "/file", GOFS_OPEN_READ_ONLY, 0);
  CHECK(fd >= 0);
  CHECK(gofs_setxattr(volume, "/file", "user.a", "one\0two", 7, GOFS_XATTR_CREATE) == 0);
  CHECK(gofs_setxattr(volume, "/file", "user.a", "", 0, GOFS_XATTR_CREATE) == -EEXIST);
  CHECK(gofs_fsetxattr(volume, fd, "user.empty", NULL, 0, 0) == 0);
  CHECK(gofs_getxattr(volume, "/file", "user.a", NULL, 0) == 7);
  CHECK(gofs_getxattr(volume, "/file", "user.a", buffer, 6) == -ERANGE);
  CHECK(gofs_fgetxattr(volume, fd, "user.a", buffer, 7) == 7);
  CHECK(memcmp(buffer, "one\0two", 7) == 0);
  CHECK(gofs_getxattr(volume, "/file", "user.empty", buffer, sizeof(buffer)) == 0);
  CHECK(gofs_listxattr(volume, "/file", buffer, sizeof(buffer)) == 18);
  CHECK(gofs_flistxattr(volume, fd, NULL, 0) == 18);
  CHECK(memcmp(buffer, "user.a\0user.empty", 18) == 0);
  CHECK(gofs_lsetxattr(volume, "/folder/soft", "trusted.t", "x", 1, 0) == 0);
  CHECK(gofs_lgetxattr(volume, "/folder/soft", "trusted.t", buffer, 1) == 1 && buffer[0] == 'x');
  CHECK(gofs_llistxattr(volume, "/folder/soft", buffer, sizeof(buffer)) == 10);
  CHECK(gofs_lremovexattr(volume, "/folder/soft", "trusted.t") == 0);
  CHECK(gofs_removexattr(volume, "/file", "user.a") == 0);
  CHECK(gofs_fremovexattr(volume, fd, "user.empty") == 0);
  CHECK(gofs_removexattr(volume, "/file", "user.a") == -ENODATA);
  CHECK(gofs_listxattr(volume, "/file", buffer, sizeof(buffer)) == 0);
  CHECK(gofs_close(volume, fd) == 0);
  return NULL;
}

enum { kFiles = 100 };

static const char* many_files_are_made_and_listed(gofs_volume* volume) {
  static gofs_directory_entry_t entries[GOFS_READDIR_ENTRIES_MIN];
  char names[kFiles][16];
  gofs_new_file_t files[kFiles];
  int errors[kFiles];
  int seen[kFiles] = {0};
  int number;
  int64_t count;
  for (number = 0; number < kFiles; ++number) {
    snprintf(names[number], sizeof(names[number]), "file%d", number);
    files[number].name = names[number];
    files[number].data = names[number];
    files[number].bytes = strlen(names[number]);
  }
  files[7].name = "a/b";
  CHECK(gofs_mkdir(volume, "/many", 0755) == 0);
  CHECK(gofs_batch_create(volume, "/many", files, kFiles, 0600, errors) == kFiles - 1);
  CHECK(errors[6] == 0 && errors[7] == -EINVAL);
  CHECK(gofs_batch_create(volume, "/many", files, 3, 0600, NULL) == 0);
  const int fd = gofs_opendir(volume, "/many");
  CHECK(fd >= 0);
  CHECK(gofs_readdir(volume, fd, entries, GOFS_READDIR_ENTRIES_MIN - 1) == -EINVAL);
  while ((count = gofs_readdir(volume, fd, entries, GOFS_READDIR_ENTRIES_MIN)) > 0) {
    int64_t i;
    for (i = 0; i < count; ++i) {
      CHECK(entries[i].type == GOFS_TYPE_REGULAR && entries[i].ino != 0);
      CHECK(strlen(entries[i].name) == entries[i].name_length);
      CHECK(sscanf(entries[i].name, "file%d", &number) == 1 && number < kFiles);
      seen[number] += 1;
    }
  }
  CHECK(count == 0 && gofs_close(volume, fd) == 0);
  for (number = 0; number < kFiles; ++number) CHECK(seen[number] == (number == 7 ? 0 : 1));
  return NULL;
}

static void count_warning(void* context, const char* sentence) {
  *(int*)context += strlen(sentence) != 0;
}

static const char* what_is_mounted_is_told(gofs_volume* volume) {
  char text[256];
  uint64_t number = 7;
  int warnings = 0;
  gofs_filesystem_stat_t room;
  static gofs_statistics_t counts;
  gofs_clock_report_t clock = {sizeof(clock), 0, 0, 0, 0};
  gofs_cleaning_report_t cleaned = {sizeof(cleaned), 0, 0, 0, 0, 0, 0, 0};
  gofs_cleaning_options_t cleaning = {sizeof(cleaning), 1, 0};
  gofs_memory_part_t parts[40];
  gofs_cached_pages_t pages[8];
  CHECK(gofs_info_text(volume, GOFS_INFO_BACKEND, text, sizeof(text)) == 3);
  CHECK(strcmp(text, "cpu") == 0);
  CHECK(gofs_info_text(volume, GOFS_INFO_LABEL, text, sizeof(text)) == 5);
  CHECK(strcmp(text, "label") == 0);
  CHECK(gofs_info_text(volume, GOFS_INFO_UUID, NULL, 0) == 36);
  CHECK(gofs_info_text(volume, GOFS_INFO_ABLATIONS, text, 1) == 0);
  CHECK(gofs_info_number(volume, GOFS_INFO_CLEAN, &number) == 0 && number == 1);
  CHECK(gofs_info_number(volume, GOFS_INFO_SSD_BYTES, &number) == 0 && number == 64 << 20);
  CHECK(gofs_statfs(volume, &room) == 0 && room.block_bytes == 4096 && room.blocks_free > 1000);
  CHECK(gofs_clock(volume, &clock) == 0 && clock.looks > 0 && clock.struct_bytes == sizeof(clock));
  counts.struct_bytes = sizeof(counts);
  CHECK(gofs_statistics(volume, &counts) == 0 && counts.struct_bytes == sizeof(counts));
  CHECK(counts.calls[GOFS_CALL_STAT].succeeded > 0 && counts.segments[GOFS_SEGMENTS_FREE] > 0);
  CHECK(gofs_collect_garbage(volume, &cleaning, &cleaned) == 0 && cleaned.segments <= 1);
  CHECK(gofs_collect_garbage(volume, NULL, NULL) == 0);
  CHECK(gofs_cleaning_totals(volume, &cleaned) == 0 && cleaned.free_segments > 0);
  CHECK(gofs_memory(volume, NULL, 0) > 0 && gofs_memory(volume, parts, 40) <= 40);
  CHECK(strcmp(parts[0].name, "page_cache") == 0 && parts[0].device_bytes >= 64 << 20);
  CHECK(gofs_cached_pages(volume, pages, 8) <= 8 && strcmp(pages[0].kind, "nodes") == 0);
  CHECK(gofs_warnings(volume, count_warning, &warnings) == 0 && warnings == 0);
  CHECK(gofs_register_buffer(volume, text, sizeof(text), &number) == 0);
  CHECK(gofs_register_buffer(volume, text + 8, 8, &number) == -EEXIST);
  CHECK(gofs_unregister_buffer(volume, number) == 0);
  CHECK(gofs_unregister_buffer(volume, number) == -EINVAL);
  CHECK(gofs_volume_device_pointer(volume) == NULL && gofs_last_errno() == -ENODEV);
  CHECK(gofs_sync(volume) == 0);
  return NULL;
}

const char* use_volume(const char* image) {
  static const char* (*const parts[])(gofs_volume*) = {
      files_are_written_and_read,   names_are_made_and_removed,     attributes_are_set,
      extended_attributes_are_kept, many_files_are_made_and_listed, what_is_mounted_is_told,
  };
  gofs_mount_options_t options = {.struct_bytes = sizeof(options), .backend = "cpu", .writable = 1};
  gofs_volume* volume = NULL;
  size_t i;
  CHECK(gofs_mount(image, &options, &volume) == 0 && volume != NULL);
  for (i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
    const char* const wrong = parts[i](volume);
    if (wrong != NULL) {
      gofs_volume_free(volume);
      return wrong;
    }
  }
  CHECK(gofs_unmount(volume) == 0);
  CHECK(gofs_access(volume, "/file", 0) == -ENODEV);
  gofs_volume_free(volume);
  return NULL;
}
