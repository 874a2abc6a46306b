/* SPDX-License-Identifier: Apache-2.0 */
/* Options: defaults, checks, copies in one block, and the fields of their message:
 *
 *   options   1 group size | 2 max staleness | 3 staleness | 4 groups per version
 *             5 first version | 6 max groups | 7 max bytes | 8 full | 9 order | 10 consumer*
 *   consumer  1 name | 2 column* */
#include <inttypes.h>
#include <string.h>

#include "rollouts/rollout_op_inside.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"

enum { NAMES = RP_ROLLOUT_CONSUMERS * RP_ROLLOUT_NEEDS };

/* The block of options: this, consumers, column names, and the bytes of copied names. */
typedef struct options_block {
    rp_rollout_options options; /* first */
    size_t size;
} options_block;

static const rp_rollout_consumer one_consumer = {.name = {"", 0}};

void rp_rollout_options_init(rp_rollout_options *options)
{
    *options = (rp_rollout_options){.group_size = 1,
                                    .max_staleness = -1,
                                    .max_groups = 1 << 16,
                                    .max_bytes = (uint64_t)1 << 30};
}

bool rp_rollout_is_name(rp_string name)
{
    return name.size >= 1 && name.size <= RP_ROLLOUT_NAME_BYTES &&
           rp_wire_is_text(name.data, name.size);
}

rp_status rp_rollout_check_name(rp_string name, const char *what, rp_error *err)
{
    if (name.size == 0) return rp_fail(err, RP_INVALID, "the name of %s is empty", what);
    if (name.data == NULL)
        return rp_fail(err, RP_INVALID, "the name of %s is NULL, size %zu", what, name.size);
    if (name.size > RP_ROLLOUT_NAME_BYTES)
        return rp_fail(err, RP_INVALID, "the name of %s has %zu bytes, the limit is %d", what,
                       name.size, RP_ROLLOUT_NAME_BYTES);
    if (!rp_rollout_is_name(name))
        return rp_fail(err, RP_INVALID, "the name of %s is not UTF-8 text", what);
    return RP_OK;
}

static rp_status check_consumer(const rp_rollout_consumer *c, rp_error *err)
{
    rp_status st = RP_OK;

    if (c->name.size > 0) st = rp_rollout_check_name(c->name, "a consumer", err);
    if (st == RP_OK && c->column_count > RP_ROLLOUT_NEEDS)
        return rp_fail(err, RP_INVALID, "consumer '%.*s' needs %zu columns, the limit is %d",
                       (int)c->name.size, c->name.data, c->column_count, RP_ROLLOUT_NEEDS);
    if (st == RP_OK && c->columns == NULL && c->column_count > 0)
        return rp_fail(err, RP_INVALID, "consumer '%.*s': `columns` is NULL, column_count %zu",
                       (int)c->name.size, c->name.data, c->column_count);
    for (size_t i = 0; st == RP_OK && i < c->column_count; i++) {
        st = rp_rollout_check_name(c->columns[i], "a column", err);
        for (size_t k = 0; st == RP_OK && k < i; k++)
            if (rp_rollout_equal(c->columns[k], c->columns[i]))
                st = rp_fail(err, RP_INVALID, "consumer '%.*s' needs column '%.*s' twice",
                             (int)c->name.size, c->name.data, (int)c->columns[i].size,
                             c->columns[i].data);
    }
    return st;
}

static rp_status check_consumers(const rp_rollout_options *o, rp_error *err)
{
    rp_status st = RP_OK;

    if (o->consumer_count > RP_ROLLOUT_CONSUMERS)
        return rp_fail(err, RP_INVALID, "there are %zu consumers, the limit is %d",
                       o->consumer_count, RP_ROLLOUT_CONSUMERS);
    if (o->consumers == NULL && o->consumer_count > 0)
        return rp_fail(err, RP_INVALID, "`consumers` is NULL, consumer_count %zu",
                       o->consumer_count);
    for (size_t i = 0; st == RP_OK && i < o->consumer_count; i++) {
        st = check_consumer(&o->consumers[i], err);
        for (size_t k = 0; st == RP_OK && k < i; k++)
            if (rp_rollout_equal(o->consumers[k].name, o->consumers[i].name))
                st = rp_fail(err, RP_INVALID, "two consumers have the name '%.*s'",
                             (int)o->consumers[i].name.size, o->consumers[i].name.data);
    }
    return st;
}

