/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes an HTTP/2 connection of the server. The input decides what its peer and its handler
 * do.
 *
 * The first bytes set up the connection. Then either the peer sends the rest as it is, or each
 * byte is a step: a valid or invalid frame of the peer, an action of the handler on a call, or
 * some bytes of output that are taken. After every step the counts of the connection must be
 * the sums over its calls. At the end every call must have been closed exactly once, and no
 * memory, response or trajectory may be left. */
#include "chunk/chunk_api.h"
#include "chunk/trajectory.h"
#include "fuzz_frames.h"
#include "fuzz_memory.h"
#include "util/mem.h"
#include "wire/h2/h2_inside.h"

enum { CALLS = 16, BIG_BYTES = 6000 };

typedef struct world {
    fuzz_input in;
    fuzz_memory memory;
    rp_allocator alloc;
    rp_message_pool pool;
    rp_h2 *h2;
    rp_call *calls[CALLS];
    size_t requests, closes, nuisances, most_nuisances;
    uint32_t next_stream;
    size_t split; /* bytes given to the connection at a time; 0: all */
    bool alive, is_raw;
    fuzz_bytes bytes;
} world;

/* So large that it is borrowed, not copied. Made once. */
static rp_trajectory *big;

static void make_big(void)
{
    static uint8_t row[BIG_BYTES];
    rp_spec spec = {"x", RP_UINT8, {.rank = 1, .dims = {BIG_BYTES}}};
    rp_chunk_options options = {.codec = RP_CODEC_NONE};
    rp_tensor tensor = {RP_UINT8, spec.shape, row};
    rp_chunk_builder *builder = NULL;
    rp_chunk *chunk = NULL;
    rp_chunk_slice slice = {.length = 1};
    rp_slices column = {.slices = &slice, .slice_count = 1};

    for (size_t i = 0; i < sizeof row; i++) row[i] = (uint8_t)(i * 7);
    fuzz_check(rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &options, &builder,
                                    NULL) == RP_OK);
    fuzz_check(rp_chunk_builder_append(builder, &tensor, NULL) == RP_OK);
    fuzz_check(rp_chunk_builder_finish(builder, &(rp_chunk_origin){.key = 1}, &chunk, NULL) ==
               RP_OK);
    slice.chunk = chunk;
    fuzz_check(rp_trajectory_new(rp_allocator_default(), &column, 1, &big, NULL) == RP_OK);
    rp_chunk_unref(chunk);
    rp_chunk_builder_free(builder);
}

static void say(world *w, rp_call *call, const uint8_t *data, size_t size, size_t borrowed)
{
    rp_message *reply = rp_message_new(&w->pool);

    if (reply == NULL) return;
    (void)rp_message_add(reply, data, size);
    while (borrowed-- > 0) {
        size_t wire_bytes;
        const uint8_t *wire = rp_chunk_wire(rp_trajectory_get_chunk(big, 0), &wire_bytes);
        if (!rp_message_add(reply, wire, wire_bytes)) break;
        if (!rp_message_hold(reply, rp_trajectory_ref(big))) {
            rp_trajectory_unref(big);
            break;
        }
        rp_buf_append(&reply->bytes, "x", 1);
    }
    if (rp_message_close(reply))
        rp_call_send(call, reply);
    else
        rp_message_release(&w->pool, reply);
}

/* Does one of the things that a handler may do with a call. */
static void act(world *w, rp_call *call, unsigned how, const uint8_t *data, size_t size)
{
    switch (how % 10) {
    case 0: say(w, call, data, size, 0); break;
    case 1: say(w, call, data, size, 1 + how / 64 * 50u); break;
    case 2: rp_call_pause(call); break;
    case 3: rp_call_finish(call, RP_OK, NULL); break;
    case 4: rp_call_finish(call, RP_INVALID, "a \"reason\" 100 %"); break;
    case 5: rp_call_abort(call, RP_NO_RESOURCE, ""); break;
    case 6:
        say(w, call, data, size, 0);
        rp_call_finish(call, RP_OK, NULL);
        break;
    case 7: {
        rp_message *body = rp_message_new(&w->pool);
        if (body != NULL) rp_buf_append(&body->bytes, data, size);
        if (body != NULL && !rp_message_close(body)) {
            rp_message_release(&w->pool, body);
            body = NULL;
        }
        rp_call_respond_http(call, &(rp_http_response){200, "text/plain", NULL, NULL}, body);
        break;
    }
    default: break;
    }
}

