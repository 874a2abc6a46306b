/* SPDX-License-Identifier: Apache-2.0 */
/* Steps 2 and 3 of recovery: the blocks, chunks, tables and rollouts of one checkpoint.
 *
 * Invariants:
 *
 *   T1  kept.count is the number of tables in the manifest; the blocks of a table have the same
 *       index in both;
 *   T2  a survey has at most one bit for each used slot, and live_count is the number of bits;
 *   T3  the catalogue gets the blocks only if no table was altered. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "chunk/trajectory.h"
#include "durable/recovery/recovery.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"

/* Records which items of a table can be loaded. Needed if data is damaged, or if the selectors
 * of the store's table differ from the saved ones. */
typedef struct survey {
    uint8_t *live; /* a bit for each slot whose item can be loaded */
    size_t live_bytes;
    uint64_t live_count;
    uint32_t *sets[2]; /* the order of the dense sets, of these items only */
    size_t set_counts[2], set_capacities[2];
} survey;

struct rp_loading {
    rp_recovery *r;
    const rp_manifest *m;
    rp_kept_tables kept;
    rp_rollouts_found rollouts;
    rp_image image;
    uint8_t *payload; /* of one block */
    size_t payload_capacity;
    rp_chunk_slice *slices; /* of one item */
    rp_slices *columns;
    size_t slice_capacity, column_capacity;
    bool is_damaged; /* salvage: a block or segment could not be read */
    bool is_altered; /* a table was restored differently from its saved state */
};

rp_status rp_loading_new(rp_recovery *r, const rp_manifest *m, rp_loading **out, rp_error *err)
{
    rp_loading *l = rp_alloc_zero(r->alloc, sizeof *l);

    if (l == NULL) return rp_fail_memory(err, sizeof *l);
    l->r = r;
    l->m = m;
    rp_image_init(&l->image, r->alloc);
    if (m->table_count > 0) {
        l->kept.tables = rp_alloc_array(r->alloc, m->table_count, sizeof *l->kept.tables);
        if (l->kept.tables == NULL) {
            rp_loading_free(l);
            return rp_fail_memory(err, m->table_count * sizeof *l->kept.tables);
        }
        l->kept.count = m->table_count;
    }
    *out = l;
    return RP_OK;
}

void rp_loading_free(rp_loading *l)
{
    const rp_allocator *alloc;

    if (l == NULL) return;
    alloc = l->r->alloc;
    rp_kept_tables_free(alloc, &l->kept, false);
    rp_rollouts_found_free(&l->rollouts);
    rp_image_deinit(&l->image);
    rp_release(alloc, l->payload, l->payload_capacity);
    rp_release(alloc, l->slices, l->slice_capacity * sizeof *l->slices);
    rp_release(alloc, l->columns, l->column_capacity * sizeof *l->columns);
    rp_release(alloc, l, sizeof *l);
}

static const char *name_of(const rp_loading *l, size_t table)
{
    assert(table < l->m->table_count);
    return l->m->tables[table].state.options.name;
}

/* Reads a block into l->image. */
static rp_status read_block(rp_loading *l, size_t table, size_t index, rp_error *err)
{
    const rp_manifest_block *block = &l->m->tables[table].blocks[index];
    const rp_manifest_segment *segment =
        rp_find_segment(l->m->segments, l->m->segment_count, block->location.segment);
    uint64_t end = rp_location_end(&block->location);
    rp_status st;

    assert(table < l->m->table_count && index < l->m->tables[table].block_count);
    assert(segment != NULL); /* rp_manifest_reader_take() has checked that */
    if (end > segment->bytes)
        return rp_fail(err, RP_CORRUPT,
                       "segment %" PRIu64 ": a block at %" PRIu64 " is beyond its end",
                       segment->number, block->location.offset);
    if (block->location.size > l->payload_capacity) {
        if (!rp_resize_array(l->r->alloc, &l->payload, l->payload_capacity,
                             block->location.size, 1))
            return rp_fail_memory(err, block->location.size);
        l->payload_capacity = block->location.size;
    }
    st = rp_segments_read(l->r->segments, &block->location, RP_RECORD_BLOCK, l->payload, NULL,
                          err);
    if (st == RP_OK && rp_manifest_hash_block(l->payload, block->location.size) != block->hash)
        st = rp_fail(err, RP_CORRUPT,
                     "segment %" PRIu64 ": offset %" PRIu64 ": not the block that was written",
                     segment->number, block->location.offset);
    if (st == RP_OK) st = rp_image_read(&l->image, l->payload, block->location.size, err);
    return st;
}

