/* SPDX-License-Identifier: Apache-2.0 */
/* Trajectory writers with random columns that appear when they like, random partial steps and
 * random picks, against a plain copy of all that was appended: whatever is in a table must
 * decode to what the copy says, byte for byte.
 *
 * A case is a writer's life of some episodes. RP_TEST_SCALE multiplies the number of cases;
 * RP_TEST_SEED chooses others. */
#include "support/client_rig.h"
#include "support/fixture.h"
#include "table/table.h"

enum {
    MAX_COLUMNS = 5,
    MAX_CELLS = 200,
    MAX_ROW = 64,
    MAX_ITEMS = 300,
    MAX_PICKS = 12,
    CASES = 5000,
};

typedef struct column {
    uint32_t number; /* of the writer */
    rp_spec spec;
    size_t row_bytes;
    size_t cells;
    int32_t history;
    int64_t steps[MAX_CELLS]; /* of each cell, in its episode; -1: cleared */
    uint8_t rows[MAX_CELLS][MAX_ROW];
} column;

/* An item that was created: what each column must decode to. */
typedef struct expected {
    uint64_t key;
    rp_table *table;
    size_t column_count;
    struct {
        uint8_t *bytes;
        size_t size, count;
        bool squeeze;
    } columns[MAX_COLUMNS];
} expected;

typedef struct life {
    rp_test_client_rig rig;
    rp_rng rng;
    size_t column_count;
    column columns[MAX_COLUMNS];
    int64_t steps;
    expected items[MAX_ITEMS];
    size_t item_count;
} life;

static size_t below(life *l, size_t n)
{
    return (size_t)rp_rng_below(&l->rng, n);
}

static rp_chunk_options choose_chunk(life *l)
{
    return (rp_chunk_options){.codec = (rp_codec)below(l, 4), .delta = below(l, 2) == 0};
}

static void choose_columns(life *l)
{
    l->column_count = 1 + below(l, MAX_COLUMNS);
    for (size_t i = 0; i < l->column_count; i++) {
        column *c = &l->columns[i];
        size_t elements = 1;
        /* Some look like others, so that items can mix their rows. */
        c->number = (uint32_t)(i * 7 + 3);
        c->spec = (rp_spec){.dtype = rp_test_dtypes[below(l, COUNT_OF(rp_test_dtypes))]};
        if (i > 0 && below(l, 3) == 0)
            c->spec = l->columns[i - 1].spec;
        else
            c->spec.shape.rank = (int32_t)below(l, 3);
        for (int32_t d = 0; d < c->spec.shape.rank; d++) {
            if (c->spec.shape.dims[d] == 0) c->spec.shape.dims[d] = 1 + (int64_t)below(l, 2);
            elements *= (size_t)c->spec.shape.dims[d];
        }
        c->row_bytes = elements * rp_dtype_size(c->spec.dtype);
        assert_true(c->row_bytes <= MAX_ROW);
    }
}

static void begin(life *l, uint64_t seed)
{
    rp_trajectory_writer_options o = {0};

    memset(l, 0, sizeof *l);
    rp_rng_init(&l->rng, seed);
    choose_columns(l);
    o.column.history = 1 + (int32_t)below(l, 40);
    o.column.chunk_length = (int32_t)below(l, (size_t)o.column.history + 1); /* 0: tuned */
    o.column.chunk = choose_chunk(l);
    if (below(l, 3) == 0) o.max_items = 1 + below(l, 8);
    if (below(l, 3) == 0) o.max_bytes = 1 + below(l, 2000);
    rp_test_client_open_store(&l->rig);
    rp_test_client_open_writer(&l->rig, &o, true);
    for (size_t i = 0; i < l->column_count; i++) {
        rp_column_options c = {.chunk = choose_chunk(l)};
        l->columns[i].history = o.column.history;
        if (below(l, 2) == 0) continue;
        c.history = (int32_t)below(l, 40);
        if (c.history > 0) l->columns[i].history = c.history;
        c.chunk_length = (int32_t)below(l, (size_t)l->columns[i].history + 1);
        assert_ok_err(rp_trajectory_writer_configure(l->rig.writer, l->columns[i].number, NULL,
                                                     &c, &l->rig.err),
                      &l->rig.err);
    }
}

