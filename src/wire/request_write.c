/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/request_write.h"

#include "wire/selector_wire.h"
#include "wire/signature_wire.h"

/* Most requests begin with the name of a table. */
enum { TABLE = 1 };

void rp_wire_write_sample_request(rp_buf *out, const char *table, int64_t num_samples,
                                  int64_t timeout_ms)
{
    size_t mark;

    rp_wire_put_text(out, TABLE, table);
    rp_wire_put_int(out, 2, num_samples);
    mark = rp_wire_begin(out, 3);
    rp_wire_put_int(out, 1, timeout_ms < 0 ? -1 : timeout_ms);
    rp_wire_end(out, mark);
}

void rp_wire_write_lease(rp_buf *out, const void *lease, size_t lease_bytes, uint64_t call)
{
    rp_wire_put_bytes(out, 15, lease, lease_bytes);
    rp_wire_put_number(out, 16, call);
}

void rp_wire_write_mutate_request(rp_buf *out, const char *table, const rp_update *updates,
                                  size_t update_count, const uint64_t *deletes,
                                  size_t delete_count)
{
    rp_wire_put_text(out, TABLE, table);
    rp_wire_put_updates(out, 2, updates, update_count);
    rp_wire_put_packed(out, 3, deletes, delete_count);
}

void rp_wire_write_reset_request(rp_buf *out, const char *table)
{
    rp_wire_put_text(out, TABLE, table);
}

void rp_wire_write_initialize_request(rp_buf *out, int64_t pid, const char *table)
{
    rp_wire_put_int(out, 1, pid);
    rp_wire_put_text(out, 2, table);
}

/* For optional fields: 0 is written too. */
static void put_double_always(rp_buf *out, uint32_t number, double value)
{
    uint8_t *at = rp_buf_reserve(out, 9);
    uint64_t bits;

    if (at == NULL) return;
    memcpy(&bits, &value, sizeof bits);
    *at = (uint8_t)rp_pb_tag(number, RP_PB_FIXED64);
    out->size += (size_t)(rp_pb_put_fixed64(at + 1, bits) - at);
}

static void put_limiter(rp_buf *out, uint32_t number, const rp_limiter_options *limiter)
{
    size_t mark = rp_wire_begin(out, number);

    put_double_always(out, 1, limiter->samples_per_insert);
    rp_wire_put_number_always(out, 2, (uint64_t)limiter->min_size);
    put_double_always(out, 3, limiter->min_diff);
    put_double_always(out, 4, limiter->max_diff);
    rp_wire_end(out, mark);
}

void rp_wire_write_create_table(rp_buf *out, const rp_table_options *options)
{
    size_t mark = rp_wire_begin(out, 1);

    rp_wire_put_text(out, 1, options->name);
    rp_wire_put_selector(out, 2, &options->sampler);
    rp_wire_put_selector(out, 3, &options->remover);
    rp_wire_put_int(out, 4, options->max_size);
    rp_wire_put_number(out, 5, options->max_bytes);
    rp_wire_put_int(out, 6, options->max_times_sampled);
    rp_wire_put_number(out, 7, options->soft_limit);
    put_limiter(out, 8, &options->limiter);
    if (options->signature != NULL) rp_wire_put_signature(out, 9, options->signature);
    rp_wire_end(out, mark);
}

void rp_wire_write_drop_table(rp_buf *out, const char *table)
{
    rp_wire_put_text(out, TABLE, table);
}

void rp_wire_write_alter_table(rp_buf *out, const char *table,
                               const rp_table_alteration *change)
{
    rp_wire_put_text(out, TABLE, table);
    if ((change->which & RP_ALTER_MAX_SIZE) != 0)
        rp_wire_put_number_always(out, 2, (uint64_t)change->max_size);
    if ((change->which & RP_ALTER_MAX_BYTES) != 0)
        rp_wire_put_number_always(out, 3, change->max_bytes);
    if ((change->which & RP_ALTER_MAX_TIMES_SAMPLED) != 0)
        rp_wire_put_number_always(out, 4, (uint64_t)(int64_t)change->max_times_sampled);
    if ((change->which & RP_ALTER_LIMITER) != 0) put_limiter(out, 5, &change->limiter);
    rp_wire_put_number(out, 6, (change->which & RP_ALTER_RECENTER) != 0);
}

void rp_wire_write_pause_table(rp_buf *out, const char *table, uint32_t sides)
{
    enum { BOTH = 0, INSERTS = 1, SAMPLES = 2 };
    uint32_t side = BOTH;

    if (sides == RP_SIDE_INSERTS) side = INSERTS;
    if (sides == RP_SIDE_SAMPLES) side = SAMPLES;
    rp_wire_put_text(out, TABLE, table);
    rp_wire_put_number(out, 2, side);
}

void rp_wire_write_why_blocked(rp_buf *out, const char *table, size_t max_calls)
{
    rp_wire_put_text(out, TABLE, table);
    rp_wire_put_number(out, 2, max_calls);
}

void rp_wire_write_status_request(rp_buf *out, const char *table, bool without_tables)
{
    rp_wire_put_text(out, TABLE, table);
    rp_wire_put_number(out, 2, without_tables);
}

void rp_wire_write_peek(rp_buf *out, const char *table, const uint64_t *keys, size_t count,
                        bool with_data, bool cut_rows)
{
    rp_wire_put_text(out, TABLE, table);
    rp_wire_put_packed(out, 2, keys, count);
    rp_wire_put_number(out, 3, with_data);
    rp_wire_put_number(out, 4, cut_rows);
}

void rp_wire_write_update(rp_buf *out, const char *table, const rp_update *updates,
                          size_t count)
{
    rp_wire_put_text(out, TABLE, table);
    rp_wire_put_updates(out, 2, updates, count);
}

void rp_wire_write_delete(rp_buf *out, const char *table, const uint64_t *keys, size_t count)
{
    rp_wire_put_text(out, TABLE, table);
    rp_wire_put_packed(out, 2, keys, count);
}

void rp_wire_write_draw(rp_buf *out, const char *table, const rp_sample_options *options,
                        int64_t timeout_ms, bool cut_rows)
{
    rp_wire_put_text(out, TABLE, table);
    rp_wire_put_number(out, 2, options->count);
    rp_wire_put_number(out, 3, options->at_least);
    if (timeout_ms >= 0) rp_wire_put_number_always(out, 4, (uint64_t)timeout_ms);
    rp_wire_put_number(out, 5, options->distinct);
    rp_wire_put_double(out, 6, options->beta);
    rp_wire_put_number(out, 7, cut_rows);
}