static rp_status check_limiter(const rp_rollout_options *o, rp_error *err)
{
    if (o->max_staleness < -1 || o->max_staleness > RP_ROLLOUT_MOST_VERSION)
        return rp_fail(err, RP_INVALID,
                       "max_staleness must be -1 (no bound) to 2^60, got %" PRId64,
                       o->max_staleness);
    if ((unsigned)o->staleness > RP_ROLLOUT_WAIT)
        return rp_fail(err, RP_INVALID, "staleness must be drop (0) or wait (1), got %d",
                       (int)o->staleness);
    if (o->first_version < 0 || o->first_version > RP_ROLLOUT_MOST_VERSION)
        return rp_fail(err, RP_INVALID, "first_version must be 0 to 2^60, got %" PRId64,
                       o->first_version);
    if (o->groups_per_version > 0 && o->max_staleness < 0)
        return rp_fail(err, RP_INVALID, "groups_per_version needs max_staleness >= 0, got -1");
    if (o->staleness == RP_ROLLOUT_WAIT && o->max_staleness >= 0 && o->groups_per_version == 0)
        return rp_fail(err, RP_INVALID,
                       "staleness 'wait' with max_staleness %" PRId64
                       " needs groups_per_version >= 1, got 0",
                       o->max_staleness);
    return RP_OK;
}

rp_status rp_rollout_options_check(const rp_rollout_options *o, rp_error *err)
{
    rp_status st;

    if (o->group_size < 1 || o->group_size > RP_ROLLOUT_GROUP_SIZE)
        return rp_fail(err, RP_INVALID, "group_size must be 1 to %d, got %" PRIu32,
                       RP_ROLLOUT_GROUP_SIZE, o->group_size);
    if (o->max_groups < 1 || o->max_groups > RP_ROLLOUT_MAX_GROUPS)
        return rp_fail(err, RP_INVALID, "max_groups must be 1 to %d, got %" PRIu64,
                       RP_ROLLOUT_MAX_GROUPS, o->max_groups);
    if (o->max_bytes < 1 || o->max_bytes > RP_ROLLOUT_MOST_BYTES)
        return rp_fail(err, RP_INVALID, "max_bytes must be 1 to 2^50, got %" PRIu64,
                       o->max_bytes);
    if ((unsigned)o->full > RP_ROLLOUT_FULL_EVICT)
        return rp_fail(err, RP_INVALID, "full must be wait (0) or evict (1), got %d",
                       (int)o->full);
    if ((unsigned)o->order > RP_ROLLOUT_FRESHEST)
        return rp_fail(err, RP_INVALID,
                       "order must be fifo (0), lifo (1) or freshest (2), got %d",
                       (int)o->order);
    st = check_limiter(o, err);
    return st == RP_OK ? check_consumers(o, err) : st;
}

/* A block with room for consumers, names of columns, and `text_bytes` of names. */
static options_block *new_block(const rp_allocator *alloc, size_t consumers, size_t names,
                                size_t text_bytes)
{
    size_t size = sizeof(options_block) + consumers * sizeof(rp_rollout_consumer) +
                  names * sizeof(rp_string) + text_bytes;
    options_block *block = rp_alloc_zero(alloc, size);

    if (block != NULL) block->size = size;
    return block;
}

void rp_rollout_options_free(rp_rollout_options *options, const rp_allocator *alloc)
{
    options_block *block = (options_block *)(void *)options;

    if (block != NULL) rp_release(alloc, block, block->size);
}

static rp_string copy_text(char **at, rp_string text)
{
    rp_string copy = {*at, text.size};

    if (text.size > 0) memcpy(*at, text.data, text.size);
    *at += text.size;
    return copy;
}

rp_rollout_options *rp_rollout_options_copy(const rp_allocator *alloc,
                                            const rp_rollout_options *options)
{
    const rp_rollout_consumer *from =
        options->consumer_count > 0 ? options->consumers : &one_consumer;
    size_t count = options->consumer_count > 0 ? options->consumer_count : 1;
    size_t names = 0, text_bytes = 0;
    rp_rollout_consumer *consumers;
    options_block *block;
    rp_string *columns;
    char *at;

    for (size_t i = 0; i < count; i++) {
        names += from[i].column_count;
        text_bytes += from[i].name.size;
        for (size_t k = 0; k < from[i].column_count; k++) text_bytes += from[i].columns[k].size;
    }
    block = new_block(alloc, count, names, text_bytes);
    if (block == NULL) return NULL;
    consumers = (rp_rollout_consumer *)(void *)(block + 1);
    columns = (rp_string *)(void *)(consumers + count);
    at = (char *)(columns + names);
    for (size_t i = 0; i < count; i++) {
        consumers[i] =
            (rp_rollout_consumer){copy_text(&at, from[i].name), columns, from[i].column_count};
        for (size_t k = 0; k < from[i].column_count; k++)
            *columns++ = copy_text(&at, from[i].columns[k]);
    }
    block->options = *options;
    block->options.consumers = consumers;
    block->options.consumer_count = count;
    return &block->options;
}

bool rp_rollout_consumers_equal(const rp_rollout_options *a, const rp_rollout_options *b)
{
    size_t count = b->consumer_count > 0 ? b->consumer_count : 1;
    const rp_rollout_consumer *consumers = b->consumer_count > 0 ? b->consumers : &one_consumer;

    if (a->consumer_count != count) return false;
    for (size_t i = 0; i < count; i++) {
        const rp_rollout_consumer *x = &a->consumers[i], *y = &consumers[i];

        if (!rp_rollout_equal(x->name, y->name) || x->column_count != y->column_count)
            return false;
        for (size_t k = 0; k < x->column_count; k++)
            if (!rp_rollout_equal(x->columns[k], y->columns[k])) return false;
    }
    return true;
}

