/* SPDX-License-Identifier: Apache-2.0 */
/* The sink of one server; the header describes its guarantees.
 *
 * put() leaves items in the inbox; everything else runs on the loop thread. While confirmations
 * arrive, the loop is near (inbox.h): then a few items are sent with the next message, at the
 * next push(), or at the latest when the timer is due. Items are in one list, in order:
 *
 *   sent and not confirmed ... | cursor: to be sent next ...
 *
 * Invariants, between two callbacks of the loop:
 *   R1  all items before the cursor were sent on this stream (`message` is not 0), no item from
 *       the cursor on was; without a stream the cursor is at the first item;
 *   R2  `chunks` is the set that the last message with items asked the server to keep;
 *   R3  the timer is armed, so moving it needs no memory;
 *   R4  no item from `unsent` on was ever in a message, every item before it was; `unsent` is
 *       not before the cursor;
 *   R5  if the loop is near, or items that it took wait for memory, the timer is due soon, and
 *       then the loop checks the inbox.
 *
 * Running out of memory in the middle of a message ends the stream; the next stream starts from
 * R1.
 *
 * Probing finds the item that makes a server end the stream. All items that were unconfirmed
 * when the stream ended are suspects. Suspects are sent one message at a time; the next message
 * follows when all items of the last one are confirmed. If a message ends the stream, it
 * contains the bad item, and half of its items are tried next. An item may also wait long for
 * its table, and must not delay the others for ever: after a while it counts as passed and is
 * sent like any other. Such an item may still be the bad one. So an item is rejected only if it
 * was alone on its stream when the stream ended; otherwise it is moved to the front of the
 * list, so that it is alone the next time. */
#include "client/sink/remote_sink_inside.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "chunk/chunk.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/responses.h"

enum {
    QUEUED_BYTES = 4 << 20, /* unwritten bytes at which no more messages are built */
    FIRST_PROBE = 16,
    FREED_BYTES = 128, /* bytes of a chunk that are read to free it */
    CONFIRMED = 64,    /* trajectories that are released at once */
};

#define MIN_PAUSE_NS ((int64_t)2000000)
#define MAX_PAUSE_NS ((int64_t)1000000000)
#define MEMORY_PAUSE_NS ((int64_t)10000000)
#define OLD_NS ((int64_t)2000000000)      /* a stream that lived so long resets the backoff */
#define MIN_PROBE_NS ((int64_t)100000000) /* time after which suspects have passed */
#define MAX_PROBE_NS ((int64_t)2000000000)

static rp_remote_sink *sink_of(rp_sink *sink)
{
    return (rp_remote_sink *)(void *)sink;
}

static rp_remote_sink *sink_of_call(rp_channel_call *call)
{
    return (rp_remote_sink *)(void *)((char *)call - offsetof(rp_remote_sink, call));
}

/* Makes the timer due at `due_ns`, or earlier. */
static void wake_at(rp_remote_sink *s, int64_t due_ns)
{
    if (due_ns < s->timer.due_ns && rp_loop_arm(s->loop, &s->timer, due_ns) != RP_OK)
        return; /* never: R3 */
}

static void set_why(rp_remote_sink *s, const char *text)
{
    rp_mutex_lock(&s->mu);
    (void)snprintf(s->why, sizeof s->why, "%s", text);
    rp_mutex_unlock(&s->mu);
}

static void wake(rp_remote_sink *s)
{
    rp_loop_post(s->loop, &s->post);
}

static void set_near(rp_remote_sink *s, bool is_near)
{
    if (rp_inbox_set_near(&s->inbox, is_near)) wake(s);
}

