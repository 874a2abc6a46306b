/* SPDX-License-Identifier: Apache-2.0 */
/* Reading manifests. */
#include "durable/format/manifest.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "disk/records_scan.h"
#include "durable/format/manifest_hash.h"
#include "durable/format/pack.h"
#include "rollouts/rollout_set.h"
#include "util/error.h"
#include "util/mem.h"

char *rp_manifest_path(char out[RP_MANIFEST_PATH_BYTES], uint64_t checkpoint)
{
    (void)snprintf(out, RP_MANIFEST_PATH_BYTES, "manifest/%016" PRIx64, checkpoint);
    return out;
}

char *rp_manifest_temporary(char out[RP_MANIFEST_PATH_BYTES], uint64_t checkpoint)
{
    (void)snprintf(out, RP_MANIFEST_PATH_BYTES, "manifest/%016" PRIx64 ".tmp", checkpoint);
    return out;
}

char *rp_manifest_quarantined(char out[RP_MANIFEST_PATH_BYTES], uint64_t checkpoint)
{
    (void)snprintf(out, RP_MANIFEST_PATH_BYTES, "quarantine/%016" PRIx64, checkpoint);
    return out;
}

static_assert((int)RP_MANIFEST_HASH_BYTES == (int)RP_HASH_BYTES,
              "manifest_hash.h gives that many bytes");

uint64_t rp_manifest_hash_block(const void *payload, size_t size)
{
    return XXH3_64bits(payload, size);
}

void rp_manifest_free(rp_manifest *m)
{
    rp_allocator alloc;

    if (m == NULL) return;
    alloc = m->alloc;
    for (size_t i = 0; i < m->table_count; i++) {
        rp_manifest_table *t = &m->tables[i];

        assert(t->state.options.name != NULL);
        rp_image_release_table(&alloc, &t->state);
        rp_release(&alloc, t->blocks, t->block_capacity * sizeof(rp_manifest_block));
        for (int w = 0; w < 2; w++)
            rp_release(&alloc, t->sets[w], t->set_capacities[w] * sizeof(uint32_t));
    }
    rp_release(&alloc, m->tables, m->table_capacity * sizeof(rp_manifest_table));
    rp_release(&alloc, m->segments, m->segment_capacity * sizeof(rp_manifest_segment));
    rp_release(&alloc, m, sizeof *m);
}

/* How much of the current table has been read. */
typedef struct progress {
    uint64_t blocks, sets[2];
} progress;

struct rp_manifest_reader {
    rp_manifest_hash hash; /* first: aligned like the reader */
    rp_allocator alloc;
    rp_manifest *manifest; /* NULL once it is taken */
    progress table;
    uint64_t records; /* added, the current one included */
    bool segments;    /* SEGMENTS was read: no more tables may follow */
    bool over;        /* END was read */
};

rp_status rp_manifest_reader_new(const rp_allocator *alloc, rp_manifest_reader **out)
{
    rp_manifest_reader *r = rp_alloc_aligned(alloc, sizeof *r);

    if (r == NULL) return RP_NO_RESOURCE;
    r->alloc = *alloc;
    r->manifest = rp_alloc_zero(alloc, sizeof *r->manifest);
    if (r->manifest == NULL) {
        rp_release_aligned(alloc, r, sizeof *r);
        return RP_NO_RESOURCE;
    }
    r->manifest->alloc = *alloc;
    rp_manifest_hash_init(&r->hash);
    *out = r;
    return RP_OK;
}

void rp_manifest_reader_free(rp_manifest_reader *r)
{
    rp_allocator alloc;

    if (r == NULL) return;
    alloc = r->alloc;
    rp_manifest_free(r->manifest);
    rp_release_aligned(&alloc, r, sizeof *r);
}

/* Grows an array for `more` elements that have been read; never for an announced count alone.
 */
static bool make_room(const rp_allocator *alloc, void *array, size_t count, size_t more,
                      size_t *capacity, size_t element_size)
{
    size_t wanted;

    assert(count <= *capacity);
    if (count + more <= *capacity) return true;
    wanted = *capacity * 2 > count + more ? *capacity * 2 : count + more;
    if (!rp_resize_array(alloc, array, *capacity, wanted, element_size)) return false;
    *capacity = wanted;
    return true;
}

static rp_status malformed(rp_error *err, const rp_manifest_reader *r, const char *what)
{
    return rp_fail(err, RP_CORRUPT, "manifest: record %" PRIu64 ": %s", r->records, what);
}