static void on_request(void *user, rp_call *call, const rp_request_head *head)
{
    world *w = user;
    size_t slot = w->requests++ % CALLS;

    fuzz_check(rp_call_user(call) == NULL);
    rp_call_set_user(call, w);
    if (w->calls[slot] == NULL) w->calls[slot] = call;
    if (head->path.size > 1)
        act(w, call, (unsigned)(uint8_t)head->path.data[1] - 'a',
            (const uint8_t *)head->path.data, head->path.size);
    if (head->too_large || head->too_many) rp_call_finish(call, RP_NO_RESOURCE, "too large");
}

static void on_message(void *user, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block)
{
    world *w = user;

    fuzz_check(!rp_call_is_paused(call) && !rp_call_is_finished(call));
    fuzz_check(size <= w->h2->limits.message_bytes);
    if (block != NULL) fuzz_check(data == block->data && size == block->size);
    if (size > 0) act(w, call, data[0], data + 1, size - 1);
}

static void on_half_close(void *user, rp_call *call)
{
    (void)user;
    fuzz_check(!rp_call_is_paused(call) && !rp_call_is_finished(call));
    if (call->id % 4 == 1) rp_call_finish(call, RP_OK, NULL);
}

static void on_room(void *user, rp_call *call)
{
    fuzz_check(!rp_call_is_finished(call));
    fuzz_check(rp_call_queued_bytes(call) <= ((world *)user)->h2->limits.queued_bytes / 2);
    if (call->id % 8 == 3) say(user, call, (const uint8_t *)"room", 4, 0);
    rp_call_resume(call);
}

static void on_close(void *user, rp_call *call)
{
    world *w = user;

    fuzz_check(rp_call_user(call) == w);
    rp_call_set_user(call, NULL);
    w->closes++;
    for (size_t i = 0; i < CALLS; i++)
        if (w->calls[i] == call) w->calls[i] = NULL;
}

static bool on_nuisance(void *user, rp_nuisance kind, rp_call *call)
{
    fuzz_check(kind < RP_NUISANCE_KINDS && (call != NULL) == (kind == RP_NUISANCE_RESET));
    return ++((world *)user)->nuisances < ((world *)user)->most_nuisances;
}

static void on_fault(void *user, rp_call *call, rp_call_fault fault, rp_status status)
{
    (void)user;
    fuzz_check(rp_call_is_finished(call) && fault <= RP_FAULT_MEMORY && status != RP_OK);
}

static const rp_h2_handler handler = {
    .on_request = on_request,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_room = on_room,
    .on_close = on_close,
    .on_nuisance = on_nuisance,
    .on_fault = on_fault,
};

