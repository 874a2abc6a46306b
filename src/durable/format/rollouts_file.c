/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading rollouts/<n>.
 *
 * The images are written piece by piece, so that writing takes little memory beside the copy of
 * the state that an image needs. */
#include "durable/format/rollouts_file.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "disk/names.h"
#include "disk/records_scan.h"
#include "durable/format/manifest_hash.h"
#include "durable/format/pack.h"
#include "durable/format/rollout_records.h"
#include "rollouts/rollouts_image.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"

enum { WRITE_BYTES = 1 << 20 }; /* with one call, besides a large piece */

typedef struct writing {
    rp_manifest_hash hash; /* first: aligned like the object */
    const rp_rollouts_write_options *o;
    rp_file *file;
    uint64_t offset, number;
    uint32_t before; /* checksum of the header before */
    rp_buf queued;   /* records that are not written yet */
    rp_buf payload;
} writing;

static rp_status flush(writing *w, rp_error *err)
{
    const rp_bytes part = {w->queued.data, w->queued.size};
    rp_status st;

    if (w->queued.bad) return rp_fail_memory(err, w->queued.size);
    if (part.size == 0) return RP_OK;
    st = w->o->files->ops->write(w->file, w->offset, &part, 1, err);
    w->offset += part.size;
    rp_buf_clear(&w->queued);
    return st;
}

/* Adds the payload as a record, and clears it. */
static rp_status add_record(writing *w, rp_record_kind kind, rp_error *err)
{
    uint8_t header[RP_RECORD_HEADER_BYTES];
    rp_record record = {.kind = kind,
                        .number = ++w->number,
                        .payload = w->payload.data,
                        .size = w->payload.size};

    if (w->payload.bad) return rp_fail_memory(err, w->payload.size);
    assert(record.size <= RP_MAX_RECORD_BYTES);
    w->before =
        rp_record_write(header, kind, record.number, w->before, record.payload, record.size);
    record.crc = w->before;
    if (kind != RP_RECORD_ROLLOUTS_END) rp_manifest_hash_add(&w->hash, &record);
    rp_buf_append(&w->queued, header, sizeof header);
    rp_buf_append(&w->queued, w->payload.data, w->payload.size);
    rp_buf_clear(&w->payload);
    return w->queued.bad || w->queued.size >= WRITE_BYTES ? flush(w, err) : RP_OK;
}

static rp_status write_image(writing *w, rp_rollouts *rollouts, rp_error *err)
{
    rp_rollout_cut *cut = NULL;
    uint64_t lsn = 0;
    rp_status st = rp_rollouts_cut(rollouts, &cut, &lsn);

    if (st != RP_OK) return rp_fail(err, st, "checkpoint: no memory for an image of rollouts");
    rp_rollout_record_write_name(&w->payload, rp_rollouts_name(rollouts));
    rp_pack_word(&w->payload, lsn > w->o->lsn ? lsn : w->o->lsn);
    st = add_record(w, RP_RECORD_ROLLOUTS_BEGIN, err);
    while (st == RP_OK && rp_rollout_cut_next(cut, &w->payload))
        st = add_record(w, RP_RECORD_ROLLOUTS_PIECE, err);
    rp_rollout_cut_free(cut);
    RP_KILL_POINT("checkpoint.rollouts");
    return st;
}

static rp_status write_header(writing *w, rp_error *err)
{
    const rp_file_header header = {.version = RP_FORMAT_VERSION,
                                   .kind = RP_FILE_ROLLOUTS,
                                   .store = w->o->store,
                                   .number = w->o->checkpoint};
    uint8_t bytes[RP_FILE_HEADER_BYTES];

    w->before = rp_file_header_write(bytes, &header);
    rp_buf_append(&w->queued, bytes, sizeof bytes);
    return w->queued.bad ? rp_fail_memory(err, sizeof bytes) : RP_OK;
}

