/* SPDX-License-Identifier: Apache-2.0 */
/* Writing manifests and CURRENT.
 *
 * Invariants of a writer:
 *
 *   N1  tables come before segments, and the blocks of a table before its sets;
 *   N2  the numbers of segments ascend;
 *   N3  after a failure `status` does not change. */
#include <assert.h>
#include <inttypes.h>

#include "durable/format/manifest.h"
#include "durable/format/manifest_hash.h"
#include "durable/format/pack.h"
#include "util/error.h"
#include "util/mem.h"

enum { WRITE_BYTES = 1 << 20 }; /* with one call */

struct rp_manifest_writer {
    rp_manifest_hash hash; /* first: aligned like the writer */
    rp_allocator alloc;
    rp_files *files;
    rp_file *file;
    rp_buf queued, payload;
    uint64_t written; /* to the file */
    uint32_t crc;     /* of the header of the last record */
    uint64_t records, tables, segments;
    uint64_t next_block, next_slots[2]; /* of the current table */
    uint64_t last_segment;
    rp_status status;
    rp_error error;
};

static void fail_memory(rp_manifest_writer *w)
{
    if (w->status == RP_OK) w->status = rp_fail_memory(&w->error, w->payload.size);
}

static void flush(rp_manifest_writer *w)
{
    rp_bytes part = {w->queued.data, w->queued.size};

    if (w->queued.bad) fail_memory(w);
    if (w->status != RP_OK || part.size == 0) return;
    w->status = w->files->ops->write(w->file, w->written, &part, 1, &w->error);
    w->written += part.size;
    rp_buf_clear(&w->queued);
}

/* Queues the payload as a record and clears it. */
static void add_record(rp_manifest_writer *w, rp_record_kind kind)
{
    uint8_t header[RP_RECORD_HEADER_BYTES];
    rp_record record = {.kind = kind,
                        .number = ++w->records,
                        .payload = w->payload.data,
                        .size = w->payload.size};

    if (w->payload.bad) fail_memory(w);
    if (w->status != RP_OK) return;
    assert(record.size <= RP_MAX_RECORD_BYTES);
    w->crc = rp_record_write(header, kind, record.number, w->crc, record.payload, record.size);
    record.crc = w->crc;
    rp_manifest_hash_add(&w->hash, &record);
    rp_buf_append(&w->queued, header, sizeof header);
    rp_buf_append(&w->queued, w->payload.data, w->payload.size);
    rp_buf_clear(&w->payload);
    if (w->queued.size >= WRITE_BYTES) flush(w);
}

static void add_store(rp_manifest_writer *w, const rp_manifest_store *s)
{
    rp_pack_word(&w->payload, s->checkpoint);
    rp_pack_word(&w->payload, s->lsn);
    rp_pack_word(&w->payload, s->seed);
    for (int i = 0; i < 4; i++) rp_pack_word(&w->payload, s->keys.s[i]);
    rp_pack_word(&w->payload, (uint64_t)s->written_at_ns);
    rp_pack_number(&w->payload, s->table_count);
    add_record(w, RP_RECORD_STORE);
    if (!s->rollouts.is_there) return;
    assert(s->rollouts.lsn >= s->lsn && (s->rollouts.count > 0) == (s->rollouts.bytes > 0));
    rp_pack_number(&w->payload, s->rollouts.count);
    rp_pack_word(&w->payload, s->rollouts.bytes);
    rp_pack_word(&w->payload, s->rollouts.lsn);
    rp_buf_append(&w->payload, s->rollouts.hash, sizeof s->rollouts.hash);
    add_record(w, RP_RECORD_ROLLOUTS);
}

rp_status rp_manifest_writer_new(const rp_allocator *alloc, rp_files *files, const char *path,
                                 const rp_store_id *id, const rp_manifest_store *store,
                                 rp_manifest_writer **out, rp_error *err)
{
    rp_file_header header = {.version = RP_FORMAT_VERSION,
                             .kind = RP_FILE_MANIFEST,
                             .incompat = store->rollouts.is_there ? RP_FEATURE_ROLLOUTS : 0,
                             .store = *id,
                             .number = store->checkpoint};
    rp_manifest_writer *w = rp_alloc_aligned(alloc, sizeof *w);
    uint8_t bytes[RP_FILE_HEADER_BYTES];
    rp_status st;

    if (w == NULL) return rp_fail_memory(err, sizeof *w);
    w->alloc = *alloc;
    w->files = files;
    rp_buf_init(&w->queued, &w->alloc);
    rp_buf_init(&w->payload, &w->alloc);
    rp_manifest_hash_init(&w->hash);
    st = files->ops->remove(files, path, err); /* left over from a checkpoint that failed */
    if (st == RP_OK || st == RP_NOT_FOUND)
        st = files->ops->open(files, path, RP_OPEN_CREATE, &w->file, err);
    if (st != RP_OK) {
        rp_manifest_writer_free(w);
        return st;
    }
    w->crc = rp_file_header_write(bytes, &header);
    rp_buf_append(&w->queued, bytes, sizeof bytes);
    add_store(w, store);
    *out = w;
    return RP_OK;
}