static rp_status add_share(rp_loading *l, rp_kept_block *block,
                           const rp_disk_location *location)
{
    uint64_t bytes = rp_location_bytes(location), end = rp_location_end(location);

    for (uint32_t i = block->share_count; i-- > 0;)
        if (block->shares[i].segment == location->segment) {
            block->shares[i].bytes += bytes;
            if (block->shares[i].end < end) block->shares[i].end = end;
            return RP_OK;
        }
    if (!rp_resize_array(l->r->alloc, &block->shares, block->share_count,
                         block->share_count + 1, sizeof *block->shares))
        return RP_NO_RESOURCE;
    block->shares[block->share_count++] = (rp_share){location->segment, bytes, end};
    return RP_OK;
}

/* Marks the chunks of the block in l->image as wanted, and computes its shares. */
static rp_status note_block(rp_loading *l, rp_kept_block *block, rp_error *err)
{
    rp_status st = add_share(l, block, &block->at.location);

    for (size_t i = 0; i < l->image.location_count && st == RP_OK; i++) {
        const rp_disk_location *location = &l->image.locations[i];

        if (rp_find_segment(l->m->segments, l->m->segment_count, location->segment) == NULL)
            return rp_fail(err, RP_CORRUPT,
                           "segment %" PRIu64 ": offset %" PRIu64
                           ": a block refers to segment %" PRIu64 ", which is not listed",
                           block->at.location.segment, block->at.location.offset,
                           location->segment);
        st = rp_chunk_index_want(&l->r->chunks, location, err);
        if (st != RP_OK) return st;
        st = add_share(l, block, location);
    }
    return st == RP_OK ? RP_OK : rp_fail_memory(err, sizeof(rp_share));
}

static rp_status read_blocks(rp_loading *l, size_t table, rp_error *err)
{
    const rp_manifest_table *saved = &l->m->tables[table];
    rp_kept_table *kept = &l->kept.tables[table];

    if (saved->block_count == 0) return RP_OK;
    kept->blocks = rp_alloc_array(l->r->alloc, saved->block_count, sizeof *kept->blocks);
    if (kept->blocks == NULL) return rp_fail_memory(err, saved->block_count);
    kept->block_count = saved->block_count;
    for (size_t b = 0; b < saved->block_count; b++) {
        rp_status st = read_block(l, table, b, err);

        rp_progress_add(l->r->meter, saved->blocks[b].location.size);
        kept->blocks[b].at = saved->blocks[b];
        if (st == RP_OK) st = note_block(l, &kept->blocks[b], err);
        if (st == RP_CORRUPT && l->r->salvage) {
            l->is_damaged = true; /* survey_block() reports its items */
            continue;
        }
        if (st != RP_OK) return st;
    }
    return RP_OK;
}

static void count_bytes(void *ctx, uint64_t bytes)
{
    rp_progress_add(((rp_loading *)ctx)->r->meter, bytes);
}

/* Records a damaged segment: the next checkpoint vacates it. */
static rp_status note_damaged(rp_recovery *r, uint64_t number, rp_error *err)
{
    size_t more = 2 * r->damaged_capacity + 8;

    if (r->damaged_count == r->damaged_capacity) {
        if (!rp_resize_array(r->alloc, &r->damaged, r->damaged_capacity, more,
                             sizeof *r->damaged))
            return rp_fail_memory(err, more * sizeof *r->damaged);
        r->damaged_capacity = more;
    }
    assert(r->damaged_count == 0 || r->damaged[r->damaged_count - 1] < number);
    r->damaged[r->damaged_count++] = number;
    return RP_OK;
}

