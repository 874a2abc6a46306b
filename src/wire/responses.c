/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/responses.h"

#include <assert.h>

#include "tensor/tensor.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/printable.h"
#include "wire/fields.h"
#include "wire/selector_wire.h"
#include "wire/signature_wire.h"

enum { MAX_PATH_BYTES = 4096 };

static rp_status malformed(const char *message, rp_error *err)
{
    return rp_wire_blame_peer(rp_wire_malformed(err, message), err);
}

enum {
    INSERTED_KEYS = 1,
    MAX_INSERTED_KEYS = 1 << 24, /* keys in one response */
};

rp_status rp_wire_read_insert_response(const uint8_t *data, size_t size, size_t *count,
                                       rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    size_t found = 0;
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        if (f.number == INSERTED_KEYS && !rp_wire_count_numbers(&f, &found)) break;
    if (step != RP_PB_END) return malformed("InsertStreamResponse", err);
    if (found > MAX_INSERTED_KEYS)
        return rp_fail(err, RP_NO_RESOURCE, "%zu keys in one InsertStreamResponse, over %d",
                       found, MAX_INSERTED_KEYS);
    *count = found;
    return RP_OK;
}

void rp_wire_insert_response_keys(const uint8_t *data, size_t size, uint64_t *keys)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD)
        if (f.number == INSERTED_KEYS) keys = rp_wire_copy_numbers(&f, keys);
}

rp_status rp_wire_read_checkpoint_response(const uint8_t *data, size_t size, rp_string *path,
                                           rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_string found = {"", 0};
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) found = (rp_string){(const char *)f.data, f.size};
    if (step != RP_PB_END) return malformed("CheckpointResponse", err);
    if (found.size > MAX_PATH_BYTES)
        return rp_fail(err, RP_NO_RESOURCE,
                       "the checkpoint's path has %zu bytes, the limit is %d", found.size,
                       MAX_PATH_BYTES);
    if (!rp_wire_is_text(found.data, found.size))
        return rp_fail(err, RP_CORRUPT, "the checkpoint's path is not UTF-8 text");
    *path = found;
    return RP_OK;
}

rp_status rp_wire_read_found(const uint8_t *data, size_t size, int64_t *found, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    int64_t count = 0;
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) count = (int64_t)f.value;
    if (step != RP_PB_END) return malformed("UpdateResponse", err);
    *found = count;
    return RP_OK;
}

/* A message that lists tables. */
typedef struct list_kind {
    const char *message;
    uint32_t table; /* number of the field with a table */
    uint32_t name;  /* number of the field with its name, in the table */
    rp_status (*read)(const rp_allocator *alloc, const rp_pb_field *field, rp_table_info *info,
                      rp_error *err);
} list_kind;

/* Finds the name of a table. If there are several name fields, the last one counts. */
static rp_status find_name(const list_kind *kind, const rp_pb_field *field, rp_string *name,
                           rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    *name = (rp_string){"", 0};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, kind->name, RP_PB_BYTES)) continue;
        st = rp_wire_read_text(&f, "a table's name", name, err);
        if (st != RP_OK) return rp_wire_blame_peer(st, err);
    }
    return step == RP_PB_END ? RP_OK : malformed(kind->message, err);
}

/* Counts the tables, and the bytes of their names with a zero each. */
static rp_status measure(const list_kind *kind, const uint8_t *data, size_t size, size_t *count,
                         size_t *name_bytes, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_string name;
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    *count = *name_bytes = 0;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, kind->table, RP_PB_BYTES)) continue;
        if (++*count > RP_WIRE_MAX_TABLES)
            return rp_fail(err, RP_NO_RESOURCE, "more than %d tables in one answer",
                           RP_WIRE_MAX_TABLES);
        st = find_name(kind, &f, &name, err);
        if (st != RP_OK) return st;
        *name_bytes += name.size + 1;
    }
    return step == RP_PB_END ? RP_OK : malformed(kind->message, err);
}