/* Appends a step in one or more calls. */
static void append(life *l)
{
    bool filled[MAX_COLUMNS] = {false};
    size_t parts = below(l, 4) == 0 ? 1 + below(l, 3) : 1;

    for (size_t part = 0; part < parts; part++) {
        rp_value values[MAX_COLUMNS];
        rp_ref refs[MAX_COLUMNS];
        size_t count = 0;
        for (size_t i = 0; i < l->column_count; i++) {
            column *c = &l->columns[i];
            if (filled[i] || c->cells == MAX_CELLS || below(l, 3) == 0) continue;
            filled[i] = true;
            rp_test_fill(&l->rng, c->rows[c->cells], c->row_bytes);
            c->steps[c->cells] = l->steps;
            values[count++] =
                (rp_value){c->number, NULL, {c->spec.dtype, c->spec.shape, c->rows[c->cells]}};
            c->cells++;
        }
        assert_ok_err(rp_trajectory_writer_append(l->rig.writer, values, count,
                                                  part + 1 < parts ? RP_STEP_OPEN : 0, refs,
                                                  &l->rig.err),
                      &l->rig.err);
        assert_int_equal(rp_trajectory_writer_is_open(l->rig.writer), part + 1 < parts);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(refs[i].cell, l->columns[(values[i].column - 3) / 7].cells - 1);
    }
    l->steps++;
    assert_int_equal(rp_trajectory_writer_steps(l->rig.writer), l->steps);
}

static bool is_there(const column *c, size_t cell)
{
    return cell < c->cells && c->cells - cell <= (size_t)c->history && c->steps[cell] >= -1;
}

/* The writer finds rows by their steps. */
static void look(life *l)
{
    size_t i = below(l, l->column_count);
    const column *c = &l->columns[i];
    int64_t step = (int64_t)below(l, (size_t)l->steps + 1);
    rp_ref ref;
    bool expected_there = false, found;

    for (size_t cell = 0; cell < c->cells; cell++)
        if (c->steps[cell] == step && is_there(c, cell)) expected_there = true;
    found = rp_trajectory_writer_find(l->rig.writer, c->number, step, &ref);
    assert_int_equal(found, expected_there);
    if (!found) return;
    assert_int_equal(c->steps[ref.cell], step);
    {
        uint8_t got[MAX_ROW];
        rp_ref same;
        assert_true(
            rp_trajectory_writer_find(l->rig.writer, c->number, step - l->steps, &same));
        assert_int_equal(same.cell, ref.cell);
        assert_true(rp_trajectory_writer_has(l->rig.writer, ref));
        assert_ok_err(
            rp_trajectory_writer_copy(l->rig.writer, ref, got, c->row_bytes, &l->rig.err),
            &l->rig.err);
        assert_memory_equal(got, c->rows[ref.cell], c->row_bytes);
    }
}

/* Chooses rows: in a line with any stride, or here and there, of one column or of several that
 * look alike. False if one is not there. */
static bool choose_rows(life *l, rp_ref *refs, size_t *count, const column **first)
{
    size_t i = below(l, l->column_count);
    const column *c = &l->columns[i];
    int64_t cell, stride = (int64_t)below(l, 7) - 3;
    bool jumps = below(l, 5) == 0, there = true;

    *count = 1 + below(l, MAX_PICKS);
    *first = c;
    if (c->cells == 0) return false;
    cell = (int64_t)c->cells - 1 -
           (int64_t)below(l, c->cells < (size_t)c->history ? c->cells : (size_t)c->history);
    for (size_t k = 0; k < *count; k++) {
        if (jumps) {
            cell = (int64_t)c->cells - 1 - (int64_t)below(l, (size_t)c->history);
            const column *other = &l->columns[below(l, l->column_count)];
            if (other->cells > 0 && other->spec.dtype == c->spec.dtype &&
                rp_shape_equal(&other->spec.shape, &c->spec.shape)) {
                c = other;
                cell = (int64_t)c->cells - 1;
            }
        }
        if (k > 0 && (cell < 0 || cell >= (int64_t)c->cells) && below(l, 10) > 0) {
            *count = k; /* mostly inside */
            break;
        }
        refs[k] = (rp_ref){c->number, (uint64_t)cell};
        there = there && cell >= 0 && is_there(c, (size_t)cell);
        cell += stride;
    }
    return there;
}

static void create(life *l)
{
    expected *item = &l->items[l->item_count];
    rp_item_column columns[MAX_COLUMNS];
    rp_ref refs[MAX_COLUMNS][MAX_PICKS];
    const char *name = below(l, 2) == 0 ? "a" : "b";
    bool possible = true;
    rp_status st;

    if (l->item_count == MAX_ITEMS) return;
    *item = (expected){.table = name[0] == 'a' ? l->rig.in.a : l->rig.in.b,
                       .column_count = 1 + below(l, MAX_COLUMNS)};
    for (size_t i = 0; i < item->column_count; i++) {
        const column *c;
        size_t count;
        bool there = choose_rows(l, refs[i], &count, &c);
        if (c->cells == 0) count = 0, there = false;
        columns[i] = (rp_item_column){
            .refs = refs[i], .count = count, .squeeze = count == 1 && below(l, 2) == 0};
        item->columns[i].count = count;
        item->columns[i].squeeze = columns[i].squeeze;
        item->columns[i].size = count * c->row_bytes;
        item->columns[i].bytes = calloc(1, item->columns[i].size + 1);
        assert_non_null(item->columns[i].bytes);
        possible = possible && there;
        for (size_t k = 0; there && k < count; k++)
            memcpy(item->columns[i].bytes + k * c->row_bytes,
                   l->columns[(refs[i][k].column - 3) / 7].rows[refs[i][k].cell], c->row_bytes);
    }
    st = rp_trajectory_writer_create_item(l->rig.writer,
                                          &(rp_new_item){name, 1, columns, item->column_count},
                                          rp_wait_ms(20000), &item->key, &l->rig.err);
    if (possible)
        assert_ok_err(st, &l->rig.err);
    else
        assert_true(st == RP_PRECONDITION || st == RP_INVALID);
    if (possible) {
        l->item_count++;
        return;
    }
    for (size_t i = 0; i < item->column_count; i++) free(item->columns[i].bytes);
}

