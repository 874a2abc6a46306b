/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a table, told in order: the journal's ear (change.h has the values).
 *
 * A table with a log tells it of every change as it is made, under the table's lock, and what
 * it tells is enough to make the same change again, to the bit: rp_table_replay(). Without one,
 * this costs a branch. The rate limiter is not asked in a replay: what happened was allowed.
 *
 * The order of telling is the order of effects. An atomic extension that sets priorities does
 * so between two changes, never within one: with a log its events are handed over when nothing
 * is half done, and what was done before is told first. */
#ifndef RP_TABLE_TABLE_LOG_H
#define RP_TABLE_TABLE_LOG_H

#include "table/table.h"

/* Starts or stops (NULL) telling. Whoever stops it sees to it that nobody is waiting for the
 * log, and nudges what was held up by it. */
void rp_table_set_log(rp_table *t, rp_table_log *log) RP_EXCLUDES(t->mu);
/* Gives parked operations another try. */
void rp_table_nudge(rp_table *t) RP_EXCLUDES(t->mu);

/* Makes a change again; extensions are not told. For a table without a log that nobody else
 * uses, with `closed` false and nothing parked. A table that was cut (cut.h) must have had no
 * dead slots at the cut, or have them again.
 * RP_CORRUPT (it cannot have happened: names what), RP_NO_RESOURCE; after either the table is
 * consistent but not what it was: throw it away. */
RP_NODISCARD rp_status rp_table_replay(rp_table *t, const rp_change *change, rp_error *err)
    RP_EXCLUDES(t->mu);
/* After the last: frees the slots of what has gone, as the table did when it came to rest. */
void rp_table_replay_end(rp_table *t) RP_EXCLUDES(t->mu);

/* Calls that do not wait until it is safe.
 *
 * The public calls wait for the log when they have left the table's lock. An event loop cannot:
 * it uses these (and operations, table/op.h), and answers when everything up to `*lsn` is
 * safe: the number of the table's last change when the call was done with it, 0 without a log.
 * `lsn` is written whatever the status. */

RP_NODISCARD rp_status rp_table_insert_logged(rp_table *t, const rp_insert *items, size_t count,
                                              rp_wait wait, size_t *inserted, uint64_t *lsn,
                                              rp_error *err);
RP_NODISCARD rp_status rp_table_update_logged(rp_table *t, const rp_update *updates,
                                              size_t count, size_t *found, uint64_t *lsn,
                                              rp_error *err);
RP_NODISCARD rp_status rp_table_delete_logged(rp_table *t, const uint64_t *keys, size_t count,
                                              size_t *found, uint64_t *lsn, rp_error *err);
RP_NODISCARD rp_status rp_table_trim_logged(rp_table *t, size_t *removed, uint64_t *lsn,
                                            rp_error *err);
RP_NODISCARD rp_status rp_table_reset_logged(rp_table *t, uint64_t *lsn, rp_error *err);
RP_NODISCARD rp_status rp_table_alter_logged(rp_table *t, const rp_table_change *change,
                                             uint64_t *lsn, rp_error *err);
RP_NODISCARD rp_status rp_table_set_paused_logged(rp_table *t, uint32_t sides, bool paused,
                                                  uint64_t *lsn, rp_error *err);

/* Waits until `lsn` is safe; at once if it is 0 or the table has no log. A wait that may take
 * no time (RP_NOW) takes what the disk takes: it is about waiting for others. `st` is the
 * status of the call so far and, if it is not RP_OK, stays it. */
RP_NODISCARD rp_status rp_table_wait_safe(rp_table *t, rp_status st, uint64_t lsn, rp_wait wait,
                                          rp_error *err) RP_EXCLUDES(t->mu);

/* Under the lock, or for what can do without a log that has just come or gone. */
static inline rp_table_log *rp_table_log_of(const rp_table *t)
{
    /* Acquire: what the log points at was made before it was set. */
    return atomic_load_explicit(&t->telling.log, memory_order_acquire);
}

/* Tells of a change with a log that is there, and of everything before it. */
void rp_tell_locked(rp_table *t, const rp_change *change) RP_REQUIRES(t->mu);
/* Tells what has been noted; nothing if there is no log. */
void rp_tell_noted_locked(rp_table *t) RP_REQUIRES(t->mu);
/* An item that has just gone in, or whose priority was set (`trajectory` NULL). */
void rp_note_inserted_locked(rp_table *t, const rp_insert *item, double priority,
                             rp_trajectory *trajectory) RP_REQUIRES(t->mu);
/* A priority that an extension has set. */
void rp_note_update_locked(rp_table *t, uint64_t key, double priority) RP_REQUIRES(t->mu);

/* Inserts follow, of this time. */
static inline void rp_note_inserts_locked(rp_table *t, int64_t wall_ns) RP_REQUIRES(t->mu);
static inline void rp_note_inserts_locked(rp_table *t, int64_t wall_ns)
{
    t->telling.wall_ns = wall_ns;
    t->telling.dead = t->slots.dead;
}
/* An item that the remover picked and that has gone, but not because of max_size. */
static inline void rp_note_evicted_locked(rp_table *t) RP_REQUIRES(t->mu);
static inline void rp_note_evicted_locked(rp_table *t)
{
    if (rp_table_log_of(t) != NULL) t->telling.evicted++;
}
/* A draw of one. */
static inline void rp_note_drawn_locked(rp_table *t) RP_REQUIRES(t->mu);
static inline void rp_note_drawn_locked(rp_table *t)
{
    if (rp_table_log_of(t) != NULL) t->telling.drawn++;
}

/* False if the next change might fill the buffer of events for atomic extensions, so that these
 * would be called, and the log told, on the way. */
static inline bool rp_tell_has_room_locked(const rp_table *t) RP_REQUIRES(t->mu);
static inline bool rp_tell_has_room_locked(const rp_table *t)
{
    enum { EVENTS_OF_AN_ITEM = 2 };

    return rp_table_log_of(t) == NULL ||
           t->events.atomic_count + EVENTS_OF_AN_ITEM <= RP_EVENTS_AT_ONCE;
}

/* Called where nothing is half done: hands atomic extensions their events if there is no room.
 */
static inline void rp_tell_room_locked(rp_table *t) RP_REQUIRES(t->mu);
static inline void rp_tell_room_locked(rp_table *t)
{
    if (!rp_tell_has_room_locked(t)) rp_events_flush_locked(t);
}

RP_NODISCARD rp_status rp_sample_replay_locked(rp_table *t, const rp_change *change,
                                               rp_error *err) RP_REQUIRES(t->mu);
RP_NODISCARD rp_status rp_update_replay_locked(rp_table *t, const rp_change *change,
                                               rp_error *err) RP_REQUIRES(t->mu);
RP_NODISCARD rp_status rp_delete_replay_locked(rp_table *t, const rp_change *change,
                                               rp_error *err) RP_REQUIRES(t->mu);
RP_NODISCARD rp_status rp_alter_replay_locked(rp_table *t, const rp_change *change,
                                              rp_error *err) RP_REQUIRES(t->mu);
void rp_reset_replay_locked(rp_table *t) RP_REQUIRES(t->mu);

#endif
