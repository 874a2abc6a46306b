/* SPDX-License-Identifier: Apache-2.0 */
/* Writers with random columns, random steps and random picks, against a plain copy of all that
 * was appended: whatever is sampled must decode to what the copy says, byte for byte.
 *
 * A case is a writer's life of some episodes. RP_TEST_SCALE multiplies the number of cases;
 * RP_TEST_SEED chooses others. */
#include "support/writing.h"

enum { MAX_COLUMNS = 4, MAX_STEPS = 60, MAX_ROW = 64, MAX_ITEMS = 400, CASES = 20000 };

/* What was appended in the episode: value and presence by step and column. */
typedef struct model {
    uint8_t rows[MAX_STEPS][MAX_COLUMNS][MAX_ROW];
    bool present[MAX_STEPS][MAX_COLUMNS];
    int64_t steps;
} model;

/* An item that was created: what each column must decode to. */
typedef struct expected {
    uint64_t key;
    rp_table *table;
    size_t column_count;
    struct {
        uint8_t *bytes;
        size_t size;
        int32_t count;
        bool squeeze;
    } columns[MAX_COLUMNS];
} expected;

typedef struct life {
    rp_test_rig rig;
    rp_rng rng;
    size_t column_count;
    rp_spec columns[MAX_COLUMNS];
    size_t row_bytes[MAX_COLUMNS];
    int32_t history;
    bool leaves_out;
    model model;
    expected items[MAX_ITEMS];
    size_t item_count;
} life;

static size_t below(life *l, size_t n)
{
    return (size_t)rp_rng_below(&l->rng, n);
}

static void choose_columns(life *l)
{
    l->column_count = 1 + below(l, MAX_COLUMNS);
    for (size_t i = 0; i < l->column_count; i++) {
        rp_spec *spec = &l->columns[i];
        size_t elements = 1;
        *spec = (rp_spec){.dtype = rp_test_dtypes[below(l, COUNT_OF(rp_test_dtypes))]};
        spec->shape.rank = (int32_t)below(l, 3);
        for (int32_t d = 0; d < spec->shape.rank; d++) {
            spec->shape.dims[d] = 1 + (int64_t)below(l, 2);
            elements *= (size_t)spec->shape.dims[d];
        }
        l->row_bytes[i] = elements * rp_dtype_size(spec->dtype);
        assert_true(l->row_bytes[i] <= MAX_ROW);
    }
}

static void begin(life *l, uint64_t seed)
{
    rp_writer_options options = {0};

    memset(l, 0, sizeof *l);
    rp_rng_init(&l->rng, seed);
    choose_columns(l);
    l->history = 1 + (int32_t)below(l, MAX_STEPS);
    l->leaves_out = below(l, 3) == 0;
    options.columns = l->columns;
    options.column_count = l->column_count;
    options.history = l->history;
    options.chunk_length = (int32_t)below(l, (size_t)l->history + 1); /* 0: tuned */
    options.chunk.codec = (rp_codec)below(l, 4);
    options.chunk.delta = below(l, 2) == 0;
    options.max_pending = below(l, 12);
    rp_test_rig_init(&l->rig, &options);
}

static void append(life *l)
{
    model *m = &l->model;
    rp_tensor step[MAX_COLUMNS];

    for (size_t i = 0; i < l->column_count; i++) {
        bool present = !l->leaves_out || below(l, 4) > 0;
        uint8_t *row = m->rows[m->steps][i];
        rp_test_fill(&l->rng, row, l->row_bytes[i]);
        m->present[m->steps][i] = present;
        step[i] = (rp_tensor){l->columns[i].dtype, l->columns[i].shape, present ? row : NULL};
    }
    assert_ok_err(rp_writer_append(l->rig.writer, step, &l->rig.err), &l->rig.err);
    m->steps++;
}

static rp_pick choose_pick(life *l)
{
    int64_t end = l->model.steps, begin_step = end > l->history ? end - l->history : 0;
    rp_pick pick = {.column = (uint32_t)below(l, l->column_count)};

    pick.start = begin_step + (int64_t)below(l, (size_t)(end - begin_step));
    pick.stride = (int32_t)below(l, 7) - 3;
    pick.count = 1 + (int32_t)below(l, 12);
    /* Mostly inside the history; sometimes not. */
    if (below(l, 20) > 0)
        while (pick.start + (int64_t)(pick.count - 1) * pick.stride < begin_step ||
               pick.start + (int64_t)(pick.count - 1) * pick.stride >= end)
            pick.count--;
    pick.squeeze = pick.count == 1 && below(l, 2) == 0;
    return pick;
}