static void check(life *l, const expected *item)
{
    rp_trajectory *t = rp_test_peek(&l->rig.in, item->table, item->key);

    assert_int_equal(rp_trajectory_column_count(t), item->column_count);
    for (size_t i = 0; i < item->column_count; i++) {
        rp_trajectory_column c = rp_trajectory_get_column(t, i);
        uint8_t got[MAX_PICKS * MAX_ROW];
        assert_int_equal(c.squeeze, item->columns[i].squeeze);
        assert_int_equal(c.bytes, item->columns[i].size);
        if (!c.squeeze) assert_int_equal(c.shape.dims[0], item->columns[i].count);
        assert_ok_err(rp_decoder_stack(l->rig.in.decoder, (const rp_trajectory *const *)&t, 1,
                                       i, got, c.bytes, &l->rig.err),
                      &l->rig.err);
        assert_memory_equal(got, item->columns[i].bytes, c.bytes);
    }
    rp_trajectory_unref(t);
}

static void end_episode(life *l)
{
    bool clear = below(l, 2) == 0;

    assert_ok_err(
        rp_trajectory_writer_end_episode(l->rig.writer, clear, rp_wait_ms(20000), &l->rig.err),
        &l->rig.err);
    assert_int_equal(rp_trajectory_writer_pending(l->rig.writer), 0);
    assert_int_equal(rp_trajectory_writer_steps(l->rig.writer), 0);
    for (size_t i = 0; i < l->column_count; i++)
        for (size_t k = 0; k < l->columns[i].cells; k++)
            if (clear || l->columns[i].steps[k] < -1)
                l->columns[i].steps[k] = -2; /* gone */
            else
                l->columns[i].steps[k] = -1; /* there, but of another episode */
    l->steps = 0;
}

static void live(life *l, uint64_t seed)
{
    size_t episodes;

    begin(l, seed);
    episodes = 1 + below(l, 3);
    for (size_t e = 0; e < episodes; e++) {
        size_t steps = 1 + below(l, 40);
        while (l->steps < (int64_t)steps) {
            append(l);
            while (below(l, 3) == 0) create(l);
            if (below(l, 3) == 0) look(l);
            if (below(l, 30) == 0) {
                size_t leave = below(l, 4);
                assert_ok_err(rp_trajectory_writer_flush(l->rig.writer, leave,
                                                         rp_wait_ms(20000), &l->rig.err),
                              &l->rig.err);
                assert_true(rp_trajectory_writer_pending(l->rig.writer) <= leave);
            }
        }
        end_episode(l);
    }
    for (size_t i = 0; i < l->item_count; i++) check(l, &l->items[i]);
    for (size_t i = 0; i < l->item_count; i++)
        for (size_t k = 0; k < l->items[i].column_count; k++)
            free(l->items[i].columns[k].bytes);
    assert_true(rp_table_check(l->rig.in.a) && rp_table_check(l->rig.in.b));
    rp_test_client_deinit(&l->rig);
}

static void every_item_reads_back_what_was_appended(void **state)
{
    size_t cases = rp_test_scaled(CASES, 50);
    const char *seed_text = getenv("RP_TEST_SEED");
    uint64_t seed = seed_text != NULL ? strtoull(seed_text, NULL, 10) : 1;
    life *l = malloc(sizeof *l);
    rp_runtime *runtime = NULL; /* or its threads would begin and end with every case */
    size_t items = 0;
    (void)state;
    assert_non_null(l);
    assert_ok(rp_runtime_get(&runtime, NULL));

    for (size_t i = 0; i < cases; i++) {
        live(l, seed * 1000003 + i);
        items += l->item_count;
    }

    assert_true(items > 5 * cases);
    rp_runtime_put(runtime);
    free(l);
}

RP_TESTS(trajectory_writer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_reads_back_what_was_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
