/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/replay_buffer.h"

#include <math.h>
#include <pthread.h>

#include "support/unit.h"
#include "util/rng.h"

enum { FRAME = 1200, STACK = 4 };

static rp_error err;

/* An int64, a float and a byte: enough to see them misplaced. */
static const rp_replay_column plain[] = {{"number", 8, 0}, {"half", 4, 0}, {"flag", 1, 0}};

static rp_replay_buffer *make(size_t capacity, double alpha, const rp_replay_column *columns,
                              size_t column_count)
{
    rp_replay_options options = {.capacity = capacity,
                                 .columns = columns,
                                 .column_count = column_count,
                                 .alpha = alpha,
                                 .seed = 7};
    rp_replay_buffer *b = NULL;

    assert_ok_err(rp_replay_buffer_new(rp_allocator_default(), &options, &b, &err), &err);
    return b;
}

/* Adds rows whose values follow from `first`, first + 1, ... */
static rp_status add_plain(rp_replay_buffer *b, int64_t first, size_t count,
                           const double *priorities)
{
    int64_t *numbers = calloc(count, sizeof *numbers);
    float *halves = calloc(count, sizeof *halves);
    uint8_t *flags = calloc(count, 1);
    const void *columns[] = {numbers, halves, flags};
    rp_status st;

    assert_true(numbers != NULL && halves != NULL && flags != NULL);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = first + (int64_t)i;
        halves[i] = (float)numbers[i] / 2;
        flags[i] = (uint8_t)(numbers[i] % 251);
    }
    st = rp_replay_buffer_add(b, columns, count, priorities, &err);
    free(numbers);
    free(halves);
    free(flags);
    return st;
}

typedef struct drawn {
    int64_t numbers[1000], indices[1000];
    float halves[1000], weights[1000];
    uint8_t flags[1000];
    double probabilities[1000];
} drawn;

static rp_status sample_plain(rp_replay_buffer *b, size_t count, double beta, drawn *d)
{
    void *const columns[] = {d->numbers, d->halves, d->flags};
    rp_replay_sample out = {columns, d->indices, d->probabilities, d->weights};

    return rp_replay_buffer_sample(b, count, beta, &out, &err);
}

/* Every row that was drawn is the one its number says. */
static void expect_true_rows(const drawn *d, size_t count, uint64_t added, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        assert_true(d->indices[i] >= (int64_t)(added - size) && d->indices[i] < (int64_t)added);
        assert_int_equal(d->numbers[i], d->indices[i]);
        assert_true(d->halves[i] == (float)d->numbers[i] / 2);
        assert_int_equal(d->flags[i], d->numbers[i] % 251);
    }
}

static void rows_come_back_as_they_were_added(void **state)
{
    (void)state;
    static const double alphas[] = {0, 0.6};
    static const size_t capacities[] = {1, 2, 7, 100, 5000};
    drawn *d = calloc(1, sizeof *d);
    rp_rng rng;
    assert_non_null(d);
    rp_rng_init(&rng, 1);

    for (size_t a = 0; a < 2; a++)
        for (size_t c = 0; c < COUNT_OF(capacities); c++) {
            size_t capacity = capacities[c], added = 0;
            rp_replay_buffer *b = make(capacity, alphas[a], plain, 3);
            for (int round = 0; round < 40; round++) {
                size_t n = rp_rng_below(&rng, 2 * capacity + 2), size;
                if (n > 900) n = 900;
                assert_ok_err(add_plain(b, (int64_t)added, n, NULL), &err);
                added += n;
                size = rp_replay_buffer_size(b);
                assert_int_equal(size, added < capacity ? added : capacity);
                assert_int_equal(rp_replay_buffer_added(b), added);
                assert_true(rp_replay_buffer_check(b));
                if (size == 0) continue;
                assert_ok_err(sample_plain(b, 300, 0.4, d), &err);
                expect_true_rows(d, 300, added, size);
            }
            rp_replay_buffer_free(b);
        }
    free(d);
}