void rp_manifest_writer_free(rp_manifest_writer *w)
{
    rp_allocator alloc;

    if (w == NULL) return;
    alloc = w->alloc;
    if (w->file != NULL) w->files->ops->close(w->file);
    rp_buf_deinit(&w->queued);
    rp_buf_deinit(&w->payload);
    rp_release_aligned(&alloc, w, sizeof *w);
}

void rp_manifest_add_table(rp_manifest_writer *w, const rp_table_state *state,
                           uint64_t block_count)
{
    assert(w->segments == 0); /* N1 */
    assert(state->slots_used <= block_count * RP_SLOTS_PER_BLOCK);
    rp_pack_number(&w->payload, block_count);
    rp_image_write_table(&w->payload, state);
    add_record(w, RP_RECORD_TABLE);
    w->tables++;
    w->next_block = w->next_slots[0] = w->next_slots[1] = 0;
}

void rp_manifest_add_blocks(rp_manifest_writer *w, const rp_manifest_block *blocks,
                            size_t count)
{
    assert(w->tables > 0 && w->segments == 0); /* N1 */
    assert(w->next_slots[0] == 0 && w->next_slots[1] == 0);
    while (count > 0) {
        size_t n = count < RP_MANIFEST_LOCATIONS ? count : RP_MANIFEST_LOCATIONS;
        rp_disk_location before = {0};

        rp_pack_number(&w->payload, w->next_block);
        rp_pack_number(&w->payload, n);
        for (size_t i = 0; i < n; i++) {
            rp_pack_change(&w->payload, blocks[i].location.segment, before.segment);
            rp_pack_change(&w->payload, blocks[i].location.offset, before.offset);
            rp_pack_number(&w->payload, blocks[i].location.size);
            rp_pack_word(&w->payload, blocks[i].hash);
            before = blocks[i].location;
        }
        add_record(w, RP_RECORD_LOCATIONS);
        w->next_block += n;
        blocks += n;
        count -= n;
    }
}

void rp_manifest_add_set(rp_manifest_writer *w, int which, const uint32_t *slots, size_t count)
{
    assert(which == 0 || which == 1);
    assert(w->tables > 0 && w->segments == 0); /* N1 */
    while (count > 0) {
        size_t n = count < RP_MANIFEST_SLOTS ? count : RP_MANIFEST_SLOTS;
        uint32_t before = 0;

        rp_pack_number(&w->payload, (uint64_t)which);
        rp_pack_number(&w->payload, w->next_slots[which]);
        rp_pack_number(&w->payload, n);
        for (size_t i = 0; i < n; i++) {
            rp_pack_change(&w->payload, slots[i], before);
            before = slots[i];
        }
        add_record(w, RP_RECORD_SET);
        w->next_slots[which] += n;
        slots += n;
        count -= n;
    }
}

void rp_manifest_add_segments(rp_manifest_writer *w, const rp_manifest_segment *segments,
                              size_t count)
{
    while (count > 0) {
        size_t n = count < RP_MANIFEST_SEGMENTS ? count : RP_MANIFEST_SEGMENTS;

        rp_pack_number(&w->payload, n);
        for (size_t i = 0; i < n; i++) {
            assert(segments[i].number > w->last_segment); /* N2 */
            rp_pack_number(&w->payload, segments[i].number - w->last_segment);
            rp_pack_number(&w->payload, segments[i].bytes);
            rp_pack_number(&w->payload, segments[i].live);
            w->last_segment = segments[i].number;
        }
        add_record(w, RP_RECORD_SEGMENTS);
        w->segments += n;
        segments += n;
        count -= n;
    }
}

