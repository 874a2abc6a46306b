/* SPDX-License-Identifier: Apache-2.0 */
/* What is read through a sampler is what was written, over every transport.
 *
 * A case is a writer with random columns (dtypes, shapes, lengths of chunks, codecs) that makes
 * items of random rows: strided, reversed, repeated, here and there, as many in each column as
 * it likes. All of them are then read, one by one or in ragged batches. Every eighth case puts
 * them into a table of its own, whose signature nests the columns at random.
 *
 * RP_TEST_SCALE multiplies the number of cases; RP_TEST_SEED chooses others; RP_TEST_WAY names
 * the only transport. */
#include <stdio.h>
#include <stdlib.h>

#include "support/fixture.h"
#include "support/transports.h"
#include "util/rng.h"

enum {
    CASES = 3000,
    MAX_COLUMNS = 5,
    MAX_STEPS = 40,
    MAX_ITEMS = 30,
    MAX_ROWS = 12, /* in a column of an item */
    MAX_ELEMENTS = 9,
    MAX_TEXT = 8,
};

static const rp_dtype dtypes[] = {RP_BOOL,    RP_UINT8,   RP_INT8,      RP_INT16,  RP_UINT16,
                                  RP_INT32,   RP_UINT32,  RP_INT64,     RP_UINT64, RP_FLOAT16,
                                  RP_FLOAT32, RP_FLOAT64, RP_COMPLEX64, RP_STRING, RP_STRING};

typedef struct column {
    rp_dtype dtype;
    rp_shape shape;
    size_t elements, row_bytes;
    int32_t history;
    size_t cells;
    rp_ref refs[MAX_STEPS];
    union {
        uint8_t bytes[MAX_ELEMENTS * 16];
        rp_string strings[MAX_ELEMENTS];
    } rows[MAX_STEPS];
    char texts[MAX_STEPS][MAX_ELEMENTS][MAX_TEXT];
} column;

/* A column of an item: rows of a column of the writer. */
typedef struct picked {
    size_t source, count;
    bool squeeze;
    size_t cells[MAX_ROWS];
} picked;

typedef struct item {
    uint64_t key;
    double priority;
    bool is_read;
    size_t column_count;
    picked columns[MAX_COLUMNS];
} item;

typedef struct life {
    rp_test_transport *t;
    rp_rng rng;
    const char *table;
    bool strict; /* every item has the columns of the writer, in order */
    size_t column_count, item_count;
    column columns[MAX_COLUMNS];
    item items[MAX_ITEMS];
    rp_trajectory_writer *writer;
    rp_decoder *decoder;
} life;

static rp_test_transport transports[RP_TEST_WAYS];

static size_t below(life *l, size_t n)
{
    return (size_t)rp_rng_below(&l->rng, n);
}

static void choose_columns(life *l)
{
    l->column_count = 1 + below(l, MAX_COLUMNS);
    for (size_t i = 0; i < l->column_count; i++) {
        column *c = &l->columns[i];

        *c = (column){.dtype = dtypes[below(l, COUNT_OF(dtypes))], .elements = 1};
        c->shape.rank = (int32_t)below(l, 3);
        for (int32_t d = 0; d < c->shape.rank; d++) {
            c->shape.dims[d] = below(l, 12) == 0 ? 0 : 1 + (int64_t)below(l, 3);
            c->elements *= (size_t)c->shape.dims[d];
        }
        c->row_bytes = c->elements * rp_dtype_size(c->dtype);
    }
}