static rp_status write_all(writing *w, rp_error *err)
{
    rp_status st = write_header(w, err);

    for (size_t i = 0; i < w->o->count && st == RP_OK; i++)
        st = write_image(w, w->o->rollouts[i], err);
    rp_pack_word(&w->payload, w->o->count);
    if (st == RP_OK) st = add_record(w, RP_RECORD_ROLLOUTS_END, err);
    if (st == RP_OK) st = flush(w, err);
    if (st == RP_OK) st = w->o->files->ops->sync(w->file, err);
    return st;
}

static rp_status create(writing *w, const char *path, rp_error *err)
{
    const rp_files_ops *ops = w->o->files->ops;
    rp_status st = ops->make_directory(w->o->files, RP_ROLLOUTS_FOLDER, err);

    if (st == RP_OK) st = ops->sync_directory(w->o->files, "", err);
    if (st == RP_OK) st = ops->remove(w->o->files, path, err); /* of a failed checkpoint */
    if (st == RP_OK || st == RP_NOT_FOUND)
        st = ops->open(w->o->files, path, RP_OPEN_CREATE, &w->file, err);
    return st;
}

rp_status rp_rollouts_file_write(const rp_rollouts_write_options *o, rp_manifest_rollouts *out,
                                 rp_error *err)
{
    writing *w = rp_alloc_aligned(o->alloc, sizeof *w);
    char path[RP_ROLLOUTS_PATH_BYTES];
    rp_status st;

    if (w == NULL) return rp_fail_memory(err, sizeof *w);
    assert(o->count <= RP_ROLLOUT_SET_COUNT);
    w->o = o;
    w->file = NULL;
    w->offset = w->number = 0;
    rp_manifest_hash_init(&w->hash);
    rp_buf_init(&w->queued, o->alloc);
    rp_buf_init(&w->payload, o->alloc);
    st = create(w, rp_rollouts_path(path, o->checkpoint), err);
    if (st == RP_OK) st = write_all(w, err);
    if (w->file != NULL) o->files->ops->close(w->file);
    if (st == RP_OK) st = o->files->ops->sync_directory(o->files, RP_ROLLOUTS_FOLDER, err);
    if (st == RP_OK) {
        out->count = (uint32_t)o->count;
        out->bytes = w->offset;
        rp_manifest_hash_take(&w->hash, out->hash);
    } else if (w->file != NULL) {
        (void)o->files->ops->remove(o->files, path, NULL);
    }
    rp_buf_deinit(&w->queued);
    rp_buf_deinit(&w->payload);
    rp_release_aligned(o->alloc, w, sizeof *w);
    return st;
}

typedef struct reading {
    rp_manifest_hash hash; /* first: aligned like the object */
    const rp_rollouts_read_options *o;
    rp_rollouts_found *found;
    rp_rollout_loader *loader; /* of the current rollouts; NULL: none, or they are skipped */
    char name[RP_ROLLOUT_NAME_BYTES + 1];
    uint64_t lsn, begun;
    bool has_end;
    rp_status status;
    rp_error error;
} reading;

/* Salvage: skips the current rollouts. Otherwise the status stays. */
static void skip_damaged(reading *r)
{
    char text[RP_ERROR_TEXT_BYTES];
    rp_error why;

    rp_rollout_loader_free(r->loader);
    r->loader = NULL;
    if (r->status != RP_CORRUPT || r->o->on_damage == NULL) return;
    memcpy(text, r->error.text, sizeof text);
    (void)rp_fail(&why, RP_CORRUPT, "rollouts '%.64s' are lost: %.160s", r->name, text);
    r->o->on_damage(r->o->ctx, why.text);
    r->found->left_out++;
    r->status = RP_OK;
}

