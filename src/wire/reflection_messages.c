/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/reflection_messages.h"

#include <assert.h>

#include "wire/descriptors.h"
#include "wire/fields.h"

enum {
    ANSWER_HOST = 1,
    ANSWER_REQUEST = 2,
    ANSWER_FILES = 4,
    ANSWER_SERVICES = 6,
    ANSWER_ERROR = 7,
};

static rp_status read_extension(const rp_pb_field *field, rp_wire_reflection_request *r,
                                rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) r->extension_number = rp_wire_int32(&f);
        if (!rp_pb_is(&f, 1, RP_PB_BYTES)) continue;
        st = rp_wire_read_text(&f, "the type's name", &r->text, err);
        if (st != RP_OK) return st;
    }
    return step == RP_PB_END ? RP_OK : rp_wire_malformed(err, "ExtensionRequest");
}

static rp_status read_field(const rp_pb_field *f, rp_wire_reflection_request *r, rp_error *err)
{
    if (f->type != RP_PB_BYTES) return RP_OK;
    if (f->number == 1) return rp_wire_read_text(f, "the host", &r->host, err);
    if (f->number < RP_WIRE_REFLECT_FILE || f->number > RP_WIRE_REFLECT_SERVICES) return RP_OK;
    /* Members of a oneof: the last counts, and an extension is merged with one before it. */
    if (f->number != RP_WIRE_REFLECT_EXTENSION || r->kind != RP_WIRE_REFLECT_EXTENSION) {
        r->text = (rp_string){"", 0};
        r->extension_number = 0;
    }
    r->kind = (rp_wire_reflection_kind)f->number;
    if (r->kind == RP_WIRE_REFLECT_EXTENSION) return read_extension(f, r, err);
    return rp_wire_read_text(f, "the name", &r->text, err);
}

rp_status rp_wire_read_reflection_request(const uint8_t *data, size_t size,
                                          rp_wire_reflection_request *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_wire_reflection_request found = {.host = {"", 0}, .text = {"", 0}};
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        st = read_field(&f, &found, err);
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END) return rp_wire_malformed(err, "ServerReflectionRequest");
    *out = found;
    return RP_OK;
}

static void put_request(rp_buf *out, const rp_wire_reflection_request *r)
{
    size_t mark = rp_wire_begin(out, ANSWER_REQUEST);

    rp_wire_put_bytes(out, 1, r->host.data, r->host.size);
    if (r->kind == RP_WIRE_REFLECT_EXTENSION) {
        size_t inner = rp_wire_begin(out, (uint32_t)r->kind);
        rp_wire_put_bytes(out, 1, r->text.data, r->text.size);
        rp_wire_put_int(out, 2, r->extension_number);
        rp_wire_end(out, inner);
    } else if (r->kind != RP_WIRE_REFLECT_NOTHING) {
        rp_wire_put_bytes_always(out, (uint32_t)r->kind, r->text.data, r->text.size);
    }
    rp_wire_end(out, mark);
}

static void put_error(rp_buf *out, rp_status code, const char *what, rp_string name)
{
    size_t mark = rp_wire_begin(out, ANSWER_ERROR), text;

    rp_wire_put_number(out, 1, (uint64_t)code);
    text = rp_wire_begin(out, 2);
    rp_buf_text(out, what);
    rp_buf_append(out, name.data, name.size);
    rp_wire_end(out, text);
    rp_wire_end(out, mark);
}

static void put_file(rp_buf *out, const rp_wire_file *file)
{
    size_t mark = rp_wire_begin(out, ANSWER_FILES);

    rp_wire_put_bytes(out, 1, file->data, file->size);
    for (size_t i = 0; i < file->need_count; i++) {
        assert(file->needs[i] < rp_wire_file_count);
        const rp_wire_file *needed = &rp_wire_files[file->needs[i]];
        rp_wire_put_bytes(out, 1, needed->data, needed->size);
    }
    rp_wire_end(out, mark);
}

static void put_services(rp_buf *out)
{
    size_t mark = rp_wire_begin(out, ANSWER_SERVICES);

    for (size_t i = 0; i < rp_wire_service_count; i++) {
        size_t service = rp_wire_begin(out, 1);
        rp_wire_put_text(out, 1, rp_wire_services[i]);
        rp_wire_end(out, service);
    }
    rp_wire_end(out, mark);
}

static void put_file_or_error(rp_buf *out, const rp_wire_file *file, const char *what,
                              rp_string name)
{
    if (file != NULL)
        put_file(out, file);
    else
        put_error(out, RP_NOT_FOUND, what, name);
}

void rp_wire_write_reflection_response(rp_buf *out, const rp_wire_reflection_request *request)
{
    rp_string name = request->text;

    rp_wire_put_bytes(out, ANSWER_HOST, request->host.data, request->host.size);
    put_request(out, request);
    switch (request->kind) {
    case RP_WIRE_REFLECT_SERVICES: put_services(out); return;
    case RP_WIRE_REFLECT_FILE:
        put_file_or_error(out, rp_wire_find_file(name), "no such file: ", name);
        return;
    case RP_WIRE_REFLECT_SYMBOL:
        put_file_or_error(out, rp_wire_find_symbol(name), "no such symbol: ", name);
        return;
    case RP_WIRE_REFLECT_EXTENSION:
    case RP_WIRE_REFLECT_EXTENSION_NUMBERS:
        put_error(out, RP_NOT_FOUND, "no extensions of this type: ", name);
        return;
    case RP_WIRE_REFLECT_NOTHING: break;
    }
    put_error(out, RP_UNIMPLEMENTED, "the request asks for nothing that is known",
              (rp_string){"", 0});
}
