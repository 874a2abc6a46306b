/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes an HTTP/2 connection of the client. The input decides what its server and its caller
 * do.
 *
 * The first bytes set up the connection. Then either the server sends the rest as it is, or
 * each byte is a step: a valid or invalid frame of the server, a call that begins, sends,
 * pauses or is cancelled, or some bytes of output that are taken. After every step the counts
 * of the connection must be the sums over its calls. At the end every call must have been
 * closed exactly once, after at most one end, and no memory may be left. */
#include "fuzz_frames.h"
#include "fuzz_memory.h"
#include "util/mem.h"
#include "wire/h2/h2_inside.h"

enum { CALLS = 16, BIG_BYTES = 6000 };

typedef struct slot {
    rp_call *call;
    bool ended;
} slot;

typedef struct world {
    fuzz_input in;
    fuzz_memory memory;
    rp_allocator alloc;
    rp_message_pool pool;
    rp_h2 *h2;
    slot slots[CALLS];
    size_t begun, ends, closes;
    size_t split;  /* bytes given to the connection at a time; 0: all */
    unsigned acts; /* counts the actions of the handler, which selects them in turn */
    bool alive, is_raw, is_freeing;
    fuzz_bytes bytes;
} world;

static const uint8_t big[BIG_BYTES];

static void say(world *w, rp_call *call, size_t size)
{
    rp_message *reply = rp_message_new(&w->pool);

    if (reply == NULL) return;
    (void)rp_message_add(reply, big, size);
    if (rp_message_close(reply))
        rp_call_send(call, reply);
    else
        rp_message_release(&w->pool, reply);
}

static void begin(world *w, unsigned how)
{
    const rp_call_head head = {.path = "/a",
                               .authority = "b",
                               .authorization = (how & 1) != 0 ? "Bearer x" : NULL,
                               .secure = (how & 2) != 0,
                               .timeout_ns = (how & 4) != 0 ? INT64_C(1) << (how / 8) : -1};
    size_t i = 0;

    while (i < CALLS && w->slots[i].call != NULL) i++;
    if (i == CALLS) return;
    w->slots[i] = (slot){0};
    w->slots[i].call = rp_h2_begin(w->h2, &head, &w->slots[i]);
    if (w->slots[i].call != NULL) {
        w->begun++;
        fuzz_check(!w->is_freeing);
    }
}

static void act(world *w, rp_call *call, unsigned how)
{
    switch (how % 8) {
    case 0: say(w, call, how / 8); break;
    case 1: say(w, call, BIG_BYTES); break;
    case 2: rp_call_pause(call); break;
    case 3: rp_call_half_close(call); break;
    case 4: rp_call_cancel(call); break;
    case 5:
        say(w, call, how);
        rp_call_half_close(call);
        break;
    case 6: begin(w, how / 8); break;
    default: break;
    }
}

static slot *slot_of(world *w, rp_call *call)
{
    slot *mine = rp_call_user(call);

    fuzz_check(mine >= w->slots && mine < w->slots + CALLS && mine->call == call);
    return mine;
}

static void on_message(void *user, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block)
{
    world *w = user;

    fuzz_check(!slot_of(w, call)->ended);
    fuzz_check(!rp_call_is_paused(call) && !rp_call_is_finished(call));
    fuzz_check(call->http_status == 200 && size <= w->h2->limits.message_bytes);
    if (block != NULL) fuzz_check(data == block->data && size == block->size);
    if (size > 0) act(w, call, data[size - 1]);
}

static void on_room(void *user, rp_call *call)
{
    world *w = user;

    fuzz_check(!slot_of(w, call)->ended && !rp_call_is_finished(call));
    fuzz_check(rp_call_queued_bytes(call) <= w->h2->limits.queued_bytes / 2);
    act(w, call, w->acts++ % 7);
}

static void on_end(void *user, rp_call *call, rp_status status, const char *text)
{
    world *w = user;
    slot *mine = slot_of(w, call);

    fuzz_check(!mine->ended);
    fuzz_check(strlen(text) < RP_H2_TEXT_BYTES && (status != RP_OK || text[0] == '\0'));
    mine->ended = true;
    w->ends++;
    act(w, call, w->acts++ % 7); /* must have no effect on this call */
}

static void on_close(void *user, rp_call *call)
{
    world *w = user;

    slot_of(w, call)->call = NULL;
    w->closes++;
    if (w->acts++ % 5 == 0 && w->slots[0].call != NULL) rp_call_cancel(w->slots[0].call);
}

