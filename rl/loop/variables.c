/* SPDX-License-Identifier: Apache-2.0 */
/* The item has two columns: {version, note} as int64, and the numbers as float32.
 *
 * The version is also the number of inserts that the table counts, so that one small call tells
 * a client whether there is anything new.
 *
 * Any client with the role `write` can put something else there. So a client checks what it
 * fetches, and a source can ask whether the table still has its numbers.
 *
 * Invariants:
 *   V1  while the source is the only writer of its table, its version is the table's inserts;
 *   V2  a client's version is that of the numbers it has written last; 0 before;
 *   V3  a client's `seen` is the number of inserts when it last fetched: at most those at the
 *       item that it got, so that no later one is missed. */
#include "reprise/rl/variables.h"

#include <assert.h>
#include <string.h>

#include "error/fail.h"
#include "reprise/sampler.h"
#include "reprise/trajectory_writer.h"

enum { COLUMN_HEAD, COLUMN_NUMBERS, COLUMNS };

struct rp_variable_source {
    rp_allocator alloc;
    rp_variable_options options;
    rp_trajectory_writer *writer;
    int64_t version;
    char table[RP_MAX_TABLE_NAME_BYTES + 1];
};

struct rp_variable_client {
    rp_allocator alloc;
    rp_variable_options options;
    int64_t version, note; /* V2 */
    int64_t seen;          /* V3; -1 before */
    char table[RP_MAX_TABLE_NAME_BYTES + 1];
};

static rp_status check(const rp_variable_options *o, char *table, rp_error *err)
{
    if (o->count < 1 || strlen(o->table) > RP_MAX_TABLE_NAME_BYTES)
        return rp_rl_fail(err, RP_INVALID, "variables: %zu numbers in table '%.64s'", o->count,
                          o->table);
    memcpy(table, o->table, strlen(o->table) + 1);
    return RP_OK;
}

/* Writes the inserts of the table, -1 if there is no such table, and its items. */
static rp_status count_inserts(rp_client *client, const char *table, rp_wait wait,
                               int64_t *inserts, int64_t *size, rp_error *err)
{
    rp_client_tables *list = NULL;
    rp_status st = rp_client_get_tables(client, wait, &list, err);

    if (st != RP_OK) return st;
    *inserts = -1;
    *size = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->tables[i].info.name, table) != 0) continue;
        *inserts = list->tables[i].info.inserts;
        *size = list->tables[i].info.size;
    }
    rp_client_tables_free(list);
    return RP_OK;
}

static rp_wait wait_of(const rp_variable_options *o)
{
    rp_wait wait = o->timeout_ms > 0 ? rp_wait_ms(o->timeout_ms) : rp_wait_forever();

    wait.cancel = o->cancel;
    return wait;
}

static rp_status make_table(rp_variable_source *s, rp_error *err)
{
    const rp_wait wait = wait_of(&s->options);
    const rp_table_options table = {.name = s->table,
                                    .sampler = {.kind = RP_UNIFORM},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = rp_limiter_min_size(1),
                                    .max_size = 1};
    int64_t size;
    rp_status st = count_inserts(s->options.client, s->table, wait, &s->version, &size, err);

    if (st != RP_OK || s->version >= 0) return st;
    s->version = 0;
    return rp_client_create_table(s->options.client, &table, wait, err);
}

rp_status rp_variable_source_new(const rp_allocator *alloc, const rp_variable_options *options,
                                 rp_variable_source **out, rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    const rp_trajectory_writer_options writer = {
        .column = {.history = 1, .chunk_length = 1, .chunk = {.codec = RP_CODEC_NONE}}};
    rp_variable_source *s = a.resize(a.ctx, NULL, 0, sizeof *s);
    rp_status st;

    if (s == NULL) return rp_rl_fail_memory(err, sizeof *s);
    *s = (rp_variable_source){.alloc = a, .options = *options};
    st = check(options, s->table, err);
    if (st == RP_OK) st = make_table(s, err);
    if (st == RP_OK)
        st = rp_trajectory_writer_new(options->client, &writer, wait_of(options), &s->writer,
                                      err);
    if (st != RP_OK) {
        rp_variable_source_free(s);
        return st;
    }
    *out = s;
    return RP_OK;
}

void rp_variable_source_free(rp_variable_source *s)
{
    if (s == NULL) return;
    rp_allocator alloc = s->alloc;
    rp_trajectory_writer_free(s->writer);
    (void)alloc.resize(alloc.ctx, s, sizeof *s, 0);
}

