/* SPDX-License-Identifier: Apache-2.0 */
/* Every part is a tensor of bytes (U8) with the part's name. One more, "format", has the number
 * of the format, which changes when a part of the same size gets another meaning. Snapshots of
 * format 1 may lack it.
 *
 * Invariant:
 *   N1  the table holds at most one snapshot: the latest. */
#include "reprise/rl/snapshot.h"

#include <assert.h>
#include <string.h>

#include "error/fail.h"
#include "reprise/rl/safetensors.h"
#include "reprise/sampler.h"
#include "reprise/trajectory_writer.h"

static const char TABLE[] = "snapshot", FORMAT_PART[] = "format";
static const uint32_t FORMAT = 1;
/* A snapshot may have parts that are not asked for, as large as the others and this. */
enum { SPARE_BYTES = 1 << 20 };

static rp_status make_table(rp_client *client, rp_wait wait, rp_error *err)
{
    const rp_table_options table = {.name = TABLE,
                                    .sampler = {.kind = RP_UNIFORM},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = rp_limiter_min_size(1),
                                    .max_size = 1}; /* N1 */
    rp_status st = rp_client_create_table(client, &table, wait, err);

    return st == RP_EXISTS ? RP_OK : st;
}

static rp_status insert(rp_client *client, const uint8_t *bytes, size_t size, rp_wait wait,
                        rp_error *err)
{
    const rp_trajectory_writer_options options = {
        .column = {.history = 1, .chunk_length = 1, .chunk = {.codec = RP_CODEC_LZ4}}};
    const rp_value value = {0, "state", {RP_UINT8, {1, {(int64_t)size}}, bytes}};
    rp_ref ref;
    const rp_item_column column = {&ref, 1, true, "state"};
    const rp_new_item item = {TABLE, 1, &column, 1};
    rp_trajectory_writer *writer = NULL;
    rp_status st = rp_trajectory_writer_new(client, &options, wait, &writer, err);

    if (st == RP_OK) st = rp_trajectory_writer_append(writer, &value, 1, 0, &ref, err);
    if (st == RP_OK) st = rp_trajectory_writer_create_item(writer, &item, wait, NULL, err);
    if (st == RP_OK) st = rp_trajectory_writer_flush(writer, 0, wait, err);
    rp_trajectory_writer_free(writer);
    return st;
}

rp_status rp_snapshot_put(const rp_allocator *alloc, rp_client *client,
                          const rp_state_part *parts, size_t count, rp_wait wait, rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_safetensor tensors[RP_SNAPSHOT_MAX_PARTS + 1];
    size_t used = 0, size;
    uint8_t *file;
    rp_status st;

    if (count > RP_SNAPSHOT_MAX_PARTS)
        return rp_rl_fail(err, RP_INVALID, "snapshot: %zu parts, at most %d are possible",
                          count, RP_SNAPSHOT_MAX_PARTS);
    for (size_t i = 0; i < count; i++)
        if (parts[i].size > 0) /* a safetensors file has no empty tensors to speak of */
            tensors[used++] = (rp_safetensor){.name = parts[i].name,
                                              .name_size = strlen(parts[i].name),
                                              .dtype = "U8",
                                              .rank = 1,
                                              .shape = {parts[i].size},
                                              .data = parts[i].bytes,
                                              .size_bytes = parts[i].size};
    tensors[used++] = (rp_safetensor){.name = FORMAT_PART,
                                      .name_size = strlen(FORMAT_PART),
                                      .dtype = "U8",
                                      .rank = 1,
                                      .shape = {sizeof FORMAT},
                                      .data = (const uint8_t *)&FORMAT,
                                      .size_bytes = sizeof FORMAT};
    size = rp_safetensors_write(tensors, used, NULL, 0);
    file = a.resize(a.ctx, NULL, 0, size);
    if (file == NULL) return rp_rl_fail_memory(err, size);
    (void)rp_safetensors_write(tensors, used, file, size);
    st = make_table(client, wait, err);
    if (st == RP_OK) st = insert(client, file, size, wait, err);
    (void)a.resize(a.ctx, file, size, 0);
    return st;
}

static rp_status check_format(const rp_safetensor *tensors, size_t count, rp_error *err)
{
    const rp_safetensor *t = rp_safetensors_find(tensors, count, FORMAT_PART);
    uint32_t format = FORMAT;

    if (t != NULL && t->size_bytes == sizeof format) memcpy(&format, t->data, sizeof format);
    if (format == FORMAT && (t == NULL || t->size_bytes == sizeof format)) return RP_OK;
    return rp_rl_fail(err, RP_INVALID,
                      "snapshot: it has format %lu, and this version of reprise reads %lu: "
                      "continue the run with the version that began it, or begin another one",
                      (unsigned long)format, (unsigned long)FORMAT);
}