static rp_status read_segments(rp_loading *l, rp_error *err)
{
    rp_recovery *r = l->r;

    for (size_t i = 0; i < l->m->segment_count; i++) {
        const rp_manifest_segment *s = &l->m->segments[i];
        rp_status st = rp_chunk_index_scan(&r->chunks,
                                           &(rp_chunk_scan_options){.files = r->files,
                                                                    .segments = r->segments,
                                                                    .store = &r->id,
                                                                    .number = s->number,
                                                                    .bytes = s->bytes,
                                                                    .on_bytes = count_bytes,
                                                                    .ctx = l},
                                           err);

        RP_KILL_POINT("recovery.segment");
        if (st == RP_OK) continue;
        if ((st != RP_CORRUPT && st != RP_NOT_FOUND) || !r->salvage) return st;
        l->is_damaged = true;
        rp_recovery_report(r, "%s", err != NULL ? err->text : "a segment is damaged");
        if (note_damaged(r, s->number, err) != RP_OK) return RP_NO_RESOURCE;
    }
    return RP_OK;
}

static void report_damage(void *ctx, const char *text)
{
    rp_loading *l = ctx;

    l->is_damaged = true;
    rp_recovery_report(l->r, "%s", text);
}

static rp_status read_rollouts(rp_loading *l, rp_error *err)
{
    const rp_recovery *r = l->r;
    rp_status st = rp_rollouts_file_read(
        &(rp_rollouts_read_options){.alloc = r->alloc,
                                    .files = r->files,
                                    .store = &r->id,
                                    .checkpoint = l->m->store.checkpoint,
                                    .wanted = &l->m->store.rollouts,
                                    .on_damage = r->salvage ? report_damage : NULL,
                                    .ctx = l},
        &l->rollouts, err);

    rp_progress_add(r->meter, l->m->store.rollouts.bytes);
    RP_KILL_POINT("recovery.rollouts");
    return st;
}

rp_status rp_loading_read(rp_loading *l, rp_error *err)
{
    rp_error ignored, *why = err != NULL ? err : &ignored;
    uint64_t total = 0, bytes = 0;
    rp_status st = RP_OK;

    for (size_t i = 0; i < l->m->segment_count; i++) total += l->m->segments[i].bytes;
    for (size_t t = 0; t < l->m->table_count; t++)
        for (size_t b = 0; b < l->m->tables[t].block_count; b++)
            total += l->m->tables[t].blocks[b].location.size;
    total += l->m->store.rollouts.bytes;
    rp_progress_begin(l->r->meter, "loading", total);
    for (size_t i = 0; i < l->m->segment_count && st == RP_OK; i++) {
        const rp_manifest_segment *s = &l->m->segments[i];

        st = rp_segments_open(l->r->segments, s->number, &bytes, why);
        if (st == RP_OK && bytes < s->bytes)
            st = rp_fail(why, RP_CORRUPT,
                         "segment %" PRIu64 ": %" PRIu64 " bytes of %" PRIu64 " are there",
                         s->number, bytes, s->bytes);
        if ((st == RP_CORRUPT || st == RP_NOT_FOUND) && l->r->salvage) {
            l->is_damaged = true;
            st = RP_OK;
        }
        if (st == RP_NOT_FOUND) {
            st = RP_CORRUPT;
            why->code = st;
        }
    }
    for (size_t t = 0; t < l->m->table_count && st == RP_OK; t++) st = read_blocks(l, t, why);
    if (st == RP_OK) st = read_segments(l, why);
    if (st == RP_OK) st = read_rollouts(l, why);
    rp_progress_end(l->r->meter);
    return st;
}