static void a_full_buffer_keeps_the_last_rows(void **state)
{
    (void)state;
    drawn *d = calloc(1, sizeof *d);
    rp_replay_buffer *b = make(10, 0.6, plain, 3);
    assert_non_null(d);

    assert_ok(add_plain(b, 0, 3, NULL));
    assert_ok(add_plain(b, 3, 25, NULL));

    assert_int_equal(rp_replay_buffer_size(b), 10);
    assert_int_equal(rp_replay_buffer_added(b), 28);
    assert_true(rp_replay_buffer_check(b));
    assert_ok(sample_plain(b, 500, 0.4, d));
    expect_true_rows(d, 500, 28, 10);
    rp_replay_buffer_free(b);
    free(d);
}

static void an_empty_buffer_has_nothing_to_sample(void **state)
{
    (void)state;
    rp_replay_buffer *b = make(10, 0.6, plain, 3);
    rp_replay_sample out = {0};

    assert_fails(rp_replay_buffer_sample(b, 1, 0.4, &out, &err), RP_PRECONDITION, &err,
                 "empty");
    assert_ok(add_plain(b, 0, 3, NULL));
    assert_ok(rp_replay_buffer_sample(b, 1, 0.4, &out, &err)); /* all of it may be NULL */
    rp_replay_buffer_clear(b);
    assert_true(rp_replay_buffer_check(b));
    assert_fails(rp_replay_buffer_sample(b, 1, 0.4, &out, &err), RP_PRECONDITION, &err,
                 "empty");
    assert_ok(add_plain(b, 3, 3, NULL));
    assert_int_equal(rp_replay_buffer_size(b), 3);
    rp_replay_buffer_free(b);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    const rp_replay_column uneven[] = {{"obs", 10, 4}}, empty[] = {{"obs", 0, 0}};
    rp_replay_options o = {.capacity = 0, .columns = plain, .column_count = 3, .alpha = 0.6};
    rp_replay_buffer *b = NULL;
    rp_replay_sample out = {0};
    double bad[] = {1, -1}, nan_[] = {NAN, 1};
    int64_t ahead[] = {2}, negative[] = {-1};

#define NEW() rp_replay_buffer_new(rp_allocator_default(), &o, &b, &err)
    assert_fails(NEW(), RP_INVALID, &err, "capacity must be from 1 to 2^31, got 0");
    o.capacity = 4, o.alpha = -1;
    assert_fails(NEW(), RP_INVALID, &err, "alpha must be finite and >= 0, got -1");
    o.alpha = 1, o.epsilon = INFINITY;
    assert_fails(NEW(), RP_INVALID, &err, "epsilon");
    o.epsilon = 0, o.columns = uneven, o.column_count = 1;
    assert_fails(NEW(), RP_INVALID, &err, "('obs'): frame_count");
    o.columns = empty;
    assert_fails(NEW(), RP_INVALID, &err, "bytes must be >= 1");
    o.column_count = 0;
    assert_fails(NEW(), RP_INVALID, &err, "columns");
#undef NEW

    b = make(4, 0.6, plain, 3);
    assert_fails(add_plain(b, 0, 2, bad), RP_INVALID, &err, "got -1 at place 1");
    assert_fails(add_plain(b, 0, 2, nan_), RP_INVALID, &err, "nan at place 0");
    assert_int_equal(rp_replay_buffer_added(b), 0);
    assert_ok(add_plain(b, 0, 2, NULL));
    assert_fails(rp_replay_buffer_sample(b, 1, -0.5, &out, &err), RP_INVALID, &err, "beta");
    assert_fails(rp_replay_buffer_update(b, ahead, bad, 1, NULL, &err), RP_INVALID, &err,
                 "no row has the number 2; the next will be 2");
    assert_fails(rp_replay_buffer_update(b, negative, bad, 1, NULL, &err), RP_INVALID, &err,
                 "number -1");
    assert_true(rp_replay_buffer_check(b));
    rp_replay_buffer_free(b);

    b = make(4, 0, plain, 3);
    assert_ok(add_plain(b, 0, 2, NULL));
    assert_fails(rp_replay_buffer_update(b, ahead, bad, 1, NULL, &err), RP_PRECONDITION, &err,
                 "uniform");
    rp_replay_buffer_free(b);
}

