// SPDX-License-Identifier: Apache-2.0
//
// The calls of the file system that tests make, compiled once for all tests. The file system is
// templates: without this, each test program would compile and optimise all of it again.
//
// cmake/GofsCoreCalls.cmake includes this before everything else in each source of a test program,
// where it declares that the calls are compiled elsewhere; core_calls.cpp is where they are. A call
// that is missing here works as well, and takes longer to compile. A name that is overloaded cannot
// be listed.
#pragma once

#include "f2fs/begin_writing.h"
#include "f2fs/recover_files.h"
#include "f2fs/recover_orphans.h"
#include "f2fs/writer_layout.h"
#include "kernels/hash.h"
#include "vfs/async.h"
#include "vfs/batch_create.h"
#include "vfs/batch_list.h"
#include "vfs/clients.h"
#include "vfs/copy_range.h"
#include "vfs/fallocate.h"
#include "vfs/identity.h"
#include "vfs/layout.h"
#include "vfs/memory_use.h"
#include "vfs/metadata.h"
#include "vfs/open.h"
#include "vfs/rename.h"
#include "vfs/set_xattr.h"
#include "vfs/write_lanes.h"
#include "vfs/write_together.h"

#if !defined(GOFS_CORE_CALL)
#define GOFS_CORE_CALL extern template
#endif

// By a warp for the mount, and by one for a client.
#define GOFS_CALL_BY(name, warp) GOFS_CORE_CALL decltype(name<warp>) name<warp>;
#define GOFS_CALL(name)          \
  GOFS_CALL_BY(name, simt::Warp) \
  GOFS_CALL_BY(name, gofs::vfs::CallerWarp<simt::Warp>)

namespace gofs::ssd {

GOFS_CALL(claim_commands)
GOFS_CALL(execute)
GOFS_CALL(fail_controller)
GOFS_CALL(log_commands)
GOFS_CALL(post_due)
GOFS_CALL(stage)
GOFS_CALL(step)
GOFS_CALL(step_admin)
GOFS_CALL(unstage)

}  // namespace gofs::ssd

namespace gofs::nvme {

GOFS_CALL(deallocate)
GOFS_CALL(execute_admin)
GOFS_CALL(fail_device)
GOFS_CALL(flush)
GOFS_CALL(reap)
GOFS_CALL(recover)
GOFS_CALL(reserve)
GOFS_CALL(ring)
GOFS_CALL(submit)
GOFS_CALL(wait)

}  // namespace gofs::nvme

namespace gofs::f2fs {

GOFS_CALL(add_entries)
GOFS_CALL(add_entry)
GOFS_CALL(bring_times_up_to_date)
GOFS_CALL(allocate_rows)
GOFS_CALL(append_blocks)
GOFS_CALL(begin_operation)
GOFS_CALL(begin_writing)
GOFS_CALL(bring_up_to_date)
GOFS_CALL(change_attributes)
GOFS_CALL(change_links)
GOFS_CALL(choose_victims)
GOFS_CALL(lock_for_checkpoint)
GOFS_CALL(copy_xattr)
GOFS_CALL(count_subdirectory)
GOFS_CALL(count_to_reserve)
GOFS_CALL(drop_held)
GOFS_CALL(end_operation)
GOFS_CALL(lock_op)
GOFS_CALL(enter_stored)
GOFS_CALL(fetch_directory_blocks)
GOFS_CALL(find_entry)
GOFS_CALL(find_dentry_slots)
GOFS_CALL(find_xattr)
GOFS_CALL(flush_device)
GOFS_CALL(flush_overwrites)
GOFS_CALL(invalidate_pages)
GOFS_CALL(free_blocks)
GOFS_CALL(free_inode)
GOFS_CALL(grow_nodes)
GOFS_CALL(help_writeback)
GOFS_CALL(hold_blocks)
GOFS_CALL(is_empty_directory)
GOFS_CALL(keep_inode)
GOFS_CALL(unlock_op)
GOFS_CALL(list_entries)
GOFS_CALL(load_again)
GOFS_CALL(load_inodes)
GOFS_CALL(load_owners)
GOFS_CALL(read_segments)
GOFS_CALL(load_xattrs)
GOFS_CALL(load_xattrs_into)
GOFS_CALL(locate_blocks)
GOFS_CALL(lock_growth)
GOFS_CALL(lock_xattrs)
GOFS_CALL(lock_xattrs_shared)
GOFS_CALL(look_up_nat)
GOFS_CALL(prealloc_dentry_blocks)
GOFS_CALL(make_files)
GOFS_CALL(make_inodes)
GOFS_CALL(map_blocks)
GOFS_CALL(mount)
GOFS_CALL(move_blocks)
GOFS_CALL(move_directory_block)
GOFS_CALL(move_nodes)
GOFS_CALL(move_out_entries)
GOFS_CALL(move_out_inline)
GOFS_CALL(next_orphan)
GOFS_CALL(next_orphan_line)
GOFS_CALL(next_xattr)
GOFS_CALL(note_overwrite)
GOFS_CALL(note_times)
GOFS_CALL(unlock_after_checkpoint)
GOFS_CALL(pack_sit_block)
GOFS_CALL(prepare_write)
GOFS_CALL(punch_hole)
GOFS_CALL(read_blocks)
GOFS_CALL(read_pieces)
GOFS_CALL(read_runs)
GOFS_CALL(read_stored)
GOFS_CALL(recover_files)
GOFS_CALL(recover_orphans)
GOFS_CALL(remove_entry)
GOFS_CALL(remove_inode)
GOFS_CALL(remove_nodes)
GOFS_CALL(remove_shared_entry)
GOFS_CALL(report_once)
GOFS_CALL(report_xattr)
GOFS_CALL(reserve_blocks)
GOFS_CALL(set_entry)
GOFS_CALL(set_parent)
GOFS_CALL(set_xattr)
GOFS_CALL(probe_append)
GOFS_CALL(store_addresses)
GOFS_CALL(store_pieces)
GOFS_CALL(sync_file)
GOFS_CALL(sync_volume)
GOFS_CALL(take_nids)
GOFS_CALL(take_sit_journal)
GOFS_CALL(take_to_store)
GOFS_CALL(truncate_file)
GOFS_CALL(try_lock_for_checkpoint)
GOFS_CALL(try_to_grow)
GOFS_CALL(try_to_update)
GOFS_CALL(unload_xattrs)
GOFS_CALL(unlock_growth)
GOFS_CALL(unlock_xattrs)
GOFS_CALL(unlock_xattrs_shared)
GOFS_CALL(unmake_files)
GOFS_CALL(update_inode)
GOFS_CALL(use_held)
GOFS_CALL(write_blocks)
GOFS_CALL(write_blocks_durably)
GOFS_CALL(write_checkpoint)
GOFS_CALL(write_dirty_directories)
GOFS_CALL(write_dirty_nodes)
GOFS_CALL(write_dirty_pages)
GOFS_CALL(write_over)
GOFS_CALL(write_pieces)

}  // namespace gofs::f2fs