static rp_status read_store(rp_manifest_reader *r, rp_unpack *in, rp_error *err)
{
    rp_manifest_store *s = &r->manifest->store;

    if (r->records != 1) return malformed(err, r, "a second store");
    s->checkpoint = rp_unpack_word(in);
    s->lsn = rp_unpack_word(in);
    s->seed = rp_unpack_word(in);
    for (int i = 0; i < 4; i++) s->keys.s[i] = rp_unpack_word(in);
    s->written_at_ns = (int64_t)rp_unpack_word(in);
    s->table_count = (uint32_t)rp_unpack_bounded(in, RP_MANIFEST_MAX_TABLES);
    return RP_OK;
}

static rp_status read_rollouts(rp_manifest_reader *r, rp_unpack *in, rp_error *err)
{
    rp_manifest_rollouts *m = &r->manifest->store.rollouts;
    const uint8_t *hash;

    if (r->records != 2) return malformed(err, r, "rollouts out of order");
    m->is_there = true;
    m->count = (uint32_t)rp_unpack_bounded(in, RP_ROLLOUT_SET_COUNT);
    m->bytes = rp_unpack_word(in);
    m->lsn = rp_unpack_word(in);
    hash = rp_unpack_bytes(in, RP_MANIFEST_HASH_BYTES);
    if (hash == NULL || m->bytes > INT64_MAX || m->lsn > INT64_MAX ||
        m->lsn < r->manifest->store.lsn || (m->count > 0) != (m->bytes >= RP_FILE_HEADER_BYTES))
        return malformed(err, r, "malformed rollouts");
    memcpy(m->hash, hash, sizeof m->hash);
    return RP_OK;
}

/* Checks that the table before is complete. */
static rp_status check_table_whole(const rp_manifest_reader *r, rp_error *err)
{
    const rp_manifest *m = r->manifest;
    const rp_manifest_table *t;

    if (m->table_count == 0) return RP_OK;
    t = &m->tables[m->table_count - 1];
    if (r->table.blocks != t->block_count) return malformed(err, r, "blocks are missing");
    if (r->table.sets[0] != t->state.set_counts[0] ||
        r->table.sets[1] != t->state.set_counts[1])
        return malformed(err, r, "slots of a set are missing");
    return RP_OK;
}

static rp_status read_table(rp_manifest_reader *r, rp_unpack *in, rp_error *err)
{
    rp_manifest *m = r->manifest;
    rp_manifest_table t = {0};
    rp_status st = check_table_whole(r, err);

    if (st != RP_OK) return st;
    if (r->segments || m->table_count == m->store.table_count)
        return malformed(err, r, "one table more than announced");
    t.block_count = rp_unpack_bounded(in, UINT32_MAX / RP_SLOTS_PER_BLOCK + 1);
    if (in->bad) return malformed(err, r, "malformed table");
    if (!make_room(&m->alloc, &m->tables, m->table_count, 1, &m->table_capacity, sizeof t))
        return rp_fail_memory(err, sizeof t);
    st = rp_image_read_table(&m->alloc, in->at, rp_unpack_left(in), &t.state, err);
    if (st != RP_OK) return st;
    in->at = in->end;
    m->tables[m->table_count++] = t;
    assert(m->table_count <= m->table_capacity);
    r->table = (progress){0};
    if (t.state.slots_used > t.block_count * RP_SLOTS_PER_BLOCK)
        return malformed(err, r, "fewer blocks than slots");
    return RP_OK;
}

static rp_manifest_table *current_table(const rp_manifest_reader *r)
{
    rp_manifest *m = r->manifest;
    return m->table_count > 0 && !r->segments ? &m->tables[m->table_count - 1] : NULL;
}

static rp_status read_locations(rp_manifest_reader *r, rp_unpack *in, rp_error *err)
{
    rp_manifest_table *t = current_table(r);
    uint64_t first = rp_unpack_number(in);
    uint64_t count = rp_unpack_bounded(in, RP_MANIFEST_LOCATIONS);
    rp_disk_location before = {0};

    if (t == NULL || in->bad || first != r->table.blocks || count > t->block_count - first)
        return malformed(err, r, "blocks out of order");
    if (!make_room(&r->alloc, &t->blocks, (size_t)first, (size_t)count, &t->block_capacity,
                   sizeof *t->blocks))
        return rp_fail_memory(err, (size_t)count * sizeof *t->blocks);
    for (uint64_t i = 0; i < count; i++) {
        rp_manifest_block *b = &t->blocks[first + i];

        b->location.segment = rp_unpack_change(in, before.segment);
        b->location.offset = rp_unpack_change(in, before.offset);
        b->location.size = (uint32_t)rp_unpack_bounded(in, RP_MAX_RECORD_BYTES);
        b->hash = rp_unpack_word(in);
        if (in->bad || b->location.segment == 0 || b->location.offset < RP_FILE_HEADER_BYTES ||
            b->location.offset > INT64_MAX)
            return malformed(err, r, "an impossible location");
        before = b->location;
    }
    r->table.blocks += count;
    assert(r->table.blocks <= t->block_count);
    return RP_OK;
}

