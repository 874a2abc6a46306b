/* SPDX-License-Identifier: Apache-2.0 */
/* Whole sessions: a worker of the server without its thread, connections over sockets in
 * memory, a store with a few tables, and a clock that only the input moves.
 *
 * The input is a list of steps: calls are opened, valid and invalid messages are sent, some
 * frames are broken, responses are read or not, time passes, allocations fail, another user of
 * the tables inserts or samples, connections are opened and closed. At the end, after the peers
 * have closed, no call, no operation in a table, no counted byte and no memory may be left of
 * them, and the tables must be consistent. */
#include "fuzz_frames.h"
#include "fuzz_memory.h"
#include "fuzz_requests.h"
#include "server/core/connection.h"
#include "server/core/pinned.h"
#include "server/core/served_table.h"
#include "server/core/server.h"
#include "server/core/server_state.h"
#include "server/core/worker.h"
#include "store/store.h"
#include "system.h"
#include "table/table.h"

enum { PEERS = 3, SECOND = 1000000000 };

typedef struct peer {
    int fd; /* -1: none */
    uint32_t next_stream;
} peer;

typedef struct world {
    fuzz_input in;
    fuzz_memory memory;
    rp_allocator alloc;
    rp_store *store;
    rp_server *server;
    rp_worker *worker;
    rp_post mark;
    peer peers[PEERS];
    peer *now; /* the peer of the current step */
    size_t socket_room;
    int long_pages; /* how many may still be requested: they take longer than other steps */
    fuzz_bytes out;
    fuzz_message message;
} world;

/* Ignores a status: the step may succeed or fail. */
static void whatever(rp_status status)
{
    (void)status;
}

static const char tables[] = "pqsubtx"; /* 't' does not exist at first, 'x' never */

static int64_t clock_ns;

/* The linker replaces rp_now_ns() by this function. */
int64_t __wrap_rp_now_ns(void);
int64_t __wrap_rp_now_ns(void)
{
    return clock_ns;
}

static int64_t wall_ns(void *ctx)
{
    (void)ctx;
    return clock_ns;
}

static void on_mark(rp_post *post)
{
    rp_loop_stop(((world *)((char *)post - offsetof(world, mark)))->worker->loop);
}

/* Runs one turn of the worker's loop. It never sleeps, since there is always a post. */
static void turn(world *w)
{
    clock_ns += 1000;
    rp_loop_post(w->worker->loop, &w->mark);
    rp_loop_run(w->worker->loop);
}

static void add_table(world *w, rp_table_options options)
{
    fuzz_check(rp_store_add_table(w->store, &options, NULL, NULL) == RP_OK);
}

static void make_tables(world *w, uint8_t how)
{
    static const rp_spec column = {"x", RP_INT32, {.rank = 2, .dims = {-1, 2}}};
    const rp_store_options options = {
        .alloc = &w->alloc,
        .seed = 7,
        .wall_ns = wall_ns,
        .max_bytes = (how & 4) != 0 ? 40000 : 0,
        .policy = (rp_budget_policy)(how % 3),
    };
    rp_signature *signature = NULL;

    fuzz_check(rp_store_new(&options, &w->store, NULL) == RP_OK);
    fuzz_check(rp_signature_flat(&w->alloc, &column, 1, &signature, NULL) == RP_OK);
    add_table(w, (rp_table_options){.name = "p",
                                    .sampler = {RP_PRIORITIZED, 0.6},
                                    .limiter = rp_limiter_min_size(1),
                                    .max_size = 6,
                                    .signature = signature});
    add_table(w, (rp_table_options){.name = "q",
                                    .limiter = rp_limiter_queue(3),
                                    .max_size = 3,
                                    .max_times_sampled = 1});
    add_table(w, (rp_table_options){.name = "s",
                                    .sampler = {.kind = RP_UNIFORM},
                                    .limiter = rp_limiter_ratio(2.0, 2, 4.0),
                                    .max_size = 100});
    add_table(w, (rp_table_options){.name = "u",
                                    .sampler = {.kind = RP_UNIFORM},
                                    .remover = {.kind = RP_LIFO},
                                    .limiter = rp_limiter_min_size(2),
                                    .max_size = 1000,
                                    .soft_limit = true});
    add_table(w, (rp_table_options){.name = "b",
                                    .sampler = {.kind = RP_MAX_HEAP},
                                    .remover = {.kind = RP_MIN_HEAP},
                                    .limiter = rp_limiter_min_size(1),
                                    .max_size = 10,
                                    .max_bytes = 20000});
    rp_signature_unref(signature);
}

