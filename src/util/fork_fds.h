/* SPDX-License-Identifier: Apache-2.0 */
/* A set of file descriptors. After fork(), the child closes all of them at once. Otherwise the
 * child would keep a connection open that the parent has closed, and the peer would not see its
 * end. */
#ifndef RP_UTIL_FORK_FDS_H
#define RP_UTIL_FORK_FDS_H

/* Any thread may call these without a lock. The caller must add a descriptor right after it
 * opens it, and must remove the descriptor before it closes it. */
void rp_fork_fds_add(int fd);
void rp_fork_fds_remove(int fd);

#endif
