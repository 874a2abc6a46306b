/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations on rollouts and on a model (support/rollout_model.h): the same results,
 * counts and contents after each. The operations that changed the state are logged as bytes.
 * Redone from the beginning and from an image, they give the same digest. */
#include "rollouts/rollouts_image.h"
#include "support/rollout_model.h"
#include "support/unit.h"
#include "util/rng.h"

enum {
    RUNS = 1000, /* at scale 1 */
    OPERATIONS = 400,
    MAX_LENGTH = 400,
};

typedef struct run {
    rp_test_oom oom;
    rp_allocator alloc;
    rp_rng rng;
    rp_rollout_options o;
    rp_rollout_consumer consumers[MODEL_CONSUMERS];
    rp_string needs[MODEL_CONSUMERS][MODEL_COLUMNS];
    char names[MODEL_CONSUMERS][4];
    model m;
    rp_rollouts *r;
    rp_buf log, image;
    size_t redone_from; /* bytes of the log that the image has */
    uint64_t number;
    size_t at;
    model_op op;
} run;

static const char *const column_names[MODEL_COLUMNS] = {"a", "b", "c", "d"};

/* What has happened in all runs, so that the test fails if they no longer reach something. */
static uint64_t waits[RP_ROLLOUT_BY_LEASES + 1], fates[RP_ROLLOUT_EXPIRED + 1];
static uint64_t outcomes[RP_ROLLOUT_GONE + 1], expired_leases;

#define expect(x, condition)                                                                   \
    do {                                                                                       \
        if (!(condition))                                                                      \
            fail_msg("run %llu, operation %zu, %s: not %s", (unsigned long long)(x)->number,   \
                     (x)->at, rp_rollout_op_name((x)->op.kind), #condition);                   \
    } while (0)

static uint64_t below(run *x, uint64_t n)
{
    return rp_rng_below(&x->rng, n);
}

static bool one_in(run *x, uint64_t n)
{
    return below(x, n) == 0;
}

static void choose_consumers(run *x)
{
    size_t count = below(x, MODEL_CONSUMERS + 1);

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(x->names[i], sizeof x->names[i], "%c", (int)('x' + i));
        x->consumers[i] =
            (rp_rollout_consumer){.name = {x->names[i], 1}, .columns = x->needs[i]};
        for (int k = 0; k < MODEL_COLUMNS; k++)
            if (one_in(x, 3))
                x->needs[i][x->consumers[i].column_count++] = (rp_string){column_names[k], 1};
    }
    x->o.consumers = x->consumers;
    x->o.consumer_count = count;
}

static void choose_options(run *x)
{
    rp_rollout_options_init(&x->o);
    x->o.group_size = 1 + (uint32_t)below(x, MODEL_ITEMS);
    x->o.max_staleness = (int64_t)below(x, 5) - 1;
    x->o.staleness = one_in(x, 2) ? RP_ROLLOUT_WAIT : RP_ROLLOUT_DROP;
    if (x->o.max_staleness >= 0 && (x->o.staleness == RP_ROLLOUT_WAIT || one_in(x, 3)))
        x->o.groups_per_version = 1 + below(x, 6);
    x->o.first_version = (int64_t)below(x, 3);
    x->o.max_groups = 2 + below(x, 20);
    x->o.max_bytes = one_in(x, 2) ? 6000 + below(x, 40000) : (uint64_t)1 << 30;
    x->o.full = one_in(x, 2) ? RP_ROLLOUT_FULL_EVICT : RP_ROLLOUT_FULL_WAIT;
    x->o.order = (rp_rollout_order)below(x, 3);
    choose_consumers(x);
}

static void choose_item(run *x, model_op *op)
{
    int64_t version = x->m.version;

    op->group = (int)below(x, MODEL_NAMES);
    /* Mostly a group that is there and not full, so that groups become complete. */
    for (int i = 0; i < 6 && !x->m.groups[op->group].is_there; i++)
        op->group = (int)below(x, MODEL_NAMES);
    op->index = (int)below(x, x->o.group_size + one_in(x, 30));
    op->first = version - (int64_t)below(x, 3) - (one_in(x, 8) ? 4 : 0);
    if (op->first < 0) op->first = 0;
    op->last = op->first + (int64_t)below(x, 3);
    for (int i = 0; i < MODEL_COLUMNS; i++) {
        if (!one_in(x, 2)) continue;
        op->columns[i] = (model_column){
            .is_there = true,
            .value = (uint8_t)(one_in(x, 10) ? 2 : 1),
            .length = one_in(x, 10) ? (int)below(x, MAX_LENGTH) : i * 3,
        };
    }
}