static rp_status add_rollouts(reading *r, rp_rollouts *rollouts)
{
    rp_string name = rp_rollouts_name(rollouts);

    if (r->found->count == RP_ROLLOUT_SET_COUNT)
        return rp_fail(&r->error, RP_CORRUPT, "there are more than %d rollouts",
                       RP_ROLLOUT_SET_COUNT);
    if (name.size != strlen(r->name) || memcmp(name.data, r->name, name.size) != 0)
        return rp_fail(&r->error, RP_CORRUPT, "the image is that of other rollouts");
    for (size_t i = 0; i < r->found->count; i++) {
        rp_string other = rp_rollouts_name(r->found->at[i].rollouts);

        if (other.size == name.size && memcmp(other.data, name.data, name.size) == 0)
            return rp_fail(&r->error, RP_CORRUPT, "there are two images of them");
    }
    r->found->at[r->found->count].rollouts = rp_rollouts_ref(rollouts);
    r->found->at[r->found->count++].lsn = r->lsn;
    return RP_OK;
}

/* Ends the current rollouts: all pieces are there. */
static void end_image(reading *r)
{
    rp_rollouts *rollouts = NULL;

    if (r->loader == NULL) return;
    r->status = rp_rollout_loader_finish(r->loader, &rollouts, &r->error);
    if (r->status == RP_OK) r->status = add_rollouts(r, rollouts);
    rp_rollouts_unref(rollouts);
    skip_damaged(r);
}

static void begin_image(reading *r, const rp_record *record)
{
    rp_rollout_record begin;
    rp_unpack in;

    end_image(r);
    if (r->status != RP_OK) return;
    /* A create record has a name and a body, too. */
    r->status = rp_rollout_record_read(RP_RECORD_ROLLOUTS_CREATE, record->payload, record->size,
                                       &begin, &r->error);
    if (r->status != RP_OK) return;
    in = rp_unpack_open(begin.body.data, begin.body.size);
    r->lsn = rp_unpack_word(&in);
    if (in.bad || rp_unpack_left(&in) > 0 || r->lsn > r->o->wanted->lsn) {
        r->status = rp_fail(&r->error, RP_CORRUPT, "malformed beginning of rollouts");
        return;
    }
    memcpy(r->name, begin.name.data, begin.name.size);
    r->name[begin.name.size] = '\0';
    r->begun++;
    r->loader = rp_rollout_loader_new(r->o->alloc, rp_system_seed());
    if (r->loader == NULL) r->status = rp_fail_memory(&r->error, sizeof *r);
}

static void add_piece(reading *r, const rp_record *record)
{
    if (r->begun == 0)
        r->status = rp_fail(&r->error, RP_CORRUPT, "a piece before its rollouts");
    if (r->loader == NULL) return; /* they are skipped */
    r->status = rp_rollout_loader_add(r->loader, record->payload, record->size, &r->error);
    if (r->status != RP_OK) skip_damaged(r);
}

static bool read_record(void *ctx, uint64_t offset, const rp_record *record)
{
    reading *r = ctx;
    rp_error why;

    if (r->has_end || record->number != r->found->records + 1)
        r->status = rp_fail(&r->error, RP_CORRUPT, "a record is out of order");
    else if (record->kind == RP_RECORD_ROLLOUTS_BEGIN)
        begin_image(r, record);
    else if (record->kind == RP_RECORD_ROLLOUTS_PIECE)
        add_piece(r, record);
    else if (record->kind == RP_RECORD_ROLLOUTS_END && record->size == 8 &&
             rp_get_u64(record->payload) == r->begun) {
        end_image(r);
        r->has_end = true;
    } else
        r->status = rp_fail(&r->error, RP_CORRUPT, "a record of kind %d", (int)record->kind);
    if (r->status == RP_OK) {
        if (!r->has_end) rp_manifest_hash_add(&r->hash, record);
        r->found->records++;
        r->found->end = offset + RP_RECORD_HEADER_BYTES + record->size;
        return true;
    }
    why = r->error;
    (void)rp_fail(&r->error, r->status,
                  RP_ROLLOUTS_FOLDER "/%016" PRIx64 ", offset %" PRIu64 ": %.160s",
                  r->o->checkpoint, offset, why.text);
    return false;
}

