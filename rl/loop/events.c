/* SPDX-License-Identifier: Apache-2.0 */
/* Event files of TensorBoard: records of a TFRecord file, each a message of protobuf.
 *
 *   u64 length | u32 masked CRC-32C of the length | bytes | u32 masked CRC-32C of the bytes
 *
 *   Event { 1 double wall_time; 2 int64 step; 3 string file_version; 5 Summary summary }
 *   Summary { 1 Value value { 1 string tag; 2 float simple_value } }
 *
 * All numbers are little-endian, as are our two architectures. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "error/fail.h"
#include "loop/run_log.h"

enum { MAX_TAG = 100 };
static const char VERSION[] = "brain.Event:2";

static uint32_t crc32c(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (UINT32_C(0x82f63b78) & (0 - (crc & 1)));
    }
    return ~crc;
}

static uint32_t masked(const uint8_t *bytes, size_t size)
{
    uint32_t crc = crc32c(bytes, size);

    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

static uint8_t *put_bytes(uint8_t *out, const void *bytes, size_t size)
{
    memcpy(out, bytes, size);
    return out + size;
}

static uint8_t *put_varint(uint8_t *out, uint64_t value)
{
    for (; value >= 128; value >>= 7) *out++ = (uint8_t)(value | 128);
    *out++ = (uint8_t)value;
    return out;
}

/* A field of bytes; `number` < 16. */
static uint8_t *put_field(uint8_t *out, unsigned number, const void *bytes, size_t size)
{
    *out++ = (uint8_t)(number << 3 | 2);
    out = put_varint(out, size);
    return put_bytes(out, bytes, size);
}

size_t rp_event_record(double wall_seconds, int64_t step, const char *tag, float value,
                       uint8_t *out)
{
    uint8_t summary[MAX_TAG + 16], inner[MAX_TAG + 16], *at = out + 12, *end;
    uint64_t length;
    uint32_t check;

    *at++ = 1 << 3 | 1;
    at = put_bytes(at, &wall_seconds, sizeof wall_seconds);
    if (tag == NULL) {
        at = put_field(at, 3, VERSION, sizeof VERSION - 1);
    } else {
        assert(strlen(tag) <= MAX_TAG);
        *at++ = 2 << 3;
        at = put_varint(at, (uint64_t)step);
        end = put_field(inner, 1, tag, strlen(tag));
        *end++ = 2 << 3 | 5;
        end = put_bytes(end, &value, sizeof value);
        end = put_field(summary, 1, inner, (size_t)(end - inner));
        at = put_field(at, 5, summary, (size_t)(end - summary));
    }
    length = (uint64_t)(at - out) - 12;
    memcpy(out, &length, sizeof length);
    check = masked(out, sizeof length);
    memcpy(out + 8, &check, sizeof check);
    check = masked(out + 12, (size_t)length);
    at = put_bytes(at, &check, sizeof check);
    assert(at - out <= RP_EVENT_BYTES);
    return (size_t)(at - out);
}

/* A number of the progress with its two names; NULL: it has none there. */
typedef struct event_name {
    const char *names[2];
    size_t offset;
    bool whole; /* int64_t, not double */
} event_name;

#define AT(field) offsetof(rp_run_progress, field)
static const event_name event_names[] = {
    {{"rollout/ep_rew_mean", "charts/episodic_return"}, AT(mean_return), false},
    {{"rollout/ep_len_mean", "charts/episodic_length"}, AT(mean_length), false},
    {{"rollout/exploration_rate", "charts/epsilon"}, AT(epsilon), false},
    {{"time/fps", "charts/SPS"}, AT(steps_per_second), false},
    {{"time/episodes", NULL}, AT(episodes), true},
    {{"train/loss", "losses/td_loss"}, AT(loss), false},
    {{"train/q_values", "losses/q_values"}, AT(value), false},
    {{"train/td_error", "losses/td_error"}, AT(error), false},
    {{"train/grad_norm", "losses/grad_norm"}, AT(norm), false},
    {{"train/learning_rate", "charts/learning_rate"}, AT(rate), false},
    {{"train/n_updates", "charts/updates"}, AT(updates), true},
    {{"replay/samples_per_insert", "replay/samples_per_insert"}, AT(samples_per_insert), false},
    {{"replay/size", "replay/size"}, AT(item_size), true},
};

typedef struct event_logger {
    rp_run_log logger; /* first */
    FILE *file;
    rp_log_names names;
    double wall_seconds;
} event_logger;

static void write_event(event_logger *l, double seconds, int64_t step, const char *tag,
                        double value)
{
    uint8_t record[RP_EVENT_BYTES];
    size_t size = rp_event_record(l->wall_seconds + seconds, step, tag, (float)value, record);

    (void)fwrite(record, 1, size, l->file); /* errors stay in the file: write() reports them */
}

static rp_status write_events(rp_run_log *logger, const rp_run_progress *p, rp_error *err)
{
    event_logger *l = (event_logger *)logger;

    for (size_t i = 0; i < sizeof event_names / sizeof event_names[0]; i++) {
        const event_name *e = &event_names[i];
        const void *field = (const char *)p + e->offset;
        double value = e->whole ? (double)*(const int64_t *)field : *(const double *)field;

        if (e->names[l->names] != NULL && isfinite(value))
            write_event(l, p->seconds, p->steps, e->names[l->names], value);
    }
    if (isfinite(p->eval_return))
        write_event(l, p->eval_seconds, p->eval_steps,
                    l->names == RP_NAMES_SB3 ? "eval/mean_reward" : "eval/episodic_return",
                    p->eval_return);
    if (fflush(l->file) == 0 && !ferror(l->file)) return RP_OK;
    return rp_rl_fail(err, RP_UNAVAILABLE, "the event file of the run cannot be written: %s",
                      strerror(errno));
}

static void free_events(rp_run_log *logger)
{
    event_logger *l = (event_logger *)logger;
    rp_allocator alloc = l->logger.alloc;

    (void)fclose(l->file);
    (void)alloc.resize(alloc.ctx, l, sizeof *l, 0);
}

rp_status rp_run_log_open_events(const rp_allocator *alloc, const char *directory,
                                 rp_log_names names, double wall_seconds, rp_run_log **out,
                                 rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    event_logger *l = a.resize(a.ctx, NULL, 0, sizeof *l);
    char path[4096];
    int size = snprintf(path, sizeof path, "%s/events.out.tfevents.%.0f.reprise", directory,
                        floor(wall_seconds));

    assert(names == RP_NAMES_SB3 || names == RP_NAMES_CLEANRL);
    if (l == NULL) return rp_rl_fail_memory(err, sizeof *l);
    *l = (event_logger){
        .logger = {write_events, free_events, a}, .names = names, .wall_seconds = wall_seconds};
    if (size > 0 && (size_t)size < sizeof path) l->file = fopen(path, "wbe");
    if (l->file == NULL) {
        (void)a.resize(a.ctx, l, sizeof *l, 0);
        return rp_rl_fail(err, RP_UNAVAILABLE, "%s: %s", path, strerror(errno));
    }
    write_event(l, 0, 0, NULL, 0);
    *out = &l->logger;
    return RP_OK;
}
