/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_load_stream.h"

#include <fcntl.h>
#include <string.h>

#include "bench.h"

enum {
    BATCH_BYTES = 256 << 10,
    CROWD = 16, /* with this number of connections or more, batches are smaller */
    CROWD_BATCH_BYTES = 64 << 10,
    AHEAD_BYTES = 64 << 20, /* unconfirmed inserts of all connections together */
    CHECK_BYTES = 16 << 20, /* one sample is checked in this number of bytes, */
    CHECK_SAMPLES = 1024,   /* or in this number of samples */
};

static bool is_sampling(const h2_stream *s)
{
    return s->options->kind == H2_SAMPLE;
}

static bool is_through(const h2_stream *s)
{
    return s->stopping && s->done == s->sent && s->batch_left == 0 && s->requests_due == 0;
}

static void resume(h2_stream *s)
{
    if (!s->deferred) return;
    s->deferred = false;
    nghttp2_session_resume_data(s->peer.session, s->id);
}

/* Sets the keys of the next batch of inserts, if one may be sent. */
static void fill_batch(h2_stream *s)
{
    size_t count = s->batch.item_count;

    if (s->batch_left > 0 || s->stopping || !s->may_fill) return;
    if (s->sent - s->done + count > s->ahead) return;
    if (s->options->kind == H2_ROUNDTRIP && s->sent > s->done) return;
    for (uint64_t i = s->sent; i < s->sent + count; i++)
        s->outstanding[i % H2_OUTSTANDING / 64] |= UINT64_C(1) << (i % 64);
    h2_batch_number(&s->batch, s->number << 40 | s->sent);
    s->sent += count;
    s->batch_left = s->batch.size;
    s->piece = s->piece_at = 0;
    s->may_fill = false;
    if (s->sent >= s->limit) s->stopping = true;
    if (s->options->kind == H2_ROUNDTRIP) s->began = bench_seconds();
}

static void ask(h2_stream *s)
{
    size_t count = s->options->samples;

    while (!s->stopping && s->sent - s->done <= (H2_REQUESTS_AHEAD - 1) * count) {
        s->requests_due++;
        s->sent += count;
        if (s->sent >= s->limit) s->stopping = true;
    }
}

/* All queued bytes are written, so the batch may be overwritten. */
static void on_drained(h2_peer *peer)
{
    h2_stream *s = peer->owner;

    if (is_sampling(s))
        ask(s);
    else
        fill_batch(s);
    if (s->batch_left > 0 || s->requests_due > 0 || is_through(s)) resume(s);
}

static void gather(h2_peer *peer, int32_t id, nghttp2_data_source *source, size_t size)
{
    h2_stream *s = source->ptr;

    (void)id;
    s->batch_left -= size;
    while (size > 0) {
        const h2_piece *piece = &s->batch.pieces[s->piece];
        const uint8_t *base = piece->shared ? s->shape->payload : s->batch.own.data;
        size_t n = piece->size - s->piece_at < size ? piece->size - s->piece_at : size;
        h2_peer_put(peer, base + piece->at + s->piece_at, n);
        s->piece_at += n;
        size -= n;
        if (s->piece_at == piece->size) {
            s->piece++;
            s->piece_at = 0;
        }
    }
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *out, size_t size,
                       uint32_t *flags, nghttp2_data_source *source, void *user)
{
    h2_stream *s = source->ptr;

    (void)session;
    (void)id;
    (void)user;
    if (s->batch_left > 0) {
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
        return (ssize_t)(s->batch_left < size ? s->batch_left : size);
    }
    if (s->requests_due > 0 && size >= s->request.size) {
        memcpy(out, s->request.data, s->request.size);
        s->requests_due--;
        return (ssize_t)s->request.size;
    }
    if (is_through(s)) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        s->ended = true;
        return 0;
    }
    s->deferred = true;
    return NGHTTP2_ERR_DEFERRED;
}

static void fail(h2_stream *s, const char *why)
{
    if (s->message[0] == 0) snprintf(s->message, sizeof s->message, "%s", why);
}

static bool confirm(h2_stream *s, uint64_t key)
{
    uint64_t number = h2_key_number(key), item = number & ((UINT64_C(1) << 40) - 1);
    uint64_t *word = &s->outstanding[item % H2_OUTSTANDING / 64];
    uint64_t bit = UINT64_C(1) << (item % 64);

    if (number >> 40 != s->number || item >= s->sent || (*word & bit) == 0) return false;
    *word &= ~bit;
    s->done++;
    return true;
}

static bool confirm_keys(h2_stream *s, const uint8_t *at, const uint8_t *end)
{
    uint64_t key;

    while (at != end) {
        at = h2_read_varint(at, end, &key);
        if (at == NULL || !confirm(s, key)) return false;
    }
    return true;
}

