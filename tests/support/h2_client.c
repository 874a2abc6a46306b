/* SPDX-License-Identifier: Apache-2.0 */
#include "support/h2_client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "reprise/wait.h"
#include "util/mem.h"

enum { WAIT_MS = 120000 }; /* only a hang takes longer, also on a busy machine */

static void need(bool holds, const char *what)
{
    if (holds) return;
    (void)fprintf(stderr, "h2 client: %s\n", what);
    abort();
}

static void copy_text(char *to, size_t capacity, const uint8_t *from, size_t size)
{
    if (size >= capacity) size = capacity - 1;
    memcpy(to, from, size);
    to[size] = '\0';
}

static bool is(const uint8_t *name, size_t size, const char *word)
{
    return size == strlen(word) && memcmp(name, word, size) == 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user)
{
    rp_test_stream *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    char number[16];

    (void)flags, (void)user;
    if (call == NULL) return 0;
    copy_text(number, sizeof number, value, value_size);
    if (is(name, name_size, ":status")) call->http_status = atoi(number);
    if (is(name, name_size, "grpc-status")) {
        call->status = atoi(number);
        call->has_trailers = frame->headers.cat == NGHTTP2_HCAT_HEADERS;
    }
    if (is(name, name_size, "grpc-message"))
        copy_text(call->text, sizeof call->text, value, value_size);
    if (is(name, name_size, "content-type"))
        copy_text(call->content_type, sizeof call->content_type, value, value_size);
    return 0;
}

static void note_message(rp_test_stream *call, size_t begin, size_t size)
{
    if (call->message_count + 1 >= call->message_capacity) {
        call->message_capacity = 2 * call->message_capacity + 8;
        call->messages =
            realloc(call->messages, call->message_capacity * sizeof *call->messages);
        need(call->messages != NULL, "no memory");
    }
    call->messages[call->message_count++] = begin;
    call->messages[call->message_count] = begin + size;
    call->message_bytes += size;
}

/* Finds the messages that are complete. */
static void parse(rp_test_stream *call)
{
    for (;;) {
        const uint8_t *at = call->in.data + call->in_parsed;
        size_t left = call->in.size - call->in_parsed, size;
        if (left < 5) break;
        size = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
        if (call->http_status == 200 && call->status < 0)
            need(at[0] == 0, "a compressed answer");
        if (left - 5 < size) break;
        note_message(call, call->in_parsed + 5, size);
        call->in_parsed += 5 + size;
    }
    if (call->client->options.keep_nothing && call->in_parsed > 0) {
        memmove(call->in.data, call->in.data + call->in_parsed,
                call->in.size - call->in_parsed);
        call->in.size -= call->in_parsed;
        call->in_parsed = 0;
    }
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *user)
{
    rp_test_client *client = user;
    rp_test_stream *call = nghttp2_session_get_stream_user_data(session, id);

    (void)flags;
    if (call == NULL) return 0;
    rp_buf_append(&call->in, data, size);
    need(!call->in.bad, "no memory");
    if (strcmp(call->content_type, "application/grpc") == 0) parse(call);
    if (client->options.hold_windows) call->unread += size;
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    rp_test_client *client = user;
    rp_test_stream *call;

    switch (frame->hd.type) {
    case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0)
            client->pongs++;
        else
            client->pings++;
        break;
    case NGHTTP2_SETTINGS:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) client->settings++;
        break;
    case NGHTTP2_GOAWAY:
        client->goes_away = true;
        client->last_id = frame->goaway.last_stream_id;
        client->goaway_code = frame->goaway.error_code;
        break;
    case NGHTTP2_RST_STREAM:
        client->resets++;
        call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (call == NULL) break;
        call->was_reset = true;
        call->reset_code = frame->rst_stream.error_code;
        break;
    default: break;
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    rp_test_stream *call = nghttp2_session_get_stream_user_data(session, id);

    (void)code;
    if (call == NULL) return 0;
    call->is_over = true;
    ((rp_test_client *)user)->open_count--;
    return 0;
}