static rp_status read_set(rp_manifest_reader *r, rp_unpack *in, rp_error *err)
{
    rp_manifest_table *t = current_table(r);
    uint64_t which = rp_unpack_bounded(in, 1);
    uint64_t first = rp_unpack_number(in);
    uint64_t count = rp_unpack_bounded(in, RP_MANIFEST_SLOTS);
    uint64_t slot = 0;

    if (t == NULL || in->bad || first != r->table.sets[which] ||
        count > t->state.set_counts[which] - first)
        return malformed(err, r, "slots of a set out of order");
    if (!make_room(&r->alloc, &t->sets[which], (size_t)first, (size_t)count,
                   &t->set_capacities[which], sizeof(uint32_t)))
        return rp_fail_memory(err, (size_t)count * sizeof(uint32_t));
    for (uint64_t i = 0; i < count; i++) {
        slot = rp_unpack_change(in, slot);
        if (in->bad || slot >= t->state.slots_used)
            return malformed(err, r, "an impossible slot in a set");
        t->sets[which][first + i] = (uint32_t)slot;
    }
    r->table.sets[which] += count;
    assert(r->table.sets[which] <= t->state.set_counts[which]);
    return RP_OK;
}

static rp_status read_segments(rp_manifest_reader *r, rp_unpack *in, rp_error *err)
{
    rp_manifest *m = r->manifest;
    uint64_t count = rp_unpack_bounded(in, RP_MANIFEST_SEGMENTS);
    uint64_t number = m->segment_count > 0 ? m->segments[m->segment_count - 1].number : 0;

    r->segments = true;
    if (in->bad) return malformed(err, r, "malformed segments");
    if (!make_room(&m->alloc, &m->segments, m->segment_count, (size_t)count,
                   &m->segment_capacity, sizeof *m->segments))
        return rp_fail_memory(err, (size_t)count * sizeof *m->segments);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t more = rp_unpack_number(in);
        rp_manifest_segment s = {0};

        s.number = number + more;
        s.bytes = rp_unpack_bounded(in, INT64_MAX);
        s.live = rp_unpack_bounded(in, INT64_MAX);
        if (in->bad || more == 0 || s.number < number || s.bytes < RP_FILE_HEADER_BYTES)
            return malformed(err, r, "an impossible segment");
        m->segments[m->segment_count++] = s;
        number = s.number;
    }
    return RP_OK;
}

static rp_status read_end(rp_manifest_reader *r, rp_unpack *in, rp_error *err)
{
    rp_manifest *m = r->manifest;
    uint64_t records = rp_unpack_word(in), tables = rp_unpack_word(in);
    uint64_t segments = rp_unpack_word(in);
    const uint8_t *hash = rp_unpack_bytes(in, RP_MANIFEST_HASH_BYTES);

    if (hash == NULL) return malformed(err, r, "malformed end");
    rp_manifest_hash_take(&r->hash, m->hash);
    if (memcmp(m->hash, hash, RP_MANIFEST_HASH_BYTES) != 0)
        return malformed(err, r, "the hash of the manifest is wrong");
    if (records != r->records - 1 || tables != m->table_count || segments != m->segment_count ||
        tables != m->store.table_count)
        return malformed(err, r, "the counts are wrong");
    r->over = true;
    return check_table_whole(r, err);
}

