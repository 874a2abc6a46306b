/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/durability_wire.h"

#include <string.h>

#include "util/error.h"
#include "util/printable.h"
#include "wire/fields.h"

enum { STATUS_TABLE = 1, STATUS_WITHOUT_TABLES = 2, STATUS_DURABILITY = 2, PROGRESS = 23 };

rp_status rp_wire_read_status_request(const uint8_t *data, size_t size, rp_string *table,
                                      bool *without_tables, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;
    rp_pb_step step;
    rp_status st = RP_OK;

    *table = (rp_string){"", 0};
    *without_tables = false;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, STATUS_TABLE, RP_PB_BYTES))
            st = rp_wire_read_text(&f, "the table's name", table, err);
        if (rp_pb_is(&f, STATUS_WITHOUT_TABLES, RP_PB_VARINT)) *without_tables = f.value != 0;
        if (st != RP_OK) return st;
    }
    return step == RP_PB_END ? RP_OK : rp_wire_malformed(err, "StatusRequest");
}

/* X(number in the message, field of rp_durable_info, type) */
#define NUMBERS(X)                                                                             \
    X(1, mode, rp_durability)                                                                  \
    X(2, degraded, bool)                                                                       \
    X(4, checkpoints, uint64_t)                                                                \
    X(5, failed_checkpoints, uint64_t)                                                         \
    X(6, last_checkpoint, uint64_t)                                                            \
    X(7, last_checkpoint_age_ns, int64_t)                                                      \
    X(8, last_checkpoint_took_ns, int64_t)                                                     \
    X(9, last_pause_ns, int64_t)                                                               \
    X(10, last_checkpoint_bytes, uint64_t)                                                     \
    X(11, lsn, uint64_t)                                                                       \
    X(12, safe_lsn, uint64_t)                                                                  \
    X(13, segments, uint64_t)                                                                  \
    X(14, disk_bytes, uint64_t)                                                                \
    X(15, live_bytes, uint64_t)                                                                \
    X(16, recovered_items, uint64_t)                                                           \
    X(17, recovered_records, uint64_t)                                                         \
    X(18, torn_bytes, uint64_t)                                                                \
    X(19, resident_bytes, uint64_t)                                                            \
    X(20, spilled_bytes, uint64_t)                                                             \
    X(21, loads, uint64_t)                                                                     \
    X(22, load_bytes, uint64_t)                                                                \
    X(24, backlog_bytes, uint64_t)                                                             \
    X(25, max_backlog_bytes, uint64_t)                                                         \
    X(26, load_hits, uint64_t)

/* The known activities of a server. An unknown activity is shown as the last one. */
static const char *const works[] = {"loading", "redoing", "checkpoint", "verifying", "working"};
enum { WORKS = sizeof works / sizeof works[0] };

static void put_progress(rp_buf *out, const rp_durable_progress *progress)
{
    size_t mark;

    if (progress->what == NULL) return;
    mark = rp_wire_begin(out, PROGRESS);
    rp_wire_put_text(out, 1, progress->what);
    rp_wire_put_number(out, 2, progress->done);
    rp_wire_put_number(out, 3, progress->total);
    rp_wire_put_int(out, 4, progress->elapsed_ns);
    rp_wire_put_int(out, 5, progress->left_ns);
    rp_wire_end(out, mark);
}

void rp_wire_write_durability(rp_buf *out, const rp_durable_info *info)
{
    size_t mark = rp_wire_begin(out, STATUS_DURABILITY);

    rp_wire_put_text(out, 3, info->trouble);
#define PUT(number, field, type) rp_wire_put_number(out, number, (uint64_t)info->field);
    NUMBERS(PUT)
#undef PUT
    put_progress(out, &info->progress);
    rp_wire_end(out, mark);
}

/* Copies a text, cut to fit. False if it is not text. */
static bool copy_text(const rp_pb_field *f, char *out, size_t room)
{
    size_t size = f->size < room - 1 ? f->size : room - 1;

    if (!rp_wire_is_text(f->data, f->size)) return false;
    if (size < f->size) size = rp_utf8_whole((const char *)f->data, size);
    memcpy(out, f->data, size);
    out[size] = '\0';
    return true;
}

static const char *work_of(const rp_pb_field *f)
{
    for (size_t i = 0; i < WORKS; i++)
        if (strlen(works[i]) == f->size && memcmp(works[i], f->data, f->size) == 0)
            return works[i];
    return works[WORKS - 1];
}

static bool read_progress(const rp_pb_field *field, rp_durable_progress *out)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    out->what = works[WORKS - 1];
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) out->what = work_of(&f);
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) out->done = f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) out->total = f.value;
        if (rp_pb_is(&f, 4, RP_PB_VARINT)) out->elapsed_ns = (int64_t)f.value;
        if (rp_pb_is(&f, 5, RP_PB_VARINT)) out->left_ns = (int64_t)f.value;
    }
    return step == RP_PB_END;
}

static bool read_info(const rp_pb_field *field, rp_durable_info *out)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;
    bool ok = true;

    while (ok && (step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 3, RP_PB_BYTES)) ok = copy_text(&f, out->trouble, sizeof out->trouble);
        if (rp_pb_is(&f, PROGRESS, RP_PB_BYTES)) ok = read_progress(&f, &out->progress);
        if (f.type != RP_PB_VARINT) continue;
        /* An unknown mode, of a newer server, counts as the safest known one. */
        if (f.number == 1 && f.value > RP_DURABLE_SYNC) f.value = RP_DURABLE_SYNC;
        switch (f.number) {
#define READ(number, field, type)                                                              \
    case number: out->field = (type)f.value; break;
            NUMBERS(READ)
#undef READ
        default: break;
        }
    }
    return ok && step == RP_PB_END;
}

rp_status rp_wire_read_durability(const uint8_t *data, size_t size, bool *is_there,
                                  rp_durable_info *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;
    rp_pb_step step;
    rp_durable_info info = {0};
    bool found = false, ok = true;

    while (ok && (step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, STATUS_DURABILITY, RP_PB_BYTES)) continue;
        found = true;
        ok = read_info(&f, &info);
    }
    if (!ok || step != RP_PB_END)
        return rp_fail(err, RP_CORRUPT, "the answer is no StatusResponse");
    *is_there = found;
    *out = info;
    return RP_OK;
}