static const rp_h2_handler handler = {
    .on_message = on_message, .on_room = on_room, .on_close = on_close, .on_end = on_end};

static void check(const world *w)
{
    const rp_h2 *h2 = w->h2;
    size_t held = 0, queued = 0, open = 0, assembling = 0, streams = 0;

    for (const rp_call *call = h2->calls; call != NULL; call = call->next) {
        size_t waits = 0;
        fuzz_check(call->next == NULL || call->next->prev == call);
        fuzz_check(call->opened == !call->closed);
        open += call->opened;
        streams += call->has_stream;
        assembling += call->counted_assembling;
        if (call->block != NULL) {
            fuzz_check(call->block->size <= call->block->capacity &&
                       call->block->capacity <= call->message_size);
            held += call->block->size;
        }
        for (const rp_waiting_message *m = call->first_waiting; m != NULL; m = m->next)
            held += m->block->size + sizeof(rp_block) + sizeof *m;
        for (const rp_message *r = call->first_reply; r != NULL; r = r->next)
            waits += rp_message_remaining(r);
        fuzz_check(waits == call->queued && call->promised <= call->queued);
        fuzz_check(call->has_stream || waits == 0);
        fuzz_check(call->has_stream || call->half_closed || call->closed);
        fuzz_check(call->first_waiting == NULL || call->paused);
        fuzz_check(!call->closed || (call->first_waiting == NULL && call->block == NULL));
        queued += waits;
    }
    for (size_t i = h2->out_first; i < h2->out_count; i++)
        if (h2->out[i].reply != NULL) queued += h2->out[i].size;
    fuzz_check(open == rp_h2_call_count(h2) && open == w->begun - w->closes);
    fuzz_check(streams == h2->streams && h2->leftovers == 0);
    fuzz_check(held == rp_h2_held_bytes(h2) && assembling == h2->assembling);
    fuzz_check(queued == rp_h2_queued_bytes(h2));
    fuzz_check(!h2->broken || (rp_h2_is_over(h2) && !rp_h2_can_begin(h2)));
}

/* Returns how many of `left` bytes are delivered next. Many small pieces would take long, so
 * after every 64 pieces half of the rest is delivered at once. */
static size_t piece_of(const world *w, size_t left, size_t parts)
{
    return parts % 64 == 63 && left / 2 > w->split ? left / 2 : w->split;
}

static void deliver(world *w)
{
    size_t at = 0, parts = 0;

    while (w->alive && at < w->bytes.size) {
        size_t size = w->bytes.size - at, place_bytes = 0;
        uint8_t *place = rp_h2_receive_place(w->h2, &place_bytes), *exact = NULL;

        if (w->split > 0 && size > w->split) size = piece_of(w, size, parts);
        if (place != NULL) {
            if (size > place_bytes) size = place_bytes;
        } else {
            place = exact = fuzz_pool_get(size);
            fuzz_check(exact != NULL);
        }
        memcpy(place, w->bytes.data + at, size);
        w->alive = rp_h2_receive(w->h2, place, size);
        if (exact != NULL) fuzz_pool_put(exact, size);
        at += size;
        if (parts++ % 64 == 0) check(w);
    }
    w->bytes.size = 0;
    check(w);
}

/* Takes up to `most` bytes of output, in `capacity` parts at most. */
static void take_output(world *w, size_t most, size_t capacity)
{
    static uint8_t sent[1 << 16]; /* copied, so that a sanitizer sees what is read */
    struct iovec parts[8];
    size_t count;

    while (most > 0 && (count = rp_h2_output(w->h2, parts, capacity)) > 0) {
        size_t moved = 0;
        fuzz_check(count <= capacity);
        for (size_t i = 0; i < count; i++) {
            size_t size = parts[i].iov_len < most - moved ? parts[i].iov_len : most - moved;
            for (size_t at = 0; at < size; at += sizeof sent)
                memcpy(sent, (const char *)parts[i].iov_base + at,
                       size - at < sizeof sent ? size - at : sizeof sent);
            moved += size;
        }
        rp_h2_written(w->h2, moved);
        most -= moved;
        check(w);
    }
}

static uint32_t pick_stream(world *w)
{
    uint8_t byte = fuzz_byte(&w->in);

    return byte >= 0xf0 ? byte & 0xfu : 1 + 2u * (byte % 32);
}

static size_t copy_rest(world *w, uint8_t *out, size_t most)
{
    size_t size = fuzz_left(&w->in) < most ? fuzz_left(&w->in) : most;

    memcpy(out, w->in.at, size);
    w->in.at += size;
    return size;
}