static void end_roundtrip(h2_stream *s)
{
    if (s->latency_count == s->latency_capacity) {
        s->latency_capacity = 2 * s->latency_capacity + 4096;
        s->latencies =
            bench_memory(realloc(s->latencies, s->latency_capacity * sizeof *s->latencies));
    }
    s->latencies[s->latency_count++] = bench_seconds() - s->began;
}

/* Reads an InsertStreamResponse: field 1 has keys. A yardstick does not know keys: its field 2
 * is the number of requests that it has received. The response to an echo is the request. */
static void read_answer(h2_stream *s, const uint8_t *at, size_t size)
{
    const uint8_t *end = at + size;
    bool echo = s->options->yardstick && s->options->kind == H2_ROUNDTRIP;
    h2_field field;

    if (echo) {
        s->done++;
        if (size + H2_PREFIX_BYTES != s->batch.size) fail(s, "the echo is not what was said");
    }
    while (!echo && at != end) {
        at = h2_read_field(at, end, &field);
        if (at == NULL) {
            fail(s, "a response that is none");
            return;
        }
        if (field.number == 2 && s->options->yardstick) {
            s->done += field.value * s->shape->items;
        } else if (field.number != 1 || (field.type == 0 && !confirm(s, field.value)) ||
                   (field.type == 2 &&
                    !confirm_keys(s, field.data, field.data + field.value))) {
            fail(s, "a confirmation of what was not inserted, or a second one");
        }
    }
    if (s->options->kind == H2_ROUNDTRIP && s->done == s->sent) end_roundtrip(s);
}

/* Collects the bytes of responses, which are small, and reads each response. */
static void read_answers(h2_stream *s, const uint8_t *data, size_t size)
{
    h2_bytes *all = &s->answer;
    size_t at = 0;

    if (all->size + size > all->capacity) {
        all->capacity = 2 * (all->size + size);
        all->data = bench_memory(realloc(all->data, all->capacity));
    }
    memcpy(all->data + all->size, data, size);
    all->size += size;
    while (all->size - at >= H2_PREFIX_BYTES) {
        const uint8_t *p = all->data + at;
        size_t length = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        if (all->size - at - H2_PREFIX_BYTES < length) break;
        read_answer(s, p + H2_PREFIX_BYTES, length);
        at += H2_PREFIX_BYTES + length;
    }
    all->size -= at;
    memmove(all->data, all->data + at, all->size);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *user)
{
    h2_stream *s = ((h2_peer *)user)->owner;

    (void)session;
    (void)flags;
    (void)id;
    if (is_sampling(s)) {
        if (!h2_samples_read(&s->samples, data, size))
            fail(s, "a sample that was never inserted");
        s->done = s->samples.count;
        if (s->done > s->sent) fail(s, "more samples than were asked for");
    } else {
        read_answers(s, data, size);
    }
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user)
{
    h2_stream *s = ((h2_peer *)user)->owner;

    (void)session;
    (void)frame;
    (void)flags;
    if (name_size == 11 && memcmp(name, "grpc-status", 11) == 0) {
        s->status = atoi((const char *)value); /* nghttp2 terminates it with a 0 */
    } else if (name_size == 12 && memcmp(name, "grpc-message", 12) == 0 && value_size > 0) {
        fail(s, (const char *)value);
    }
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    h2_stream *s = ((h2_peer *)user)->owner;

    (void)session;
    (void)id;
    s->closed = true;
    if (code != 0) fail(s, nghttp2_http2_strerror(code));
    return 0;
}

nghttp2_session_callbacks *h2_stream_callbacks(void)
{
    nghttp2_session_callbacks *callbacks = h2_peer_callbacks();

    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    return callbacks;
}

static void begin_call(h2_stream *s, const char *path)
{
#define HEADER(name, value)                                                                    \
    {(uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), strlen(name), strlen(value), \
     NGHTTP2_NV_FLAG_NONE}
    nghttp2_nv headers[] = {
        HEADER(":method", "POST"),
        HEADER(":scheme", "http"),
        HEADER(":path", path),
        HEADER(":authority", "127.0.0.1"),
        HEADER("te", "trailers"),
        HEADER("content-type", "application/grpc"),
        HEADER("user-agent", "reprise-bench"),
    };
#undef HEADER
    nghttp2_data_provider provider = {.source = {.ptr = s}, .read_callback = on_read};

    s->id = nghttp2_submit_request(s->peer.session, NULL, headers,
                                   sizeof headers / sizeof headers[0], &provider, NULL);
    if (s->id < 0) bench_memory(NULL);
}