static model_op choose_op(run *x)
{
    static const rp_rollout_op_kind kinds[] = {
        RP_ROLLOUT_RESERVE, RP_ROLLOUT_RESERVE, RP_ROLLOUT_ABORT,  RP_ROLLOUT_PUT,
        RP_ROLLOUT_PUT,     RP_ROLLOUT_PUT,     RP_ROLLOUT_PUT,    RP_ROLLOUT_PUT,
        RP_ROLLOUT_PUT,     RP_ROLLOUT_PUT,     RP_ROLLOUT_UPDATE, RP_ROLLOUT_UPDATE,
        RP_ROLLOUT_UPDATE,  RP_ROLLOUT_ADVANCE, RP_ROLLOUT_DRAW,   RP_ROLLOUT_DRAW,
        RP_ROLLOUT_DRAW,    RP_ROLLOUT_ACK,     RP_ROLLOUT_ACK,    RP_ROLLOUT_RELEASE,
        RP_ROLLOUT_RENEW,   RP_ROLLOUT_EXPIRE};
    model_op op = {.kind = kinds[below(x, COUNT_OF(kinds))], .column = -1};

    choose_item(x, &op);
    op.now = x->m.now + (int64_t)below(x, 20) - 5;
    if (one_in(x, 100)) op.now += (int64_t)below(x, 400000) - 100000; /* the clock was set */
    if (op.now < 0) op.now = 0;
    op.ttl = 1 + (int64_t)below(x, 200);
    op.replace = one_in(x, 2);
    op.version = x->m.version + (int64_t)below(x, 3) - one_in(x, 10);
    if (op.version < 0) op.version = 0;
    op.consumer = (int)below(x, (uint64_t)x->m.consumers + one_in(x, 30));
    op.groups = 1 + (uint32_t)below(x, 5);
    op.min_groups = (uint32_t)below(x, op.groups + 1);
    if (one_in(x, 3)) {
        op.column = (int)below(x, MODEL_COLUMNS);
        op.tokens = 1 + below(x, 60);
    }
    op.lease = x->m.next_lease > 5 ? x->m.next_lease - below(x, 6) : below(x, 6);
    if (op.kind == RP_ROLLOUT_UPDATE) op.columns[below(x, MODEL_COLUMNS)].is_there = true;
    return op;
}

/* The operation on the rollouts that corresponds to one on the model. */
static rp_rollout_op translate(run *x, const model_op *op, char name[8],
                               rp_rollout_column columns[MODEL_COLUMNS],
                               uint8_t bytes[MODEL_COLUMNS][MAX_LENGTH])
{
    static const char *const unknown = "no such consumer";
    rp_rollout_op out = {.kind = op->kind,
                         .now_ns = op->now,
                         .ttl_ns = op->ttl,
                         .index = (uint32_t)op->index,
                         .first_version = op->first,
                         .last_version = op->last,
                         .columns = columns,
                         .replace = op->replace,
                         .version = op->version,
                         .groups = op->groups,
                         .min_groups = op->min_groups,
                         .tokens = op->tokens,
                         .lease = op->lease};

    (void)snprintf(name, 8, "g%d", op->group);
    out.group = (rp_string){name, strlen(name)};
    if (op->consumer >= x->m.consumers)
        out.consumer = (rp_string){unknown, strlen(unknown)};
    else if (x->o.consumer_count > 0)
        out.consumer = x->consumers[op->consumer].name;
    if (op->column >= 0) out.column = (rp_string){column_names[op->column], 1};
    for (int i = MODEL_COLUMNS - 1; i >= 0; i--) { /* in another order than that of the names */
        rp_shape shape = {.rank = 1, .dims = {op->columns[i].length}};

        if (!op->columns[i].is_there) continue;
        memset(bytes[i], op->columns[i].value, (size_t)op->columns[i].length);
        columns[out.column_count++] =
            (rp_rollout_column){{column_names[i], 1}, {RP_UINT8, shape, bytes[i]}};
    }
    return out;
}

static void expect_item(run *x, const rp_rollout_item *got, const model_item *want)
{
    size_t at = 0;

    expect(x, (got != NULL) == want->is_there);
    if (got == NULL) return;
    expect(x, got->first_version == want->first && got->last_version == want->last);
    for (int i = 0; i < MODEL_COLUMNS; i++) {
        const rp_rollout_column *column = &got->columns[at];

        if (!want->columns[i].is_there) continue;
        expect(x, at < got->column_count && column->name.data[0] == column_names[i][0]);
        expect(x, column->tensor.shape.dims[0] == want->columns[i].length);
        expect(x, rp_test_is_all(column->tensor.data, want->columns[i].value,
                                 (size_t)want->columns[i].length) ||
                      want->columns[i].length == 0);
        if (want->columns[i].length > 0)
            expect(x, *(const uint8_t *)column->tensor.data == want->columns[i].value);
        at++;
    }
    expect(x, at == got->column_count);
}