static bool reserve(rp_loading *l, size_t slices, size_t columns)
{
    if (slices > l->slice_capacity) {
        if (!rp_resize_array(l->r->alloc, &l->slices, l->slice_capacity, slices,
                             sizeof *l->slices))
            return false;
        l->slice_capacity = slices;
    }
    if (columns > l->column_capacity) {
        if (!rp_resize_array(l->r->alloc, &l->columns, l->column_capacity, columns,
                             sizeof *l->columns))
            return false;
        l->column_capacity = columns;
    }
    return true;
}

/* Builds the trajectory of a slot of l->image. Checks it like one from a peer. Returns owned.
 */
static rp_status make_trajectory(rp_loading *l, const rp_image_slot *slot,
                                 const rp_signature *signature, rp_trajectory **out,
                                 rp_error *err)
{
    const rp_image_column *columns = l->image.columns + slot->first_column;
    size_t count = 0, at = 0;
    rp_status st;

    assert((size_t)slot->first_column + slot->column_count <= l->image.column_count);
    for (size_t c = 0; c < slot->column_count; c++) count += columns[c].slice_count;
    if (!reserve(l, count, slot->column_count)) return rp_fail_memory(err, count);
    for (size_t c = 0; c < slot->column_count; c++) {
        l->columns[c] = (rp_slices){l->slices + at, columns[c].slice_count, columns[c].squeeze};
        for (size_t i = 0; i < columns[c].slice_count; i++, at++) {
            const rp_image_slice *from = &l->image.slices[columns[c].first_slice + i];
            rp_chunk *chunk = NULL;

            st = rp_chunk_index_get(&l->r->chunks, l->r->segments,
                                    &l->image.locations[from->location], &chunk, err);
            if (st != RP_OK) return st;
            l->slices[at] = (rp_chunk_slice){chunk, from->column, from->offset, from->length};
        }
    }
    st = rp_trajectory_new(l->r->alloc, l->columns, slot->column_count, out, err);
    if (st == RP_OK && signature != NULL) {
        st = rp_trajectory_check(*out, signature, err);
        if (st != RP_OK) rp_trajectory_unref(*out);
    }
    if (st == RP_INVALID) st = RP_CORRUPT;
    if (st != RP_OK && err != NULL) err->code = st;
    return st;
}

static bool is_live(const survey *s, uint64_t slot)
{
    assert(slot / 8 < s->live_bytes); /* T2 */
    return (s->live[slot / 8] >> slot % 8 & 1) != 0;
}

static void free_survey(rp_loading *l, survey *s)
{
    rp_release(l->r->alloc, s->live, s->live_bytes);
    for (int w = 0; w < 2; w++)
        rp_release(l->r->alloc, s->sets[w], s->set_capacities[w] * sizeof(uint32_t));
}

static void drop_block(rp_loading *l, size_t table, size_t index, const rp_error *why)
{
    l->r->dropped++;
    l->is_altered = true;
    rp_recovery_report(l->r, "table '%.64s': the items of slots %zu to %zu are lost: %s",
                       name_of(l, table), index * RP_SLOTS_PER_BLOCK,
                       (index + 1) * RP_SLOTS_PER_BLOCK - 1, why->text);
}

/* Finds the items of a block that can be loaded. Reports the others. */
static rp_status survey_block(rp_loading *l, size_t table, size_t index, survey *s,
                              rp_error *err)
{
    const rp_table_state *state = &l->m->tables[table].state;
    rp_error why = {0};
    rp_status st = read_block(l, table, index, &why);

    if (st == RP_CORRUPT && l->r->salvage) {
        drop_block(l, table, index, &why);
        return RP_OK;
    }
    if (st != RP_OK) {
        if (err != NULL) *err = why;
        return st;
    }
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        uint64_t number = (uint64_t)index * RP_SLOTS_PER_BLOCK + i;
        const rp_image_slot *slot = &l->image.slots[i];
        rp_trajectory *trajectory = NULL;

        if (!slot->live || number >= state->slots_used) continue;
        st = make_trajectory(l, slot, state->options.signature, &trajectory, &why);
        if ((st == RP_CORRUPT || st == RP_NOT_FOUND) && l->r->salvage) {
            l->r->dropped++;
            l->is_altered = true;
            rp_recovery_report(l->r, "table '%.64s': item %" PRIu64 " is lost: %s",
                               name_of(l, table), slot->key, why.text);
            continue;
        }
        if (st != RP_OK) {
            if (err != NULL) *err = why;
            return st;
        }
        rp_trajectory_unref(trajectory);
        assert(!is_live(s, number)); /* T2 */
        s->live[number / 8] |= (uint8_t)(1 << number % 8);
        s->live_count++;
    }
    return RP_OK;
}