/* Nests the leaves from `*leaf` on: some containers, some leaves. Returns how many nodes. */
static size_t nest(life *l, rp_nest_node *nodes, size_t leaves, size_t *leaf, size_t depth,
                   char (*keys)[16], size_t *key_count)
{
    static const rp_nest_kind kinds[] = {RP_NEST_LIST, RP_NEST_TUPLE, RP_NEST_DICT};
    rp_nest_kind kind = kinds[below(l, COUNT_OF(kinds))];
    size_t n = 1, left = leaves;

    nodes[0] = (rp_nest_node){.kind = kind};
    while (left > 0) {
        rp_nest_node *child = &nodes[n];
        size_t some = depth < 3 && below(l, 3) == 0 ? 1 + below(l, left) : 0;
        char *key = keys[*key_count];

        (void)snprintf(key, 16, "k%02zu", (*key_count)++);
        if (some > 0) {
            n += nest(l, child, some, leaf, depth + 1, keys, key_count);
            left -= some;
        } else {
            const column *c = &l->columns[(*leaf)++];

            *child = (rp_nest_node){.spec = {.dtype = c->dtype}};
            child->spec.shape.rank = c->shape.rank + 1;
            child->spec.shape.dims[0] = -1;
            memcpy(child->spec.shape.dims + 1, c->shape.dims,
                   (size_t)c->shape.rank * sizeof c->shape.dims[0]);
            n++;
            left--;
        }
        if (kind == RP_NEST_DICT) child->key = key;
        nodes[0].child_count++;
    }
    return n;
}

static void make_strict_table(life *l)
{
    rp_nest_node nodes[64];
    char keys[64][16];
    size_t leaf = 0, key_count = 0;
    size_t count = nest(l, nodes, l->column_count, &leaf, 0, keys, &key_count);
    rp_table_options options = {
        .limiter = rp_limiter_min_size(1), .max_size = 1000, .max_times_sampled = 1};

    assert_ok_err(
        rp_signature_new(rp_allocator_default(), nodes, count, &options.signature, &l->t->err),
        &l->t->err);
    l->table = rp_test_make_table(l->t, &options);
    rp_signature_unref(options.signature);
}

static rp_column_options choose_options(life *l)
{
    rp_column_options o = {.history = 1 + (int32_t)below(l, MAX_STEPS)};

    o.chunk_length = (int32_t)below(l, (size_t)o.history + 1); /* 0: tuned */
    o.chunk = (rp_chunk_options){.codec = (rp_codec)below(l, 4), .delta = below(l, 2) == 0};
    return o;
}

static void open_writer(life *l)
{
    rp_trajectory_writer_options o = {.column = choose_options(l)};

    if (below(l, 4) == 0) o.max_items = 1 + below(l, 8);
    if (below(l, 4) == 0) o.max_bytes = 1 + below(l, 2000);
    assert_ok_err(
        rp_trajectory_writer_new(l->t->client, &o, rp_test_soon(), &l->writer, &l->t->err),
        &l->t->err);
    for (uint32_t i = 0; i < l->column_count; i++) {
        rp_column_options c = choose_options(l);

        l->columns[i].history = o.column.history;
        if (below(l, 2) == 0) continue;
        l->columns[i].history = c.history;
        assert_ok_err(rp_trajectory_writer_configure(l->writer, i, NULL, &c, &l->t->err),
                      &l->t->err);
    }
}

static void fill_row(life *l, column *c)
{
    if (c->dtype == RP_STRING) {
        for (size_t i = 0; i < c->elements; i++) {
            char *text = c->texts[c->cells][i];
            size_t size = below(l, MAX_TEXT + 1);

            for (size_t k = 0; k < size; k++) text[k] = (char)below(l, 256);
            c->rows[c->cells].strings[i] = (rp_string){text, size};
        }
        return;
    }
    for (size_t i = 0; i < c->row_bytes; i++) {
        /* Often like the row before, so that there is something to compress. */
        bool same = c->cells > 0 && below(l, 3) > 0;
        uint8_t byte = (uint8_t)below(l, c->dtype == RP_BOOL ? 2 : 256);

        c->rows[c->cells].bytes[i] = same ? c->rows[c->cells - 1].bytes[i] : byte;
    }
}