static void put_headers(world *w)
{
    static const char *const statuses[] = {"200", "200", "200", "404", "503", "103", "20", ""};
    static const char *const types[] = {"application/grpc", "application/grpc+x", "text/html",
                                        "application/grpcx"};
    static const char *const codes[] = {"0", "5", "16", "2", "99", "x", "", "0"};
    static const char *const texts[] = {"plain", "t%C3%A9", "%", "%00%zz"};
    uint32_t stream = pick_stream(w);
    uint8_t how = fuzz_byte(&w->in), end = fuzz_byte(&w->in), block[512];
    size_t size = 0;

    if ((how & 1) == 0) {
        size += fuzz_field(block, ":status", statuses[how / 2 % 8]);
        size += fuzz_field(block + size, "content-type", types[how / 16 % 4]);
    }
    if ((end & 2) != 0) size += fuzz_field(block + size, "grpc-status", codes[end / 4 % 8]);
    if ((end & 0x20) != 0) size += fuzz_field(block + size, "grpc-message", texts[end / 64]);
    if ((how & 0x80) != 0)
        for (int i = 0; i < 20; i++) size += fuzz_field(block + size, "x", "0123456789");
    fuzz_put_frame(&w->bytes, FRAME_HEADERS,
                   FLAG_END_HEADERS | ((end & 1) != 0 ? FLAG_END_STREAM : 0u), stream, block,
                   size);
}

static void put_messages(world *w)
{
    uint8_t payload[256];
    uint32_t stream = pick_stream(w);
    uint8_t how = fuzz_byte(&w->in);
    size_t count = 1 + how % 4, size = copy_rest(w, payload, fuzz_byte(&w->in));
    size_t repeat = (how & 0x10) != 0 ? 64 : 1, cut = (how & 0x20) != 0 ? 1 + how / 64 : 0;
    size_t all = count * (5 + size * repeat);

    if (cut > all) cut = all;
    fuzz_put_head(&w->bytes, all - cut, FRAME_DATA, (how & 8) != 0 ? FLAG_END_STREAM : 0u,
                  stream);
    for (size_t i = 0; i < count; i++) {
        fuzz_put_prefix(&w->bytes, 0, size * repeat);
        for (size_t k = 0; k < repeat; k++) fuzz_put(&w->bytes, payload, size);
    }
    if (w->bytes.size >= cut) w->bytes.size -= cut;
}

/* Appends a part of a message that is too large for one frame: its beginning, or more of it. */
static void put_part(world *w)
{
    static uint8_t sevens[1 << 16];
    uint32_t stream = pick_stream(w);
    uint8_t how = fuzz_byte(&w->in);
    size_t size = (how & 0x7eu) << 9;

    fuzz_put_head(&w->bytes, size + (how & 1) * 5, FRAME_DATA, 0, stream);
    if ((how & 1) != 0) fuzz_put_prefix(&w->bytes, 0, (how & 0x80) != 0 ? 0x130000 : 0x10000);
    if (sevens[0] == 0) memset(sevens, 7, sizeof sevens);
    fuzz_put(&w->bytes, sevens, size);
}

static void put_frame(world *w)
{
    uint8_t payload[256], type = fuzz_byte(&w->in), flags = fuzz_byte(&w->in);
    uint32_t stream = pick_stream(w);
    size_t size = copy_rest(w, payload, fuzz_byte(&w->in));

    fuzz_put_frame(&w->bytes, type % 12, flags, stream, payload, size);
}

static void put_small(world *w, uint8_t what)
{
    uint8_t how = fuzz_byte(&w->in);

    switch (how % 5) {
    case 0:
        fuzz_put_head(&w->bytes, 4, FRAME_RESET, 0, pick_stream(w));
        fuzz_put_int(&w->bytes, what / 16, 4);
        break;
    case 1:
        fuzz_put_head(&w->bytes, 4, FRAME_WINDOW, 0, pick_stream(w));
        fuzz_put_int(&w->bytes, (uint64_t)fuzz_short(&w->in) << what / 16, 4);
        break;
    case 2:
        fuzz_put_head(&w->bytes, 6, FRAME_SETTINGS, 0, 0);
        fuzz_put_int(&w->bytes, 1 + how / 8 % 6, 2);
        fuzz_put_int(&w->bytes, (uint64_t)fuzz_short(&w->in) << (what / 16), 4);
        break;
    case 3: fuzz_put_frame(&w->bytes, FRAME_PING, (how & 0x10) != 0, 0, "12345678", 8); break;
    default:
        fuzz_put_head(&w->bytes, 8, FRAME_GOAWAY, 0, 0);
        fuzz_put_int(&w->bytes, pick_stream(w), 4);
        fuzz_put_int(&w->bytes, what / 16, 4);
        break;
    }
}

