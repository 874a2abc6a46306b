/* SPDX-License-Identifier: Apache-2.0 */
/* How a caller of a writer waits for confirmations, and asks about them. */
#include <assert.h>
#include <stdio.h>

#include "client/writer/trajectory_writer.h"
#include "util/cancel.h"
#include "util/error.h"

enum { WHY_BYTES = RP_ERROR_TEXT_BYTES, COUNT_BYTES = 64, REFUSAL_BYTES = 200 };

/* The time between two questions: at least this long, and ASK_SHARE times as long as the first
 * of them took. */
static const int64_t ask_pause_ns = 1000 * 1000000LL;
enum { ASK_SHARE = 4 };
/* Waits with less time between them are slices of one. */
static const int64_t slice_gap_ns = 50 * 1000000LL;

/* A wait that a token can end. */
typedef struct cancellable {
    rp_cancel_link link; /* first: on_fire gets this */
    rp_trajectory_writer *writer;
} cancellable;

static void on_fire(rp_cancel_link *link)
{
    rp_trajectory_writer *w = ((cancellable *)link)->writer;

    rp_mutex_lock(&w->mu);
    w->cancelled = true;
    rp_writer_wake_locked(w);
    rp_mutex_unlock(&w->mu);
}

static rp_status await_locked(rp_trajectory_writer *w, size_t max_items, size_t max_bytes,
                              int64_t until_ns, rp_error *err) RP_REQUIRES(w->mu)
{
    bool late = until_ns == RP_NOW;

    assert(w->sent <= w->set.count);
    w->awaited_items = max_items;
    w->awaited_bytes = max_bytes;
    while (!rp_writer_is_room_locked(w, max_items, max_bytes)) {
        if (w->trouble.code != RP_OK) {
            if (err != NULL) *err = w->trouble;
            return w->trouble.code;
        }
        if (w->cancelled) return RP_CANCELLED;
        if (late) return RP_DEADLINE;
        w->waiting = true;
        late = !rp_cond_wait(&w->cv, &w->mu, until_ns);
        w->waiting = false;
    }
    return RP_OK;
}

/* Asks the sink for reports that it keeps back, as soon as they end a wait for this room. If
 * bytes are lacking, how many reports are needed is not known: all are asked for. Rows that are
 * not compressed yet may still change their bytes. Returns true in this case: the caller ends
 * it with settle(). */
static bool ask_for_reports(rp_trajectory_writer *w, size_t max_items, size_t max_bytes)
{
    uint64_t wanted;

    if (w->sink == NULL || w->sink->class->await == NULL) return false;
    rp_mutex_lock(&w->mu);
    wanted = w->settled + 1;
    if (max_items > 0 && w->set.count > max_items) wanted += w->set.count - max_items;
    if (max_bytes < SIZE_MAX && (w->bytes >= max_bytes || w->closed != NULL))
        wanted = RP_AWAIT_ANY;
    rp_mutex_unlock(&w->mu);
    w->sink->class->await(w->sink, wanted);
    return wanted == RP_AWAIT_ANY;
}

/* Has the sink report what it keeps back now, and no more. */
static void settle(rp_trajectory_writer *w)
{
    if (w->sink != NULL && w->sink->class->await != NULL) w->sink->class->await(w->sink, 0);
}

/* Asks for each table, the most recently used one first, until one is known to keep inserts
 * waiting. A caller may wait in many short slices, so it asks at most once a second, and seldom
 * if no server responds, since its slice then ends late by a tenth of all slices so far. In
 * between, the reason is known unless items were settled since. */
static void ask_tables(rp_trajectory_writer *w, uint64_t settled, int64_t waited_ns, char *text,
                       size_t size)
{
    rp_writer_reason *r = &w->reason;
    const int64_t begun_ns = rp_now_ns();
    char why[WHY_BYTES - 80] = "";

    if (begun_ns >= r->ask_ns) {
        int64_t pause_ns;

        r->settled = settled;
        r->text[0] = '\0';
        for (const rp_writer_table *t = w->tables; t != NULL && why[0] == '\0'; t = t->next) {
            w->parts.why(w->parts.find_ctx, t->name, waited_ns, why, sizeof why);
            if (why[0] != '\0')
                (void)snprintf(r->text, sizeof r->text, "table '%.64s': %s", t->name, why);
        }
        r->ask_ns = rp_now_ns();
        pause_ns = ASK_SHARE * (r->ask_ns - begun_ns);
        r->ask_ns += pause_ns > ask_pause_ns ? pause_ns : ask_pause_ns;
    }
    if (r->settled == settled) (void)snprintf(text, size, "%s", r->text);
}