static void append(life *l)
{
    rp_value values[MAX_COLUMNS];
    rp_ref refs[MAX_COLUMNS];
    size_t count = 0, split;

    for (uint32_t i = 0; i < l->column_count; i++) {
        column *c = &l->columns[i];

        if (!l->strict && c->cells > 0 && below(l, 4) == 0) continue; /* a partial step */
        fill_row(l, c);
        values[count++] = (rp_value){i, NULL, {c->dtype, c->shape, &c->rows[c->cells]}};
    }
    split = below(l, count + 1);
    assert_ok_err(
        rp_trajectory_writer_append(l->writer, values, split, RP_STEP_OPEN, refs, &l->t->err),
        &l->t->err);
    assert_ok_err(rp_trajectory_writer_append(l->writer, values + split, count - split, 0,
                                              refs + split, &l->t->err),
                  &l->t->err);
    for (size_t i = 0; i < count; i++) {
        column *c = &l->columns[values[i].column];

        c->refs[c->cells++] = refs[i];
    }
}

/* Chooses rows that are in the history: in a line with any stride, or here and there. */
static void choose_rows(life *l, picked *p, rp_ref *refs)
{
    const column *c = &l->columns[p->source];
    size_t there = c->cells < (size_t)c->history ? c->cells : (size_t)c->history;
    size_t oldest = c->cells - there, cell = oldest + below(l, there);
    int64_t stride = (int64_t)below(l, 7) - 3; /* 0: the same again and again */
    bool jumps = below(l, 5) == 0;
    size_t most = 1 + below(l, MAX_ROWS);

    for (p->count = 0; p->count < most; p->count++) {
        int64_t next = (int64_t)cell + stride;

        p->cells[p->count] = cell;
        refs[p->count] = c->refs[cell];
        if (jumps) next = (int64_t)(oldest + below(l, there));
        if (next < (int64_t)oldest || next >= (int64_t)c->cells) {
            p->count++;
            break;
        }
        cell = (size_t)next;
    }
    p->squeeze = !l->strict && p->count == 1 && below(l, 2) == 0;
}

static void create(life *l)
{
    item *to = &l->items[l->item_count];
    rp_item_column columns[MAX_COLUMNS];
    rp_ref refs[MAX_COLUMNS][MAX_ROWS];

    if (l->item_count == MAX_ITEMS) return;
    *to = (item){.priority = (double)below(l, 100) / 8,
                 .column_count = l->strict ? l->column_count : 1 + below(l, MAX_COLUMNS)};
    for (size_t i = 0; i < to->column_count; i++) {
        picked *p = &to->columns[i];

        p->source = l->strict ? i : below(l, l->column_count);
        choose_rows(l, p, refs[i]);
        columns[i] =
            (rp_item_column){.refs = refs[i], .count = p->count, .squeeze = p->squeeze};
    }
    assert_ok_err(rp_trajectory_writer_create_item(
                      l->writer,
                      &(rp_new_item){l->table, to->priority, columns, to->column_count},
                      rp_test_soon(), &to->key, &l->t->err),
                  &l->t->err);
    l->item_count++;
}

static void write_all(life *l)
{
    size_t steps = 1 + below(l, MAX_STEPS);

    for (size_t i = 0; i < steps; i++) {
        append(l);
        while (below(l, 2) == 0) create(l);
        if (below(l, 25) == 0)
            assert_ok_err(
                rp_trajectory_writer_flush(l->writer, below(l, 4), rp_test_soon(), &l->t->err),
                &l->t->err);
        if (below(l, 25) == 0)
            assert_ok_err(
                rp_trajectory_writer_end_episode(l->writer, false, rp_test_soon(), &l->t->err),
                &l->t->err);
    }
    if (l->item_count == 0) create(l);
    rp_test_flush(l->t, l->writer);
}

static item *find_item(life *l, const rp_sample *sample)
{
    for (size_t i = 0; i < l->item_count; i++)
        if (l->items[i].key == sample->key) {
            assert_false(l->items[i].is_read);
            l->items[i].is_read = true;
            assert_true(l->items[i].priority == sample->priority);
            return &l->items[i];
        }
    fail_msg("%s: an item that nobody wrote", l->t->name);
    return NULL;
}