rp_status rp_variable_source_publish(rp_variable_source *s, const rp_real *numbers,
                                     int64_t note, int64_t *version, rp_error *err)
{
    const int64_t head[] = {s->version + 1, note};
    const rp_value values[COLUMNS] = {
        {COLUMN_HEAD, "head", {RP_INT64, {1, {2}}, head}},
        {COLUMN_NUMBERS, "numbers", {RP_FLOAT32, {1, {(int64_t)s->options.count}}, numbers}},
    };
    rp_ref refs[COLUMNS];
    const rp_item_column columns[COLUMNS] = {
        {&refs[COLUMN_HEAD], 1, true, "head"},
        {&refs[COLUMN_NUMBERS], 1, true, "numbers"},
    };
    const rp_new_item item = {s->table, 1, columns, COLUMNS};
    const rp_wait wait = wait_of(&s->options);
    rp_status st = rp_trajectory_writer_append(s->writer, values, COLUMNS, 0, refs, err);

    if (st == RP_OK) st = rp_trajectory_writer_create_item(s->writer, &item, wait, NULL, err);
    if (st == RP_OK) st = rp_trajectory_writer_flush(s->writer, 0, wait, err);
    if (st != RP_OK) return st;
    assert(head[0] == s->version + 1);
    *version = ++s->version; /* V1 */
    return RP_OK;
}

rp_status rp_variable_source_is_latest(rp_variable_source *s, bool *latest, rp_error *err)
{
    int64_t inserts = 0, size = 0;
    rp_status st =
        count_inserts(s->options.client, s->table, wait_of(&s->options), &inserts, &size, err);

    if (st != RP_OK) return st;
    assert(inserts >= -1 && size >= 0);
    *latest = inserts == s->version && size > 0; /* V1 */
    if (inserts >= 0) s->version = inserts;
    return RP_OK;
}

rp_status rp_variable_client_new(const rp_allocator *alloc, const rp_variable_options *options,
                                 rp_variable_client **out, rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_variable_client *c = a.resize(a.ctx, NULL, 0, sizeof *c);
    rp_status st;

    if (c == NULL) return rp_rl_fail_memory(err, sizeof *c);
    *c = (rp_variable_client){.alloc = a, .options = *options, .seen = -1};
    st = check(options, c->table, err);
    if (st != RP_OK) {
        rp_variable_client_free(c);
        return st;
    }
    *out = c;
    return RP_OK;
}

void rp_variable_client_free(rp_variable_client *c)
{
    if (c == NULL) return;
    rp_allocator alloc = c->alloc;
    (void)alloc.resize(alloc.ctx, c, sizeof *c, 0);
}

/* RP_CORRUPT unless the numbers can be parameters. */
static rp_status check_numbers(const rp_variable_client *c, const rp_real *numbers,
                               rp_error *err)
{
    int outside = 0;

    for (size_t i = 0; i < c->options.count; i++)
        outside |=
            !(numbers[i] >= -RP_VARIABLE_BOUND && numbers[i] <= RP_VARIABLE_BOUND); /* or NaN */
    if (outside == 0) return RP_OK;
    return rp_rl_fail(err, RP_CORRUPT,
                      "table '%s' has numbers that are not finite, or over %g in size: they "
                      "are no parameters",
                      c->table, (double)RP_VARIABLE_BOUND);
}

static rp_status fetch(rp_variable_client *c, rp_real *numbers, rp_wait wait, rp_error *err)
{
    const rp_sampler_options options = {
        .table = c->table, .max_samples = 1, .max_in_flight = 1, .rate_limiter_timeout_ms = -1};
    int64_t head[2] = {0};
    const rp_stack_place places[COLUMNS] = {{head, sizeof head},
                                            {numbers, c->options.count * sizeof *numbers}};
    rp_sample sample;
    const rp_stack to = {places, COLUMNS, &sample, 1};
    rp_sampler *sampler = NULL;
    size_t count = 0;
    rp_status st = rp_sampler_new(c->options.client, &options, &sampler, err);

    if (st != RP_OK) return st;
    st = rp_sampler_stack(sampler, &to, &count, wait, err);
    rp_sampler_free(sampler);
    if (st == RP_INVALID)
        return rp_rl_fail(err, RP_CORRUPT,
                          "table '%s' has no item of %zu numbers: they are of a network with "
                          "other settings",
                          c->table, c->options.count);
    if (st == RP_NO_RESOURCE) /* an item over the bound of the client */
        return rp_rl_fail(err, RP_CORRUPT, "table '%s' has an item that is too large",
                          c->table);
    if (st == RP_OK) st = check_numbers(c, numbers, err);
    if (st != RP_OK) return st;
    assert(count == 1);
    c->version = head[0] > 0 ? head[0] : 1; /* V2 */
    c->note = head[1];
    return RP_OK;
}

rp_status rp_variable_client_update(rp_variable_client *c, rp_real *numbers, rp_wait wait,
                                    rp_variables *out, rp_error *err)
{
    int64_t inserts = 0, size = 0;
    rp_status st = count_inserts(c->options.client, c->table, wait, &inserts, &size, err);
    bool changed = st == RP_OK && inserts > 0 && size > 0 && inserts != c->seen;

    assert(c->version >= 0); /* V2 */
    if (changed) st = fetch(c, numbers, wait, err);
    if (changed && (st == RP_OK || st == RP_CORRUPT)) c->seen = inserts; /* V3 */
    if (st != RP_OK) return st;
    *out = (rp_variables){c->version, c->note, changed};
    return RP_OK;
}
