/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of the journal, and payloads of its records. The first byte chooses a whole file,
 * or the kind of a payload. What is accepted must be within bounds, and must be the same after
 * it was written and read again. */
#include "disk/journal_read.h"
#include "durable/format/journal_records.h"
#include "durable/format/rollout_records.h"
#include "fuzz.h"

enum { KINDS = RP_RECORD_PAUSE - RP_RECORD_INSERT + 1, WHOLE_FILE = KINDS, DROP, ROLLOUTS };

static rp_status on_record(void *ctx, const rp_record *record, rp_error *err)
{
    uint64_t *last = ctx;

    (void)err;
    fuzz_check(record->number == *last + 1);
    *last = record->number;
    return RP_OK;
}

static void walk(const uint8_t *data, size_t size)
{
    static const rp_store_id store = {{1, 2, 3}};
    rp_journal_end end;
    uint64_t last = 2;

    if (rp_journal_walk((rp_bytes){data, size}, 3, &store, on_record, &last, &end, NULL) !=
        RP_OK)
        return;
    fuzz_check(end.lsn == last && end.offset <= size);
    fuzz_check(end.is_damaged || end.offset == size);
}

static void check_items(const rp_decoded_change *decoded)
{
    for (size_t i = 0; i < decoded->change.count; i++) {
        const rp_decoded_item *item = &decoded->items[i];

        fuzz_check(decoded->inserted[i].times_sampled >= 0);
        fuzz_check((size_t)item->first_column + item->column_count <= decoded->column_count);
        for (size_t c = 0; c < item->column_count; c++) {
            const rp_decoded_column *column = &decoded->columns[item->first_column + c];

            fuzz_check(column->slice_count > 0);
            fuzz_check((size_t)column->first_slice + column->slice_count <=
                       decoded->slice_count);
        }
    }
    for (size_t i = 0; i < decoded->slice_count; i++)
        fuzz_check(decoded->slices[i].location < decoded->location_count &&
                   decoded->slices[i].length > 0);
}

/* Inserts are left out, since they refer to chunks, which do not exist here. */
static void write_again(const rp_decoded_change *decoded, rp_record_kind kind)
{
    static rp_decoded_change again;
    rp_journal_encoder encoder;
    rp_buf out;

    rp_journal_encoder_init(&encoder, rp_allocator_default());
    rp_buf_init(&out, rp_allocator_default());
    rp_decoded_change_init(&again, rp_allocator_default());
    fuzz_check(rp_journal_encode(&encoder, decoded->table, &decoded->change, NULL, NULL,
                                 &out) == RP_OK);
    fuzz_check(rp_decoded_change_read(&again, kind, out.data, out.size, NULL) == RP_OK);
    fuzz_check(again.change.count == decoded->change.count &&
               again.change.distinct == decoded->change.distinct &&
               again.change.by_extension == decoded->change.by_extension &&
               again.change.paused == decoded->change.paused);
    fuzz_check(again.table.size == decoded->table.size &&
               memcmp(again.table.data, decoded->table.data, decoded->table.size) == 0);
    if (kind == RP_RECORD_DELETE)
        fuzz_check(
            memcmp(again.keys, decoded->keys, decoded->change.count * sizeof(uint64_t)) == 0);
    if (kind == RP_RECORD_UPDATE)
        fuzz_check(memcmp(again.updates, decoded->updates,
                          decoded->change.count * sizeof(rp_update)) == 0);
    rp_decoded_change_deinit(&again);
    rp_buf_deinit(&out);
    rp_journal_encoder_deinit(&encoder);
}

/* The operation and the options behind the name have targets of their own. */
static void read_rollouts(const uint8_t *data, size_t size)
{
    rp_rollout_record record;
    rp_buf out;

    for (int kind = RP_RECORD_ROLLOUTS_CREATE; kind <= RP_RECORD_ROLLOUTS_DROP; kind++) {
        if (rp_rollout_record_read((rp_record_kind)kind, data, size, &record, NULL) != RP_OK)
            continue;
        fuzz_check(record.name.size >= 1 && record.name.size <= RP_ROLLOUT_NAME_BYTES);
        fuzz_check(kind != RP_RECORD_ROLLOUTS_DROP || record.body.size == 0);
        rp_buf_init(&out, rp_allocator_default());
        rp_rollout_record_write_name(&out, record.name);
        fuzz_check(out.size + record.body.size <= size);
        rp_buf_deinit(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static rp_decoded_change decoded;
    rp_record_kind kind;
    rp_string name;
    rp_error err = {.text = ""};
    unsigned what;
    rp_status st;

    if (size == 0 || size > FUZZ_MAX_BYTES) return 0;
    what = data[0] % (ROLLOUTS + 1);
    data++, size--;
    if (what == WHOLE_FILE) {
        walk(data, size);
        return 0;
    }
    if (what == DROP) {
        if (rp_journal_read_drop(data, size, &name, &err) == RP_OK)
            fuzz_check(name.size > 0 && name.size <= RP_MAX_TABLE_NAME_BYTES);
        return 0;
    }
    if (what == ROLLOUTS) {
        read_rollouts(data, size);
        return 0;
    }
    kind = (rp_record_kind)(RP_RECORD_INSERT + what);
    rp_decoded_change_init(&decoded, rp_allocator_default());
    st = rp_decoded_change_read(&decoded, kind, data, size, &err);
    fuzz_check(st == RP_OK || (st == RP_CORRUPT && err.text[0] != '\0'));
    if (st == RP_OK) {
        fuzz_check(rp_journal_kind_of(&decoded.change) == kind);
        if (kind == RP_RECORD_INSERT)
            check_items(&decoded);
        else
            write_again(&decoded, kind);
    }
    rp_decoded_change_deinit(&decoded);
    return 0;
}
