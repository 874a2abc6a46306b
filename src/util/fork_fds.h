/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that the child of a fork closes at once. Otherwise the child would keep a
 * connection open that the parent has closed, and the peer would not see its end. */
#ifndef RP_UTIL_FORK_FDS_H
#define RP_UTIL_FORK_FDS_H

/* Any thread, no lock. Add a descriptor right after it is opened; remove it before it is
 * closed. */
void rp_fork_fds_add(int fd);
void rp_fork_fds_remove(int fd);

#endif
