/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over the journal files of an earlier process when a journal starts. The LSN (log
 * sequence number) of a record is its number in the journal. */
#ifndef RP_DISK_JOURNAL_TAKEOVER_H
#define RP_DISK_JOURNAL_TAKEOVER_H

#include "disk/journal_options.h"
#include "disk/names.h"

/* Syncs the journal files whose first LSN is below o->next_lsn. If there are any, also syncs
 * all segments, since the earlier process possibly has not synced these files. Moves the other
 * journal files to quarantine/. Sets `*kept` to the first LSNs of the files that stay,
 * ascending. The caller must free `*kept` also after a failure. */
RP_NODISCARD rp_status rp_journal_take_over(const rp_journal_options *o, rp_number_list *kept,
                                            rp_error *err);

#endif