static ssize_t read_call(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    rp_test_stream *call = source->ptr;
    size_t size = call->out.size - call->out_sent;

    (void)session, (void)id, (void)user;
    if (size == 0 && !call->ends) {
        call->is_deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (size > length) size = length;
    if (size > 0) memcpy(buffer, call->out.data + call->out_sent, size);
    call->out_sent += size;
    if (call->out_sent == call->out.size) {
        call->out.size = call->out_sent = 0;
        if (call->ends) *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)size;
}

static ssize_t frame_bytes(nghttp2_session *session, uint8_t type, int32_t id,
                           int32_t session_window, int32_t stream_window, uint32_t max_frame,
                           void *user)
{
    const rp_test_client *client = user;

    (void)session, (void)type, (void)id, (void)session_window, (void)stream_window;
    return client->options.frame_bytes > 0 ? (ssize_t)client->options.frame_bytes
                                           : (ssize_t)max_frame;
}

static ssize_t padded_bytes(nghttp2_session *session, const nghttp2_frame *frame, size_t most,
                            void *user)
{
    size_t size = frame->hd.length;

    (void)session;
    if (frame->hd.type == NGHTTP2_DATA) size += ((const rp_test_client *)user)->options.padding;
    return (ssize_t)(size < most ? size : most);
}

static void open_session(rp_test_client *client)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;

    need(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0,
         "no memory");
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_bytes);
    nghttp2_session_callbacks_set_select_padding_callback(callbacks, padded_bytes);
    nghttp2_option_set_no_auto_window_update(option, client->options.hold_windows);
    nghttp2_option_set_peer_max_concurrent_streams(option, 1 << 20);
    need(nghttp2_session_client_new2(&client->session, callbacks, client, option) == 0,
         "no session");
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
}

rp_test_client *rp_test_client_new(const rp_test_client_options *options)
{
    rp_test_client *client = calloc(1, sizeof *client);
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};

    need(client != NULL, "no memory");
    if (options != NULL) client->options = *options;
    client->fd = -1;
    rp_buf_init(&client->out, rp_allocator_default());
    open_session(client);
    window.value = client->options.window;
    need(nghttp2_submit_settings(client->session, 0, &window, window.value > 0 ? 1 : 0) == 0,
         "no settings");
    if (client->options.session_window > 0)
        need(nghttp2_session_set_local_window_size(client->session, 0, 0,
                                                   client->options.session_window) == 0,
             "no window");
    return client;
}