static void check(const world *w)
{
    const rp_h2 *h2 = w->h2;
    size_t held = 0, queued = 0, count = 0, assembling = 0, leftovers = 0, opened = 0;
    uint64_t bytes;

    for (const rp_call *call = h2->calls; call != NULL; call = call->next) {
        size_t waits = 0;
        fuzz_check(call->next == NULL || call->next->prev == call);
        count++;
        opened += call->opened;
        assembling += call->counted_assembling;
        leftovers += call->leftover > 0;
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
        fuzz_check(call->first_waiting == NULL || call->paused || call->finishing);
        fuzz_check(!call->paused || !call->counted_assembling);
        queued += waits;
    }
    for (size_t i = h2->out_first; i < h2->out_count; i++)
        if (h2->out[i].reply != NULL) queued += h2->out[i].size;
    fuzz_check(count == h2->call_count && opened == w->requests - w->closes);
    fuzz_check(rp_h2_wants_output(h2) || h2->out_first == h2->out_count);
    fuzz_check(rp_h2_waits_for(h2, &bytes) != RP_H2_WAITS_FOR_MESSAGE || assembling > 0);
    fuzz_check(!h2->broken || rp_h2_is_over(h2));
    fuzz_check(held == rp_h2_held_bytes(h2) && assembling == h2->assembling &&
               leftovers == h2->leftovers);
    fuzz_check(queued == rp_h2_queued_bytes(h2));
}

/* Returns how many of `left` bytes are delivered next. Many small pieces would take long, so
 * after every 64 pieces half of the rest is delivered at once. */
static size_t piece_of(const world *w, size_t left, size_t parts)
{
    return parts % 64 == 63 && left / 2 > w->split ? left / 2 : w->split;
}

/* Delivers the bytes of the peer to the connection, in the memory that it provides. */
static void deliver(world *w)
{
    size_t at = 0, parts = 0;

    if (w->bytes.size == 0) return;
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
    check(w);
    w->bytes.size = 0;
}