static rp_status scatter(const uint8_t *file, size_t size, const rp_state_part *parts,
                         size_t count, rp_error *err)
{
    rp_safetensor tensors[RP_SNAPSHOT_MAX_PARTS + 1];
    size_t found = 0;
    rp_status st =
        rp_safetensors_parse(file, size, tensors, RP_SNAPSHOT_MAX_PARTS + 1, &found, err);

    if (st == RP_OK) st = check_format(tensors, found, err);
    if (st != RP_OK) return st;
    for (size_t i = 0; i < count; i++) { /* all parts fit, or none is written */
        const rp_safetensor *t = rp_safetensors_find(tensors, found, parts[i].name);
        size_t held = t != NULL ? t->size_bytes : 0;

        if (held != parts[i].size)
            return rp_rl_fail(err, RP_INVALID,
                              "snapshot: part '%s' has %zu bytes, and this run needs %zu: it "
                              "is of other settings, or of another version of reprise. Give "
                              "the settings of that run, or begin another one",
                              parts[i].name, held, parts[i].size);
    }
    for (size_t i = 0; i < count; i++)
        if (parts[i].size > 0)
            memcpy(parts[i].bytes, rp_safetensors_find(tensors, found, parts[i].name)->data,
                   parts[i].size);
    return RP_OK;
}

/* Refuses what cannot be a snapshot with these parts before it is decoded. */
static rp_status check_size(size_t size, const rp_state_part *parts, size_t count,
                            rp_error *err)
{
    size_t most = SPARE_BYTES;

    assert(count <= RP_SNAPSHOT_MAX_PARTS);
    for (size_t i = 0; i < count; i++) most += 2 * parts[i].size;
    if (size <= most) return RP_OK;
    return rp_rl_fail(err, RP_INVALID,
                      "snapshot: it has %zu bytes, and this run expects at most %zu: it is of "
                      "other settings, or of another version of reprise. Give the settings of "
                      "that run, or begin another one",
                      size, most);
}

static rp_status decode(const rp_allocator *a, rp_trajectory *trajectory,
                        const rp_state_part *parts, size_t count, rp_error *err)
{
    const rp_trajectory *one = trajectory;
    size_t size = rp_trajectory_get_column(trajectory, 0).bytes;
    rp_decoder *decoder = NULL;
    rp_status st = check_size(size, parts, count, err);
    uint8_t *file;

    if (st != RP_OK) return st;
    file = a->resize(a->ctx, NULL, 0, size);
    if (file == NULL) return rp_rl_fail_memory(err, size);
    if (rp_decoder_new(a, 0, &decoder) != RP_OK) st = rp_rl_fail_memory(err, size);
    if (st == RP_OK) st = rp_decoder_stack(decoder, &one, 1, 0, file, size, err);
    if (st == RP_OK) st = scatter(file, size, parts, count, err);
    rp_decoder_free(decoder);
    (void)a->resize(a->ctx, file, size, 0);
    return st;
}

bool rp_snapshot_exists(rp_store *store)
{
    rp_table *table = rp_store_find_table(store, (rp_string){TABLE, sizeof TABLE - 1});
    bool has = table != NULL && rp_table_can_sample(table, 1);

    rp_table_unref(table);
    return has;
}

/* RP_NOT_FOUND unless there is a table with a snapshot. */
static rp_status find(rp_client *client, rp_wait wait, rp_error *err)
{
    rp_client_tables *list = NULL;
    int64_t size = 0;
    rp_status st = rp_client_get_tables(client, wait, &list, err);

    if (st != RP_OK) return st;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->tables[i].info.name, TABLE) == 0) size += list->tables[i].info.size;
    rp_client_tables_free(list);
    if (size == 0) return rp_rl_fail(err, RP_NOT_FOUND, "snapshot: the store has none");
    return RP_OK;
}

rp_status rp_snapshot_get(const rp_allocator *alloc, rp_client *client,
                          const rp_state_part *parts, size_t count, rp_wait wait, rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    const rp_sampler_options one = {
        .table = TABLE, .max_samples = 1, .max_in_flight = 1, .rate_limiter_timeout_ms = -1};
    rp_sampler *sampler = NULL;
    rp_sample sample;
    size_t drawn = 0;
    rp_status st = find(client, wait, err);

    if (st == RP_OK) st = rp_sampler_new(client, &one, &sampler, err);
    if (st == RP_OK) st = rp_sampler_next(sampler, &sample, 1, &drawn, wait, err);
    if (st == RP_OK) {
        assert(drawn == 1);
        st = decode(&a, sample.trajectory, parts, count, err);
        rp_samples_release(&sample, 1);
    }
    rp_sampler_free(sampler);
    return st;
}
