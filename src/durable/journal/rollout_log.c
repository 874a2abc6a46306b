/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/journal/rollout_log.h"

#include <assert.h>

#include "disk/reserve.h"
#include "durable/format/rollout_records.h"
#include "rollouts/rollout_item.h"
#include "store/store.h"
#include "util/error.h"

enum {
    OP_BYTES = 1024, /* of the image, besides columns: a group with some consumers, an item */
    COLUMN_BYTES = 256,
};

/* A payload that begins with the name of the rollouts. */
static rp_buf begin(const rp_rollout_logging *l, const rp_rollouts *rollouts)
{
    rp_buf payload;

    rp_buf_init(&payload, &l->alloc);
    rp_rollout_record_write_name(&payload, rp_rollouts_name(rollouts));
    return payload;
}

/* Appends a record of the payload and `more` (may be NULL), or uses up an LSN if there is no
 * memory: then the journal is lost, and needs a checkpoint. Frees the payload. */
static uint64_t append(rp_rollout_logging *l, rp_record_kind kind, rp_buf *payload,
                       const rp_buf *more)
{
    rp_bytes parts[2] = {{payload->data, payload->size}};
    uint64_t lsn;

    if (more != NULL) parts[1] = (rp_bytes){more->data, more->size};
    if (l->is_used != NULL) atomic_store(l->is_used, true);
    lsn = payload->bad || (more != NULL && more->bad)
              ? rp_journal_append_nothing(l->journal)
              : rp_journal_append(l->journal, kind, parts, more != NULL ? 2 : 1, NULL);
    rp_buf_deinit(payload);
    return lsn;
}

static uint64_t on_changed(rp_rollout_log *log, const rp_rollouts *rollouts,
                           const rp_rollout_op *op, const rp_buf *encoded)
{
    rp_rollout_logging *l = (rp_rollout_logging *)log;
    rp_buf payload = begin(l, rollouts);

    if (encoded == NULL) rp_rollout_op_write(&payload, op);
    return append(l, RP_RECORD_ROLLOUTS_OP, &payload, encoded);
}

static uint64_t on_created(rp_rollout_log *log, const rp_rollouts *rollouts,
                           const rp_rollout_options *options)
{
    rp_rollout_logging *l = (rp_rollout_logging *)log;
    rp_buf payload = begin(l, rollouts);

    rp_rollout_options_write(&payload, options);
    return append(l, RP_RECORD_ROLLOUTS_CREATE, &payload, NULL);
}

static uint64_t on_dropped(rp_rollout_log *log, const rp_rollouts *rollouts)
{
    rp_rollout_logging *l = (rp_rollout_logging *)log;
    rp_buf payload = begin(l, rollouts);

    return append(l, RP_RECORD_ROLLOUTS_DROP, &payload, NULL);
}

/* True if the operation may make the image larger by more than a few bytes. */
static bool adds_data(const rp_rollout_op *op)
{
    return op == NULL || op->kind == RP_ROLLOUT_RESERVE || op->kind == RP_ROLLOUT_PUT ||
           op->kind == RP_ROLLOUT_UPDATE || op->kind == RP_ROLLOUT_SET_CURSOR ||
           op->kind == RP_ROLLOUT_CONFIGURE;
}

/* About as many bytes as the operation adds to the journal, and to the image. */
static uint64_t bytes_of(const rp_rollout_op *op)
{
    uint64_t bytes = OP_BYTES;

    if (op == NULL) return bytes;
    bytes += op->data.size;
    for (size_t i = 0; i < op->column_count; i++)
        bytes += COLUMN_BYTES + 2 * op->columns[i].name.size +
                 rp_rollout_tensor_bytes(&op->columns[i].tensor);
    return bytes;
}

/* Tests twice, with was_behind set in between: the pass of the journal that makes room clears
 * was_behind before it wakes those that wait (O2 of store_log.c). */
static bool is_behind(rp_rollout_logging *l, bool adds)
{
    if (!rp_journal_is_behind(l->journal, adds)) return false;
    atomic_store(l->was_behind, true);
    return rp_journal_is_behind(l->journal, adds);
}

static bool claim(rp_rollout_logging *l, uint64_t bytes)
{
    if (rp_journal_claim_space(l->journal, bytes, bytes)) return true;
    atomic_store(l->was_behind, true);
    return rp_journal_claim_space(l->journal, bytes, bytes);
}

static rp_status admit(rp_rollout_journal *journal, const rp_rollout_op *op, uint64_t *claimed,
                       rp_error *err)
{
    rp_rollout_logging *l =
        (rp_rollout_logging *)(void *)((char *)journal -
                                       offsetof(rp_rollout_logging, admissions));
    bool adds = adds_data(op);
    uint64_t bytes, most;

    *claimed = 0;
    if (is_behind(l, adds))
        return rp_fail(
            err, RP_UNAVAILABLE,
            "the journal is behind: the disk does not keep up, or cannot be written. "
            "Nothing was changed");
    if (!l->sync || !adds || rp_journal_is_lost(l->journal)) return RP_OK;
    bytes = bytes_of(op);
    bytes += rp_reserve_for(bytes); /* the record, and the growth of the reserve */
    most = rp_journal_most_space(l->journal);
    if (bytes > most)
        return rp_fail(err, RP_NO_RESOURCE,
                       "an item takes %llu bytes on the disk, which can have at most %llu of "
                       "them; use a larger disk or smaller items",
                       (unsigned long long)bytes, (unsigned long long)most);
    if (!claim(l, bytes))
        return rp_fail(err, RP_UNAVAILABLE,
                       "the disk is full: %llu bytes are needed. Acknowledge groups or make "
                       "room. Nothing was changed",
                       (unsigned long long)bytes);
    *claimed = bytes;
    return RP_OK;
}

static rp_journal *journal_of(rp_rollout_journal *journal)
{
    return ((rp_rollout_logging *)(void *)((char *)journal -
                                           offsetof(rp_rollout_logging, admissions)))
        ->journal;
}

static void unclaim(rp_rollout_journal *journal, uint64_t claimed)
{
    rp_journal_release_space(journal_of(journal), claimed);
}

static rp_status await(rp_rollout_journal *journal, uint64_t lsn, rp_wait wait, rp_error *err)
{
    return rp_journal_wait(journal_of(journal), lsn, wait, err);
}

static uint64_t last(rp_rollout_journal *journal)
{
    return rp_journal_last(journal_of(journal));
}

void rp_rollout_logging_start(rp_rollout_logging *l, rp_store *store)
{
    assert(l->journal != NULL && l->was_behind != NULL);
    l->log =
        (rp_rollout_log){.changed = on_changed, .created = on_created, .dropped = on_dropped};
    l->admissions =
        (rp_rollout_journal){.admit = admit, .unclaim = unclaim, .wait = await, .last = last};
    l->set = rp_store_rollouts(store);
    rp_store_set_rollout_journal(store, &l->admissions);
    rp_rollout_set_set_log(l->set, &l->log);
}

void rp_rollout_logging_stop(rp_rollout_logging *l, rp_store *store)
{
    rp_rollout_set_set_log(l->set, NULL);
    rp_store_set_rollout_journal(store, NULL);
}