void rp_rollout_options_write(rp_buf *out, const rp_rollout_options *o)
{
    rp_wire_put_number(out, 1, o->group_size);
    rp_wire_put_int(out, 2, o->max_staleness);
    rp_wire_put_number(out, 3, (uint64_t)o->staleness);
    rp_wire_put_number(out, 4, o->groups_per_version);
    rp_wire_put_int(out, 5, o->first_version);
    rp_wire_put_number(out, 6, o->max_groups);
    rp_wire_put_number(out, 7, o->max_bytes);
    rp_wire_put_number(out, 8, (uint64_t)o->full);
    rp_wire_put_number(out, 9, (uint64_t)o->order);
    for (size_t i = 0; i < o->consumer_count; i++) {
        const rp_rollout_consumer *c = &o->consumers[i];
        size_t mark = rp_wire_begin(out, 10);

        rp_wire_put_bytes(out, 1, c->name.data, c->name.size);
        for (size_t k = 0; k < c->column_count; k++)
            rp_wire_put_bytes_always(out, 2, c->columns[k].data, c->columns[k].size);
        rp_wire_end(out, mark);
    }
}

/* Fills in the consumers of a message; NULL: only counts them and their columns. */
static bool read_consumer(const rp_pb_field *message, rp_rollout_consumer *consumer,
                          rp_string *columns, size_t *count)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_pb_step step;
    rp_pb_field f;

    *count = 0;
    if (consumer != NULL) *consumer = (rp_rollout_consumer){.name = {"", 0}};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        rp_string text = {(const char *)f.data, f.size};

        if (rp_pb_is(&f, 1, RP_PB_BYTES) && consumer != NULL) consumer->name = text;
        if (!rp_pb_is(&f, 2, RP_PB_BYTES)) continue;
        if (columns != NULL) columns[*count] = text;
        ++*count;
    }
    return step == RP_PB_END;
}

static bool count_parts(const uint8_t *data, size_t size, size_t *consumers, size_t *names)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_step step;
    rp_pb_field f;
    size_t count;

    *consumers = *names = 0;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, 10, RP_PB_BYTES)) continue;
        if (!read_consumer(&f, NULL, NULL, &count)) return false;
        ++*consumers;
        *names += count;
        if (*consumers > RP_ROLLOUT_CONSUMERS || *names > NAMES) return false;
    }
    return step == RP_PB_END;
}

/* A number that does not fit becomes one that no check accepts. */
static int enum_of(const rp_pb_field *f)
{
    return f->value <= INT8_MAX ? (int)f->value : INT8_MAX;
}

static void read_number(const rp_pb_field *f, rp_rollout_options *o)
{
    if (f->type != RP_PB_VARINT) return;
    if (f->number == 1)
        o->group_size = f->value <= UINT32_MAX ? (uint32_t)f->value : UINT32_MAX;
    if (f->number == 2) o->max_staleness = (int64_t)f->value;
    if (f->number == 3) o->staleness = (rp_rollout_staleness)enum_of(f);
    if (f->number == 4) o->groups_per_version = f->value;
    if (f->number == 5) o->first_version = (int64_t)f->value;
    if (f->number == 6) o->max_groups = f->value;
    if (f->number == 7) o->max_bytes = f->value;
    if (f->number == 8) o->full = (rp_rollout_full)enum_of(f);
    if (f->number == 9) o->order = (rp_rollout_order)enum_of(f);
}

rp_status rp_rollout_options_read(const rp_allocator *alloc, const uint8_t *data, size_t size,
                                  rp_rollout_options **out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    size_t consumer_count, names, count;
    rp_rollout_consumer *consumer;
    options_block *block;
    rp_string *columns;
    rp_pb_field f;
    rp_status st;

    *out = NULL;
    if (!count_parts(data, size, &consumer_count, &names))
        return rp_fail(err, RP_INVALID,
                       "the options of rollouts are malformed, or have more than %d consumers",
                       RP_ROLLOUT_CONSUMERS);
    block = new_block(alloc, consumer_count, names, 0);
    if (block == NULL) return rp_fail_memory(err, sizeof *block);
    consumer = (rp_rollout_consumer *)(void *)(block + 1);
    columns = (rp_string *)(void *)(consumer + consumer_count);
    block->options.consumers = consumer;
    block->options.consumer_count = consumer_count;
    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        read_number(&f, &block->options);
        if (!rp_pb_is(&f, 10, RP_PB_BYTES)) continue;
        (void)read_consumer(&f, consumer, columns, &count);
        consumer->columns = columns;
        consumer->column_count = count;
        consumer++;
        columns += count;
    }
    st = rp_rollout_options_check(&block->options, err);
    if (st == RP_OK)
        *out = &block->options;
    else
        rp_rollout_options_free(&block->options, alloc);
    return st;
}