/* Rows of a ring that no cache holds go a way of their own. */
static void rows_of_a_large_ring_come_back(void **state)
{
    (void)state;
    enum { CAPACITY = 120000, WIDE = 601, COUNT = 300 };
    const rp_replay_column columns[] = {{"wide", WIDE, 0}, {"number", 8, 0}};
    rp_replay_buffer *b = make(CAPACITY, 0.6, columns, 2);
    rp_replay_state start = {.next = CAPACITY - 500, .largest_priority = 1, .rng = {1}};
    char *wide = calloc(COUNT, WIDE), *out_wide = calloc(COUNT, WIDE);
    int64_t numbers[COUNT], out_numbers[COUNT];
    const void *in[] = {wide, numbers};
    void *const out[] = {out_wide, out_numbers};
    assert_true(wide != NULL && out_wide != NULL);

    assert_ok(rp_replay_buffer_set_state(b, &start, &err)); /* soon round the end */
    for (int64_t first = CAPACITY - 500; first < CAPACITY + 1000; first += COUNT) {
        int64_t indices[COUNT];
        rp_replay_sample sample = {out, indices, NULL, NULL};
        for (int64_t i = 0; i < COUNT; i++) {
            numbers[i] = first + i;
            memset(wide + i * WIDE, (int)(numbers[i] % 251), WIDE);
        }
        assert_ok(rp_replay_buffer_add(b, in, COUNT, NULL, &err));
        assert_ok(rp_replay_buffer_sample(b, COUNT, 0.4, &sample, &err));
        for (size_t i = 0; i < COUNT; i++) {
            assert_int_equal(out_numbers[i], indices[i]);
            assert_true(rp_test_is_all(out_wide + i * WIDE, (uint8_t)(indices[i] % 251), WIDE));
        }
    }
    assert_true(rp_replay_buffer_check(b));
    rp_replay_buffer_free(b);
    free(wide);
    free(out_wide);
}

/* Draws many rows and holds their counts against the probabilities, by chi-square: with `rows`
 * - 1 degrees of freedom, ten standard deviations off is no accident. */
static void expect_distribution(rp_replay_buffer *b, const double *expected, size_t rows)
{
    size_t rounds = rp_test_length(400, 50), count = 1000;
    double *seen = calloc(rows, sizeof *seen), chi2 = 0, freedom = (double)rows - 1;
    drawn *d = calloc(1, sizeof *d);
    uint64_t oldest = rp_replay_buffer_added(b) - rows;
    assert_true(seen != NULL && d != NULL);

    for (size_t r = 0; r < rounds; r++) {
        assert_ok(sample_plain(b, count, 0.4, d));
        for (size_t i = 0; i < count; i++) {
            size_t row = (size_t)d->indices[i] - oldest;
            assert_true(row < rows);
            assert_true(fabs(d->probabilities[i] - expected[row]) < 1e-9);
            seen[row]++;
        }
    }
    for (size_t i = 0; i < rows; i++) {
        double wanted = expected[i] * (double)(rounds * count);
        chi2 += (seen[i] - wanted) * (seen[i] - wanted) / wanted;
    }
    assert_true(chi2 < freedom + 10 * sqrt(2 * freedom));
    assert_true(chi2 > freedom - 10 * sqrt(2 * freedom));
    free(seen);
    free(d);
}