/* Uses a table directly, so that calls that wait at it may continue. */
static void use_table(world *w, uint8_t how)
{
    rp_table *table = rp_store_find_table(w->store, (rp_string){&tables[how % 6], 1});
    rp_sample_options options = {.count = 1 + how / 64u, .at_least = 1};
    rp_sample samples[4];
    size_t done = 0;

    if (table == NULL) return;
    switch (how / 8 % 8) {
    case 0: whatever(rp_table_reset(table, NULL)); break;
    case 1: whatever(rp_table_delete(table, (uint64_t[]){1, 2, 3}, 3, NULL, NULL)); break;
    case 2: whatever(rp_table_pause(table, RP_SIDE_INSERTS | RP_SIDE_SAMPLES, NULL)); break;
    case 3: whatever(rp_table_resume(table, RP_SIDE_INSERTS | RP_SIDE_SAMPLES, NULL)); break;
    case 4: (void)rp_table_expire(table, clock_ns); break;
    case 5:
        whatever(rp_store_drop_table(w->store, (rp_string){&tables[how % 6], 1}, NULL));
        break;
    default:
        if (rp_table_sample(table, &options, samples, &done, rp_wait_none(), NULL) == RP_OK)
            rp_samples_release(samples, done);
        break;
    }
    rp_table_unref(table);
}

/* Reads up to `most` bytes that were sent to the peer. */
static void take_answers(peer *p, size_t most)
{
    if (p->fd >= 0) fuzz_socket_take(p->fd, most);
}

static void hang_up(peer *p)
{
    if (p->fd >= 0) fuzz_socket_hang_up(p->fd);
    p->fd = -1;
}

static void transmit(world *w)
{
    size_t sent = 0;

    for (int tries = 0; w->now->fd >= 0 && sent < w->out.size && tries < 8; tries++) {
        size_t n = fuzz_socket_send(w->now->fd, w->out.data + sent, w->out.size - sent);
        sent += n;
        if (n == 0) {
            turn(w);
            take_answers(w->now, SIZE_MAX);
        }
    }
    if (sent < w->out.size) hang_up(w->now);
    w->out.size = 0;
}

static void arrive(world *w, peer *p)
{
    if (p->fd >= 0) return;
    *p = (peer){.fd = fuzz_socket_open(w->socket_room), .next_stream = 1};
    atomic_fetch_add(&w->server->connection_count, 1);
    atomic_fetch_add(&w->worker->connection_count, 1);
    rp_connection_open(w->worker, p->fd, "somebody", NULL);
    fuzz_put_greeting(&w->out);
    transmit(w);
    turn(w);
    take_answers(p, SIZE_MAX);
    fuzz_put_frame(&w->out, FRAME_SETTINGS, FLAG_ACK, 0, NULL, 0);
}

static uint32_t pick_stream(world *w)
{
    uint32_t back = 2 * (uint32_t)(fuzz_byte(&w->in) % 8);

    return w->now->next_stream > back + 2 ? w->now->next_stream - back - 2 : 1;
}

static void put_message(world *w, uint32_t stream, uint8_t how)
{
    size_t size = 5 + w->message.size;
    size_t first = (how & 2) != 0 ? fuzz_byte(&w->in) % size : size;
    fuzz_bytes *out = &w->out;
    size_t at = out->size;

    if (size + 32 > sizeof out->data - at) return;
    fuzz_put_head(out, first, FRAME_DATA, 0, stream);
    fuzz_put_prefix(out, 0, w->message.size);
    fuzz_put(out, w->message.data, w->message.size);
    if (first < size) { /* in two frames */
        memmove(out->data + at + 9 + first + 9, out->data + at + 9 + first, size - first);
        out->size = at + 9 + first;
        fuzz_put_head(out, size - first, FRAME_DATA, 0, stream);
        out->size += size - first;
    }
    if ((how & 1) != 0) fuzz_put_head(out, 0, FRAME_DATA, FLAG_END_STREAM, stream);
}

static uint32_t open_call(world *w, const char *path, uint8_t how)
{
    static const char *const timeouts[] = {NULL, NULL, "10m", "0n"};
    uint32_t stream = w->now->next_stream;

    fuzz_put_request(&w->out, stream, false, "POST", path, timeouts[how / 64]);
    w->now->next_stream += 2;
    return stream;
}

static void insert(world *w, bool is_new)
{
    static fuzz_chunks chunks;
    uint8_t how = fuzz_byte(&w->in);
    uint32_t stream = is_new ? open_call(w, "/deepmind.reverb.ReverbService/InsertStream", how)
                             : pick_stream(w);

    if (chunks.chunks[0][0] == NULL) fuzz_chunks_init(&chunks);
    w->message.size = 0;
    fuzz_put_insert(&w->message, &w->in, &chunks, tables[how / 4 % (sizeof tables - 1)]);
    put_message(w, stream, how);
}