/* Fills in the tables, which have been counted. On failure the list has those read so far. */
static rp_status fill(const list_kind *kind, const uint8_t *data, size_t size,
                      rp_wire_tables *list, char *names, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    size_t signatures = 0;
    rp_string name;
    rp_pb_field f;
    rp_status st;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        rp_table_info *info;
        if (!rp_pb_is(&f, kind->table, RP_PB_BYTES)) continue;
        info = &list->tables[list->count++];
        st = kind->read(&list->alloc, &f, info, err);
        if (st == RP_OK) st = find_name(kind, &f, &name, err);
        if (st != RP_OK) return st;
        /* Checked because a few bytes of the response can become kilobytes of paths. */
        signatures += rp_signature_bytes(info->signature);
        if (signatures > RP_WIRE_MAX_TABLE_SIGNATURES_BYTES)
            return rp_fail(err, RP_NO_RESOURCE,
                           "the signatures of %zu tables take %zu bytes, over the limit of %d",
                           list->count, signatures, RP_WIRE_MAX_TABLE_SIGNATURES_BYTES);
        if (name.size > 0) memcpy(names, name.data, name.size);
        names[name.size] = '\0';
        info->name = names;
        names += name.size + 1;
        assert((size_t)(names - (char *)list) <= list->bytes);
    }
    return RP_OK;
}

static rp_status read_list(const list_kind *kind, const rp_allocator *alloc,
                           const uint8_t *data, size_t size, rp_wire_tables **out,
                           rp_error *err)
{
    size_t count, name_bytes, bytes;
    rp_wire_tables *list;
    rp_status st = measure(kind, data, size, &count, &name_bytes, err);

    if (st != RP_OK) return st;
    bytes = sizeof *list + count * sizeof *list->tables + name_bytes;
    list = rp_alloc_zero(alloc, bytes);
    if (list == NULL) return rp_fail_memory(err, bytes);
    list->alloc = *alloc;
    list->bytes = bytes;
    list->tables = (rp_table_info *)(void *)(list + 1);
    st = fill(kind, data, size, list, (char *)(list->tables + count), err);
    if (st != RP_OK)
        rp_wire_tables_free(list);
    else
        *out = list;
    return st;
}

void rp_wire_tables_free(rp_wire_tables *tables)
{
    rp_allocator alloc;

    if (tables == NULL) return;
    assert(tables->bytes >= sizeof *tables + tables->count * sizeof *tables->tables);
    for (size_t i = 0; i < tables->count; i++) rp_signature_unref(tables->tables[i].signature);
    alloc = tables->alloc;
    rp_release(&alloc, tables, tables->bytes);
}

/* Reads a RateLimiterCallStats. */
static bool read_completed(const rp_pb_field *field, int64_t *completed)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) *completed = (int64_t)f.value;
    return step == RP_PB_END;
}

/* Reads a RateLimiterInfo. */
static bool read_limiter(const rp_pb_field *field, rp_table_info *info)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_FIXED64))
            info->limiter.samples_per_insert = rp_wire_double(&f);
        else if (rp_pb_is(&f, 2, RP_PB_FIXED64))
            info->limiter.min_diff = rp_wire_double(&f);
        else if (rp_pb_is(&f, 3, RP_PB_FIXED64))
            info->limiter.max_diff = rp_wire_double(&f);
        else if (rp_pb_is(&f, 4, RP_PB_VARINT))
            info->limiter.min_size = (int64_t)f.value;
        else if (f.type == RP_PB_BYTES && (f.number == 5 || f.number == 6) &&
                 !read_completed(&f, f.number == 5 ? &info->inserts : &info->samples))
            return false;
    }
    return step == RP_PB_END;
}

static void read_info_number(const rp_pb_field *f, rp_table_info *info)
{
    switch (f->number) {
    case 3: info->max_size = (int64_t)f->value; break;
    case 4: info->max_times_sampled = rp_wire_int32(f); break;
    case 7: info->size = (int64_t)f->value; break;
    case 9: info->episodes = (int64_t)f->value; break;
    case 10: info->deleted_episodes = (int64_t)f->value; break;
    case 11: info->unique_samples = (int64_t)f->value; break;
    default: break;
    }
}

/* A signature that cannot be read is dropped; only lack of memory is an error. */
static rp_status read_info_signature(const rp_allocator *alloc, const rp_pb_field *f,
                                     rp_table_info *info, rp_error *err)
{
    rp_error why = {0};
    rp_status st;

    rp_signature_unref(info->signature);
    info->signature = NULL;
    st = rp_wire_read_signature(alloc, f->data, f->size, &info->signature, &why);
    if (st != RP_NO_RESOURCE || !rp_error_is_memory(&why)) return RP_OK;
    if (err != NULL) *err = why;
    return st;
}

