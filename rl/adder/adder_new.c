/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and frees adders. */
#include <assert.h>
#include <string.h>

#include "adder/adder_inside.h"
#include "error/fail.h"

void *rp_adder_take(rp_adder *a, size_t count, size_t size)
{
    enum { HEAD = (sizeof(rp_adder_block) + 15) / 16 * 16 };
    rp_adder_block *block;
    size_t bytes;

    assert(size > 0);
    if (count > (SIZE_MAX - HEAD) / size) return NULL;
    bytes = HEAD + count * size;
    block = a->alloc.resize(a->alloc.ctx, NULL, 0, bytes);
    if (block == NULL) return NULL;
    memset(block, 0, bytes);
    block->next = a->blocks;
    block->bytes = bytes;
    a->blocks = block;
    return (char *)block + HEAD;
}

void rp_adder_free(rp_adder *adder)
{
    rp_allocator alloc;

    if (adder == NULL) return;
    alloc = adder->alloc;
    rp_trajectory_writer_free(adder->writer);
    while (adder->blocks != NULL) {
        rp_adder_block *block = adder->blocks;
        adder->blocks = block->next;
        (void)alloc.resize(alloc.ctx, block, block->bytes, 0);
    }
    (void)alloc.resize(alloc.ctx, adder, sizeof *adder, 0);
}

void rp_adder_fit_env(rp_adder_options *options, const rp_env *env)
{
    const rp_env_spec *spec = rp_env_get_spec(env);

    options->copies = rp_env_copies(env);
    options->observation = (rp_spec){NULL, spec->observation_dtype, spec->observation_shape};
    options->action = (rp_spec){NULL, RP_INT32, {0}};
    if (spec->action_kind == RP_ACTION_BOX)
        options->action =
            (rp_spec){NULL, RP_FLOAT32, {.rank = 1, .dims = {(int64_t)spec->action_size}}};
}

static const char *copy_text(rp_adder *a, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = rp_adder_take(a, size, 1);

    if (copy != NULL) memcpy(copy, text, size);
    return copy;
}

static rp_status fill_tables(rp_adder *a, const rp_adder_options *o, rp_error *err)
{
    if (o->table_count < 1) return rp_rl_fail(err, RP_INVALID, "adder: no table was named");
    a->tables = rp_adder_take(a, o->table_count, sizeof *a->tables);
    if (a->tables == NULL) return rp_rl_fail_memory(err, o->table_count * sizeof *a->tables);
    a->table_count = o->table_count;
    for (size_t i = 0; i < a->table_count; i++) {
        a->tables[i] = o->tables[i];
        if (a->tables[i].name == NULL)
            return rp_rl_fail(err, RP_INVALID, "adder: table %zu has no name", i);
        for (size_t k = 0; k < i; k++)
            if (strcmp(a->tables[i].name, a->tables[k].name) == 0)
                return rp_rl_fail(err, RP_INVALID, "adder: table '%.64s' is given twice",
                                  a->tables[i].name);
        a->tables[i].name = copy_text(a, o->tables[i].name);
        if (a->tables[i].name == NULL) return rp_rl_fail_memory(err, sizeof(char *));
        if (a->tables[i].prioritize != NULL) a->prioritizes = true;
    }
    return RP_OK;
}

static rp_status fill_layout(rp_adder *a, const rp_adder_options *o, rp_error *err)
{
    size_t count = RP_AT_EXTRAS + o->extra_count;
    rp_status st;

    a->layout.columns = rp_adder_take(a, count, sizeof *a->layout.columns);
    if (a->layout.columns == NULL)
        return rp_rl_fail_memory(err, count * sizeof *a->layout.columns);
    st = rp_adder_lay_out(o, &a->layout, err);
    for (size_t i = RP_AT_EXTRAS; st == RP_OK && i < count; i++) {
        rp_spec *spec = &a->layout.columns[i].spec;
        spec->name = copy_text(a, spec->name);
        if (spec->name == NULL) st = rp_rl_fail_memory(err, sizeof(char *));
    }
    return st;
}

/* Allocates what all kinds use. */
static rp_status take_scratch(rp_adder *a, rp_error *err)
{
    size_t columns = a->layout.column_count;

    assert(a->item_room >= 1);
    a->begun = rp_adder_take(a, a->copies, sizeof *a->begun);
    a->ended = rp_adder_take(a, a->copies, sizeof *a->ended);
    a->discounts = rp_adder_take(a, a->copies, a->layout.discount_size * sizeof *a->discounts);
    a->values = rp_adder_take(a, columns, sizeof *a->values);
    a->item = rp_adder_take(a, columns, sizeof *a->item);
    a->priorities = rp_adder_take(a, a->table_count, a->item_room * sizeof *a->priorities);
    if (a->begun == NULL || a->ended == NULL || a->discounts == NULL || a->values == NULL ||
        a->item == NULL || a->priorities == NULL)
        return rp_rl_fail(err, RP_NO_RESOURCE, "no memory for an adder of %zu copies",
                          a->copies);
    for (size_t i = 0; i < a->table_count * a->item_room; i++) a->priorities[i] = 1;
    return RP_OK;
}

static size_t default_in_flight(rp_adder_kind kind)
{
    return kind == RP_ADDER_N_STEP ? 5 : kind == RP_ADDER_SEQUENCE ? 2 : 1;
}

enum { MOST_GROUP = 128 }; /* items that the writer hands over at once */

/* Opens the writer. It never waits for room by itself: rp_adder_add() does before it changes
 * anything. */
static rp_status open_writer(rp_adder *a, rp_client *client, const rp_adder_options *o,
                             rp_wait wait, rp_error *err)
{
    rp_trajectory_writer_options options = {.column.history = 1,
                                            .unchecked = o->unchecked,
                                            .max_items = SIZE_MAX / 2,
                                            .max_bytes = SIZE_MAX / 2,
                                            .group = MOST_GROUP};
    size_t each = o->max_in_flight > 0 ? o->max_in_flight : default_in_flight(a->kind);
    size_t writers = a->copies * a->table_count;
    rp_status st;

    a->leave = each > SIZE_MAX / 4 / writers ? SIZE_MAX / 4 : each * writers;
    st = rp_trajectory_writer_new(client, &options, wait, &a->writer, err);
    if (st != RP_OK) return st;
    return a->kind == RP_ADDER_N_STEP ? rp_transitions_configure(a, o, err)
                                      : rp_sequences_configure(a, o, err);
}

rp_status rp_adder_new(rp_client *client, const rp_adder_options *options, rp_wait wait,
                       rp_adder **out, rp_error *err)
{
    const rp_allocator *alloc =
        options->alloc != NULL ? options->alloc : rp_allocator_default();
    rp_adder *a = alloc->resize(alloc->ctx, NULL, 0, sizeof *a);
    rp_status st;

    if (a == NULL) return rp_rl_fail_memory(err, sizeof *a);
    memset(a, 0, sizeof *a);
    a->alloc = *alloc;
    a->kind = options->kind;
    a->copies = a->waiting = options->copies;
    st = fill_layout(a, options, err);
    if (st == RP_OK) st = fill_tables(a, options, err);
    if (st == RP_OK)
        st = a->kind == RP_ADDER_N_STEP ? rp_transitions_new(a, options, err)
                                        : rp_sequences_new(a, options, err);
    if (st == RP_OK) st = take_scratch(a, err);
    if (st == RP_OK) st = open_writer(a, client, options, wait, err);
    if (st != RP_OK) {
        rp_adder_free(a);
        return st;
    }
    assert(rp_adder_verify(a));
    *out = a;
    return RP_OK;
}
