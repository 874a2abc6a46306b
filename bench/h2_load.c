/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_load.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "h2_load_stream.h"
#include "server_process.h"

enum {
    MAX_THREADS = 64,
    EVENTS = 64,
    AHEAD_BYTES = 32 << 20,  /* samples requested ahead, of all connections together */
    REQUEST_BYTES = 2 << 20, /* samples of one request */
    LINGER_SECONDS = 30, /* how long to wait for outstanding responses when the time is up */
};

typedef struct load {
    h2_load_options options;
    h2_shape shape;
    atomic_size_t connected; /* threads whose connections are open */
    atomic_bool stop;
} load;

typedef struct worker {
    load *load;
    pthread_t thread;
    size_t index;
    h2_stream *streams;
    size_t stream_count, open;
    uint64_t done; /* items of all streams */
    int epoll;
    uint8_t *scratch;
    _Atomic uint64_t items; /* a copy of `done` for other threads */
    _Alignas(64) char apart;
} worker;

size_t h2_load_default_items(size_t payload_bytes)
{
    size_t items = (32 << 10) / payload_bytes;

    if (items > 64) items = 64;
    return items > 0 ? items : 1;
}

static void fill_defaults(h2_load_options *o)
{
    if (o->payload_bytes == 0) o->payload_bytes = 400;
    if (o->items == 0) o->items = h2_load_default_items(o->payload_bytes);
    if (o->kind == H2_ROUNDTRIP) o->items = 1;
    if (o->table_count == 0) o->table_count = 1;
    if (o->connections == 0) o->connections = 1;
    if (o->threads == 0) o->threads = 1;
    if (o->threads > MAX_THREADS) o->threads = MAX_THREADS;
    if (o->threads > o->connections) o->threads = o->connections;
    if (o->samples == 0) {
        size_t most = AHEAD_BYTES / (H2_REQUESTS_AHEAD * o->connections);
        if (most > REQUEST_BYTES) most = REQUEST_BYTES;
        o->samples = o->payload_bytes < 4096 ? H2_FEW_SAMPLES : 1;
        while (o->samples * 2 * o->payload_bytes <= most) o->samples *= 2;
    }
    if (o->seconds == 0) o->seconds = 1;
    if (o->warm_seconds == 0) o->warm_seconds = 0.2;
}

int h2_load_connect(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        perror("connect");
        exit(1);
    }
    return fd;
}

static void listen_to(const worker *w, h2_stream *stream, int how)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = stream}};

    if (stream->wants_out) event.events |= EPOLLOUT;
    epoll_ctl(w->epoll, how, stream->peer.fd, &event);
}

static void end_stream(worker *w, h2_stream *stream)
{
    w->open--;
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, stream->peer.fd, NULL);
    if (h2_stream_ok(stream)) return;
    fprintf(stderr, "connection %llu: %s (status %d, %llu of %llu done)\n",
            (unsigned long long)stream->number,
            stream->message[0] != 0 ? stream->message : "closed too early", stream->status,
            (unsigned long long)stream->done, (unsigned long long)stream->sent);
    exit(1);
}

static void give_turn(worker *w, h2_stream *stream, uint32_t events)
{
    uint64_t before = stream->done;
    bool lives = h2_stream_turn(stream, (events & ~(uint32_t)EPOLLOUT) != 0, w->scratch);

    w->done += stream->done - before;
    atomic_store_explicit(&w->items, w->done, memory_order_relaxed); /* only a statistic */
    if (!lives) {
        end_stream(w, stream);
    } else if (stream->wants_out != h2_stream_wants_turn(stream)) {
        stream->wants_out = !stream->wants_out;
        listen_to(w, stream, EPOLL_CTL_MOD);
    }
}

static void connect_all(worker *w)
{
    nghttp2_session_callbacks *callbacks = h2_stream_callbacks();
    load *l = w->load;

    for (size_t i = 0; i < w->stream_count; i++) {
        h2_stream *stream = &w->streams[i];
        h2_stream_init(stream, i * l->options.threads + w->index, &l->options, &l->shape,
                       callbacks);
        listen_to(w, stream, EPOLL_CTL_ADD);
    }
    nghttp2_session_callbacks_del(callbacks);
    for (size_t i = 0; i < w->stream_count; i++) give_turn(w, &w->streams[i], 0);
}

static void stop_all(worker *w)
{
    for (size_t i = 0; i < w->stream_count; i++) {
        h2_stream *stream = &w->streams[i];
        stream->stopping = true;
        if (!stream->closed) give_turn(w, stream, 0);
    }
}