/* Reads a TableInfo. */
static rp_status read_info(const rp_allocator *alloc, const rp_pb_field *field,
                           rp_table_info *info, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_wire_selector sampler = {0}, remover = {0};
    rp_pb_field f;
    rp_pb_step step;
    bool ok = true;

    info->sampler.kind = info->remover.kind = RP_UNIFORM; /* unless others are named */
    while (ok && (step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (f.type == RP_PB_VARINT) read_info_number(&f, info);
        if (f.type != RP_PB_BYTES) continue;
        if (f.number == 1) ok = rp_wire_read_selector(&f, &sampler);
        if (f.number == 2) ok = rp_wire_read_selector(&f, &remover);
        if (f.number == 5) ok = read_limiter(&f, info);
        if (f.number != 6) continue;
        rp_status st = read_info_signature(alloc, &f, info, err);
        if (st != RP_OK) return st;
    }
    if (!ok || step != RP_PB_END) return malformed("TableInfo", err);
    (void)!rp_wire_take_selector(&sampler, &info->sampler);
    (void)!rp_wire_take_selector(&remover, &info->remover);
    return RP_OK;
}

/* Reads a Uint128. */
static bool read_state_id(const uint8_t *data, size_t size, uint64_t id[2])
{
    rp_pb_reader reader = rp_pb_open(data, size), inner;
    rp_pb_field f, half;

    id[0] = id[1] = 0;
    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        rp_pb_step step;
        if (!rp_pb_is(&f, 1, RP_PB_BYTES)) continue;
        inner = rp_pb_open(f.data, f.size);
        while ((step = rp_pb_next(&inner, &half)) == RP_PB_FIELD)
            if (half.type == RP_PB_VARINT && half.number >= 1 && half.number <= 2)
                id[half.number - 1] = half.value;
        if (step != RP_PB_END) return false;
    }
    return true;
}

rp_status rp_wire_read_server_info(const rp_allocator *alloc, const uint8_t *data, size_t size,
                                   uint64_t state_id[2], rp_wire_tables **out, rp_error *err)
{
    static const list_kind kind = {"ServerInfoResponse", 2, 8, read_info};
    uint64_t id[2];
    rp_status st;

    if (!read_state_id(data, size, id)) return malformed(kind.message, err);
    st = read_list(&kind, alloc, data, size, out, err);
    if (st == RP_OK && state_id != NULL) memcpy(state_id, id, sizeof id);
    return st;
}

static bool read_waits(const rp_pb_field *field, rp_waits *waits)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) waits->longest_ns = (int64_t)f.value;
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) waits->parked = (int64_t)f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) waits->total_ns = (int64_t)f.value;
    }
    return step == RP_PB_END;
}

static void set_side(rp_table_info *info, uint32_t side, bool paused)
{
    info->paused = paused ? info->paused | side : info->paused & ~side;
}

static void read_status_number(const rp_pb_field *f, rp_table_info *info)
{
    switch (f->number) {
    case 3: info->size = (int64_t)f->value; break;
    case 4: info->bytes = f->value; break;
    case 5: info->max_bytes = f->value; break;
    case 6: info->soft_limit = f->value != 0; break;
    case 7: info->closed = f->value != 0; break;
    case 8: set_side(info, RP_SIDE_INSERTS, f->value != 0); break;
    case 9: set_side(info, RP_SIDE_SAMPLES, f->value != 0); break;
    case 10: info->deletes = (int64_t)f->value; break;
    case 11: info->updates = (int64_t)f->value; break;
    case 12: info->evictions = (int64_t)f->value; break;
    case 15: info->waiting_inserts = (int64_t)f->value; break;
    case 16: info->waiting_samples = (int64_t)f->value; break;
    default: break;
    }
}