static void of_owner(world *w)
{
    uint8_t how = fuzz_byte(&w->in);
    rp_call *call = w->slots[fuzz_byte(&w->in) % CALLS].call;

    switch (how % 4) {
    case 0:
        if (how < 0x40) rp_h2_ping(w->h2);
        if (how >= 0x40) rp_h2_make_room(w->h2);
        if (how >= 0xe0) rp_h2_go_away(w->h2);
        if (how >= 0xf8) rp_h2_terminate(w->h2, how, how % 8 == 0 ? "why" : "");
        break;
    case 1:
        if (call != NULL) rp_call_resume(call);
        break;
    default:
        if (call != NULL) act(w, call, how / 4);
        break;
    }
    check(w);
}

static void step(world *w)
{
    uint8_t what = fuzz_byte(&w->in);

    switch (what % 16) {
    case 0:
    case 1:
        begin(w, what / 2);
        check(w);
        break;
    case 2:
    case 3:
    case 4: put_headers(w); break;
    case 5:
    case 6: put_messages(w); break;
    case 7: put_part(w); break;
    case 8: put_frame(w); break;
    case 9: put_small(w, what); break;
    case 10: {
        uint8_t raw[64];
        size_t size = copy_rest(w, raw, fuzz_byte(&w->in) % sizeof raw);
        fuzz_put(&w->bytes, raw, size);
        break;
    }
    case 11: w->split = fuzz_byte(&w->in); break;
    case 12: take_output(w, (size_t)1 << (what / 8), 1 + what / 64); break;
    case 13: take_output(w, SIZE_MAX, 8); break;
    default: of_owner(w); break;
    }
    if (what >= 0x80 || w->bytes.size > FUZZ_MAX_BYTES) deliver(w);
}

static void set_up(world *w)
{
    uint8_t how = fuzz_byte(&w->in), more = fuzz_byte(&w->in);
    rp_h2_limits limits = {
        .message_bytes = (how & 2) != 0       ? 64
                         : (more & 0x10) != 0 ? 1 << 21
                                              : 1 << 15,
        .header_bytes = (how & 4) != 0 ? 300 : 1 << 14,
        .header_fields = (how & 4) != 0 ? 8 : 64,
        .queued_bytes = (how & 8) != 0 ? 100 : 1 << 14,
    };
    rp_status st;

    w->alloc = fuzz_memory_allocator(&w->memory);
    if ((how & 0x10) != 0) {
        w->memory.fails = true;
        w->memory.for_good = (how & 0x20) != 0;
        w->memory.until = fuzz_byte(&w->in);
    }
    w->is_raw = (more & 7) == 7;
    rp_message_pool_init(&w->pool, &w->alloc);
    st = rp_h2_new_client(&w->alloc, &handler, w, &limits, &w->pool, &w->h2);
    w->alive = st == RP_OK;
    fuzz_check(st == RP_OK || (st == RP_NO_RESOURCE && w->memory.failed > 0));
    if (!w->alive) return;
    for (unsigned i = 0; i < (how >> 6) + 1u; i++) begin(w, more);
    if ((more & 8) != 0) return;
    take_output(w, SIZE_MAX, 8);
    fuzz_put_frame(&w->bytes, FRAME_SETTINGS, 0, 0, NULL, 0);
    fuzz_put_frame(&w->bytes, FRAME_SETTINGS, FLAG_ACK, 0, NULL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static world w;

    if (size < 2 || size > FUZZ_MAX_BYTES) return 0;
    memset(&w, 0, offsetof(world, bytes));
    w.bytes.size = 0;
    w.in = (fuzz_input){data, data + size};
    set_up(&w);
    if (w.h2 != NULL && w.is_raw) {
        w.split = fuzz_byte(&w.in);
        fuzz_put(&w.bytes, w.in.at, fuzz_left(&w.in));
        deliver(&w);
    } else if (w.h2 != NULL) {
        while (fuzz_left(&w.in) > 0) step(&w);
        deliver(&w);
    }
    if (w.h2 != NULL && size % 4 != 0) take_output(&w, SIZE_MAX, 8);
    w.is_freeing = true;
    rp_h2_free(w.h2);
    rp_message_pool_deinit(&w.pool);
    fuzz_check(w.closes == w.begun && w.ends <= w.begun);
    fuzz_check(w.memory.live == 0 && w.memory.live_bytes == 0);
    return 0;
}