/* Computes the order of a dense set: the saved order without the items that cannot be
 * loaded. */
static rp_status survey_set(rp_loading *l, size_t table, int which, survey *s, rp_error *err)
{
    const rp_manifest_table *saved = &l->m->tables[table];
    uint64_t most = saved->state.set_counts[which];

    if (most == 0) return RP_OK;
    s->sets[which] = rp_alloc_array(l->r->alloc, (size_t)most, sizeof(uint32_t));
    if (s->sets[which] == NULL) return rp_fail_memory(err, (size_t)most * sizeof(uint32_t));
    s->set_capacities[which] = (size_t)most;
    for (uint64_t i = 0; i < most; i++)
        if (is_live(s, saved->sets[which][i]))
            s->sets[which][s->set_counts[which]++] = saved->sets[which][i];
    return RP_OK;
}

static rp_status survey_table(rp_loading *l, size_t table, survey *s, rp_error *err)
{
    const rp_manifest_table *saved = &l->m->tables[table];
    rp_status st = RP_OK;

    s->live_bytes = (size_t)(saved->state.slots_used / 8 + 1);
    s->live = rp_alloc_zero(l->r->alloc, s->live_bytes);
    if (s->live == NULL) return rp_fail_memory(err, s->live_bytes);
    for (size_t b = 0; b < saved->block_count && st == RP_OK; b++)
        st = survey_block(l, table, b, s, err);
    for (int w = 0; w < 2 && st == RP_OK; w++) st = survey_set(l, table, w, s, err);
    return st;
}

/* The state of a table with the items of the survey only. */
static rp_table_state altered_state(const rp_table_state *saved, const survey *s)
{
    rp_table_state state = *saved;

    assert(s->live_count <= saved->slots_used); /* T2 */
    state.limiter.deletes += (int64_t)(saved->live - s->live_count);
    state.live = s->live_count;
    state.set_counts[0] = s->set_counts[0];
    state.set_counts[1] = s->set_counts[1];
    state.first_free = RP_SLOT_NONE;
    for (uint64_t i = 0; i < saved->slots_used; i++)
        if (!is_live(s, i)) {
            state.first_free = (uint32_t)i;
            break;
        }
    return state;
}

typedef struct source {
    rp_loading *l;
    size_t table;
    const survey *survey; /* NULL: the table is restored as it was saved */
    const rp_table_state *state;
} source;

/* The next slot after `slot` without an item. */
static uint32_t next_free(const source *s, uint64_t slot)
{
    for (uint64_t i = slot + 1; i < s->state->slots_used; i++)
        if (!is_live(s->survey, i)) return (uint32_t)i;
    return RP_SLOT_NONE;
}

static rp_status fill_slot(const source *s, size_t index, uint64_t number, rp_slot *out,
                           rp_error *err)
{
    const rp_image_slot *from = &s->l->image.slots[index];
    bool live = s->survey == NULL               ? from->live
                : number < s->state->slots_used ? is_live(s->survey, number)
                                                : false;

    if (!live) {
        out->state = RP_SLOT_FREE;
        out->next = s->survey == NULL               ? from->next
                    : number < s->state->slots_used ? next_free(s, number)
                                                    : 0;
        return RP_OK;
    }
    out->key = from->key;
    out->priority = from->priority;
    out->inserted_at_ns = from->inserted_at_ns;
    out->times_sampled = from->times_sampled;
    out->sequence = from->sequence & RP_MAX_SEQUENCE;
    out->turn = from->turn;
    out->state = RP_SLOT_LIVE;
    if (from->sequence > RP_MAX_SEQUENCE)
        return rp_fail(err, RP_CORRUPT, "slot %" PRIu64 ": its sequence is too large", number);
    /* rp_table_restore() checks the signature. */
    return make_trajectory(s->l, from, NULL, &out->trajectory, err);
}