static void rows_are_drawn_by_priority_to_the_alpha(void **state)
{
    (void)state;
    enum { ROWS = 500 };
    rp_replay_buffer *b = make(ROWS, 0.6, plain, 3);
    double priorities[ROWS], expected[ROWS], total = 0;
    int64_t indices[ROWS];
    size_t updated = 0;
    rp_rng rng;
    rp_rng_init(&rng, 3);

    assert_ok(add_plain(b, 0, 130, NULL)); /* so that the ring has come round */
    for (size_t i = 0; i < ROWS; i++) {
        priorities[i] = 0.1 + 3 * rp_rng_unit(&rng);
        total += expected[i] = pow(priorities[i], 0.6);
        indices[i] = 130 + (int64_t)i;
    }
    for (size_t i = 0; i < ROWS; i++) expected[i] /= total;

    assert_ok(add_plain(b, 130, ROWS, priorities));
    expect_distribution(b, expected, ROWS);

    for (size_t i = 0, j = ROWS - 1; i < j; i++, j--) { /* the other way round */
        double swap = expected[i];
        expected[i] = expected[j], expected[j] = swap;
        swap = priorities[i], priorities[i] = priorities[j], priorities[j] = swap;
    }
    assert_ok(rp_replay_buffer_update(b, indices, priorities, ROWS, &updated, &err));
    assert_int_equal(updated, ROWS);
    expect_distribution(b, expected, ROWS);
    rp_replay_buffer_free(b);
}

static void uniform_rows_are_equally_likely(void **state)
{
    (void)state;
    rp_replay_buffer *b = make(200, 0, plain, 3);
    double expected[150];
    for (size_t i = 0; i < 150; i++) expected[i] = 1.0 / 150;

    assert_ok(add_plain(b, 0, 130, NULL));
    rp_replay_buffer_clear(b);
    assert_ok(add_plain(b, 130, 150, NULL)); /* around the end, with a gap */

    assert_true(rp_replay_buffer_check(b));
    expect_distribution(b, expected, 150);
    rp_replay_buffer_free(b);
}

static void weights_are_those_of_the_paper(void **state)
{
    (void)state;
    rp_replay_buffer *b = make(64, 0.7, plain, 3);
    double priorities[64], total = 0, least = 1;
    drawn *d = calloc(1, sizeof *d);
    assert_non_null(d);
    for (size_t i = 0; i < 64; i++) total += pow(priorities[i] = 0.01 + (double)i, 0.7);

    assert_ok(add_plain(b, 0, 64, priorities));
    assert_ok(sample_plain(b, 700, 0.45, d));

    for (size_t i = 0; i < 700; i++)
        least = d->probabilities[i] < least ? d->probabilities[i] : least;
    for (size_t i = 0; i < 700; i++) {
        double p = pow(priorities[d->indices[i]], 0.7) / total;
        double weight = pow(64 * p, -0.45) / pow(64 * least, -0.45);
        assert_true(fabs(d->probabilities[i] - p) < 1e-12);
        assert_true(fabs(d->weights[i] - weight) < 1e-6);
        assert_true(d->weights[i] > 0 && d->weights[i] <= 1);
    }
    rp_replay_buffer_free(b);
    free(d);
}

static void a_row_without_a_priority_gets_the_largest(void **state)
{
    (void)state;
    rp_replay_buffer *b = make(8, 1, plain, 3);
    double priority = 5, weights[4];
    void *const none[] = {NULL, NULL, NULL};
    int64_t index = 0;

    assert_ok(add_plain(b, 0, 1, NULL));
    assert_ok(add_plain(b, 1, 1, &priority));
    assert_ok(add_plain(b, 2, 1, NULL));
    priority = 9;
    assert_ok(rp_replay_buffer_update(b, &index, &priority, 1, NULL, &err));
    assert_ok(add_plain(b, 3, 1, NULL));

    assert_ok(rp_replay_buffer_read(b, 0, 4, none, weights, &err));
    assert_true(fabs(weights[0] - 9) < 1e-9 && fabs(weights[1] - 5) < 1e-9);
    assert_true(fabs(weights[2] - 5) < 1e-9 && fabs(weights[3] - 9) < 1e-9);
    rp_replay_buffer_free(b);
}