static void request(world *w, bool is_new)
{
    uint8_t which = fuzz_byte(&w->in), how = fuzz_byte(&w->in);
    uint32_t stream = is_new ? open_call(w, fuzz_templates[which % FUZZ_TEMPLATES].path, how)
                             : pick_stream(w);

    fuzz_put_template(&w->message, &w->in, which, tables[how / 4 % (sizeof tables - 1)]);
    put_message(w, stream, how);
}

static void put_raw(world *w, uint8_t what)
{
    uint8_t payload[64], type = fuzz_byte(&w->in), flags = fuzz_byte(&w->in);
    size_t size = fuzz_byte(&w->in) % sizeof payload;

    if (size > fuzz_left(&w->in)) size = fuzz_left(&w->in);
    memcpy(payload, w->in.at, size);
    w->in.at += size;
    if ((what & 0x40) != 0) {
        memcpy(w->message.data, payload, size);
        w->message.size = size;
        put_message(w, pick_stream(w), flags);
    } else {
        fuzz_put_frame(&w->out, type % 12, flags, pick_stream(w), payload, size);
    }
}

static void get_page(world *w, uint8_t what)
{
    static const char *const paths[] = {"/healthz", "/metrics", "/v1/info", "/"};
    const char *path = paths[what / 16 % 4];

    if (path == paths[1] || path == paths[2]) {
        if (w->long_pages == 0)
            path = "/nowhere";
        else
            w->long_pages--;
    }
    fuzz_put_request(&w->out, w->now->next_stream, true, (what & 0x40) != 0 ? "HEAD" : "GET",
                     path, NULL);
    w->now->next_stream += 2;
}

static void pass_time(uint8_t how)
{
    static const int64_t spans[] = {1000,   1000000,       20000000,
                                    SECOND, 11LL * SECOND, 61LL * SECOND};

    clock_ns += spans[how % 6];
}

/* Sends a frame that is not part of a message. */
static void put_control(world *w, uint8_t what)
{
    switch (what / 16 % 8) {
    case 0:
    case 1: fuzz_put_head(&w->out, 0, FRAME_DATA, FLAG_END_STREAM, pick_stream(w)); break;
    case 2:
    case 3:
        fuzz_put_head(&w->out, 4, FRAME_RESET, 0, pick_stream(w));
        fuzz_put_int(&w->out, 8, 4);
        break;
    case 4:
        fuzz_put_head(&w->out, 4, FRAME_WINDOW, 0, (what & 0x80) != 0 ? 0 : pick_stream(w));
        fuzz_put_int(&w->out, fuzz_short(&w->in), 4);
        break;
    case 5: /* the window of every call */
        fuzz_put_head(&w->out, 6, FRAME_SETTINGS, 0, 0);
        fuzz_put_int(&w->out, 4, 2);
        fuzz_put_int(&w->out, fuzz_short(&w->in), 4);
        break;
    default: fuzz_put_frame(&w->out, FRAME_PING, 0, 0, "12345678", 8); break;
    }
}

/* Makes an event at the server that its peers do not cause. */
static void befall(world *w, uint8_t how)
{
    switch (how % 8) {
    case 0:
        if (how >= 0xc0 && !atomic_exchange(&w->server->draining, true))
            rp_worker_drain(w->worker);
        break;
    case 1: rp_server_set_health(w->server, (rp_health)(how / 8 % 4), "so it is"); break;
    case 2:
        w->memory.fails = true;
        w->memory.failed = 0;
        w->memory.until = how / 8;
        break;
    case 3: w->memory.fails = false; break;
    default: use_table(w, fuzz_byte(&w->in)); break;
    }
}

static void step(world *w)
{
    uint8_t what = fuzz_byte(&w->in);

    switch (what % 16) {
    case 0:
    case 1: insert(w, true); break;
    case 2:
    case 3: insert(w, false); break;
    case 4:
    case 5: request(w, true); break;
    case 6: request(w, false); break;
    case 7: put_raw(w, what); break;
    case 8: put_control(w, what); break;
    case 9: get_page(w, what); break;
    case 10: take_answers(w->now, (size_t)1 << what / 8); break;
    case 11: pass_time(what / 16); break;
    case 12: befall(w, fuzz_byte(&w->in)); break;
    case 13: /* another peer acts from now on; it connects if it has not */
        transmit(w);
        w->now = &w->peers[what / 16 % PEERS];
        arrive(w, w->now);
        break;
    case 14:
        transmit(w);
        if ((what & 0x10) != 0)
            hang_up(w->now);
        else if (w->now->fd >= 0)
            fuzz_socket_end(w->now->fd);
        break;
    default: break;
    }
    transmit(w);
    if (what >= 0x60) turn(w);
}