static rp_status give_block(void *ctx, size_t block, rp_slot out[RP_SLOTS_PER_BLOCK],
                            rp_error *err)
{
    const source *s = ctx;
    rp_status st = read_block(s->l, s->table, block, err);
    size_t i = 0;

    if (st == RP_CORRUPT && s->survey != NULL) {
        rp_image_clear(&s->l->image); /* the survey has no item of this block */
        st = RP_OK;
    }
    for (; i < RP_SLOTS_PER_BLOCK && st == RP_OK; i++)
        st = fill_slot(s, i, (uint64_t)block * RP_SLOTS_PER_BLOCK + i, &out[i], err);
    if (st != RP_OK)
        for (size_t k = 0; k < i; k++) {
            rp_trajectory_unref(out[k].trajectory);
            out[k].trajectory = NULL;
        }
    return st;
}

static rp_status give_set(void *ctx, int which, uint32_t *out, size_t count, rp_error *err)
{
    const source *s = ctx;
    const uint32_t *from =
        s->survey != NULL ? s->survey->sets[which] : s->l->m->tables[s->table].sets[which];

    (void)err;
    memcpy(out, from, count * sizeof *out);
    return RP_OK;
}

enum { DIFFERENCE_BYTES = 192 };

/* Writes the first column in which two signatures differ, if there is one. Returns `text`. */
static const char *difference(const rp_signature *given, const rp_signature *saved,
                              char text[DIFFERENCE_BYTES])
{
    const size_t ours = given != NULL ? rp_signature_column_count(given) : 0;
    const size_t theirs = saved != NULL ? rp_signature_column_count(saved) : 0;
    char a[24], b[24];

    (void)snprintf(text, DIFFERENCE_BYTES, "it has %zu columns, saved are %zu", ours, theirs);
    if (ours == theirs) (void)snprintf(text, DIFFERENCE_BYTES, "the structures differ");
    for (size_t i = 0; i < ours && ours == theirs; i++) {
        const rp_spec *g = rp_signature_column(given, i), *s = rp_signature_column(saved, i);

        if (strcmp(g->name, s->name) == 0 && g->dtype == s->dtype &&
            rp_shape_equal(&g->shape, &s->shape))
            continue;
        (void)snprintf(text, DIFFERENCE_BYTES,
                       "column %zu is '%.24s' %s %s, saved is '%.24s' %s %s", i, g->name,
                       rp_dtype_name(g->dtype), rp_shape_text(&g->shape, a, sizeof a), s->name,
                       rp_dtype_name(s->dtype), rp_shape_text(&s->shape, b, sizeof b));
        break;
    }
    return text;
}

static rp_status compare_signature(const rp_loading *l, const rp_table *t,
                                   const rp_table_options *saved, rp_error *err)
{
    char text[DIFFERENCE_BYTES];
    bool same = false;
    rp_status st =
        rp_image_same_signature(l->r->alloc, t->options.signature, saved->signature, &same);

    if (st != RP_OK) return rp_fail_memory(err, 0);
    if (!same)
        return rp_fail(err, RP_PRECONDITION,
                       "table '%.40s': its signature is not the one that is saved: %s; give "
                       "the saved one, or use a new directory",
                       saved->name, difference(t->options.signature, saved->signature, text));
    return RP_OK;
}

/* Returns a reference to the store's table for a saved one, with the saved selectors; creates
 * it if it is missing. */