static void updates_of_overwritten_rows_are_ignored(void **state)
{
    (void)state;
    rp_replay_buffer *b = make(4, 1, plain, 3);
    int64_t indices[] = {0, 5, 1, 2, 5};
    double priorities[] = {100, 3, 100, 2, 4}, weights[4];
    void *const none[] = {NULL, NULL, NULL};
    size_t updated = 0;

    assert_ok(add_plain(b, 0, 6, NULL)); /* 0 and 1 are gone, their slots have 4 and 5 */
    assert_ok(rp_replay_buffer_update(b, indices, priorities, 5, &updated, &err));

    assert_int_equal(updated, 3);
    assert_ok(rp_replay_buffer_read(b, 2, 4, none, weights, &err));
    assert_true(fabs(weights[0] - 2) < 1e-9 && fabs(weights[1] - 1) < 1e-9);
    assert_true(fabs(weights[2] - 1) < 1e-9 && fabs(weights[3] - 4) < 1e-9);
    assert_fails(rp_replay_buffer_read(b, 1, 2, none, NULL, &err), RP_NOT_FOUND, &err,
                 "2 to 6");
    assert_fails(rp_replay_buffer_read(b, 4, 3, none, NULL, &err), RP_NOT_FOUND, &err,
                 "2 to 6");
    rp_replay_buffer_free(b);
}

static void extreme_priorities_do_no_harm(void **state)
{
    (void)state;
    static const double alphas[] = {0.001, 0.6, 1, 50};
    double priorities[] = {0, 0x1p-1074, 1e-300, 1, 1e300, 0x1p1023, 0, 7};
    drawn *d = calloc(1, sizeof *d);
    assert_non_null(d);

    for (size_t a = 0; a < COUNT_OF(alphas); a++) {
        rp_replay_buffer *b = make(8, alphas[a], plain, 3);
        assert_ok(add_plain(b, 0, 8, priorities));
        assert_true(rp_replay_buffer_check(b));
        for (int round = 0; round < 20; round++) {
            assert_ok(sample_plain(b, 100, 0.5, d));
            for (size_t i = 0; i < 100; i++)
                assert_true(isfinite(d->weights[i]) && d->weights[i] >= 0);
        }
        rp_replay_buffer_free(b);
    }
    free(d);
}

static void the_same_seed_gives_the_same_draws(void **state)
{
    (void)state;
    drawn *d = calloc(2, sizeof *d);
    assert_non_null(d);

    for (int i = 0; i < 2; i++) {
        rp_replay_buffer *b = make(100, 0.6, plain, 3);
        assert_ok(add_plain(b, 0, 150, NULL));
        assert_ok(sample_plain(b, 700, 0.5, &d[i]));
        rp_replay_buffer_free(b);
    }

    assert_memory_equal(&d[0], &d[1], sizeof *d);
    free(d);
}

static const rp_replay_column stacked[] = {
    {"obs", STACK *FRAME, STACK}, {"next_obs", STACK *FRAME, STACK}, {"reward", 4, 0}};

/* An environment with a memory of what it gave: episodes of random length, stacks that begin
 * with copies of the first frame. */
typedef struct world {
    char obs[STACK * FRAME], next_obs[STACK * FRAME];
    rp_rng rng;
    bool over;
} world;

static void new_frame(world *w, char *frame)
{
    memset(frame, 9, FRAME);
    for (int i = 0; i < 20; i++)
        frame[rp_rng_below(&w->rng, FRAME / 2)] = (char)rp_rng_next(&w->rng);
}

static void step(world *w)
{
    if (w->over) {
        new_frame(w, w->obs);
        for (int k = 1; k < STACK; k++) memcpy(w->obs + k * FRAME, w->obs, FRAME);
    } else {
        memcpy(w->obs, w->next_obs, sizeof w->obs);
    }
    memcpy(w->next_obs, w->obs + FRAME, (STACK - 1) * FRAME);
    new_frame(w, w->next_obs + (STACK - 1) * FRAME);
    w->over = rp_rng_below(&w->rng, 20) == 0;
}