/* Checks what was read against the manifest. */
static rp_status check_whole(const reading *r, rp_error *err)
{
    uint8_t hash[RP_MANIFEST_HASH_BYTES];

    rp_manifest_hash_take(&r->hash, hash);
    if (r->has_end && r->begun == r->o->wanted->count && r->found->end == r->o->wanted->bytes &&
        memcmp(hash, r->o->wanted->hash, sizeof hash) == 0)
        return RP_OK;
    return rp_fail(err, RP_CORRUPT, RP_ROLLOUTS_FOLDER "/%016" PRIx64 ": %s", r->o->checkpoint,
                   r->has_end ? "it is not the file that the manifest describes"
                              : "its end is missing");
}

static rp_status scan(reading *r, rp_error *err)
{
    char path[RP_ROLLOUTS_PATH_BYTES];
    rp_file_header header = {0};
    uint64_t end = 0;
    rp_status st = rp_records_scan(
        &(rp_records_scan_options){.alloc = r->o->alloc,
                                   .files = r->o->files,
                                   .path = rp_rollouts_path(path, r->o->checkpoint),
                                   .kind = RP_FILE_ROLLOUTS,
                                   .store = r->o->store,
                                   .each = read_record,
                                   .ctx = r},
        &header, &end, err);

    if (r->status != RP_OK && err != NULL) *err = r->error;
    if (r->status != RP_OK) st = r->status;
    if (st == RP_OK && header.number != r->o->checkpoint)
        st = rp_fail(err, RP_CORRUPT, "%s: it is that of checkpoint %" PRIu64, path,
                     header.number);
    if (st == RP_OK) st = check_whole(r, err);
    if (st == RP_NOT_FOUND) st = rp_fail(err, RP_CORRUPT, "%s: the file is missing", path);
    return st;
}

rp_status rp_rollouts_file_read(const rp_rollouts_read_options *o, rp_rollouts_found *out,
                                rp_error *err)
{
    reading *r;
    rp_error why = {.text = ""};
    rp_status st;

    memset(out, 0, sizeof *out);
    if (o->wanted->count == 0) return RP_OK; /* there is no file */
    r = rp_alloc_aligned(o->alloc, sizeof *r);
    if (r == NULL) return rp_fail_memory(err, sizeof *r);
    memset(r, 0, sizeof *r);
    r->o = o;
    r->found = out;
    rp_manifest_hash_init(&r->hash);
    st = scan(r, &why);
    rp_rollout_loader_free(r->loader);
    rp_release_aligned(o->alloc, r, sizeof *r);
    if (st == RP_CORRUPT && o->on_damage != NULL) {
        o->on_damage(o->ctx, why.text);
        out->left_out++;
        st = RP_OK;
    }
    if (st != RP_OK && err != NULL) *err = why;
    return st;
}

void rp_rollouts_found_free(rp_rollouts_found *found)
{
    for (size_t i = 0; i < found->count; i++) rp_rollouts_unref(found->at[i].rollouts);
    found->count = 0;
}

rp_status rp_rollouts_file_check(rp_files *files, uint64_t checkpoint,
                                 const rp_manifest_rollouts *wanted, rp_error *err)
{
    char path[RP_ROLLOUTS_PATH_BYTES];
    rp_file *file = NULL;
    uint64_t size = 0;
    rp_status st;

    if (wanted->count == 0) return RP_OK;
    st = files->ops->open(files, rp_rollouts_path(path, checkpoint), RP_OPEN_READ, &file, err);
    if (st == RP_NOT_FOUND) return rp_fail(err, RP_CORRUPT, "%s: the file is missing", path);
    if (st != RP_OK) return st;
    st = files->ops->size(file, &size, err);
    files->ops->close(file);
    if (st == RP_OK && size != wanted->bytes)
        st = rp_fail(err, RP_CORRUPT, "%s: it has %" PRIu64 " bytes, not %" PRIu64, path, size,
                     wanted->bytes);
    return st;
}
