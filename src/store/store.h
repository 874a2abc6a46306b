/* SPDX-License-Identifier: Apache-2.0 */
/* What the other files of the store module need of a store. */
#ifndef RP_STORE_STORE_H
#define RP_STORE_STORE_H

#include "reprise/store.h"
#include "table/account.h"

/* Valid as long as the store. */
const rp_allocator *rp_store_allocator(rp_store *store);

rp_budget *rp_store_budget(rp_store *store);

#endif