rp_status rp_manifest_writer_finish(rp_manifest_writer *w, uint64_t *bytes,
                                    uint8_t hash[RP_MANIFEST_HASH_BYTES], rp_error *err)
{
    rp_manifest_hash_take(&w->hash, hash);
    rp_pack_word(&w->payload, w->records);
    rp_pack_word(&w->payload, w->tables);
    rp_pack_word(&w->payload, w->segments);
    rp_buf_append(&w->payload, hash, RP_MANIFEST_HASH_BYTES);
    add_record(w, RP_RECORD_END);
    flush(w);
    if (w->status == RP_OK) w->status = w->files->ops->sync(w->file, &w->error);
    *bytes = w->written;
    if (w->status != RP_OK && err != NULL) *err = w->error;
    return w->status;
}

enum { CURRENT_PAYLOAD = 32 };

void rp_current_encode(const rp_current *current, uint8_t out[RP_CURRENT_BYTES])
{
    rp_file_header header = {.version = RP_FORMAT_VERSION,
                             .kind = RP_FILE_CURRENT,
                             .store = current->store_id,
                             .number = current->checkpoint};
    uint8_t *record = out + RP_FILE_HEADER_BYTES;
    uint8_t *payload = record + RP_RECORD_HEADER_BYTES;
    uint32_t crc = rp_file_header_write(out, &header);

    rp_put_u64(payload, current->checkpoint);
    rp_put_u64(payload + 8, current->bytes);
    memcpy(payload + 16, current->hash, RP_MANIFEST_HASH_BYTES);
    (void)rp_record_write(record, RP_RECORD_CURRENT, 1, crc, payload, CURRENT_PAYLOAD);
}

rp_status rp_current_decode(const uint8_t *data, size_t size, rp_current *out, rp_error *err)
{
    rp_file_header header;
    rp_record record;
    rp_current c = {0};
    uint32_t crc = 0;
    rp_status st = rp_file_header_read(data, size, &header, &crc, err);

    if (st == RP_OK)
        st = rp_record_read(data + RP_FILE_HEADER_BYTES, size - RP_FILE_HEADER_BYTES, &crc,
                            &record, err);
    if (st != RP_OK) return st;
    if (header.kind != RP_FILE_CURRENT || record.kind != RP_RECORD_CURRENT ||
        record.number != 1 || record.size != CURRENT_PAYLOAD || size != RP_CURRENT_BYTES)
        return rp_fail(err, RP_CORRUPT, RP_CURRENT_PATH ": the file has another format");
    c.store_id = header.store;
    c.checkpoint = rp_get_u64(record.payload);
    c.bytes = rp_get_u64(record.payload + 8);
    memcpy(c.hash, record.payload + 16, RP_MANIFEST_HASH_BYTES);
    if (c.checkpoint == 0 || c.checkpoint != header.number)
        return rp_fail(err, RP_CORRUPT,
                       RP_CURRENT_PATH ": checkpoint %" PRIu64 " in that of %" PRIu64,
                       c.checkpoint, header.number);
    *out = c;
    return RP_OK;
}

rp_status rp_current_load(rp_files *files, rp_current *out, rp_error *err)
{
    uint8_t bytes[RP_CURRENT_BYTES + 1];
    rp_file *file = NULL;
    size_t got = 0;
    rp_status st = files->ops->open(files, RP_CURRENT_PATH, RP_OPEN_READ, &file, err);

    if (st != RP_OK) return st;
    st = files->ops->read(file, 0, bytes, sizeof bytes, &got, err);
    files->ops->close(file);
    return st == RP_OK ? rp_current_decode(bytes, got, out, err) : st;
}

rp_status rp_current_prepare(rp_files *files, const rp_current *current, rp_error *err)
{
    uint8_t bytes[RP_CURRENT_BYTES];
    rp_bytes part = {bytes, sizeof bytes};
    rp_file *file = NULL;
    rp_status st;

    rp_current_encode(current, bytes);
    st = files->ops->remove(files, RP_CURRENT_TEMPORARY, err);
    if (st == RP_OK || st == RP_NOT_FOUND)
        st = files->ops->open(files, RP_CURRENT_TEMPORARY, RP_OPEN_CREATE, &file, err);
    if (st != RP_OK) return st;
    st = files->ops->write(file, 0, &part, 1, err);
    if (st == RP_OK) st = files->ops->sync(file, err);
    files->ops->close(file);
    return st;
}

rp_status rp_current_switch(rp_files *files, rp_error *err)
{
    rp_status st = files->ops->rename(files, RP_CURRENT_TEMPORARY, RP_CURRENT_PATH, err);

    return st == RP_OK ? files->ops->sync_directory(files, "", err) : st;
}
