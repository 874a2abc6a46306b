/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that are nothing to the child of a fork: it closes its copies at once. Otherwise
 * a peer would not see the end of a connection that only the parent has closed. */
#ifndef RP_UTIL_FORK_FDS_H
#define RP_UTIL_FORK_FDS_H

/* Any thread, no lock. Add it as soon as there is one; remove it before it is closed. */
void rp_fork_fds_add(int fd);
void rp_fork_fds_remove(int fd);

#endif
