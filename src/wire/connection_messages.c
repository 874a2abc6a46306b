/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/connection_messages.h"

#include "util/error.h"
#include "wire/fields.h"

static void put_string(rp_buf *out, uint32_t number, rp_string text)
{
    rp_wire_put_bytes(out, number, text.data, text.size);
}

void rp_wire_write_connection(rp_buf *out, const rp_wire_connection *c)
{
    size_t mark = rp_wire_begin(out, 1);

    rp_wire_put_number(out, 1, c->id);
    put_string(out, 2, c->address);
    put_string(out, 3, c->role);
    put_string(out, 4, c->protocol);
    rp_wire_put_int(out, 5, c->open_ms);
    rp_wire_put_number(out, 6, c->calls);
    rp_wire_put_number(out, 7, c->bytes_in);
    rp_wire_put_number(out, 8, c->bytes_out);
    rp_wire_put_number(out, 9, c->is_caller);
    rp_wire_end(out, mark);
}

void rp_wire_write_connection_total(rp_buf *out, size_t total)
{
    rp_wire_put_number(out, 2, total);
}

static int64_t read_ms(uint64_t value)
{
    const int64_t most = INT64_MAX / 1000000; /* it may be converted to nanoseconds */
    int64_t ms = (int64_t)value;

    if (ms < 0) return 0;
    return ms < most ? ms : most;
}

static void read_number(const rp_pb_field *f, rp_wire_connection *c)
{
    switch (f->number) {
    case 1: c->id = f->value; break;
    case 5: c->open_ms = read_ms(f->value); break;
    case 6: c->calls = f->value; break;
    case 7: c->bytes_in = f->value; break;
    case 8: c->bytes_out = f->value; break;
    case 9: c->is_caller = f->value != 0; break;
    default: break;
    }
}

static rp_status read_connection(const rp_pb_field *field, rp_wire_connection *out,
                                 rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    const rp_string empty = {"", 0};
    rp_status st = RP_OK;
    rp_pb_field f;
    rp_pb_step step;

    *out = (rp_wire_connection){.address = empty, .role = empty, .protocol = empty};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (f.type == RP_PB_VARINT) read_number(&f, out);
        if (rp_pb_is(&f, 2, RP_PB_BYTES))
            st = rp_wire_read_text(&f, "a client's address", &out->address, err);
        else if (rp_pb_is(&f, 3, RP_PB_BYTES))
            st = rp_wire_read_text(&f, "a client's role", &out->role, err);
        else if (rp_pb_is(&f, 4, RP_PB_BYTES))
            st = rp_wire_read_text(&f, "a client's protocol", &out->protocol, err);
    }
    if (st == RP_OK && step != RP_PB_END) st = rp_wire_malformed(err, "Connection");
    return rp_wire_blame_peer(st, err);
}

rp_status rp_wire_read_connections(const uint8_t *data, size_t size, rp_wire_connections *out,
                                   rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    size_t read = 0, total = 0;
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) total = (size_t)f.value;
        if (!rp_pb_is(&f, 1, RP_PB_BYTES) || read == out->capacity) continue;
        st = read_connection(&f, &out->list[read], err);
        if (st != RP_OK) return st;
        read++;
    }
    if (step != RP_PB_END)
        return rp_wire_blame_peer(rp_wire_malformed(err, "ClientsResponse"), err);
    out->count = read;
    out->total = total > read ? total : read;
    return RP_OK;
}