void rp_test_client_free(rp_test_client *client)
{
    if (client == NULL) return;
    nghttp2_session_del(client->session);
    while (client->calls != NULL) {
        rp_test_stream *call = client->calls;
        client->calls = call->next;
        rp_buf_deinit(&call->out);
        rp_buf_deinit(&call->in);
        free(call->messages);
        free(call);
    }
    rp_buf_deinit(&client->out);
    if (client->fd >= 0) (void)close(client->fd);
    free(client);
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static rp_test_stream *begin(rp_test_client *client, const nghttp2_nv *fields, size_t count,
                             bool has_body)
{
    rp_test_stream *call = calloc(1, sizeof *call);
    nghttp2_data_provider provider = {{.ptr = call}, read_call};

    need(call != NULL, "no memory");
    call->client = client;
    call->status = -1;
    rp_buf_init(&call->out, rp_allocator_default());
    rp_buf_init(&call->in, rp_allocator_default());
    call->next = client->calls;
    client->calls = call;
    client->open_count++;
    call->id = nghttp2_submit_request(client->session, NULL, fields, count,
                                      has_body ? &provider : NULL, call);
    if (call->id < 0) { /* after a GOAWAY, or if all ids are used */
        call->is_over = true;
        client->open_count--;
    }
    return call;
}

rp_test_stream *rp_test_client_open_with(rp_test_client *client, const char *path,
                                         const rp_test_header *headers, size_t count)
{
    enum { OWN = 6 };
    nghttp2_nv *fields = malloc((OWN + count) * sizeof *fields);
    rp_test_stream *call;

    need(fields != NULL, "no memory");
    fields[0] = field(":method", "POST");
    fields[1] = field(":scheme", "http");
    fields[2] = field(":authority", "test");
    fields[3] = field(":path", path);
    fields[4] = field("te", "trailers");
    fields[5] = field("content-type", "application/grpc");
    for (size_t i = 0; i < count; i++)
        fields[OWN + i] = field(headers[i].name, headers[i].value);
    call = begin(client, fields, OWN + count, true);
    free(fields);
    return call;
}

rp_test_stream *rp_test_client_open(rp_test_client *client, const char *path)
{
    return rp_test_client_open_with(client, path, NULL, 0);
}

rp_test_stream *rp_test_client_get(rp_test_client *client, const char *method, const char *path)
{
    const nghttp2_nv fields[] = {field(":method", method), field(":scheme", "http"),
                                 field(":authority", "test"), field(":path", path)};

    return begin(client, fields, 4, false);
}

rp_test_stream *rp_test_client_post(rp_test_client *client, const char *path, bool has_body)
{
    const nghttp2_nv fields[] = {field(":method", "POST"), field(":scheme", "http"),
                                 field(":authority", "test"), field(":path", path),
                                 field("x-reprise-confirm", "checkpoint")};

    return begin(client, fields, 5, has_body);
}

static void wake(rp_test_stream *call)
{
    if (!call->is_deferred) return;
    call->is_deferred = false;
    (void)nghttp2_session_resume_data(call->client->session, call->id);
}

void rp_test_stream_send_raw(rp_test_stream *call, const void *data, size_t size)
{
    if (call->is_over) return;
    rp_buf_append(&call->out, data, size);
    need(!call->out.bad, "no memory");
    wake(call);
}

void rp_test_stream_send(rp_test_stream *call, const void *message, size_t size)
{
    const uint8_t prefix[5] = {0, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
                               (uint8_t)(size >> 8), (uint8_t)size};

    rp_test_stream_send_raw(call, prefix, sizeof prefix);
    rp_test_stream_send_raw(call, message, size);
}

void rp_test_stream_end(rp_test_stream *call)
{
    call->ends = true;
    if (!call->is_over) wake(call);
}

void rp_test_stream_reset(rp_test_stream *call, uint32_t code)
{
    if (!call->is_over)
        (void)nghttp2_submit_rst_stream(call->client->session, NGHTTP2_FLAG_NONE, call->id,
                                        code);
}

void rp_test_stream_read(rp_test_stream *call, size_t size)
{
    if (size > call->unread) size = call->unread;
    if (size == 0) return;
    call->unread -= size;
    (void)nghttp2_session_consume(call->client->session, call->id, size);
}

const uint8_t *rp_test_stream_message(const rp_test_stream *call, size_t index, size_t *size)
{
    need(index < call->message_count && !call->client->options.keep_nothing, "no such message");
    /* the next message begins five bytes after the end of this one */
    *size = call->messages[index + 1] - call->messages[index] -
            (index + 1 < call->message_count ? 5u : 0u);
    return call->in.data + call->messages[index];
}

static void fill(rp_test_client *client)
{
    for (;;) {
        const uint8_t *data;
        ssize_t size = nghttp2_session_mem_send(client->session, &data);
        if (size <= 0) {
            if (size < 0) client->is_bad = true;
            break;
        }
        rp_buf_append(&client->out, data, (size_t)size);
    }
    need(!client->out.bad, "no memory");
}

const uint8_t *rp_test_client_output(rp_test_client *client, size_t *size)
{
    if (client->out_taken == client->out.size) {
        client->out_taken = client->out.size = 0;
        fill(client);
    }
    *size = client->out.size - client->out_taken;
    return *size > 0 ? client->out.data + client->out_taken : NULL;
}

void rp_test_client_sent(rp_test_client *client, size_t size)
{
    client->out_taken += size;
}

void rp_test_client_inject(rp_test_client *client, const void *data, size_t size)
{
    fill(client);
    rp_buf_append(&client->out, data, size);
    need(!client->out.bad, "no memory");
}

void rp_test_client_frame(rp_test_client *client, uint8_t type, uint8_t flags, uint32_t stream,
                          const void *payload, size_t size)
{
    const uint8_t head[9] = {(uint8_t)(size >> 16),
                             (uint8_t)(size >> 8),
                             (uint8_t)size,
                             type,
                             flags,
                             (uint8_t)(stream >> 24),
                             (uint8_t)(stream >> 16),
                             (uint8_t)(stream >> 8),
                             (uint8_t)stream};

    rp_test_client_inject(client, head, sizeof head);
    rp_buf_append(&client->out, payload, size);
}

void rp_test_client_receive(rp_test_client *client, const uint8_t *data, size_t size)
{
    if (client->is_bad) return;
    if (nghttp2_session_mem_recv(client->session, data, size) != (ssize_t)size)
        client->is_bad = true;
}

static bool connect_to(rp_test_client *client, int family, const void *address, socklen_t size)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    need(fd >= 0, "no socket");
    if (connect(fd, address, size) != 0) {
        (void)close(fd);
        return false;
    }
    if (family == AF_INET) (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    client->fd = fd;
    return true;
}

bool rp_test_client_connect(rp_test_client *client, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};

    return connect_to(client, AF_INET, &address, sizeof address);
}

