/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of proto/reprise/v1/rollouts.proto. */
#include "rollouts/rollout_messages.h"
#include "util/error.h"
#include "wire/fields.h"

enum { NS_PER_MS = 1000000 };

static rp_status read_name(const rp_pb_field *f, rp_string *out, rp_error *err)
{
    return rp_wire_read_text(f, "the name of the rollouts", out, err);
}

rp_status rp_rollout_create_read(const rp_allocator *alloc, const uint8_t *data, size_t size,
                                 rp_string *name, rp_rollout_options **options, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    const uint8_t *bytes = NULL; /* of the options */
    size_t bytes_size = 0;
    rp_status st = RP_OK;
    rp_pb_step step;
    rp_pb_field f;

    *name = (rp_string){"", 0};
    *options = NULL;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) st = read_name(&f, name, err);
        if (!rp_pb_is(&f, 2, RP_PB_BYTES)) continue;
        bytes = f.data;
        bytes_size = f.size;
    }
    if (st != RP_OK) return st;
    if (step != RP_PB_END) return rp_wire_malformed(err, "CreateRolloutsRequest");
    if (bytes == NULL) return rp_fail(err, RP_INVALID, "the request has no options");
    return rp_rollout_options_read(alloc, bytes, bytes_size, options, err);
}

void rp_rollout_create_write(rp_buf *out, rp_string name, const rp_rollout_options *options)
{
    size_t mark;

    rp_wire_put_bytes(out, 1, name.data, name.size);
    mark = rp_wire_begin(out, 2);
    rp_rollout_options_write(out, options);
    rp_wire_end(out, mark);
}

rp_status rp_rollout_names_read(const uint8_t *data, size_t size, rp_rollout_names *out,
                                rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_status st = RP_OK;
    rp_pb_step step;
    rp_pb_field f;

    *out = (rp_rollout_names){.rollouts = {"", 0}, .other = {"", 0}};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) st = read_name(&f, &out->rollouts, err);
        if (rp_pb_is(&f, 2, RP_PB_BYTES))
            st = rp_wire_read_text(&f, "the name in the request", &out->other, err);
    }
    if (st != RP_OK) return st;
    return step == RP_PB_END ? RP_OK : rp_wire_malformed(err, "a request to rollouts");
}

void rp_rollout_names_write(rp_buf *out, const rp_rollout_names *names)
{
    rp_wire_put_bytes(out, 1, names->rollouts.data, names->rollouts.size);
    rp_wire_put_bytes(out, 2, names->other.data, names->other.size);
}

rp_status rp_rollout_apply_read(const rp_allocator *alloc, const uint8_t *data, size_t size,
                                rp_rollout_apply *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    const uint8_t *op = NULL;
    size_t op_size = 0;
    int64_t waited_ms = 0;
    rp_status st = RP_OK;
    rp_pb_step step;
    rp_pb_field f;

    *out = (rp_rollout_apply){.rollouts = {"", 0}};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) st = read_name(&f, &out->rollouts, err);
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) out->timeout_ms = (int64_t)f.value;
        if (rp_pb_is(&f, 4, RP_PB_VARINT)) waited_ms = (int64_t)f.value;
        if (!rp_pb_is(&f, 2, RP_PB_BYTES)) continue;
        op = f.data;
        op_size = f.size;
    }
    if (st != RP_OK) return st;
    if (step != RP_PB_END) return rp_wire_malformed(err, "ApplyRolloutsRequest");
    if (op == NULL) return rp_fail(err, RP_INVALID, "the request has no operation");
    st = rp_rollout_op_read(alloc, op, op_size, &out->op, err);
    if (waited_ms > 0 && waited_ms < INT64_MAX / NS_PER_MS)
        out->op.waited_ns = waited_ms * NS_PER_MS;
    if (st != RP_OK || out->op.kind != RP_ROLLOUT_EXPIRE) return st;
    rp_rollout_op_deinit(&out->op, alloc);
    return rp_fail(err, RP_INVALID, "only the server expires groups and leases");
}

void rp_rollout_apply_write(rp_buf *out, const rp_rollout_apply *apply)
{
    size_t mark;

    rp_wire_put_bytes(out, 1, apply->rollouts.data, apply->rollouts.size);
    rp_wire_put_int(out, 3, apply->timeout_ms);
    rp_wire_put_int(out, 4, apply->op.waited_ns / NS_PER_MS);
    mark = rp_wire_begin(out, 2);
    rp_rollout_op_write(out, &apply->op);
    rp_wire_end(out, mark);
}