/* Reads a TableStatus. */
static rp_status read_table_status(const rp_allocator *alloc, const rp_pb_field *field,
                                   rp_table_info *info, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;
    bool ok = true;

    (void)alloc;
    while (ok && (step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (f.type == RP_PB_VARINT) read_status_number(&f, info);
        if (rp_pb_is(&f, 2, RP_PB_FIXED64)) info->total_weight = rp_wire_double(&f);
        if (rp_pb_is(&f, 13, RP_PB_FIXED64)) info->max_priority = rp_wire_double(&f);
        if (rp_pb_is(&f, 14, RP_PB_FIXED64)) info->limiter_diff = rp_wire_double(&f);
        if (rp_pb_is(&f, 17, RP_PB_BYTES)) ok = read_waits(&f, &info->insert_waits);
        if (rp_pb_is(&f, 18, RP_PB_BYTES)) ok = read_waits(&f, &info->sample_waits);
    }
    return ok && step == RP_PB_END ? RP_OK : malformed("TableStatus", err);
}

rp_status rp_wire_read_status(const rp_allocator *alloc, const uint8_t *data, size_t size,
                              rp_wire_tables **out, rp_error *err)
{
    static const list_kind kind = {"StatusResponse", 1, 1, read_table_status};

    return read_list(&kind, alloc, data, size, out, err);
}

static void merge_one(rp_table_info *into, const rp_table_info *status)
{
    into->total_weight = status->total_weight;
    into->size = status->size;
    into->bytes = status->bytes;
    into->max_bytes = status->max_bytes;
    into->soft_limit = status->soft_limit;
    into->closed = status->closed;
    into->paused = status->paused;
    into->deletes = status->deletes;
    into->updates = status->updates;
    into->evictions = status->evictions;
    into->max_priority = status->max_priority;
    into->limiter_diff = status->limiter_diff;
    into->waiting_inserts = status->waiting_inserts;
    into->waiting_samples = status->waiting_samples;
    into->insert_waits = status->insert_waits;
    into->sample_waits = status->sample_waits;
}

/* Fast in the usual case that both have the same tables in the same order. */
void rp_wire_tables_merge(rp_wire_tables *tables, const rp_wire_tables *status)
{
    size_t at = 0;

    for (size_t i = 0; i < status->count; i++)
        for (size_t tried = 0; tried < tables->count; tried++) {
            rp_table_info *info = &tables->tables[at];
            at = at + 1 < tables->count ? at + 1 : 0;
            if (strcmp(info->name, status->tables[i].name) != 0) continue;
            merge_one(info, &status->tables[i]);
            break;
        }
}

static int64_t ms_to_ns(int64_t ms)
{
    enum { NS_PER_MS = 1000000 };

    if (ms < 0) return 0;
    return ms < INT64_MAX / NS_PER_MS ? ms * NS_PER_MS : INT64_MAX;
}

static void read_waiting_number(const rp_pb_field *f, int64_t now_ns, rp_waiting *waiting)
{
    int64_t ns = ms_to_ns((int64_t)f->value);

    switch (f->number) {
    case 2: waiting->is_insert = f->value == 1; break;
    case 3: waiting->wanted = (size_t)f->value; break;
    case 4: waiting->done = (size_t)f->value; break;
    case 5: waiting->waiting_ns = ns; break;
    case 6: waiting->until_ns = ns < RP_FOREVER - now_ns ? now_ns + ns : RP_FOREVER; break;
    default: break;
    }
}

/* Copies a text; one that is too long is cut between characters. */
static void copy_text(char *dst, size_t room, const rp_pb_field *f)
{
    size_t size = f->size < room ? f->size : room - 1;

    if (size < f->size) size = rp_utf8_whole((const char *)f->data, size);
    if (size > 0) memcpy(dst, f->data, size);
    dst[size] = '\0';
}

static rp_status read_waiting(const rp_pb_field *field, int64_t now_ns, rp_wire_waiting *out,
                              rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    out->table = out->client = (rp_string){"", 0};
    out->client_id = 0;
    out->waiting = (rp_waiting){.until_ns = RP_FOREVER};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (f.type == RP_PB_VARINT) read_waiting_number(&f, now_ns, &out->waiting);
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) {
            st = rp_wire_read_text(&f, "a table's name", &out->table, err);
            if (st != RP_OK) return rp_wire_blame_peer(st, err);
        } else if (rp_pb_is(&f, 7, RP_PB_BYTES)) {
            if (!rp_wire_is_text(f.data, f.size)) return malformed("WaitingCall", err);
            copy_text(out->waiting.why, sizeof out->waiting.why, &f);
        } else if (rp_pb_is(&f, 8, RP_PB_BYTES)) {
            st = rp_wire_read_text(&f, "a client's address", &out->client, err);
            if (st != RP_OK) return rp_wire_blame_peer(st, err);
        } else if (rp_pb_is(&f, 9, RP_PB_VARINT)) {
            out->client_id = f.value;
        }
    }
    return step == RP_PB_END ? RP_OK : malformed("WaitingCall", err);
}

rp_status rp_wire_read_blocked(const uint8_t *data, size_t size, int64_t now_ns,
                               rp_wire_blocked *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    size_t read = 0, waiting = 0;
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) waiting = (size_t)f.value;
        if (!rp_pb_is(&f, 1, RP_PB_BYTES) || read == out->capacity) continue;
        st = read_waiting(&f, now_ns, &out->calls[read], err);
        if (st != RP_OK) return st;
        read++;
    }
    if (step != RP_PB_END) return malformed("WhyBlockedResponse", err);
    out->count = read;
    out->total = waiting;
    return RP_OK;
}