/* `lanes` environments, one row of each at a time, into the buffer and into a plain ring. */
static void model_run(size_t capacity, size_t lanes, double alpha)
{
    enum { DRAW = 16 };
    rp_replay_buffer *b = make(capacity, alpha, stacked, 3);
    size_t row = 2 * STACK * FRAME + 4, added = 0;
    char *ring = calloc(capacity, row), *obs = calloc(lanes, STACK * FRAME);
    char *next_obs = calloc(lanes, STACK * FRAME), *drawn_obs = calloc(DRAW, STACK * FRAME);
    char *drawn_next = calloc(DRAW, STACK * FRAME);
    float *rewards = calloc(lanes, sizeof *rewards), drawn_rewards[DRAW];
    world *worlds = calloc(lanes, sizeof *worlds);
    assert_true(ring && obs && next_obs && drawn_obs && drawn_next && rewards && worlds);
    for (size_t i = 0; i < lanes; i++) {
        rp_rng_init(&worlds[i].rng, i);
        worlds[i].over = true;
    }

    for (size_t round = 0; round < 3 * capacity / lanes + 20; round++) {
        const void *columns[] = {obs, next_obs, rewards};
        void *const out[] = {drawn_obs, drawn_next, drawn_rewards};
        int64_t indices[DRAW];
        rp_replay_sample sample = {out, indices, NULL, NULL};
        for (size_t i = 0; i < lanes; i++, added++) {
            char *copy = ring + added % capacity * row;
            step(&worlds[i]);
            rewards[i] = (float)added;
            memcpy(obs + i * STACK * FRAME, worlds[i].obs, STACK * FRAME);
            memcpy(next_obs + i * STACK * FRAME, worlds[i].next_obs, STACK * FRAME);
            memcpy(copy, worlds[i].obs, STACK * FRAME);
            memcpy(copy + STACK * FRAME, worlds[i].next_obs, STACK * FRAME);
            memcpy(copy + 2 * STACK * FRAME, &rewards[i], 4);
        }
        assert_ok_err(rp_replay_buffer_add(b, columns, lanes, NULL, &err), &err);
        if (round % 7 == 0) assert_true(rp_replay_buffer_check(b));
        assert_ok(rp_replay_buffer_sample(b, DRAW, 0.4, &sample, &err));
        for (size_t i = 0; i < DRAW; i++) {
            const char *copy = ring + (size_t)indices[i] % capacity * row;
            assert_int_equal(memcmp(drawn_obs + i * STACK * FRAME, copy, STACK * FRAME), 0);
            assert_int_equal(
                memcmp(drawn_next + i * STACK * FRAME, copy + STACK * FRAME, STACK * FRAME), 0);
            assert_true(drawn_rewards[i] == (float)indices[i]);
        }
    }
    rp_replay_buffer_free(b);
    free(ring), free(obs), free(next_obs), free(drawn_obs), free(drawn_next);
    free(rewards), free(worlds);
}

static void framed_columns_agree_with_a_plain_ring(void **state)
{
    (void)state;
    model_run(1, 1, 0);
    model_run(5, 1, 0.6);
    model_run(rp_test_length(700, 150), 1, 0.6);
    model_run(rp_test_length(700, 150), 16, 0);
    model_run(64, 64, 0.6);
}