/* What the model says of a pick: its bytes, or false if a step is not there. */
static bool copy_pick(const life *l, const rp_pick *pick, uint8_t *out)
{
    const model *m = &l->model;

    for (int32_t i = 0; i < pick->count; i++) {
        int64_t s = pick->start + (int64_t)i * pick->stride;
        if (s < 0 || s < m->steps - l->history || s >= m->steps) return false;
        if (!m->present[s][pick->column]) return false;
        memcpy(out + (size_t)i * l->row_bytes[pick->column], m->rows[s][pick->column],
               l->row_bytes[pick->column]);
    }
    return true;
}

static void create(life *l)
{
    expected *item = &l->items[l->item_count];
    rp_pick picks[MAX_COLUMNS];
    const char *name = below(l, 2) == 0 ? "a" : "b";
    bool possible = true;
    rp_status st;

    if (l->item_count == MAX_ITEMS) return;
    *item = (expected){.table = name[0] == 'a' ? l->rig.a : l->rig.b,
                       .column_count = 1 + below(l, MAX_COLUMNS)};
    for (size_t i = 0; i < item->column_count; i++) {
        rp_pick p = picks[i] = choose_pick(l);
        item->columns[i].count = p.count;
        item->columns[i].squeeze = p.squeeze;
        item->columns[i].size = (size_t)p.count * l->row_bytes[p.column];
        item->columns[i].bytes = calloc(1, item->columns[i].size);
        assert_non_null(item->columns[i].bytes);
        possible = copy_pick(l, &p, item->columns[i].bytes) && possible;
        if (p.start < l->model.steps && below(l, 2) == 0) picks[i].start -= l->model.steps;
    }
    st = rp_writer_create_item(l->rig.writer, name, 1, picks, item->column_count,
                               rp_wait_none(), &item->key, &l->rig.err);
    assert_int_equal(st, possible ? RP_OK : RP_PRECONDITION);
    if (possible) {
        l->item_count++;
        return;
    }
    for (size_t i = 0; i < item->column_count; i++) free(item->columns[i].bytes);
}

static void check(life *l, const expected *item)
{
    rp_trajectory *t = rp_test_peek(&l->rig, item->table, item->key);

    assert_int_equal(rp_trajectory_column_count(t), item->column_count);
    for (size_t i = 0; i < item->column_count; i++) {
        rp_trajectory_column c = rp_trajectory_get_column(t, i);
        uint8_t got[12 * MAX_ROW];
        assert_int_equal(c.squeeze, item->columns[i].squeeze);
        assert_int_equal(c.bytes, item->columns[i].size);
        if (!c.squeeze) assert_int_equal(c.shape.dims[0], item->columns[i].count);
        assert_ok_err(rp_decoder_stack(l->rig.decoder, (const rp_trajectory *const *)&t, 1, i,
                                       got, c.bytes, &l->rig.err),
                      &l->rig.err);
        assert_memory_equal(got, item->columns[i].bytes, c.bytes);
    }
    rp_trajectory_unref(t);
}

static void live(life *l, uint64_t seed)
{
    size_t episodes;

    begin(l, seed);
    episodes = 1 + below(l, 3);
    for (size_t e = 0; e < episodes; e++) {
        size_t steps = 1 + below(l, MAX_STEPS);
        l->model.steps = 0;
        while (l->model.steps < (int64_t)steps) {
            append(l);
            while (below(l, 3) == 0) create(l);
            if (below(l, 30) == 0) rp_test_flush(&l->rig);
        }
        assert_ok_err(rp_writer_end_episode(l->rig.writer, rp_wait_none(), &l->rig.err),
                      &l->rig.err);
        assert_int_equal(rp_writer_pending(l->rig.writer), 0);
    }
    for (size_t i = 0; i < l->item_count; i++) check(l, &l->items[i]);
    for (size_t i = 0; i < l->item_count; i++)
        for (size_t k = 0; k < l->items[i].column_count; k++)
            free(l->items[i].columns[k].bytes);
    assert_true(rp_table_check(l->rig.a) && rp_table_check(l->rig.b));
    rp_decoder_clear(l->rig.decoder);
    rp_test_rig_deinit(&l->rig);
}

static double setting(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtod(text, NULL) : otherwise;
}

static void every_item_reads_back_what_was_appended(void **state)
{
    size_t cases = (size_t)(CASES * setting("RP_TEST_SCALE", 1)) + 1;
    uint64_t seed = (uint64_t)setting("RP_TEST_SEED", 1);
    life *l = malloc(sizeof *l);
    size_t items = 0;
    (void)state;
    assert_non_null(l);

    for (size_t i = 0; i < cases; i++) {
        live(l, seed * 1000003 + i);
        items += l->item_count;
    }

    assert_true(items > 10 * cases);
    free(l);
}

RP_TESTS(writer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_reads_back_what_was_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
