/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of items. An insert costs a lock of the table, a lock of the sink and an allocation,
 * whether it has one item or many. A caller that creates many items in a row, and flushes then,
 * has the table insert them at once.
 *
 * What a group has depends on the calls of the caller only, not on how many items the writer
 * has created before: the slots of a table that is full depend on it (table/slots.h), and so
 * does what is drawn from them. A run that is resumed has a new writer.
 *
 * Invariant:
 *   G1  held items are in the set and counted as sent; no item that was created after them has
 *       gone to the job or to the sink. */
#include <assert.h>

#include "client/writer/trajectory_writer.h"
#include "util/mem.h"

bool rp_writer_hold(rp_trajectory_writer *w, const rp_sink_item *item)
{
    if (w->held == NULL) w->held = rp_alloc_array(&w->alloc, w->options.group, sizeof *w->held);
    if (w->held == NULL) return false;
    assert(w->held_count < w->options.group && item->trajectory != NULL);
    w->held[w->held_count++] = *item;
    if (w->held_count == w->options.group) rp_writer_hand_over(w);
    return true;
}

void rp_writer_hand_over(rp_trajectory_writer *w)
{
    size_t count = w->held_count;
    rp_error why;

    if (count == 0) return;
    w->held_count = 0;
    if (w->sink->class->put(w->sink, w->held, count, &why) == RP_OK) {
        rp_writer_count_given(w, count);
        return;
    }
    rp_mutex_lock(&w->mu);
    assert(w->sent >= count); /* G1 */
    w->sent -= count;
    for (size_t i = 0; i < count; i++) {
        rp_outgoing *item = rp_outgoing_set_find(&w->set, w->held[i].key);

        assert(item != NULL && item->trajectory == NULL); /* G1 */
        item->trajectory = w->held[i].trajectory;
        rp_writer_queue_item_locked(w, item);
    }
    rp_mutex_unlock(&w->mu);
    rp_writer_kick(w);
}

void rp_writer_drop_held(rp_trajectory_writer *w)
{
    for (size_t i = 0; i < w->held_count; i++) rp_trajectory_unref(w->held[i].trajectory);
    w->held_count = 0;
    rp_release(&w->alloc, w->held, w->options.group * sizeof *w->held);
    w->held = NULL;
}
