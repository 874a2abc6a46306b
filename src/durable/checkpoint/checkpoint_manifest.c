/* SPDX-License-Identifier: Apache-2.0 */
/* Step 3: the manifest. */
#include <assert.h>

#include "durable/checkpoint/checkpoint_inside.h"
#include "durable/checkpoint/retention.h"
#include "durable/format/rollouts_file.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum { SET_PAGE = 1 << 14 };

/* Returns the entry of a segment in the list; adds it if it is missing. NULL: no memory. */
static rp_manifest_segment *segment_entry(rp_checkpoint_run *r, uint64_t number)
{
    size_t low = 0, high = r->segment_count, more = 2 * r->segment_capacity + 16;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->segments[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < r->segment_count && r->segments[low].number == number) return &r->segments[low];
    if (r->segment_count == r->segment_capacity) {
        if (!rp_resize_array(r->c->alloc, &r->segments, r->segment_capacity, more,
                             sizeof *r->segments))
            return NULL;
        r->segment_capacity = more;
    }
    assert(low == 0 || r->segments[low - 1].number < number); /* P1 */
    memmove(r->segments + low + 1, r->segments + low,
            (r->segment_count - low) * sizeof *r->segments);
    r->segments[low] = (rp_manifest_segment){.number = number};
    r->segment_count++;
    return &r->segments[low];
}

rp_status rp_checkpoint_list_segments(rp_checkpoint_run *r, rp_error *err)
{
    for (size_t t = 0; t < r->kept.count; t++)
        for (size_t b = 0; b < r->kept.tables[t].block_count; b++) {
            const rp_kept_block *block = &r->kept.tables[t].blocks[b];

            for (uint32_t i = 0; i < block->share_count; i++) {
                rp_manifest_segment *s = segment_entry(r, block->shares[i].segment);
                if (s == NULL) return rp_fail_memory(err, sizeof *s);
                s->live += block->shares[i].bytes;
                if (s->bytes < block->shares[i].end) s->bytes = block->shares[i].end;
            }
        }
    for (size_t i = 0; i < r->segment_count; i++) {
        rp_manifest_segment *s = &r->segments[i];
        uint64_t bytes = 0;
        rp_status st = rp_segments_open(r->c->segments, s->number, &bytes, err);

        if (st != RP_OK) return st;
        /* A chunk to which two blocks refer was counted twice. */
        if (s->live > s->bytes) s->live = s->bytes;
        r->result.disk_bytes += bytes;
        r->result.live_bytes += s->live;
    }
    r->result.segments = r->segment_count;
    return RP_OK;
}

static void add_sets(rp_checkpoint_run *r, rp_manifest_writer *w, size_t table, uint32_t *page)
{
    const rp_table_state *state = rp_cut_state(r->cut, table);

    for (int which = 0; which < 2; which++)
        for (uint64_t at = 0; at < state->set_counts[which];) {
            uint64_t left = state->set_counts[which] - at;
            size_t n = left < SET_PAGE ? (size_t)left : SET_PAGE;

            rp_cut_read_set(r->cut, table, which, (size_t)at, n, page);
            rp_manifest_add_set(w, which, page, n);
            at += n;
        }
}

static rp_status add_tables(rp_checkpoint_run *r, rp_manifest_writer *w, rp_error *err)
{
    size_t room = SET_PAGE * sizeof(uint32_t);
    rp_manifest_block *blocks;
    uint32_t *page = rp_alloc(r->c->alloc, room);

    assert(r->kept.count == r->table_count); /* P2 */
    if (page == NULL) return rp_fail_memory(err, room);
    blocks = rp_alloc_array(r->c->alloc, RP_MANIFEST_LOCATIONS, sizeof *blocks);
    for (size_t t = 0; t < r->table_count && blocks != NULL; t++) {
        const rp_kept_table *kept = &r->kept.tables[t];

        rp_manifest_add_table(w, rp_cut_state(r->cut, t), kept->block_count);
        for (size_t at = 0; at < kept->block_count;) {
            size_t n = kept->block_count - at;

            if (n > RP_MANIFEST_LOCATIONS) n = RP_MANIFEST_LOCATIONS;
            for (size_t i = 0; i < n; i++) blocks[i] = kept->blocks[at + i].at;
            rp_manifest_add_blocks(w, blocks, n);
            at += n;
        }
        add_sets(r, w, t, page);
    }
    rp_release(r->c->alloc, page, room);
    if (blocks == NULL) return rp_fail_memory(err, RP_MANIFEST_LOCATIONS * sizeof *blocks);
    rp_release(r->c->alloc, blocks, RP_MANIFEST_LOCATIONS * sizeof *blocks);
    return RP_OK;
}

rp_status rp_checkpoint_write_manifest(rp_checkpoint_run *r, const char *path,
                                       rp_current *current, rp_error *err)
{
    rp_manifest_store store = {.checkpoint = r->result.number,
                               .lsn = r->lsn,
                               .seed = r->store.seed,
                               .keys = r->store.keys,
                               .written_at_ns = rp_wall_ns(NULL),
                               .table_count = (uint32_t)r->table_count,
                               .rollouts = r->rollouts};
    rp_manifest_writer *w = NULL;
    rp_status st =
        rp_manifest_writer_new(r->c->alloc, r->c->files, path, &r->c->id, &store, &w, err);

    if (st != RP_OK) return st;
    st = add_tables(r, w, err);
    if (st == RP_OK) {
        rp_manifest_add_segments(w, r->segments, r->segment_count);
        st = rp_manifest_writer_finish(w, &current->bytes, current->hash, err);
    }
    rp_manifest_writer_free(w);
    r->result.bytes += current->bytes + r->rollouts.bytes;
    return st;
}

rp_status rp_checkpoint_verify_manifest(rp_checkpoint_run *r, const char *path,
                                        const rp_current *current, rp_error *err)
{
    rp_manifest *m = NULL;
    rp_status st =
        rp_manifest_load(r->c->alloc, r->c->files, path, r->result.number, &r->c->id, &m, err);

    if (st == RP_OK && (m->bytes != current->bytes ||
                        memcmp(m->hash, current->hash, RP_MANIFEST_HASH_BYTES) != 0))
        st = rp_fail(err, RP_CORRUPT, "%s: it reads back other bytes than were written", path);
    for (size_t i = 0; st == RP_OK && i < m->segment_count; i++)
        st = rp_check_segment_size(r->c->files, &m->segments[i], err);
    if (st == RP_OK)
        st = rp_rollouts_file_check(r->c->files, r->result.number, &m->store.rollouts, err);
    rp_manifest_free(m);
    return st;
}