namespace gofs::vfs {

GOFS_CALL(access)
GOFS_CALL(advance_position)
GOFS_CALL(begin_batch)
GOFS_CALL(begin_creation)
GOFS_CALL(check_permission)
GOFS_CALL(check_permissions)
GOFS_CALL(chmod)
GOFS_CALL(chown)
GOFS_CALL(clean_round)
GOFS_CALL(clean_segments)
GOFS_CALL(close)
GOFS_CALL(copy_range)
GOFS_CALL(count_memory)
GOFS_CALL(create_batch)
GOFS_CALL(dump_xattrs_of)
GOFS_CALL(end_batch)
GOFS_CALL(end_creation)
GOFS_CALL(enter_block_writers)
GOFS_CALL(enter_path_readers)
GOFS_CALL(fallocate)
GOFS_CALL(fchmod)
GOFS_CALL(fchown)
GOFS_CALL(fdatasync)
GOFS_CALL(fgetxattr)
GOFS_CALL(find_batch)
GOFS_CALL(flistxattr)
GOFS_CALL(reset_stuck)
GOFS_CALL(fremovexattr)
GOFS_CALL(fsetxattr)
GOFS_CALL(fstat)
GOFS_CALL(fsync)
GOFS_CALL(ftruncate)
GOFS_CALL(futimens)
GOFS_CALL(get_xattr_of)
GOFS_CALL(getxattr)
GOFS_CALL(detach_lock)
GOFS_CALL(leave_readers)
GOFS_CALL(leave_path_readers)
GOFS_CALL(link)
GOFS_CALL(list_batch)
GOFS_CALL(list_xattrs_of)
GOFS_CALL(listxattr)
GOFS_CALL(load_batch)
GOFS_CALL(load_numbered)
GOFS_CALL(lock_exclusive)
GOFS_CALL(lock_in_ring)
GOFS_CALL(lock_inodes)
GOFS_CALL(lock_shared)
GOFS_CALL(lseek)
GOFS_CALL(run_foreground_gc)
GOFS_CALL(mkdir)
GOFS_CALL(mknod)
GOFS_CALL(open)
GOFS_CALL(open_existing)
GOFS_CALL(open_identity)
GOFS_CALL(open_inode)
GOFS_CALL(opendir)
GOFS_CALL(poll)
GOFS_CALL(pread)
GOFS_CALL(pread_async)
GOFS_CALL(pread_lanes)
GOFS_CALL(prepare_creation)
GOFS_CALL(pwrite)
GOFS_CALL(pwrite_async)
GOFS_CALL(pwrite_lanes)
GOFS_CALL(pwritev)
GOFS_CALL(read_batch)
GOFS_CALL(read_lanes)
GOFS_CALL(read_link)
GOFS_CALL(read_striped)
GOFS_CALL(readdir)
GOFS_CALL(readlink)
GOFS_CALL(removexattr)
GOFS_CALL(rename)
GOFS_CALL(resolve)
GOFS_CALL(resolve_or_place)
GOFS_CALL(resolve_parent)
GOFS_CALL(rmdir)
GOFS_CALL(setxattr)
GOFS_CALL(stat)
GOFS_CALL(survey_batch)
GOFS_CALL(symlink)
GOFS_CALL(sync)
GOFS_CALL(truncate)
GOFS_CALL(try_join_block_writers)
GOFS_CALL(try_join_readers)
GOFS_CALL(try_to_overwrite)
GOFS_CALL(unlink)
GOFS_CALL(unlock_exclusive)
GOFS_CALL(unlock_inode)
GOFS_CALL(unlock_inodes)
GOFS_CALL(unlock_detached)
GOFS_CALL(unlock_shared)
GOFS_CALL(utimens)
GOFS_CALL(wait)
GOFS_CALL(wait_for_path_readers)
GOFS_CALL(write)
GOFS_CALL(write_batch)
GOFS_CALL(write_lanes)
GOFS_CALL(writev)

}  // namespace gofs::vfs

namespace gofs::kernels {

GOFS_CALL(hash_body)

}  // namespace gofs::kernels

#undef GOFS_CALL
#undef GOFS_CALL_BY
