/* SPDX-License-Identifier: Apache-2.0 */
/* Inserting together what was read together.
 *
 * While messages are read, items wait in the worker's open batches, one for each table, all of
 * one stream: so a lock is taken for many messages. Whoever reads from a connection starts them
 * when it has; and whatever else happens meanwhile, for whichever call, starts them first. So
 * all that can be told is that items for one table may be in before earlier ones for another:
 *
 *   W1  between turns of the worker's loop no batch is open;
 *   W2  while any are, their stream is the only one whose messages are read;
 *   W3  a stream that ends, however it does, has started them. */
#ifndef RP_SERVER_INSERT_STREAM_H
#define RP_SERVER_INSERT_STREAM_H

#include "server/inside.h"

/* Starts the open batches. May end their stream. */
void rp_insert_start_open(rp_worker *worker);

/* Starts them if they are not of this task, for which something is to be done. */
void rp_insert_make_way(rp_worker *worker, const rp_task *task);

#endif