/* Noise in every frame: nothing to find but that each is there eight times. */
static void frame_stacks_take_an_eighth_of_the_memory(void **state)
{
    (void)state;
    rp_test_skip_if_emulated();
    enum { ROWS = 20000, BYTES = 1764, NOISE = 1 << 19 };
    const rp_replay_column columns[] = {{"obs", STACK * BYTES, STACK},
                                        {"next_obs", STACK * BYTES, STACK}};
    rp_replay_buffer *b = make(ROWS, 0.6, columns, 2);
    char *history = calloc(1, (STACK + 1) * BYTES), *noise = malloc(NOISE);
    size_t memory, plain_memory = (size_t)ROWS * 2 * STACK * BYTES;
    rp_rng rng;
    assert_true(history != NULL && noise != NULL);
    rp_rng_init(&rng, 1);
    for (size_t at = 0; at < NOISE; at += 8) {
        uint64_t word = rp_rng_next(&rng);
        memcpy(noise + at, &word, 8);
    }

    for (size_t i = 0; i < rp_test_length(2 * ROWS + ROWS / 2, ROWS + ROWS / 4); i++) {
        const void *row[] = {history, history + BYTES};
        memmove(history, history + BYTES, STACK * BYTES);
        memcpy(history + STACK * BYTES, noise + rp_rng_below(&rng, NOISE - BYTES), BYTES);
        assert_ok(rp_replay_buffer_add(b, row, 1, NULL, &err));
    }

    memory = rp_replay_buffer_memory(b);
    assert_true(memory < plain_memory / 6); /* 1/8, the window and a segment or two */
    assert_true(rp_replay_buffer_check(b));
    rp_replay_buffer_free(b);
    free(history);
    free(noise);
}

static void a_loaded_buffer_continues_like_the_saved_one(void **state)
{
    (void)state;
    rp_replay_buffer *a = make(50, 0.6, plain, 3), *b = make(50, 0.6, plain, 3);
    drawn *d = calloc(3, sizeof *d);
    void *const out[] = {d[2].numbers, d[2].halves, d[2].flags};
    const void *const in[] = {d[2].numbers, d[2].halves, d[2].flags};
    rp_replay_state saved;
    assert_non_null(d);

    assert_ok(add_plain(a, 0, 130, NULL));
    assert_ok(sample_plain(a, 40, 0.4, &d[0]));
    for (size_t i = 0; i < 40; i++) d[0].probabilities[i] *= 100;
    assert_ok(rp_replay_buffer_update(a, d[0].indices, d[0].probabilities, 40, NULL, &err));
    rp_replay_buffer_state(a, &saved);
    assert_ok(rp_replay_buffer_read(a, 80, 50, out, d[2].probabilities, &err));
    saved.next -= 50;
    assert_ok(add_plain(b, 0, 3, NULL)); /* which go */
    assert_ok(rp_replay_buffer_set_state(b, &saved, &err));
    assert_ok(rp_replay_buffer_put_back(b, in, 50, d[2].probabilities, &err));

    memset(d, 0, 2 * sizeof *d);
    assert_true(rp_replay_buffer_check(b));
    assert_ok(add_plain(a, 130, 7, NULL));
    assert_ok(add_plain(b, 130, 7, NULL));
    assert_ok(sample_plain(a, 500, 0.4, &d[0]));
    assert_ok(sample_plain(b, 500, 0.4, &d[1]));
    assert_memory_equal(&d[0], &d[1], sizeof *d);
    memset(saved.rng, 0, sizeof saved.rng);
    assert_fails(rp_replay_buffer_set_state(b, &saved, &err), RP_INVALID, &err, "zeros");
    d[2].probabilities[1] = 0;
    assert_fails(rp_replay_buffer_put_back(b, in, 2, d[2].probabilities, &err), RP_INVALID,
                 &err, "weights");
    rp_replay_buffer_free(a);
    rp_replay_buffer_free(b);
    free(d);
}

static rp_status work_through(const rp_allocator *alloc)
{
    static char obs[20 * STACK * FRAME], out_obs[4 * STACK * FRAME];
    rp_replay_options o = {.capacity = 300, .columns = stacked, .column_count = 3, .alpha = 1};
    float rewards[20] = {0}, out_rewards[4];
    const void *columns[] = {obs, obs, rewards};
    void *const out[] = {out_obs, out_obs, out_rewards};
    rp_replay_sample sample = {out, NULL, NULL, NULL};
    rp_replay_buffer *b = NULL;
    uint64_t added = 0;
    rp_status st = rp_replay_buffer_new(alloc, &o, &b, &err);

    if (st != RP_OK) return st;
    for (uint64_t i = 0; i < 30 && st == RP_OK; i++) {
        for (size_t k = 0; k < sizeof obs; k += 600) {
            uint64_t noise = i * 1000 + k;
            memcpy(obs + k, &noise, sizeof noise);
        }
        st = rp_replay_buffer_add(b, columns, 20, NULL, &err);
        assert_true(rp_replay_buffer_check(b)); /* whatever happened */
        if (st == RP_OK) added += 20;
    }
    assert_true(rp_replay_buffer_added(b) >= added);
    if (st == RP_OK) st = rp_replay_buffer_sample(b, 4, 0.5, &sample, &err);
    rp_replay_buffer_free(b);
    return st;
}