rp_status rp_manifest_reader_add(rp_manifest_reader *r, const rp_record *record, rp_error *err)
{
    rp_unpack in = rp_unpack_open(record->payload, record->size);
    rp_status st;

    assert(r->manifest != NULL); /* it is not taken yet */
    r->records++;
    if (r->over) return malformed(err, r, "records follow the end");
    if (record->number != r->records) return malformed(err, r, "out of order");
    if (r->records == 1 && record->kind != RP_RECORD_STORE)
        return malformed(err, r, "not a store");
    switch (record->kind) {
    case RP_RECORD_STORE: st = read_store(r, &in, err); break;
    case RP_RECORD_ROLLOUTS: st = read_rollouts(r, &in, err); break;
    case RP_RECORD_TABLE: st = read_table(r, &in, err); break;
    case RP_RECORD_LOCATIONS: st = read_locations(r, &in, err); break;
    case RP_RECORD_SET: st = read_set(r, &in, err); break;
    case RP_RECORD_SEGMENTS: st = read_segments(r, &in, err); break;
    case RP_RECORD_END: st = read_end(r, &in, err); break;
    default: return malformed(err, r, "a kind that no manifest has");
    }
    if (st != RP_OK) return st;
    if (in.bad || in.at != in.end) return malformed(err, r, "of the wrong length");
    rp_manifest_hash_add(&r->hash, record);
    return RP_OK;
}

/* True if the segment is in the list, which is ascending. */
static bool lists_segment(const rp_manifest *m, uint64_t number)
{
    size_t low = 0, high = m->segment_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->segments[middle].number == number) return true;
        if (m->segments[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

rp_status rp_manifest_reader_take(rp_manifest_reader *r, rp_manifest **out, rp_error *err)
{
    const rp_manifest *m = r->manifest;

    assert(m != NULL);
    if (!r->over) return rp_fail(err, RP_CORRUPT, "manifest: its end is missing");
    for (size_t t = 0; t < m->table_count; t++)
        for (uint64_t b = 0; b < m->tables[t].block_count; b++) {
            uint64_t number = m->tables[t].blocks[b].location.segment;
            if (!lists_segment(m, number))
                return rp_fail(err, RP_CORRUPT,
                               "manifest: block %" PRIu64 " of table '%.64s' is in segment "
                               "%" PRIu64 ", which is not listed",
                               b, m->tables[t].state.options.name, number);
        }
    *out = r->manifest;
    r->manifest = NULL;
    return RP_OK;
}

typedef struct loading {
    rp_manifest_reader *reader;
    rp_status status;
    rp_error *err;
} loading;

static bool load_record(void *ctx, uint64_t offset, const rp_record *record)
{
    loading *l = ctx;

    (void)offset;
    l->status = rp_manifest_reader_add(l->reader, record, l->err);
    return l->status == RP_OK;
}

static rp_status file_size(rp_files *files, const char *path, uint64_t *out, rp_error *err)
{
    rp_file *file = NULL;
    rp_status st = files->ops->open(files, path, RP_OPEN_READ, &file, err);

    if (st != RP_OK) return st;
    st = files->ops->size(file, out, err);
    files->ops->close(file);
    return st;
}

rp_status rp_manifest_load(const rp_allocator *alloc, rp_files *files, const char *path,
                           uint64_t checkpoint, const rp_store_id *store, rp_manifest **out,
                           rp_error *err)
{
    loading l = {NULL, RP_OK, err};
    rp_file_header header = {0};
    rp_manifest *m = NULL;
    uint64_t end = 0, size = 0;
    rp_status st = file_size(files, path, &size, err);

    if (st != RP_OK) return st;
    st = rp_manifest_reader_new(alloc, &l.reader);
    if (st != RP_OK) return rp_fail_memory(err, sizeof(rp_manifest_reader));
    st = rp_records_scan(&(rp_records_scan_options){.alloc = alloc,
                                                    .files = files,
                                                    .path = path,
                                                    .kind = RP_FILE_MANIFEST,
                                                    .store = store,
                                                    .each = load_record,
                                                    .ctx = &l},
                         &header, &end, err);
    if (l.status != RP_OK) st = l.status;
    if (st == RP_OK) st = rp_manifest_reader_take(l.reader, &m, err);
    rp_manifest_reader_free(l.reader);
    if (st == RP_OK && end != size)
        st = rp_fail(err, RP_CORRUPT, "%s: %" PRIu64 " bytes follow the end at offset %" PRIu64,
                     path, size - end, end);
    if (st == RP_OK && (header.number != checkpoint || m->store.checkpoint != checkpoint))
        st = rp_fail(err, RP_CORRUPT, "%s: the manifest is that of checkpoint %" PRIu64, path,
                     header.number);
    if (st != RP_OK) {
        rp_manifest_free(m);
        return st;
    }
    m->store_id = header.store;
    m->bytes = size;
    *out = m;
    return RP_OK;
}