bool rp_test_client_connect_unix(rp_test_client *client, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    need(strlen(path) < sizeof address.sun_path, "the path is too long");
    memcpy(address.sun_path, path, strlen(path) + 1);
    return connect_to(client, AF_UNIX, &address, sizeof address);
}

static bool send_some(rp_test_client *client)
{
    size_t size;
    const uint8_t *data;

    while ((data = rp_test_client_output(client, &size)) != NULL) {
        ssize_t n = send(client->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        rp_test_client_sent(client, (size_t)n);
    }
    return true;
}

static bool receive_some(rp_test_client *client)
{
    uint8_t data[1 << 16];
    ssize_t n;

    while ((n = recv(client->fd, data, sizeof data, MSG_DONTWAIT)) > 0)
        rp_test_client_receive(client, data, (size_t)n);
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

bool rp_test_client_step(rp_test_client *client, int timeout_ms)
{
    struct pollfd ready = {.fd = client->fd, .events = POLLIN};
    size_t size;

    if (client->is_closed || client->fd < 0) return false;
    /* the last bytes of the server may still be unread */
    if (!send_some(client)) timeout_ms = 0;
    if (rp_test_client_output(client, &size) != NULL) ready.events |= POLLOUT;
    if (timeout_ms != 0) (void)poll(&ready, 1, timeout_ms);
    if (!receive_some(client)) client->is_closed = true;
    if (!client->is_closed) (void)send_some(client);
    return !client->is_closed;
}

bool rp_test_stream_wait_messages(rp_test_stream *call, size_t count)
{
    int64_t until_ns = rp_now_ns() + (int64_t)WAIT_MS * 1000000;

    while (!call->is_over && call->message_count < count && rp_now_ns() < until_ns)
        if (!rp_test_client_step(call->client, 100)) break;
    return call->is_over || call->message_count >= count || call->client->is_closed;
}

bool rp_test_stream_wait(rp_test_stream *call)
{
    return rp_test_stream_wait_messages(call, SIZE_MAX);
}

void rp_test_client_idle(rp_test_client *client, int ms)
{
    int64_t until_ns = rp_now_ns() + (int64_t)ms * 1000000, now_ns;

    while ((now_ns = rp_now_ns()) < until_ns)
        if (!rp_test_client_step(client, (int)((until_ns - now_ns) / 1000000) + 1)) break;
}

int rp_test_client_unary(rp_test_client *client, const char *path, const void *message,
                         size_t size)
{
    rp_test_stream *call = rp_test_client_open(client, path);

    rp_test_stream_send(call, message, size);
    rp_test_stream_end(call);
    return rp_test_stream_wait(call) ? call->status : -1;
}