/* Compares rows that were read with those that were written. */
static void compare(const column *c, const picked *p, const void *got)
{
    const uint8_t *at = got;

    for (size_t i = 0; i < p->count; i++, at += c->row_bytes) {
        if (c->dtype != RP_STRING) {
            assert_memory_equal(at, c->rows[p->cells[i]].bytes, c->row_bytes);
            continue;
        }
        for (size_t k = 0; k < c->elements; k++) {
            const rp_string *a = &((const rp_string *)(const void *)at)[k];
            const rp_string *b = &c->rows[p->cells[i]].strings[k];

            assert_int_equal(a->size, b->size);
            if (a->size > 0) assert_memory_equal(a->data, b->data, a->size);
        }
    }
}

static void check_sample(life *l, const rp_sample *sample)
{
    _Alignas(16) static uint8_t got[MAX_ROWS * MAX_ELEMENTS * 16];
    const rp_trajectory *trajectory = sample->trajectory;
    const item *it = find_item(l, sample);

    assert_int_equal(rp_trajectory_column_count(trajectory), it->column_count);
    for (size_t i = 0; i < it->column_count; i++) {
        const picked *p = &it->columns[i];
        const column *c = &l->columns[p->source];
        rp_trajectory_column shown = rp_trajectory_get_column(trajectory, i);

        assert_int_equal(shown.dtype, c->dtype);
        assert_int_equal(shown.squeeze, p->squeeze);
        assert_int_equal(shown.bytes, p->count * c->row_bytes);
        assert_int_equal(shown.shape.rank, c->shape.rank + (p->squeeze ? 0 : 1));
        if (!p->squeeze) assert_int_equal(shown.shape.dims[0], p->count);
        if (c->dtype == RP_STRING)
            assert_ok_err(rp_decoder_stack_strings(l->decoder, &trajectory, 1, i,
                                                   (rp_string *)(void *)got,
                                                   p->count * c->elements, &l->t->err),
                          &l->t->err);
        else
            assert_ok_err(
                rp_decoder_stack(l->decoder, &trajectory, 1, i, got, shown.bytes, &l->t->err),
                &l->t->err);
        compare(c, p, got);
    }
}

static void check_batch(life *l, rp_batch *batch, rp_ragged ragged)
{
    size_t size = rp_batch_size(batch), bytes[MAX_COLUMNS];
    item *items[MAX_ITEMS];
    void *dst[MAX_COLUMNS];

    for (size_t i = 0; i < size; i++) items[i] = find_item(l, &rp_batch_samples(batch)[i]);
    assert_int_equal(rp_batch_column_count(batch), l->column_count);
    for (size_t c = 0; c < l->column_count; c++) {
        bytes[c] = rp_batch_get_column(batch, c)->bytes;
        dst[c] = malloc(bytes[c] + 1);
        assert_non_null(dst[c]);
    }
    assert_ok_err(rp_batch_decode(batch, dst, bytes, &l->t->err), &l->t->err);
    for (size_t c = 0; c < l->column_count; c++) {
        const int64_t *lengths = rp_batch_lengths(batch, c);
        const uint8_t *at = dst[c];
        size_t longest = 0;

        for (size_t i = 0; i < size; i++)
            if (items[i]->columns[c].count > longest) longest = items[i]->columns[c].count;
        for (size_t i = 0; i < size; i++) {
            const picked *p = &items[i]->columns[c];

            compare(&l->columns[c], p, at);
            if (ragged == RP_RAGGED_OFFSETS)
                assert_int_equal(lengths[i + 1] - lengths[i], p->count);
            else if (lengths != NULL)
                assert_int_equal(lengths[i], p->count);
            at += (ragged == RP_RAGGED_PAD ? longest : p->count) * l->columns[c].row_bytes;
        }
        assert_ptr_equal(at, (uint8_t *)dst[c] + bytes[c]);
        free(dst[c]);
    }
}

