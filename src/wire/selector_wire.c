/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/selector_wire.h"

#include <assert.h>

enum {
    DISTRIBUTION_FIFO = 1,
    DISTRIBUTION_UNIFORM = 2,
    DISTRIBUTION_PRIORITIZED = 3,
    DISTRIBUTION_HEAP = 4,
    DISTRIBUTION_LIFO = 6,
};

static bool is_message(uint32_t which)
{
    return which == DISTRIBUTION_PRIORITIZED || which == DISTRIBUTION_HEAP;
}

/* Reads a Prioritized or Heap message. */
static bool read_parameter(const rp_pb_field *field, rp_wire_selector *selector)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (field->number == DISTRIBUTION_PRIORITIZED && rp_pb_is(&f, 1, RP_PB_FIXED64))
            selector->exponent = rp_wire_double(&f);
        if (field->number == DISTRIBUTION_HEAP && rp_pb_is(&f, 1, RP_PB_VARINT))
            selector->min_heap = f.value != 0;
    }
    return step == RP_PB_END;
}

bool rp_wire_read_selector(const rp_pb_field *field, rp_wire_selector *selector)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    selector->present = true;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (f.number > DISTRIBUTION_LIFO || f.number == 5) continue;
        if (f.type != (is_message(f.number) ? RP_PB_BYTES : RP_PB_VARINT)) continue;
        /* Another member of the oneof replaces the previous one. */
        if (f.number != selector->which)
            *selector = (rp_wire_selector){.present = true, .which = f.number};
        if (is_message(f.number) && !read_parameter(&f, selector)) return false;
    }
    return step == RP_PB_END;
}

bool rp_wire_take_selector(const rp_wire_selector *selector, rp_selector_options *out)
{
    assert(selector->which <= DISTRIBUTION_LIFO); /* rp_wire_read_selector() sets no other */
    if (!selector->present) return true;
    switch (selector->which) {
    case DISTRIBUTION_FIFO: *out = (rp_selector_options){RP_FIFO, 0}; return true;
    case DISTRIBUTION_UNIFORM: *out = (rp_selector_options){RP_UNIFORM, 0}; return true;
    case DISTRIBUTION_LIFO: *out = (rp_selector_options){RP_LIFO, 0}; return true;
    case DISTRIBUTION_PRIORITIZED:
        *out = (rp_selector_options){RP_PRIORITIZED, selector->exponent};
        return true;
    case DISTRIBUTION_HEAP:
        *out = (rp_selector_options){selector->min_heap ? RP_MIN_HEAP : RP_MAX_HEAP, 0};
        return true;
    default: return false;
    }
}

void rp_wire_put_selector(rp_buf *out, uint32_t number, const rp_selector_options *options)
{
    size_t mark = rp_wire_begin(out, number), inner;

    switch (options->kind) {
    case RP_FIFO: rp_wire_put_number(out, 1, true); break;
    case RP_UNIFORM: rp_wire_put_number(out, 2, true); break;
    case RP_LIFO: rp_wire_put_number(out, 6, true); break;
    case RP_PRIORITIZED:
        inner = rp_wire_begin(out, 3);
        rp_wire_put_double(out, 1, options->exponent);
        rp_wire_end(out, inner);
        break;
    case RP_MIN_HEAP:
    case RP_MAX_HEAP:
        inner = rp_wire_begin(out, 4);
        rp_wire_put_number(out, 1, options->kind == RP_MIN_HEAP);
        rp_wire_end(out, inner);
        break;
    }
    assert(out->bad || out->size > mark);
    rp_wire_put_number(out, 7, options->kind != RP_UNIFORM && options->kind != RP_PRIORITIZED);
    rp_wire_end(out, mark);
}