void h2_stream_opening(h2_bytes *out, bool with_call)
{
    static const uint8_t settings_ack[] = {0, 0, 0, 4, 1, 0, 0, 0, 0};
    nghttp2_session_callbacks *callbacks = h2_stream_callbacks();
    h2_load_options options = {.kind = H2_INSERT};
    h2_stream s = {.options = &options};

    h2_peer_init(&s.peer, -1, &s);
    h2_peer_begin(&s.peer, callbacks, false);
    if (with_call) begin_call(&s, "/deepmind.reverb.ReverbService/InsertStream");
    if (nghttp2_session_send(s.peer.session) != 0) bench_memory(NULL);
    h2_peer_copy(&s.peer, settings_ack, sizeof settings_ack);
    out->data = bench_memory(realloc(out->data, out->size + s.peer.queued));
    memcpy(out->data + out->size, s.peer.small, s.peer.queued); /* all of it was small */
    out->size += s.peer.queued;
    out->capacity = out->size;
    h2_peer_deinit(&s.peer);
    nghttp2_session_callbacks_del(callbacks);
}

static void init_insert(h2_stream *s)
{
    bool crowd = s->options->connections >= CROWD;
    size_t message = s->shape->items * (s->shape->payload_bytes + 100), count;

    count = (crowd ? CROWD_BATCH_BYTES : BATCH_BYTES) / message;
    if (count == 0 || s->options->kind == H2_ROUNDTRIP) count = 1;
    h2_batch_init_insert(&s->batch, s->shape, count);
    if (s->batch.piece_count > H2_FRAME_PIECES || s->batch.item_count > H2_OUTSTANDING) {
        fprintf(stderr, "too many items in a request\n");
        exit(1);
    }
    s->ahead = AHEAD_BYTES / (s->options->connections * s->shape->payload_bytes);
    if (s->ahead < 2 * s->batch.item_count) s->ahead = 2 * s->batch.item_count;
    if (s->ahead > H2_OUTSTANDING) s->ahead = H2_OUTSTANDING;
    s->outstanding = bench_array(H2_OUTSTANDING / 64, sizeof *s->outstanding);
}

void h2_stream_init(h2_stream *stream, uint64_t number, const h2_load_options *options,
                    const h2_shape *shape, const nghttp2_session_callbacks *callbacks)
{
    const char *path = "/deepmind.reverb.ReverbService/InsertStream";
    h2_stream *s = stream;

    *s = (h2_stream){.options = options, .shape = shape, .number = number, .status = -1};
    s->limit = UINT64_MAX;
    if (options->item_limit > 0)
        s->limit = (options->item_limit + options->connections - 1) / options->connections;
    h2_peer_init(&s->peer, h2_load_connect(options->port), s);
    s->peer.gather = gather;
    s->peer.drained = on_drained;
    fcntl(s->peer.fd, F_SETFL, O_NONBLOCK);
    h2_peer_begin(&s->peer, callbacks, false);
    if (is_sampling(s)) {
        size_t each = 1 + CHECK_BYTES / options->payload_bytes;
        if (each > CHECK_SAMPLES) each = CHECK_SAMPLES;
        h2_samples_init(&s->samples, shape, (uint32_t)each);
        h2_append_sample_request(&s->request, number % options->table_count, options->samples);
        path = "/deepmind.reverb.ReverbService/SampleStream";
    } else {
        init_insert(s);
        if (options->yardstick && options->kind == H2_ROUNDTRIP) path = "/yardstick/Echo";
    }
    begin_call(s, path);
}

void h2_stream_deinit(h2_stream *stream)
{
    h2_peer_deinit(&stream->peer);
    h2_batch_deinit(&stream->batch);
    h2_bytes_deinit(&stream->answer);
    h2_bytes_deinit(&stream->request);
    h2_samples_deinit(&stream->samples);
    free(stream->outstanding);
    free(stream->latencies);
}

bool h2_stream_turn(h2_stream *stream, bool readable, uint8_t *scratch)
{
    stream->may_fill = true;
    if (readable && !h2_peer_read(&stream->peer, scratch)) return false;
    return h2_peer_write(&stream->peer) && !stream->closed;
}

bool h2_stream_wants_turn(const h2_stream *stream)
{
    if (stream->peer.blocked && stream->peer.queued > 0) return true;
    return stream->options->kind == H2_INSERT && stream->batch_left == 0 && !stream->stopping &&
           stream->sent - stream->done + stream->batch.item_count <= stream->ahead;
}

bool h2_stream_ok(const h2_stream *stream)
{
    return stream->closed && stream->ended && stream->status == 0 && stream->message[0] == 0 &&
           stream->done == stream->sent;
}
