/* SPDX-License-Identifier: Apache-2.0 */
/* Reports each change of a table to the journal, in the order in which the changes take effect.
 * log_record.h defines the records, and rp_table_log, which is the table's view of the journal
 * and is called the log here.
 *
 * A table with a log appends a record for every change, under the table's lock. With the
 * record, rp_table_redo() can repeat the change exactly, to the last bit. A redo does not ask
 * the rate limiter, since the limiter has permitted the change when it was first made. For a
 * table without a log, logging costs only a branch.
 *
 * An atomic extension (reprise/extension.h) gets events about changes and possibly sets
 * priorities in response. The log must have the record of such a priority directly after the
 * changes that caused the event. So a table with a log delivers events only when no change is
 * half made, and after it has logged the changes that caused the events. */
#ifndef RP_TABLE_TABLE_LOG_H
#define RP_TABLE_TABLE_LOG_H

#include <assert.h>

#include "table/table.h"

/* Sets the log; NULL removes it. A caller that removes the log must make sure that no thread
 * waits for it, and must then call rp_table_retry_parked() for the operations that waited
 * because of the log. */
void rp_table_set_log(rp_table *t, rp_table_log *log) RP_EXCLUDES(t->mu);
/* Retries the table's parked operations. */
void rp_table_retry_parked(rp_table *t) RP_EXCLUDES(t->mu);

/* Repeats a logged change, without events for extensions. The table must have no log, no other
 * users and no parked operations, and must not be closed. If the table was restored from a cut
 * (snapshot/cut.h), the cut must have had no retired slots (slots.h). Errors: RP_CORRUPT (the
 * record is impossible in this state; the error text says why), RP_NO_RESOURCE. After an error
 * the table is consistent but in an intermediate state, and the caller must discard it. */
RP_NODISCARD rp_status rp_table_redo(rp_table *t, const rp_log_record *change, rp_error *err)
    RP_EXCLUDES(t->mu);
/* Reclaims the retired slots that are left. Must be called after the redo of the last
 * record. */
void rp_table_redo_end(rp_table *t) RP_EXCLUDES(t->mu);

/* Variants of the public calls that do not wait until the change is durable.
 *
 * They are for event loops, together with operations (table/op.h). Each function sets `*lsn`,
 * even on failure, to the LSN (log sequence number) of the table's last record at the end of
 * the call, or to 0 if the table has no log. The event loop sends its response when all records
 * up to `*lsn` are durable. */

RP_NODISCARD rp_status rp_table_insert_logged(rp_table *t, const rp_insert *items, size_t count,
                                              rp_wait wait, size_t *inserted, uint64_t *lsn,
                                              rp_error *err);
RP_NODISCARD rp_status rp_table_update_logged(rp_table *t, const rp_update *updates,
                                              size_t count, size_t *found, uint64_t *lsn,
                                              rp_error *err);
/* Checks all updates and changes nothing. It is for a caller that passes the updates to
 * rp_table_update_logged() in pieces: rp_table_update_logged() checks only the updates of its
 * own call. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_table_check_updates(const rp_table *t, const rp_update *updates,
                                              size_t count, rp_error *err);
RP_NODISCARD rp_status rp_table_delete_logged(rp_table *t, const uint64_t *keys, size_t count,
                                              size_t *found, uint64_t *lsn, rp_error *err);
RP_NODISCARD rp_status rp_table_trim_logged(rp_table *t, size_t *removed, uint64_t *lsn,
                                            rp_error *err);
RP_NODISCARD rp_status rp_table_reset_logged(rp_table *t, uint64_t *lsn, rp_error *err);
RP_NODISCARD rp_status rp_table_alter_logged(rp_table *t, const rp_table_alteration *change,
                                             uint64_t *lsn, rp_error *err);
/* The state of a change of a table's options, which is made in steps. Each step evicts at most
 * one block of items. The caller sets `change`, zeroes the other fields, and calls
 * rp_table_alter_step() until is_done is set or a step fails. To stop earlier, the caller must
 * call rp_table_alter_give_up(), which restores the bounds that the steps have lowered so
 * far. */
typedef struct rp_altering {
    rp_table_alteration change;
    bool has_begun, is_done;
    int64_t max_size, lowered_size; /* the bound before the first step, and the bound that the
                                       last step has set */
    uint64_t max_bytes, lowered_bytes;
} rp_altering;
RP_NODISCARD rp_status rp_table_alter_step(rp_table *t, rp_altering *altering, uint64_t *lsn,
                                           rp_error *err);
void rp_table_alter_give_up(rp_table *t, rp_altering *altering);
RP_NODISCARD rp_status rp_table_set_paused_logged(rp_table *t, uint32_t sides, bool paused,
                                                  uint64_t *lsn, rp_error *err);

/* Calls that block call this function before they change the table. If the backlog of the log
 * (records that are not written yet) is at its bound, waits until the log has written it. A
 * call with many keys waits before each piece of its keys, so when it fails, items of earlier
 * pieces are possibly changed already. Errors: RP_UNAVAILABLE (the journal cannot write). */