static void out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(work_through);
}

typedef struct job {
    rp_replay_buffer *b;
    int kind;
} job;

static void *work(void *arg)
{
    job *j = arg;
    drawn *d = calloc(1, sizeof *d);
    rp_error own;
    if (d == NULL) return NULL;

    for (int round = 0; round < 400; round++) {
        void *const out[] = {d->numbers, d->halves, d->flags};
        const void *const in[] = {d->numbers, d->halves, d->flags};
        rp_replay_sample sample = {out, d->indices, d->probabilities, d->weights};

        if (j->kind == 0) { /* rows that agree with themselves: number, half, flag */
            for (int i = 0; i < 20; i++) {
                d->numbers[i] = round * 20 + i;
                d->halves[i] = (float)d->numbers[i] / 2;
                d->flags[i] = (uint8_t)(d->numbers[i] % 251);
            }
            if (rp_replay_buffer_add(j->b, in, 20, NULL, &own) != RP_OK) break;
            continue;
        }
        if (rp_replay_buffer_sample(j->b, 64, 0.4, &sample, &own) != RP_OK) break;
        for (int i = 0; i < 64; i++)
            if (d->halves[i] != (float)d->numbers[i] / 2 || d->flags[i] != d->numbers[i] % 251)
                goto out;
        if (rp_replay_buffer_update(j->b, d->indices, d->probabilities, 64, NULL, &own) !=
            RP_OK)
            break;
    }
    j->kind = -1; /* went well */
out:
    free(d);
    return NULL;
}

static void threads_see_whole_rows(void **state)
{
    (void)state;
    rp_replay_buffer *b = make(100, 0.6, plain, 3);
    pthread_t threads[4];
    job jobs[4] = {{b, 0}, {b, 0}, {b, 1}, {b, 1}};
    assert_ok(add_plain(b, 0, 50, NULL));

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);

    for (int i = 0; i < 4; i++) assert_int_equal(jobs[i].kind, -1);
    assert_int_equal(rp_replay_buffer_added(b), 50 + 2 * 400 * 20);
    assert_true(rp_replay_buffer_check(b));
    rp_replay_buffer_free(b);
}

RP_TESTS(replay_buffer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_back_as_they_were_added),
        cmocka_unit_test(a_full_buffer_keeps_the_last_rows),
        cmocka_unit_test(rows_of_a_large_ring_come_back),
        cmocka_unit_test(an_empty_buffer_has_nothing_to_sample),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(rows_are_drawn_by_priority_to_the_alpha),
        cmocka_unit_test(uniform_rows_are_equally_likely),
        cmocka_unit_test(weights_are_those_of_the_paper),
        cmocka_unit_test(a_row_without_a_priority_gets_the_largest),
        cmocka_unit_test(updates_of_overwritten_rows_are_ignored),
        cmocka_unit_test(extreme_priorities_do_no_harm),
        cmocka_unit_test(the_same_seed_gives_the_same_draws),
        cmocka_unit_test(framed_columns_agree_with_a_plain_ring),
        cmocka_unit_test(frame_stacks_take_an_eighth_of_the_memory),
        cmocka_unit_test(a_loaded_buffer_continues_like_the_saved_one),
        cmocka_unit_test(out_of_memory_is_a_status),
        cmocka_unit_test(threads_see_whole_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