static void expect_batch(run *x, const rp_rollout_batch *batch, const model_result *want)
{
    expect(x, (batch != NULL) == (want->drawn_count > 0));
    if (batch == NULL) return;
    expect(x, batch->count == (size_t)want->drawn_count);
    expect(x, batch->lease == x->m.next_lease - 1 && batch->version == x->m.version);
    expect(x, batch->expires_ns == x->m.leases[batch->lease].until);
    for (size_t i = 0; i < batch->count; i++) {
        const model_group *group = &x->m.groups[want->drawn[i]];
        rp_string name = rp_rollout_name_text(batch->groups[i].name);
        char wanted[8];

        (void)snprintf(wanted, sizeof wanted, "g%d", want->drawn[i]);
        expect(x, name.size == strlen(wanted) && memcmp(name.data, wanted, name.size) == 0);
        for (uint32_t k = 0; k < x->o.group_size; k++)
            expect_item(x, batch->groups[i].items[k], &group->items[k]);
    }
}

static void expect_contents(run *x)
{
    for (int i = 0; i < MODEL_NAMES; i++) {
        rp_rollout_batch *batch;
        rp_rollout_fate fate;
        char name[8];

        (void)snprintf(name, sizeof name, "g%d", i);
        assert_ok(rp_rollouts_peek(x->r, (rp_string){name, strlen(name)}, &fate, &batch));
        expect(x, fate == model_state(&x->m, i));
        fates[fate]++;
        expect(x, (batch != NULL) == x->m.groups[i].is_there);
        for (uint32_t k = 0; batch != NULL && k < x->o.group_size; k++)
            expect_item(x, batch->groups[0].items[k], &x->m.groups[i].items[k]);
        rp_rollout_batch_free(batch);
    }
}

static void expect_info(run *x)
{
    static rp_rollout_info got, want;

    rp_rollouts_get_info(x->r, &got);
    model_info(&x->m, &want);
    for (size_t i = 0; i < got.consumer_count; i++)
        memset(got.consumers[i].name, 0, sizeof got.consumers[i].name);
    expect(x, got.groups == want.groups && got.bytes == want.bytes);
    expect(x, memcmp(&got, &want, sizeof got) == 0);
}

/* Logs an operation: its size, then its bytes. */
static void log_op(run *x, const rp_rollout_op *op)
{
    size_t mark = x->log.size;
    uint32_t size = 0;

    rp_buf_append(&x->log, &size, sizeof size);
    rp_rollout_op_write(&x->log, op);
    assert_false(x->log.bad);
    size = (uint32_t)(x->log.size - mark - sizeof size);
    memcpy(x->log.data + mark, &size, sizeof size);
}

/* An operation for which memory is missing changes nothing. */
static void try_without_memory(run *x, const rp_rollout_op *op)
{
    rp_rollout_result result;
    uint64_t before, after;
    rp_status st;

    assert_ok(rp_rollouts_digest(x->r, &before));
    atomic_store(&x->oom.left, below(x, 8));
    st = rp_rollouts_apply(x->r, op, &result, NULL);
    atomic_store(&x->oom.left, RP_TEST_OOM_UNLIMITED);
    if (st == RP_OK && result.changed) fail_msg("it should have been tried on a copy");
    assert_ok(rp_rollouts_digest(x->r, &after));
    expect(x, before == after && rp_rollouts_check(x->r));
}

static void step(run *x)
{
    static uint8_t bytes[MODEL_COLUMNS][MAX_LENGTH];
    rp_rollout_column columns[MODEL_COLUMNS];
    char name[8];
    rp_rollout_op op;
    rp_rollout_result got;
    model_result want;
    rp_error err;
    rp_status st;

    x->op = choose_op(x);
    op = translate(x, &x->op, name, columns, bytes);
    want = model_apply(&x->m, &x->op);
    if (want.status != RP_OK && one_in(x, 4)) try_without_memory(x, &op);
    st = rp_rollouts_apply(x->r, &op, &got, &err);
    if (st != want.status)
        print_error("%s: %s\n", rp_status_name(st), st != RP_OK ? err.text : "");
    expect(x, st == want.status);
    if (st == RP_DEADLINE) expect(x, got.waiting.limit == want.limit);
    if (st == RP_OK) {
        expect(x, got.outcome == want.outcome && got.changed == want.changed);
        expect(x, got.fate == want.fate);
        expect_batch(x, got.batch, &want);
    }
    if (got.changed) log_op(x, &op);
    expect(x, got.version == x->m.version);
    waits[got.waiting.limit]++;
    if (st == RP_OK) outcomes[got.outcome]++;
    expired_leases += got.expired_leases;
    rp_rollout_batch_free(got.batch);
}

