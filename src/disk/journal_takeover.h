/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over the journal files of an earlier process. */
#ifndef RP_DISK_JOURNAL_TAKEOVER_H
#define RP_DISK_JOURNAL_TAKEOVER_H

#include "disk/journal_options.h"
#include "disk/names.h"

/* Syncs the journal files that have records below o->next_lsn, and with them all segments: the
 * earlier process may have left them unsynced. Moves the other journal files to quarantine/.
 * `kept` gets the first LSNs of the files that stay, ascending; the caller frees it in every
 * case. */
RP_NODISCARD rp_status rp_journal_take_over(const rp_journal_options *o, rp_number_list *kept,
                                            rp_error *err);

#endif
