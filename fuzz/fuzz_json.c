/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines of JSON. A value that is read must be the same after it was written and read
 * again. The line is also read as an item. If it is one, its tensors must be the same after the
 * item was written and read again. */
#include <math.h>
#include <stdio.h>

#include "cli/text/item_text.h"
#include "fuzz.h"

static void write_value(rp_text_buffer *out, const rp_json *v)
{
    switch (v->kind) {
    case RP_JSON_NULL: rp_json_put_text(out, NULL); break;
    case RP_JSON_FALSE: rp_json_put_boolean(out, false); break;
    case RP_JSON_TRUE: rp_json_put_boolean(out, true); break;
    case RP_JSON_INTEGER: rp_json_put_integer(out, v->u.integer); break;
    case RP_JSON_UNSIGNED: rp_json_put_unsigned(out, v->u.number_unsigned); break;
    case RP_JSON_NUMBER: rp_json_put_number(out, v->u.number); break;
    case RP_JSON_STRING: rp_json_put_string(out, v->u.string.text, v->u.string.size); break;
    case RP_JSON_ARRAY:
    case RP_JSON_OBJECT:
        rp_json_open(out, v->kind == RP_JSON_ARRAY ? '[' : '{');
        for (const rp_json *n = v->child; n != NULL; n = n->next) {
            if (v->kind == RP_JSON_OBJECT) rp_json_key(out, n->key);
            write_value(out, n);
        }
        rp_json_close(out, v->kind == RP_JSON_ARRAY ? ']' : '}');
        break;
    }
}

static double number_of(const rp_json *v)
{
    if (v->kind == RP_JSON_INTEGER) return (double)v->u.integer;
    if (v->kind == RP_JSON_UNSIGNED) return (double)v->u.number_unsigned;
    return v->kind == RP_JSON_NUMBER ? v->u.number : 0;
}

/* Checks that two values are equal. A whole number may be read again as an integer. */
static void check_same(const rp_json *a, const rp_json *b)
{
    if (a->kind == RP_JSON_NUMBER) {
        fuzz_check(number_of(a) == number_of(b));
        return;
    }
    fuzz_check(a->kind == b->kind);
    if (a->kind == RP_JSON_INTEGER) fuzz_check(a->u.integer == b->u.integer);
    if (a->kind == RP_JSON_STRING)
        fuzz_check(a->u.string.size == b->u.string.size &&
                   memcmp(a->u.string.text, b->u.string.text, a->u.string.size) == 0);
    if (a->kind != RP_JSON_ARRAY && a->kind != RP_JSON_OBJECT) return;
    fuzz_check(a->u.count == b->u.count);
    for (a = a->child, b = b->child; a != NULL; a = a->next, b = b->next) {
        fuzz_check((a->key == NULL) == (b->key == NULL));
        if (a->key != NULL) fuzz_check(strcmp(a->key, b->key) == 0);
        check_same(a, b);
    }
}

static void check_value(rp_arena *arena, const char *text, size_t size)
{
    rp_json *first, *second;
    rp_json_error error;
    rp_text_buffer buffer = {0};

    if (rp_json_parse(arena, text, size, &first, &error) != RP_OK) {
        fuzz_check(error.offset <= size && error.what != NULL);
        return;
    }
    write_value(&buffer, first);
    fuzz_check(rp_json_parse(arena, rp_text_buffer_text(&buffer), buffer.size, &second,
                             &error) == RP_OK);
    check_same(first, second);
    rp_text_buffer_deinit(&buffer);
}

static void check_item(rp_arena *arena, const char *text, size_t size)
{
    static rp_line_columns columns, again;
    const rp_place place = {"line", 1, 1};
    rp_sample sample = {.key = 1, .probability = 1};
    rp_item_line first, second;
    rp_text_buffer buffer = {0};
    rp_problem problem;

    columns.count = again.count = 0;
    columns.arena = again.arena = arena;
    if (rp_item_line_parse(arena, text, size, &columns, &place, &first, &problem) != RP_OK)
        return;
    sample.priority = first.priority;
    rp_item_json(&buffer,
                 &(rp_item_view){"t", &sample, columns.names, first.tensors, columns.count});
    fuzz_check(rp_item_line_parse(arena, rp_text_buffer_text(&buffer), buffer.size, &again,
                                  &place, &second, &problem) == RP_OK);
    for (size_t i = 0; i < columns.count; i++) {
        const rp_tensor *a = &first.tensors[i], *b = &second.tensors[i];
        size_t elements;

        fuzz_check(a->dtype == b->dtype && rp_shape_equal(&a->shape, &b->shape));
        fuzz_check(rp_shape_elements(&a->shape, &elements) == RP_OK);
        for (size_t k = 0; k < elements && a->dtype != RP_STRING; k++) {
            size_t at = k * rp_dtype_size(a->dtype);
            double x = rp_element_number(a->dtype, (const char *)a->data + at);
            double y = rp_element_number(b->dtype, (const char *)b->data + at);

            fuzz_check(x == y || (isnan(x) && isnan(y)));
        }
    }
    rp_text_buffer_deinit(&buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size > 0 ? (const char *)data : "";
    rp_arena arena;

    if (size > FUZZ_MAX_BYTES) return 0;
    rp_arena_init(&arena, NULL);
    check_value(&arena, text, size);
    check_item(&arena, text, size);
    rp_arena_deinit(&arena);
    return 0;
}