RP_NODISCARD rp_status rp_table_wait_for_log(rp_table *t, rp_error *err) RP_EXCLUDES(t->mu);
/* Waits until the record with the LSN `lsn` is durable, even if `wait` has the deadline RP_NOW.
 * Returns at once if `lsn` is 0 or the table has no log. `st` is the status of the caller's
 * operation; a status other than RP_OK is returned unchanged. */
RP_NODISCARD rp_status rp_table_wait_durable(rp_table *t, rp_status st, uint64_t lsn,
                                             rp_wait wait, rp_error *err) RP_EXCLUDES(t->mu);

/* Returns the log, or NULL if there is none. A caller that does not hold the table's lock can
 * get an outdated result. */
static inline rp_table_log *rp_table_log_of(const rp_table *t)
{
    /* Acquire: the log was initialised before it was set. */
    return atomic_load_explicit(&t->log_buffer.log, memory_order_acquire);
}

#ifndef NDEBUG
/* Returns whether the buffer has no changes. For asserts. */
static inline bool rp_log_buffer_is_empty(const rp_log_buffer *b)
{
    return b->inserted_count == 0 && b->evicted == 0 && b->drawn == 0 && b->update_count == 0;
}
#endif

/* Flushes the table's log buffer (log_record.h), and then appends a record to the log. The
 * table must have a log. */
void rp_log_locked(rp_table *t, const rp_log_record *change) RP_REQUIRES(t->mu);
/* Flushes the log buffer: appends records of the changes in the buffer to the log. */
void rp_log_flush_locked(rp_table *t) RP_REQUIRES(t->mu);
/* Adds an insert to the log buffer. If `trajectory` is NULL, the key existed, and the insert
 * has only set the priority. */
void rp_log_add_inserted_locked(rp_table *t, const rp_insert *item, double priority,
                                rp_trajectory *trajectory) RP_REQUIRES(t->mu);
/* Adds an update by an extension, the new priority of a key, to the log buffer. */
void rp_log_add_update_locked(rp_table *t, uint64_t key, double priority) RP_REQUIRES(t->mu);

/* Begins a block of inserts, all of which get the wall clock time `wall_ns`. */
static inline void rp_log_begin_inserts_locked(rp_table *t, int64_t wall_ns) RP_REQUIRES(t->mu);
static inline void rp_log_begin_inserts_locked(rp_table *t, int64_t wall_ns)
{
    assert(t->log_buffer.inserted_count == 0);
    t->log_buffer.wall_ns = wall_ns;
    t->log_buffer.dead = t->slots.retired;
}
/* Adds an eviction to the log buffer. Not called for an eviction because of max_size. */
static inline void rp_log_add_evicted_locked(rp_table *t) RP_REQUIRES(t->mu);
static inline void rp_log_add_evicted_locked(rp_table *t)
{
    if (rp_table_log_of(t) != NULL) t->log_buffer.evicted++;
}
/* Adds one draw to the log buffer. */
static inline void rp_log_add_drawn_locked(rp_table *t) RP_REQUIRES(t->mu);
static inline void rp_log_add_drawn_locked(rp_table *t)
{
    if (rp_table_log_of(t) != NULL) t->log_buffer.drawn++;
}

/* Returns false if the events of the next change possibly do not fit into the buffer of events
 * for atomic extensions. If the buffer became full during a change, the table would have to
 * deliver events while the change is half made. */
static inline bool rp_log_has_room_locked(const rp_table *t) RP_REQUIRES(t->mu);
static inline bool rp_log_has_room_locked(const rp_table *t)
{
    enum { EVENTS_OF_AN_ITEM = 2 };

    return rp_table_log_of(t) == NULL ||
           t->events.atomic_count + EVENTS_OF_AN_ITEM <= RP_EVENTS_AT_ONCE;
}

/* Makes room for the events of the next change by delivering the buffered events. Must be
 * called between two changes. */
static inline void rp_log_make_room_locked(rp_table *t) RP_REQUIRES(t->mu);
static inline void rp_log_make_room_locked(rp_table *t)
{
    if (!rp_log_has_room_locked(t)) rp_events_flush_locked(t);
}

/* The parts of rp_table_redo(), by kind of record. Errors: RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sample_redo_locked(rp_table *t, const rp_log_record *change,
                                             rp_error *err) RP_REQUIRES(t->mu);
RP_NODISCARD rp_status rp_update_redo_locked(rp_table *t, const rp_log_record *change,
                                             rp_error *err) RP_REQUIRES(t->mu);
RP_NODISCARD rp_status rp_delete_redo_locked(rp_table *t, const rp_log_record *change,
                                             rp_error *err) RP_REQUIRES(t->mu);
RP_NODISCARD rp_status rp_alter_redo_locked(rp_table *t, const rp_log_record *change,
                                            rp_error *err) RP_REQUIRES(t->mu);
void rp_reset_redo_locked(rp_table *t) RP_REQUIRES(t->mu);

#endif