/* Writes "3 items are unconfirmed". Returns `text`. */
static const char *name_count(size_t count, char text[COUNT_BYTES])
{
    (void)snprintf(text, COUNT_BYTES,
                   count == 1 ? "1 item is unconfirmed" : "%zu items are unconfirmed", count);
    return text;
}

/* Writes how many items were refused since the last flush, and why the first was: "2 items were
 * refused so far, the first: no table 'a'; ". Writes "" if none was. */
static void describe_refused(rp_trajectory_writer *w, char text[REFUSAL_BYTES])
{
    rp_error first;
    size_t count;

    rp_mutex_lock(&w->mu);
    count = w->refused;
    first = w->refusal;
    rp_mutex_unlock(&w->mu);
    text[0] = '\0';
    if (count == 1)
        (void)snprintf(text, REFUSAL_BYTES, "1 item was refused so far: %.120s; ", first.text);
    else if (count > 1)
        (void)snprintf(text, REFUSAL_BYTES,
                       "%zu items were refused so far, the first: %.120s; ", count, first.text);
}

/* Writes what the unconfirmed items wait for, after the caller has waited for `waited_ns`. If
 * that is 0, no server is asked. */
static void describe_waiting(rp_trajectory_writer *w, int64_t waited_ns, char *text,
                             size_t size)
{
    char said[WHY_BYTES] = "", gone[WHY_BYTES] = "", items[COUNT_BYTES];
    size_t count, sent;
    uint64_t settled;

    settle(w); /* counts what rp_trajectory_writer_pending() counts */
    rp_mutex_lock(&w->mu);
    count = w->set.count;
    sent = w->sent;
    settled = w->settled;
    rp_mutex_unlock(&w->mu);
    (void)name_count(count, items);
    if (sent > 0 && w->sink != NULL) w->sink->class->why(w->sink, said, sizeof said);
    if (sent < count && said[0] == '\0' && w->parts.away != NULL)
        w->parts.away(w->parts.find_ctx, said, sizeof said);
    if (count > 0 && said[0] != '\0') { /* the sink has them, and cannot send them */
        (void)snprintf(text, size, "%s: %s", items, said);
        return;
    }
    if (waited_ns > 0 && sent > 0 && w->parts.why != NULL)
        ask_tables(w, settled, waited_ns, said, sizeof said);
    if (count > 0 && sent > 0 && w->parts.away != NULL)
        w->parts.away(w->parts.find_ctx, gone, sizeof gone);
    if (gone[0] != '\0') /* the sink has them, and has no connection: nothing is sent now */
        (void)snprintf(text, size, "%s: %s", items, said[0] != '\0' ? said : gone);
    else if (count == 0)
        (void)snprintf(text, size, "no item is unconfirmed");
    else if (said[0] != '\0' && count == 1) /* and it is sent */
        (void)snprintf(text, size, "%s: %s", items, said);
    else if (said[0] != '\0')
        (void)snprintf(text, size, "%s, %zu of them sent: %s", items, sent, said);
    else if (sent == count)
        (void)snprintf(text, size, "%s: the server has not responded yet", items);
    else if (count == 1) /* and it is not sent */
        (void)snprintf(text, size, "%s: it waits for a chunk to fill or to be compressed",
                       items);
    else
        (void)snprintf(text, size,
                       "%s, %zu of them sent and %zu waiting for chunks to fill or to be "
                       "compressed",
                       items, sent, count - sent);
}

/* Writes which items were refused, and what the unconfirmed items wait for; `waited_ns` as
 * above. */
static void describe(rp_trajectory_writer *w, int64_t waited_ns, char *text, size_t size)
{
    char refused[REFUSAL_BYTES], waiting[WHY_BYTES];

    describe_waiting(w, waited_ns, waiting, sizeof waiting);
    describe_refused(w, refused);
    (void)snprintf(text, size, "%s%s", refused, waiting);
}

/* Returns how long the caller has waited since `begun_ns`, and before in slices that followed
 * each other at once. At least 1. */
static int64_t end_wait(rp_trajectory_writer *w, int64_t begun_ns)
{
    rp_writer_reason *r = &w->reason;
    int64_t waited_ns;

    if (r->end_ns == 0 || begun_ns - r->end_ns > slice_gap_ns) r->since_ns = begun_ns;
    waited_ns = rp_now_ns() - r->since_ns;
    return waited_ns > 1 ? waited_ns : 1;
}