static rp_status match_table(rp_loading *l, const rp_table_options *saved, rp_table **out,
                             rp_error *err)
{
    rp_string name = {saved->name, strlen(saved->name)};
    uint64_t lsn;
    rp_status st;

    *out = rp_store_find_table(l->r->store, name);
    if (*out != NULL) {
        st = compare_signature(l, *out, saved, err);
        if (st == RP_OK) st = rp_table_reselect(*out, &saved->sampler, &saved->remover, err);
        return st;
    }
    st = rp_store_add_table_logged(l->r->store, saved, NULL, &lsn, err);
    if (st == RP_INVALID) {
        st = RP_CORRUPT;
        if (err != NULL) err->code = st;
    }
    if (st == RP_OK) *out = rp_store_find_table(l->r->store, name);
    return st;
}

static rp_status restore_table(rp_loading *l, size_t table, rp_error *err)
{
    rp_table_state state = l->m->tables[table].state;
    rp_table *t = NULL;
    survey s = {0};
    bool altered = l->is_damaged;
    source from;
    rp_restore_source given = {give_block, give_set, &from};
    rp_status st = match_table(l, &state.options, &t, err);

    if (st == RP_OK && altered) st = survey_table(l, table, &s, err);
    if (st == RP_OK && altered) {
        state = altered_state(&state, &s);
        l->is_altered = true;
    }
    if (st == RP_OK) {
        from = (source){l, table, altered ? &s : NULL, &state};
        st = rp_table_restore(t, &state, &given, err);
    }
    if (st == RP_OK && !altered) {
        l->kept.tables[table].table = rp_table_ref(t);
        rp_table_set_unchanged(t);
    }
    free_survey(l, &s);
    rp_table_unref(t);
    return st;
}

/* Adds the rollouts to those of the store, which has none of these names. */
static rp_status restore_rollouts(rp_loading *l, rp_error *err)
{
    rp_rollout_set *set = rp_store_rollouts(l->r->store);
    rp_status st = RP_OK;

    for (size_t i = 0; i < l->rollouts.count && st == RP_OK; i++)
        st = rp_rollout_set_add(set, l->rollouts.at[i].rollouts, err);
    l->r->rollouts = l->rollouts; /* the journal is redone from these */
    l->rollouts.count = 0;
    return st;
}

static rp_status check_rollouts(const rp_loading *l, rp_error *err)
{
    rp_rollout_set *set = rp_store_rollouts(l->r->store);

    for (size_t i = 0; i < l->rollouts.count; i++) {
        rp_string name = rp_rollouts_name(l->rollouts.at[i].rollouts);
        rp_rollouts *own = rp_rollout_set_find(set, name);

        rp_rollouts_unref(own);
        if (own != NULL)
            return rp_fail(err, RP_PRECONDITION,
                           "rollouts '%.*s': the store has them already, and so has the data "
                           "directory; create them after it is opened",
                           (int)name.size, name.data);
    }
    return RP_OK;
}

/* Compares all signatures before the first table is changed. */
static rp_status compare_all(const rp_loading *l, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t t = 0; t < l->m->table_count && st == RP_OK; t++) {
        const rp_table_options *saved = &l->m->tables[t].state.options;
        rp_string name = {saved->name, strlen(saved->name)};
        rp_table *table = rp_store_find_table(l->r->store, name);

        if (table == NULL) continue;
        st = compare_signature(l, table, saved, err);
        rp_table_unref(table);
    }
    return st;
}

rp_status rp_loading_restore(rp_loading *l, rp_error *err)
{
    rp_store_state store = {l->m->store.seed, l->m->store.keys};
    rp_status st = compare_all(l, err);

    if (st == RP_OK) st = check_rollouts(l, err);
    assert(l->kept.count == l->m->table_count); /* T1 */

    for (size_t t = 0; t < l->m->table_count && st == RP_OK; t++) {
        st = restore_table(l, t, err);
        RP_KILL_POINT("recovery.table");
    }
    if (st == RP_OK) st = restore_rollouts(l, err);
    if (st != RP_OK) return st;
    rp_store_restore(l->r->store, &store);
    if (!l->is_altered && !l->is_damaged) {
        l->r->catalogue.last = l->kept;
        l->kept = (rp_kept_tables){0};
    } else {
        l->r->is_whole = false;
    }
    return RP_OK;
}