/* Takes up to `most` bytes of output, in `capacity` parts at most. */
static void take_output(world *w, size_t most, size_t capacity)
{
    static uint8_t sent[1 << 16]; /* copied, so that a sanitizer sees what is read */
    struct iovec parts[8];
    size_t count, moved;

    while (most > 0 && (count = rp_h2_output(w->h2, parts, capacity)) > 0) {
        fuzz_check(count <= capacity);
        moved = 0;
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

    if (byte >= 0xf0) return byte & 0xfu;
    return w->next_stream < 3 ? 1 : w->next_stream - 2 - 2 * (byte % CALLS);
}

static size_t copy_rest(world *w, uint8_t *out, size_t most)
{
    size_t size = fuzz_left(&w->in) < most ? fuzz_left(&w->in) : most;

    memcpy(out, w->in.at, size);
    w->in.at += size;
    return size;
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
    static uint8_t eights[1 << 16]; /* not zeros: five of these would be a message */
    uint32_t stream = pick_stream(w);
    uint8_t how = fuzz_byte(&w->in);
    size_t size = (how & 0x7eu) << 9;

    fuzz_put_head(&w->bytes, size + (how & 1) * 5, FRAME_DATA, 0, stream);
    if ((how & 1) != 0) fuzz_put_prefix(&w->bytes, 0, (how & 0x80) != 0 ? 0x130000 : 0x10000);
    if (eights[0] == 0) memset(eights, 8, sizeof eights);
    fuzz_put(&w->bytes, eights, size);
}

static void put_frame(world *w)
{
    uint8_t payload[256], type = fuzz_byte(&w->in), flags = fuzz_byte(&w->in);
    uint32_t stream = pick_stream(w);
    size_t size = copy_rest(w, payload, fuzz_byte(&w->in));

    fuzz_put_frame(&w->bytes, type % 12, flags, stream, payload, size);
}

static void put_request(world *w)
{
    static const char *const timeouts[] = {NULL, "1S", "7x", "99999999H"};
    uint8_t how = fuzz_byte(&w->in);
    char path[3] = {'/', (char)('a' + how % 16), 0};

    fuzz_put_request(&w->bytes, w->next_stream, (how & 0x10) != 0,
                     (how & 0x20) != 0 ? "GET" : "POST", path, timeouts[how / 64]);
    w->next_stream += 2;
}

static void put_settings(world *w)
{
    uint8_t which = fuzz_byte(&w->in);

    fuzz_put_head(&w->bytes, 6, FRAME_SETTINGS, 0, 0);
    fuzz_put_int(&w->bytes, which % 8, 2);
    fuzz_put_int(&w->bytes, (uint64_t)fuzz_short(&w->in) << (which / 16), 4);
}

static void of_handler(world *w)
{
    uint8_t how = fuzz_byte(&w->in);
    rp_call *call = w->calls[fuzz_byte(&w->in) % CALLS];

    switch (how % 8) {
    case 0: rp_h2_sweep(w->h2); break;
    case 1:
        if (how < 0x80)
            rp_h2_ping(w->h2);
        else
            rp_h2_make_room(w->h2);
        break;
    case 2:
        if (how >= 0xc0) rp_h2_go_away(w->h2);
        if (how >= 0xf8) rp_h2_terminate(w->h2, how, how % 8 == 2 ? "why" : "");
        break;
    case 3:
        if (call != NULL) rp_call_resume(call);
        break;
    default:
        if (call != NULL) act(w, call, how / 8, (const uint8_t *)"later", 5);
        break;
    }
    check(w);
}

static void step(world *w)
{
    uint8_t what = fuzz_byte(&w->in);

    switch (what % 16) {
    case 0:
    case 1: put_request(w); break;
    case 2:
    case 3:
    case 4: put_messages(w); break;
    case 5: put_frame(w); break;
    case 6:
        fuzz_put_head(&w->bytes, 4, FRAME_RESET, 0, pick_stream(w));
        fuzz_put_int(&w->bytes, what / 16, 4);
        break;
    case 7:
        fuzz_put_head(&w->bytes, 4, FRAME_WINDOW, 0, pick_stream(w));
        fuzz_put_int(&w->bytes, (uint64_t)fuzz_short(&w->in) << what / 16, 4);
        break;
    case 8: put_settings(w); break;
    case 9: fuzz_put_frame(&w->bytes, FRAME_PING, (what & 0x10) != 0, 0, "12345678", 8); break;
    case 10: {
        uint8_t raw[64];
        size_t size = copy_rest(w, raw, fuzz_byte(&w->in) % sizeof raw);
        fuzz_put(&w->bytes, raw, size);
        break;
    }
    case 11: w->split = fuzz_byte(&w->in); break;
    case 12: take_output(w, (size_t)1 << (what / 8), 1 + what / 64); break;
    case 13: take_output(w, SIZE_MAX, 8); break;
    case 14: put_part(w); break;
    default: of_handler(w); break;
    }
    if (what >= 0x80 || w->bytes.size > FUZZ_MAX_BYTES) deliver(w);
}

static void set_up(world *w)
{
    uint8_t how = fuzz_byte(&w->in), more = fuzz_byte(&w->in);
    rp_h2_limits limits = {
        .streams = (how & 1) != 0 ? 4 : 100,
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
    w->most_nuisances = (how & 0x40) != 0 ? 3 : 1000;
    w->next_stream = 1;
    rp_message_pool_init(&w->pool, &w->alloc);
    st = rp_h2_new(&w->alloc, &handler, w, &limits, &w->pool, &w->h2);
    w->alive = st == RP_OK;
    fuzz_check(st == RP_OK || (st == RP_NO_RESOURCE && w->memory.failed > 0));
    if ((how & 0x80) != 0 || !w->alive) return;
    take_output(w, SIZE_MAX, 8); /* settings: they apply after the peer's ACK */
    fuzz_put_greeting(&w->bytes);
    fuzz_put_frame(&w->bytes, FRAME_SETTINGS, FLAG_ACK, 0, NULL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static world w;

    if (size < 2 || size > FUZZ_MAX_BYTES) return 0;
    if (big == NULL) make_big();
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
    rp_h2_free(w.h2);
    rp_message_pool_deinit(&w.pool);
    fuzz_check(w.closes == w.requests);
    fuzz_check(w.memory.live == 0 && w.memory.live_bytes == 0);
    fuzz_check(atomic_load(&big->refs.n) == 1);
    return 0;
}