rp_status rp_writer_await(rp_trajectory_writer *w, size_t max_items, size_t max_bytes,
                          rp_wait wait, rp_error *err)
{
    cancellable c = {.link.on_fire = on_fire, .writer = w};
    char why[WHY_BYTES], items[COUNT_BYTES];
    int64_t begun_ns = 0, waited_ns;
    bool is_any = false;
    rp_status st;

    rp_mutex_lock(&w->mu);
    w->cancelled = false; /* the token of an earlier wait may have fired late */
    st = await_locked(w, max_items, max_bytes, RP_NOW, err);
    w->waiting = st == RP_DEADLINE && wait.until_ns != RP_NOW; /* makes the job push */
    rp_mutex_unlock(&w->mu);
    if (st == RP_DEADLINE) {
        is_any = ask_for_reports(w, max_items, max_bytes);
        rp_mutex_lock(&w->mu);
        if (rp_writer_is_room_locked(w, max_items, max_bytes)) st = RP_OK;
        if (st == RP_OK) w->waiting = false;
        rp_mutex_unlock(&w->mu);
    }
    if (st == RP_DEADLINE && wait.until_ns != RP_NOW) {
        begun_ns = rp_now_ns();
        rp_writer_push(w, 1);
        rp_cancel_join(wait.cancel, &c.link);
        rp_mutex_lock(&w->mu);
        st = await_locked(w, max_items, max_bytes, wait.until_ns, err);
        w->waiting = false;
        rp_mutex_unlock(&w->mu);
        rp_cancel_part(wait.cancel, &c.link);
    }
    if (is_any) settle(w);
    if (st == RP_OK || (st == RP_DEADLINE && wait.until_ns == RP_NOW && err == NULL)) return st;
    if (st != RP_DEADLINE && st != RP_CANCELLED) return st;
    if (wait.until_ns == RP_NOW) /* a poll: the reason would cost more than the call */
        return rp_fail(err, st, "%s", name_count(rp_trajectory_writer_pending(w), items));
    waited_ns = end_wait(w, begun_ns);
    describe(w, st == RP_DEADLINE ? waited_ns : 0, why, sizeof why);
    w->reason.end_ns = rp_now_ns();
    return rp_fail(err, st, "%s: %s",
                   st == RP_DEADLINE ? "the deadline passed" : "the wait was cancelled", why);
}

static rp_status report_refused(rp_trajectory_writer *w, rp_wait wait, rp_error *err)
{
    const rp_writer_table *table;
    rp_error first;
    size_t count;

    rp_mutex_lock(&w->mu);
    count = w->refused;
    first = w->refusal;
    table = w->refusing;
    w->refused = 0;
    rp_mutex_unlock(&w->mu);
    if (count == 0) return RP_OK;
    if (first.code == RP_NOT_FOUND && w->parts.missing != NULL) /* lists the tables */
        w->parts.missing(w->parts.find_ctx, table->name, wait, &first);
    if (count == 1) return rp_fail(err, first.code, "1 item was refused: %s", first.text);
    return rp_fail(err, first.code, "%zu items were refused, the first: %s", count, first.text);
}

rp_status rp_trajectory_writer_flush(rp_trajectory_writer *writer, size_t leave, rp_wait wait,
                                     rp_error *err)
{
    rp_status st = rp_writer_check_alive(writer, err);

    if (st != RP_OK) return st;
    if (writer->created > leave) rp_writer_close_wanted(writer, writer->created - leave);
    rp_writer_hand_over(writer);
    rp_writer_kick(writer);
    st = rp_writer_await(writer, leave < SIZE_MAX ? leave + 1 : leave, SIZE_MAX, wait, err);
    return st == RP_OK ? report_refused(writer, wait, err) : st;
}

size_t rp_trajectory_writer_pending(const rp_trajectory_writer *writer)
{
    rp_trajectory_writer *w = (rp_trajectory_writer *)(uintptr_t)writer;
    size_t count;

    if (rp_writer_check_alive(w, NULL) != RP_OK) return 0; /* the items are the parent's */
    settle(w);
    rp_mutex_lock(&w->mu);
    count = w->set.count;
    rp_mutex_unlock(&w->mu);
    return count;
}

uint64_t rp_trajectory_writer_confirmed(const rp_trajectory_writer *writer)
{
    rp_trajectory_writer *w = (rp_trajectory_writer *)(uintptr_t)writer;
    uint64_t count;

    if (rp_writer_check_alive(w, NULL) != RP_OK) return 0;
    settle(w);
    rp_mutex_lock(&w->mu);
    count = w->confirmed;
    rp_mutex_unlock(&w->mu);
    return count;
}

void rp_trajectory_writer_why(rp_trajectory_writer *writer, char *text, size_t size)
{
    if (rp_writer_check_alive(writer, NULL) == RP_OK)
        describe(writer, RP_FOREVER, text, size);
    else
        (void)snprintf(text, size, "it belongs to the process that forked this one");
}