static void *work(void *arg)
{
    struct epoll_event events[EVENTS];
    worker *w = arg;
    double stopped = 0;

    if (w->load->options.cpus != NULL)
        sched_setaffinity(0, sizeof *w->load->options.cpus, w->load->options.cpus);
    connect_all(w);
    atomic_fetch_add(&w->load->connected, 1);
    while (w->open > 0) {
        int n = epoll_wait(w->epoll, events, EVENTS, 20);
        for (int i = 0; i < n; i++) give_turn(w, events[i].data.ptr, events[i].events);
        if (!atomic_load_explicit(&w->load->stop, memory_order_relaxed)) continue; /* a flag */
        if (stopped == 0) {
            stopped = bench_seconds();
            stop_all(w);
        } else if (bench_seconds() > stopped + LINGER_SECONDS) {
            fprintf(stderr, "%zu connections wait for answers that do not come\n", w->open);
            exit(1);
        }
    }
    return NULL;
}

typedef struct moment {
    double time, server_cpu, load_cpu, machine_cpu;
    uint64_t items;
} moment;

static double clock_seconds(clockid_t clock)
{
    struct timespec t;

    if (clock == 0 || clock_gettime(clock, &t) != 0) return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static moment look(const load *l, worker *workers)
{
    moment now = {.time = bench_seconds(), .server_cpu = clock_seconds(l->options.server_cpu)};

    now.load_cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    now.machine_cpu = server_machine_cpu();
    for (size_t i = 0; i < l->options.threads; i++) now.items += atomic_load(&workers[i].items);
    return now;
}

static void pause_seconds(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};

    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

static void start_worker(worker *w, load *l, size_t index)
{
    const h2_load_options *o = &l->options;

    *w = (worker){.load = l, .index = index};
    w->stream_count = o->connections / o->threads + (index < o->connections % o->threads);
    w->open = w->stream_count;
    w->streams = bench_array(w->stream_count, sizeof *w->streams);
    w->scratch = bench_array(H2_SCRATCH_BYTES, 1);
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll < 0 || pthread_create(&w->thread, NULL, work, w) != 0)
        bench_check(RP_NO_RESOURCE, NULL);
}

static void collect_latencies(h2_load_result *result, worker *workers, size_t count)
{
    size_t total = 0, at = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < workers[i].stream_count; j++)
            total += workers[i].streams[j].latency_count;
    if (total == 0) return;
    double *all = bench_array(total, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < workers[i].stream_count; j++) {
            const h2_stream *s = &workers[i].streams[j];
            if (s->latency_count > 0)
                memcpy(all + at, s->latencies, s->latency_count * sizeof *all);
            at += s->latency_count;
        }
    }
    qsort(all, total, sizeof *all, bench_ascending);
    result->p50_us = all[total / 2] * 1e6;
    result->p99_us = all[total - 1 - total / 100] * 1e6;
    result->p999_us = all[total - 1 - total / 1000] * 1e6;
    free(all);
}

static void end_worker(worker *w, h2_load_result *result)
{
    for (size_t i = 0; i < w->stream_count; i++) {
        result->total += w->streams[i].done;
        result->checked += w->streams[i].samples.checked;
        h2_stream_deinit(&w->streams[i]);
    }
    close(w->epoll);
    free(w->streams);
    free(w->scratch);
}

h2_load_result h2_load_run(const h2_load_options *options)
{
    load l = {.options = *options};
    worker *workers;
    h2_load_result result = {0};
    uint8_t *payload;
    moment from, to;

    fill_defaults(&l.options);
    payload = h2_payload_new(l.options.payload_bytes);
    l.shape = (h2_shape){.payload = payload,
                         .payload_bytes = l.options.payload_bytes,
                         .items = l.options.items,
                         .table_count = l.options.table_count};
    workers = bench_memory(aligned_alloc(64, l.options.threads * sizeof *workers));
    for (size_t i = 0; i < l.options.threads; i++) start_worker(&workers[i], &l, i);
    while (atomic_load(&l.connected) < l.options.threads) pause_seconds(0.001);
    if (options->item_limit == 0) pause_seconds(l.options.warm_seconds);
    from = look(&l, workers);
    if (options->item_limit == 0) {
        pause_seconds(l.options.seconds);
        to = look(&l, workers);
        atomic_store(&l.stop, true);
    }
    for (size_t i = 0; i < l.options.threads; i++) pthread_join(workers[i].thread, NULL);
    if (options->item_limit > 0) to = look(&l, workers);
    result.seconds = to.time - from.time;
    result.items = to.items - from.items;
    result.server_cpu = to.server_cpu - from.server_cpu;
    result.load_cpu = to.load_cpu - from.load_cpu;
    result.others = to.machine_cpu - from.machine_cpu - result.server_cpu - result.load_cpu;
    result.others /= result.seconds;
    collect_latencies(&result, workers, l.options.threads);
    for (size_t i = 0; i < l.options.threads; i++) end_worker(&workers[i], &result);
    free(workers);
    free(payload);
    return result;
}