static void save(run *x)
{
    rp_rollout_cut *cut;

    rp_buf_clear(&x->image);
    assert_ok(rp_rollouts_cut(x->r, &cut, NULL));
    while (rp_rollout_cut_next(cut, &x->image)) continue;
    rp_rollout_cut_free(cut);
    assert_false(x->image.bad);
    x->redone_from = x->log.size;
}

static rp_rollouts *load(run *x)
{
    rp_rollout_loader *loader = rp_rollout_loader_new(&x->alloc, 99);
    rp_rollouts *r;
    rp_error err;

    assert_ok_err(rp_rollout_loader_add(loader, x->image.data, x->image.size, &err), &err);
    assert_ok_err(rp_rollout_loader_finish(loader, &r, &err), &err);
    rp_rollout_loader_free(loader);
    return r;
}

/* Redoes the log from a position, and compares the result with the rollouts. */
static void redo(run *x, rp_rollouts *r, size_t at)
{
    uint64_t first, second;

    while (at < x->log.size) {
        uint32_t size;
        rp_rollout_op op;
        rp_rollout_result result;
        rp_error err;

        memcpy(&size, x->log.data + at, sizeof size);
        at += sizeof size;
        assert_ok_err(rp_rollout_op_read(&x->alloc, x->log.data + at, size, &op, &err), &err);
        assert_ok_err(rp_rollouts_apply(r, &op, &result, &err), &err);
        expect(x, result.changed);
        rp_rollout_batch_free(result.batch);
        rp_rollout_op_deinit(&op, &x->alloc);
        at += size;
    }
    assert_ok(rp_rollouts_digest(x->r, &first));
    assert_ok(rp_rollouts_digest(r, &second));
    expect(x, first == second && rp_rollouts_check(r));
    rp_rollouts_unref(r);
}

static void one_run(uint64_t number)
{
    static run x;
    rp_rollouts *fresh;
    rp_error err;

    memset(&x, 0, sizeof x);
    x.number = number;
    atomic_init(&x.oom.left, RP_TEST_OOM_UNLIMITED);
    x.alloc = rp_test_oom_allocator(&x.oom);
    rp_rng_init(&x.rng, number);
    rp_buf_init(&x.log, &x.alloc);
    rp_buf_init(&x.image, &x.alloc);
    choose_options(&x);
    model_init(&x.m, &x.o);
    assert_ok_err(rp_rollouts_new(&x.alloc, number, (rp_string){"r", 1}, &x.o, &x.r, &err),
                  &err);
    for (x.at = 0; x.at < OPERATIONS; x.at++) {
        step(&x);
        expect_info(&x);
        if (x.at % 16 == 0) expect_contents(&x);
        if (x.at == OPERATIONS / 2) save(&x);
    }
    assert_ok_err(rp_rollouts_new(&x.alloc, 5, (rp_string){"r", 1}, &x.o, &fresh, &err), &err);
    redo(&x, fresh, 0);
    redo(&x, load(&x), x.redone_from);
    rp_buf_deinit(&x.log);
    rp_buf_deinit(&x.image);
    rp_rollouts_unref(x.r);
    assert_int_equal(atomic_load(&x.oom.live), 0);
}

static void rollouts_agree_with_the_model(void **state)
{
    (void)state;
    size_t runs = rp_test_part(RUNS, 100);

    for (uint64_t i = 1; i <= runs; i++) one_run(i);
    for (int i = RP_ROLLOUT_BY_VERSION; i <= RP_ROLLOUT_BY_READY; i++)
        assert_true(waits[i] > 0);
    for (int i = RP_ROLLOUT_RESERVED; i <= RP_ROLLOUT_EXPIRED; i++) assert_true(fates[i] > 0);
    for (int i = RP_ROLLOUT_DONE; i <= RP_ROLLOUT_GONE; i++) assert_true(outcomes[i] > 0);
    assert_true(expired_leases > 0);
}

RP_TESTS(rollouts)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rollouts_agree_with_the_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