/* Takes the items that were put. */
static void take_items(rp_remote_sink *s)
{
    const rp_sink_item *items;
    size_t count;

    while ((count = rp_inbox_take(&s->inbox, &items)) > 0) {
        if (!rp_item_list_reserve(&s->items, count)) {
            wake_at(s, rp_loop_now(s->loop) + MEMORY_PAUSE_NS);
            return;
        }
        for (size_t i = 0; i < count; i++) {
            uint32_t slot = rp_item_list_append(&s->items, &items[i]);
            if (s->cursor == RP_MAP_NONE) s->cursor = slot;
            if (s->unsent == RP_MAP_NONE) s->unsent = slot;
        }
        rp_inbox_done(&s->inbox);
    }
}

/* Offers the items that no server has had to who takes them. */
static void offer_unsent(rp_remote_sink *s)
{
    if (s->is_refused && s->unsent != RP_MAP_NONE && s->on_refused != NULL)
        s->on_refused(s->refused_user);
}

/* Removes an item from the list. The caller owns the reference to its trajectory. */
static rp_sink_item remove_item(rp_remote_sink *s, uint32_t slot)
{
    rp_listed_item *item = rp_remote_item_at(s, slot);

    if (s->cursor == slot) s->cursor = item->next;
    if (s->unsent == slot) s->unsent = item->next;
    /* Relaxed: why() may see an older value. */
    atomic_store_explicit(&s->gone_count,
                          atomic_load_explicit(&s->gone_count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (item->shares_chunks) rp_sent_chunks_on_confirmed(&s->chunks, item->item.trajectory);
    return rp_item_list_remove(&s->items, slot);
}

static void refuse(rp_remote_sink *s, uint32_t slot, rp_status status, const char *text)
{
    rp_sink_item item = remove_item(s, slot);
    const char *address = rp_channel_address(s->channel);
    char named[RP_ERROR_TEXT_BYTES];

    rp_trajectory_unref(item.trajectory);
    /* One of several shards: the text says which, unless it does already. */
    if (s->on_refused != NULL && strncmp(text, address, strlen(address)) != 0) {
        (void)snprintf(named, sizeof named, "%.80s: %s", address, text);
        text = named;
    }
    s->events.on_settled(s->events.user, &item.key, 1, status, text);
}

/* Rejects all items of `table`; NULL: all items. */
static void refuse_all(rp_remote_sink *s, const char *table, rp_status status, const char *text)
{
    uint32_t slot = s->items.first;

    while (slot != RP_MAP_NONE) {
        uint32_t next = rp_remote_item_at(s, slot)->next;
        if (table == NULL || strcmp(rp_remote_item_at(s, slot)->item.table, table) == 0)
            refuse(s, slot, status, text);
        slot = next;
    }
}

/* Resets the state of a stream that has ended: its unconfirmed items will be sent again. */
static void forget_stream(rp_remote_sink *s)
{
    for (uint32_t i = s->items.first; i != s->cursor; i = rp_remote_item_at(s, i)->next) {
        assert(rp_remote_item_at(s, i)->message != 0); /* R1 */
        rp_remote_item_at(s, i)->message = 0;
        rp_remote_item_at(s, i)->shares_chunks = false;
    }
    s->state = STREAM_NONE;
    s->cursor = s->items.first;
    s->probe_out = 0;
    rp_sent_chunks_clear(&s->chunks);
    set_near(s, false);
}

static void on_no_memory(rp_remote_sink *s)
{
    rp_channel_cancel(&s->call);
    forget_stream(s);
    s->resume_ns = rp_loop_now(s->loop) + MEMORY_PAUSE_NS;
    set_why(s, "out of memory");
    wake_at(s, s->resume_ns);
}

/* Returns how many items the next message may have while probing; 0: it must wait. */
static size_t probe_limit(rp_remote_sink *s)
{
    rp_trust trust = rp_remote_item_at(s, s->cursor)->trust;

    assert(s->is_probing && s->probe_size >= 1 && s->probe_size <= RP_REMOTE_ITEMS);
    if (trust == RP_TRUST_PASSED) return RP_REMOTE_ITEMS;
    if (s->probe_out > 0) return 0;
    if (trust == RP_TRUST_SUSPECT) return s->probe_size;
    s->is_probing = false; /* all suspects have been tried */
    return RP_REMOTE_ITEMS;
}

static void on_probed(rp_remote_sink *s, size_t count)
{
    assert(s->probe_out == 0 && count >= 1);
    s->probe_out = count;
    s->probe_due_ns = rp_loop_now(s->loop) + s->probe_wait_ns;
    wake_at(s, s->probe_due_ns);
}

/* A message of suspects did not end the stream. */
static void on_probe_passed(rp_remote_sink *s)
{
    s->probe_out = 0;
    if (s->probe_size < RP_REMOTE_ITEMS) s->probe_size *= 2;
}

/* The last suspects were neither confirmed nor did the stream end: they have passed. */
static void on_probe_due(rp_remote_sink *s)
{
    for (uint32_t i = s->items.first; i != s->cursor; i = rp_remote_item_at(s, i)->next)
        if (rp_remote_item_at(s, i)->trust == RP_TRUST_SUSPECT)
            rp_remote_item_at(s, i)->trust = RP_TRUST_PASSED;
    on_probe_passed(s);
}

static void send_items(rp_remote_sink *s)
{
    assert(s->state == STREAM_OPEN);
    while (s->cursor != RP_MAP_NONE && rp_channel_queued_bytes(&s->call) < QUEUED_BYTES) {
        bool is_suspect =
            s->is_probing && rp_remote_item_at(s, s->cursor)->trust == RP_TRUST_SUSPECT;
        size_t limit = s->is_probing ? probe_limit(s) : RP_REMOTE_ITEMS;
        rp_insert_draft d = {0};

        if (limit == 0) return;
        if (!rp_remote_build(s, &d, limit)) {
            rp_channel_drop_message(s->channel, d.reply);
            on_no_memory(s);
            return;
        }
        if (is_suspect) on_probed(s, d.count);
    }
}

static void on_end(rp_channel_call *call, rp_status status, const char *text);
static const rp_channel_call_class call_class;

/* Returns true if a stream is needed: for items, or to find out whether the server is back. */
static bool wants_stream(const rp_remote_sink *s)
{
    return s->items.count > 0 ||
           (atomic_load_explicit(&s->away_since, memory_order_relaxed) != 0 &&
            !rp_channel_is_given_up(s->channel));
}

/* Keeps the loop near if a message was sent or confirmed items lately. */
static void linger(rp_remote_sink *s)
{
    bool is_near = s->items.count > 0 && rp_loop_now(s->loop) < s->linger_ns;

    if (is_near) wake_at(s, s->linger_ns);
    set_near(s, is_near);
}

/* Opens a stream or sends items, as far as possible now. */
static void go_on(rp_remote_sink *s)
{
    int64_t now_ns = rp_loop_now(s->loop);

    take_items(s);
    offer_unsent(s);
    if (s->probe_out > 0) {
        if (now_ns >= s->probe_due_ns)
            on_probe_due(s);
        else
            wake_at(s, s->probe_due_ns);
    }
    if (s->state == STREAM_OPEN) {
        send_items(s);
        if (s->state == STREAM_OPEN) linger(s);
    } else if (s->state == STREAM_NONE && wants_stream(s)) {
        if (now_ns < s->resume_ns) {
            wake_at(s, s->resume_ns);
            return;
        }
        s->call = (rp_channel_call){
            .class = &call_class,
            .path = "/deepmind.reverb.ReverbService/InsertStream",
            .deadline_ns = RP_FOREVER,
            .fails_fast = true, /* on_end reports that the server is away */
        };
        s->state = STREAM_BEGINNING;
        rp_channel_begin(s->channel, &s->call);
    }
}

static void on_due(rp_timer *timer)
{
    rp_remote_sink *s =
        (rp_remote_sink *)(void *)((char *)timer - offsetof(rp_remote_sink, timer));

    timer->due_ns = INT64_MAX;
    if (rp_loop_arm(s->loop, timer, INT64_MAX) != RP_OK) return; /* never: its place is free */
    go_on(s);
}

static void on_posted(rp_post *post)
{
    rp_remote_sink *s =
        (rp_remote_sink *)(void *)((char *)post - offsetof(rp_remote_sink, post));
    bool is_closed = s->is_closed;

    rp_inbox_on_posted(&s->inbox); /* a closed sink may be freed from here on */
    if (!is_closed) go_on(s);
}

static void on_begin(rp_channel_call *call)
{
    rp_remote_sink *s = sink_of_call(call);

    assert(s->state == STREAM_BEGINNING && s->cursor == s->items.first); /* R1 */
    s->state = STREAM_OPEN;
    s->began_ns = rp_loop_now(s->loop);
    s->has_progressed = false;
    s->is_refused = false;
    atomic_store_explicit(&s->away_since, 0, memory_order_relaxed);
    set_why(s, ""); /* the server knows */
    go_on(s);
}

static void on_room(rp_channel_call *call)
{
    go_on(sink_of_call(call));
}

static void let_go(rp_trajectory **trajectories, size_t count)
{
    for (size_t i = 0; i < count && i < RP_REMOTE_AHEAD; i++)
        rp_remote_fetch_chunk(trajectories[i], FREED_BYTES);
    for (size_t i = 0; i < count; i++) {
        if (i + RP_REMOTE_AHEAD < count)
            rp_remote_fetch_chunk(trajectories[i + RP_REMOTE_AHEAD], FREED_BYTES);
        rp_trajectory_unref(trajectories[i]);
    }
}

/* Settles the items of the first `count` keys, as far as they are known and were sent. */
static void confirm(rp_remote_sink *s, size_t count)
{
    rp_trajectory *gone[CONFIRMED];
    size_t settled = 0, gone_count = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t slot = rp_item_list_find(&s->items, s->keys[i]);

        if (slot == RP_MAP_NONE || rp_remote_item_at(s, slot)->message == 0) continue;
        if (s->probe_out > 0 && rp_remote_item_at(s, slot)->trust == RP_TRUST_SUSPECT &&
            --s->probe_out == 0)
            on_probe_passed(s);
        assert(gone_count < CONFIRMED);
        gone[gone_count] = remove_item(s, slot).trajectory;
        __builtin_prefetch(gone[gone_count++]);
        s->keys[settled++] = s->keys[i];
        if (gone_count < CONFIRMED) continue;
        let_go(gone, gone_count);
        gone_count = 0;
    }
    let_go(gone, gone_count);
    if (settled == 0) return;
    s->has_progressed = true;
    s->linger_ns = rp_loop_now(s->loop) + RP_LINGER_NS;
    s->events.on_settled(s->events.user, s->keys, settled, RP_OK, "");
}

static void on_message(rp_channel_call *call, const uint8_t *data, size_t size, rp_block *block)
{
    rp_remote_sink *s = sink_of_call(call);
    size_t count = 0;
    rp_error error;

    (void)block;
    if (rp_wire_read_insert_response(data, size, &count, &error) != RP_OK) {
        rp_channel_cancel(call);
        on_end(call, RP_CANCELLED, error.text); /* retried on a new stream */
        return;
    }
    if (count > s->key_capacity) {
        size_t capacity = count < RP_REMOTE_ITEMS ? RP_REMOTE_ITEMS : count;
        if (!rp_resize_array(&s->alloc, &s->keys, s->key_capacity, capacity, sizeof *s->keys)) {
            on_no_memory(s);
            return;
        }
        s->key_capacity = capacity;
    }
    rp_wire_insert_response_keys(data, size, s->keys);
    confirm(s, count);
    go_on(s);
}

/* The server ended the stream because of an item: all unconfirmed items become suspects. */
static void suspect_all(rp_remote_sink *s, size_t probe_size)
{
    for (uint32_t i = s->items.first; i != s->cursor; i = rp_remote_item_at(s, i)->next)
        rp_remote_item_at(s, i)->trust = RP_TRUST_SUSPECT;
    if (!s->is_probing) s->probe_wait_ns = MIN_PROBE_NS;
    s->is_probing = true;
    s->probe_size = probe_size;
}

/* The bad item may be the one that was sent last, or one that counted as passed. */
static void accuse(rp_remote_sink *s, uint32_t slot)
{
    suspect_all(s, 1);
    rp_item_list_put_first(&s->items, slot);
    s->probe_wait_ns *= 2;
    if (s->probe_wait_ns > MAX_PROBE_NS) s->probe_wait_ns = MAX_PROBE_NS;
}

/* Finds suspects after the end of a stream; rejects an item if it is certain that it is the bad
 * one. Returns false if no item can be the reason. */
static bool look_for_culprit(rp_remote_sink *s, rp_status status, const char *text)
{
    uint32_t last =
        s->cursor != RP_MAP_NONE ? rp_remote_item_at(s, s->cursor)->prev : s->items.last;
    uint32_t before;
    size_t count = 1;

    if (last == RP_MAP_NONE) return false;
    before = rp_remote_item_at(s, last)->prev;
    if (before == RP_MAP_NONE) { /* it is the only unconfirmed item */
        if (status == RP_NOT_FOUND || status == RP_CANCELLED) /* no such table, or closed */
            refuse_all(s, rp_remote_item_at(s, last)->item.table, status, text);
        else
            refuse(s, last, status, text);
        return true;
    }
    if (!s->is_probing) {
        suspect_all(s, FIRST_PROBE);
        return true;
    }
    if (rp_remote_item_at(s, last)->message !=
        s->message) { /* the last message is confirmed: the bad item is older */
        suspect_all(s, 1);
        return true;
    }
    for (; before != RP_MAP_NONE && rp_remote_item_at(s, before)->message == s->message;
         count++) {
        rp_remote_item_at(s, before)->trust = RP_TRUST_SUSPECT;
        before = rp_remote_item_at(s, before)->prev;
    }
    rp_remote_item_at(s, last)->trust = RP_TRUST_SUSPECT;
    if (count > 1)
        s->probe_size = count / 2;
    else
        accuse(s, last);
    return true;
}

/* Returns the pause before the next stream. It doubles each time that a stream ends early
 * without progress. The channel has its own backoff for connecting. */
static int64_t pause_after(rp_remote_sink *s, bool has_begun)
{
    int64_t lived_ns = rp_loop_now(s->loop) - s->began_ns, pause_ns = s->pause_ns;

    if (!has_begun || s->has_progressed || lived_ns >= OLD_NS) {
        if (has_begun) s->pause_ns = MIN_PAUSE_NS;
        return MIN_PAUSE_NS;
    }
    s->pause_ns = pause_ns < MAX_PAUSE_NS / 2 ? 2 * pause_ns : MAX_PAUSE_NS;
    return pause_ns;
}

/* Returns true if no later stream can take the items, and no other server either: the server
 * refuses this client or what it does. */
static bool is_hopeless(const rp_remote_sink *s, rp_status status)
{
    if (status == RP_DENIED || status == RP_UNAUTHENTICATED || status == RP_UNIMPLEMENTED)
        return true;
    if (rp_channel_is_given_up(s->channel)) return true;
    return status == RP_UNAVAILABLE && s->on_refused == NULL &&
           rp_channel_is_refused(s->channel);
}

static void on_end(rp_channel_call *call, rp_status status, const char *text)
{
    rp_remote_sink *s = sink_of_call(call);
    int64_t now_ns = rp_loop_now(s->loop);
    bool has_begun = s->state == STREAM_OPEN, is_clear = false;

    if (text == NULL) text = "";
    if (status == RP_UNAVAILABLE && !has_begun) s->is_refused = true;
    if (status == RP_UNAVAILABLE &&
        atomic_load_explicit(&s->away_since, memory_order_relaxed) == 0)
        atomic_store_explicit(&s->away_since, now_ns, memory_order_relaxed);
    set_why(s, text);
    if (is_hopeless(s, status))
        refuse_all(s, NULL, status, text);
    else if (!rp_remote_is_retried(status, text))
        is_clear = look_for_culprit(s, status, text);
    s->resume_ns = is_clear ? now_ns : now_ns + pause_after(s, has_begun);
    forget_stream(s);
    if (wants_stream(s)) wake_at(s, s->resume_ns);
    offer_unsent(s);
}

static const rp_channel_call_class call_class = {
    .on_begin = on_begin,
    .on_message = on_message,
    .on_room = on_room,
    .on_end = on_end,
};

int64_t rp_remote_sink_away_since(const rp_sink *sink)
{
    const rp_remote_sink *s = (const rp_remote_sink *)(const void *)sink;

    /* Relaxed: a caller that sees an old value puts a few items more, or fewer. */
    return atomic_load_explicit(&s->away_since, memory_order_relaxed);
}

bool rp_remote_sink_reserve(rp_sink *sink, size_t count)
{
    return rp_inbox_reserve(&sink_of(sink)->inbox, count);
}

static void count_put(rp_remote_sink *s, size_t count)
{
    (void)atomic_fetch_add_explicit(&s->put_count, count, memory_order_relaxed);
}

void rp_remote_sink_put_reserved(rp_sink *sink, const rp_sink_item *items, size_t count)
{
    count_put(sink_of(sink), count);
    if (rp_inbox_put_reserved(&sink_of(sink)->inbox, items, count)) wake(sink_of(sink));
}

static rp_status put(rp_sink *sink, const rp_sink_item *items, size_t count, rp_error *err)
{
    rp_remote_sink *s = sink_of(sink);
    bool wakes;

    count_put(s, count);
    if (!rp_inbox_put(&s->inbox, items, count, &wakes)) {
        (void)atomic_fetch_sub_explicit(&s->put_count, count, memory_order_relaxed);
        return rp_fail_memory(err, count * sizeof *items);
    }
    if (wakes) wake(s);
    return RP_OK;
}

static void push(rp_sink *sink, size_t least)
{
    rp_remote_sink *s = sink_of(sink);

    if (!rp_inbox_claim(&s->inbox, least)) return;
    if (!rp_loop_try_enter(s->loop)) {
        wake(s);
        return;
    }
    on_posted(&s->post);
    rp_loop_leave(s->loop);
}

static void why(rp_sink *sink, char *text, size_t size)
{
    rp_remote_sink *s = sink_of(sink);

    /* Items of other shards do not wait for this server. */
    if (atomic_load_explicit(&s->put_count, memory_order_relaxed) ==
        atomic_load_explicit(&s->gone_count, memory_order_relaxed)) {
        if (size > 0) text[0] = '\0';
        return;
    }
    rp_mutex_lock(&s->mu);
    (void)snprintf(text, size, "%s", s->why);
    rp_mutex_unlock(&s->mu);
}

size_t rp_remote_sink_give_unsent(rp_sink *sink, rp_sink_item *items, size_t capacity)
{
    rp_remote_sink *s = sink_of(sink);
    size_t count = 0;

    if (s->state == STREAM_OPEN || !s->is_refused) return 0;
    take_items(s);
    while (count < capacity && s->unsent != RP_MAP_NONE)
        items[count++] = remove_item(s, s->unsent);
    return count;
}

static void listen_on_loop(void *arg)
{
    rp_remote_sink *s = arg;

    s->is_refused = rp_channel_is_away(s->channel);
    if (!s->is_refused) return;
    atomic_store_explicit(&s->away_since, rp_loop_now(s->loop), memory_order_relaxed);
    wake_at(s, s->resume_ns); /* finds out when the server is there */
}

void rp_remote_sink_on_refused(rp_sink *sink, void (*on_refused)(void *user), void *user)
{
    rp_remote_sink *s = sink_of(sink);

    s->on_refused = on_refused;
    s->refused_user = user;
    rp_runtime_run_on_loop(s->runtime, listen_on_loop, s);
}

size_t rp_remote_sink_give_back(rp_sink *sink, rp_sink_item *items, size_t capacity)
{
    rp_remote_sink *s = sink_of(sink);
    size_t count = 0;

    if (s->state == STREAM_OPEN || rp_remote_sink_away_since(sink) == 0) return 0;
    take_items(s);
    while (count < capacity && s->items.first != RP_MAP_NONE)
        items[count++] = remove_item(s, s->items.first);
    return count;
}

static void start_on_loop(void *arg)
{
    rp_remote_sink *s = arg;

    s->timer.due_ns = INT64_MAX;
    s->is_closed = rp_loop_arm(s->loop, &s->timer, INT64_MAX) != RP_OK;
}

/* Ends the call and the timer of the sink; its post may still be pending. */
static void close_on_loop(void *arg)
{
    rp_remote_sink *s = arg;

    if (s->is_closed) return;
    s->is_closed = true;
    if (s->state != STREAM_NONE) rp_channel_cancel(&s->call);
    rp_loop_disarm(s->loop, &s->timer);
}

static void free_sink(rp_remote_sink *s)
{
    rp_inbox_deinit(&s->inbox);
    rp_release(&s->alloc, s->keys, s->key_capacity * sizeof *s->keys);
    rp_sent_chunks_deinit(&s->chunks);
    rp_item_list_deinit(&s->items);
    rp_mutex_deinit(&s->mu);
    rp_allocator alloc = s->alloc;
    rp_release(&alloc, s, sizeof *s);
}

static void close_sink(rp_sink *sink)
{
    rp_remote_sink *s = sink_of(sink);

    /* In the child of a fork the state is unknown, because there is no loop thread: leak it. */
    if (s->generation != rp_runtime_generation()) return;
    do rp_runtime_run_on_loop(s->runtime, close_on_loop, s);
    while (rp_inbox_is_posted(&s->inbox));
    free_sink(s);
}

static const rp_sink_class sink_class = {
    .put = put,
    .push = push,
    .why = why,
    .close = close_sink,
};

rp_status rp_remote_sink_new(rp_channel *channel, rp_runtime *runtime,
                             const rp_allocator *alloc, const rp_sink_events *events,
                             rp_sink **out, rp_error *err)
{
    rp_remote_sink *s = rp_alloc_zero(alloc, sizeof *s);
    uint64_t seed = rp_system_seed();

    if (s == NULL) return rp_fail_memory(err, sizeof *s);
    s->base.class = &sink_class;
    s->runtime = runtime;
    s->loop = rp_runtime_loop(runtime);
    s->channel = channel;
    s->alloc = *alloc;
    s->events = *events;
    s->generation = rp_runtime_generation();
    s->post.run = on_posted;
    s->timer.on_due = on_due;
    s->pause_ns = MIN_PAUSE_NS;
    s->cursor = s->unsent = RP_MAP_NONE;
    atomic_init(&s->away_since, 0);
    atomic_init(&s->put_count, 0);
    atomic_init(&s->gone_count, 0);
    rp_sent_chunks_init(&s->chunks, alloc, seed);
    rp_item_list_init(&s->items, alloc, seed + 1);
    rp_inbox_init(&s->inbox, alloc);
    rp_mutex_init(&s->mu, RP_RANK_STREAM);
    rp_runtime_run_on_loop(runtime, start_on_loop, s);
    if (s->is_closed) {
        free_sink(s);
        return rp_fail_memory(err, sizeof(rp_timer));
    }
    *out = &s->base;
    return RP_OK;
}