static void read_batches(life *l, rp_sampler *sampler)
{
    for (size_t done = 0; done < l->item_count;) {
        rp_ragged ragged = below(l, 2) == 0 ? RP_RAGGED_PAD : RP_RAGGED_OFFSETS;
        rp_batch *batch = NULL;

        assert_ok_err(rp_sampler_batch(sampler, 1 + below(l, l->item_count), ragged, false,
                                       rp_test_soon(), &batch, &l->t->err),
                      &l->t->err);
        check_batch(l, batch, ragged);
        done += rp_batch_size(batch);
        rp_batch_free(batch);
    }
}

static void read_samples(life *l, rp_sampler *sampler)
{
    for (size_t done = 0, n; done < l->item_count; done += n) {
        rp_sample out[MAX_ITEMS];

        assert_ok_err(rp_sampler_next(sampler, out, 1 + below(l, MAX_ITEMS), &n, rp_test_soon(),
                                      &l->t->err),
                      &l->t->err);
        for (size_t i = 0; i < n; i++) check_sample(l, &out[i]);
        rp_samples_release(out, n);
    }
}

static void read_all(life *l)
{
    rp_sampler_options o = {.table = l->table,
                            .max_samples = (int64_t)l->item_count,
                            .max_in_flight = 1 + below(l, 40),
                            .streams = 1 + below(l, 2),
                            .rate_limiter_timeout_ms = -1,
                            .checked = l->strict};
    rp_sampler *sampler = NULL;

    assert_ok_err(rp_sampler_new(l->t->client, &o, &sampler, &l->t->err), &l->t->err);
    if (l->strict)
        read_batches(l, sampler);
    else
        read_samples(l, sampler);
    rp_sampler_free(sampler);
    for (size_t i = 0; i < l->item_count; i++) assert_true(l->items[i].is_read);
}

/* Returns how many items it had. */
static size_t live(life *l, rp_test_transport *t, const char *table, uint64_t seed)
{
    l->t = t;
    l->table = table;
    l->item_count = 0;
    rp_rng_init(&l->rng, seed);
    l->strict = below(l, 8) == 0;
    choose_columns(l);
    if (l->strict) make_strict_table(l);
    open_writer(l);
    write_all(l);
    if (below(l, 2) == 0) { /* a reader does not need the writer */
        rp_trajectory_writer_free(l->writer);
        l->writer = NULL;
    }
    read_all(l);
    rp_trajectory_writer_free(l->writer);
    if (l->strict) { /* the last of the tables is its own */
        t->table_count--;
        assert_ok_err(rp_client_drop_table(t->client, l->table, rp_test_soon(), &t->err),
                      &t->err);
    }
    return l->item_count;
}

static void items_read_back_as_written_over_every_transport(void **state)
{
    const char *only = getenv("RP_TEST_WAY"), *seed_text = getenv("RP_TEST_SEED");
    uint64_t seed = seed_text != NULL ? strtoull(seed_text, NULL, 10) : 1;
    size_t cases = rp_test_scaled(CASES, 60), items = 0, ways = 0;
    rp_test_transport *used[RP_TEST_WAYS];
    const char *bags[RP_TEST_WAYS];
    life *l = calloc(1, sizeof *l);

    (void)state;
    assert_non_null(l);
    assert_ok(rp_decoder_new(rp_allocator_default(), 1 << 16, &l->decoder));
    for (size_t i = 0; i < RP_TEST_WAYS; i++) {
        rp_test_transport *t = &transports[i];

        rp_test_transport_open(t, (rp_test_way)i, RP_TEST_REPRISE);
        bags[ways] = rp_test_bag(t);
        if (only == NULL || strcmp(only, t->name) == 0) used[ways++] = t;
    }
    assert_true(ways > 0);
    for (size_t i = 0; i < cases; i++)
        items += live(l, used[i % ways], bags[i % ways], seed * 1000003 + i);
    assert_true(items > 5 * cases);
    rp_decoder_free(l->decoder); /* it has chunks, which belong to the clients */
    for (size_t i = 0; i < RP_TEST_WAYS; i++) rp_test_transport_close(&transports[i]);
    free(l);
}

RP_TESTS(transports)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_read_back_as_written_over_every_transport),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