static void set_up(world *w)
{
    uint8_t how = fuzz_byte(&w->in);
    rp_server_options options = {.alloc = &w->alloc, .loops = 1};

    clock_ns = 1000LL * SECOND;
    w->alloc = fuzz_memory_allocator(&w->memory);
    if ((how & 8) != 0)
        options.limits = (rp_server_limits){.streams = 4,
                                            .message_bytes = 8000,
                                            .chunk_bytes = 7000,
                                            .columns = 1,
                                            .slices = 3,
                                            .items = 2,
                                            .keys = 3,
                                            .stream_pinned_bytes = 300,
                                            .connection_pinned_bytes = 500,
                                            .abuse_burst = 5,
                                            .tables = 6};
    options.limits.stream_queued_bytes = (how & 16) != 0 ? 5000 : 40000;
    options.limits.connection_queued_bytes = (how & 16) != 0 ? 8000 : 80000;
    options.limits.queued_bytes = (how & 16) != 0 ? 10000 : 160000;
    options.moderate_off = (how & 32) == 0;
    w->long_pages = how >= 0xe0 ? 2 : 0;
    w->socket_room = (how & 64) != 0 ? 4096 : FUZZ_SOCKET_ROOM;
    make_tables(w, how);
    fuzz_check(rp_server_new(w->store, &options, &w->server, NULL) == RP_OK);
    w->server->hash_seed = 7;
    w->worker = &w->server->workers[0];
    fuzz_check(rp_worker_init(w->worker, w->server, 0, NULL) == RP_OK);
    w->mark.run = on_mark;
    for (int i = 0; i < PEERS; i++) w->peers[i].fd = -1;
    w->now = &w->peers[0];
    arrive(w, w->now);
}

static void check_counts(world *w)
{
    const rp_loop_metrics *metrics = rp_metrics_loop(w->server->metrics, 0);
    rp_table *all[8];
    size_t count;

    fuzz_check(w->worker->connections == NULL && w->worker->outstanding == 0);
    fuzz_check(w->worker->dirty == NULL);
    fuzz_check(atomic_load(&w->server->connection_count) == 0);
    fuzz_check(atomic_load(&w->worker->connection_count) == 0);
    for (int side = 0; side < RP_QUEUE_SIDES; side++)
        fuzz_check(atomic_load(&w->server->budget.published[side]) == 0);
    fuzz_check(rp_counter_get(&metrics->connections) == 0 &&
               rp_counter_get(&metrics->streams) == 0 &&
               rp_counter_get(&metrics->queued_bytes) == 0);
    fuzz_check(rp_pinned_sum(w->server) == 0);
    rp_mutex_lock(&w->server->lock);
    for (size_t i = 0; i < RP_MAX_TABLES; i++) {
        const rp_served_table *s = w->server->served[i];
        fuzz_check(s == NULL || atomic_load(&s->pending_inserts) == 0);
    }
    rp_mutex_unlock(&w->server->lock);
    count = rp_store_tables(w->store, all, 8);
    for (size_t i = 0; i < count && i < 8; i++) {
        rp_table_info info;
        fuzz_check(rp_table_check(all[i]));
        rp_table_get_info(all[i], &info);
        fuzz_check(info.waiting_inserts == 0 && info.waiting_samples == 0);
    }
}

static void tear_down(world *w)
{
    w->memory.fails = false;
    for (int i = 0; i < PEERS; i++) hang_up(&w->peers[i]);
    for (int i = 0; i < 8 && (w->worker->connections != NULL || w->worker->outstanding > 0);
         i++) {
        clock_ns += SECOND;
        turn(w);
    }
    check_counts(w);
    rp_server_free(w->server);
    rp_store_free(w->store);
    fuzz_check(fuzz_system_open() == 0);
    fuzz_check(w->memory.live == 0 && w->memory.live_bytes == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static world w;

    if (size < 2 || size > FUZZ_MAX_BYTES / 16) return 0;
    memset(&w, 0, offsetof(world, out));
    w.out.size = 0;
    w.in = (fuzz_input){data, data + size};
    set_up(&w);
    while (fuzz_left(&w.in) > 0) step(&w);
    turn(&w);
    tear_down(&w);
    return 0;
}
