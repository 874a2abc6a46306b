/* SPDX-License-Identifier: Apache-2.0 */
/* The items of our adders, bit by bit, against those that Acme's adders have written of the
 * same episodes; and those of groups of copies against those of each copy alone. */
#include "adder/adder_inside.h"
#include "support/adder_case.h"

enum { STEPS = RP_TEST_EPISODES * (RP_TEST_EPISODES + 1) / 2, COPIES = 5 };

/* A group of copies of one case, each with its own seed. */
typedef struct group {
    rp_test_adder t;
    const rp_test_case *c;
    size_t copies;
    bool by_hand; /* the end of an episode is followed by rp_adder_first() */
    rp_test_player players[COPIES];
    rp_test_values steps[COPIES];
    float observations[COPIES * RP_TEST_WIDTH], last[COPIES * RP_TEST_WIDTH];
    int32_t actions[COPIES];
    int16_t extras[COPIES];
    double rewards[COPIES * RP_TEST_NUMBERS];
    float discounts[COPIES * RP_TEST_NUMBERS];
    bool terminated[COPIES], truncated[COPIES];
} group;

static void copy_observations(group *g)
{
    for (size_t k = 0; k < g->copies; k++) {
        memcpy(g->observations + k * RP_TEST_WIDTH, g->steps[k].observation,
               sizeof g->steps[k].observation);
        memcpy(g->last + k * RP_TEST_WIDTH, g->steps[k].last, sizeof g->steps[k].last);
    }
}

static void open_group(group *g, const rp_test_case *c, size_t copies, uint64_t seed,
                       bool served)
{
    static const rp_spec extra = {"logits", RP_INT16, {0}};
    rp_adder_options options = c->options;

    memset(g, 0, sizeof *g);
    g->c = c;
    g->copies = options.copies = copies;
    options.extras = &extra;
    options.extra_count = c->extras ? 1 : 0;
    rp_test_adder_open(&g->t, options, served);
    for (size_t k = 0; k < copies; k++)
        rp_test_begin(&g->players[k], c, seed + k, &g->steps[k]);
    copy_observations(g);
    assert_ok_err(rp_adder_first(g->t.adder, g->observations, NULL, &g->t.err), &g->t.err);
}

/* Adds a step as if the environment did not begin the next episodes by itself. */
static void add_by_hand(group *g, rp_adder_step step)
{
    float observations[COPIES * RP_TEST_WIDTH];
    bool ended[COPIES], any = false;

    memcpy(observations, g->observations, sizeof observations);
    for (size_t k = 0; k < g->copies; k++) {
        ended[k] = g->terminated[k] || g->truncated[k];
        any = any || ended[k];
        if (ended[k])
            memcpy(observations + k * RP_TEST_WIDTH, g->steps[k].last, sizeof g->steps[k].last);
    }
    step.observations = observations;
    step.last_observations = NULL;
    assert_ok_err(rp_adder_add(g->t.adder, &step, rp_wait_forever(), &g->t.err), &g->t.err);
    if (any)
        assert_ok_err(rp_adder_first(g->t.adder, g->observations, ended, &g->t.err), &g->t.err);
}

static void step_group(group *g)
{
    const rp_test_case *c = g->c;
    const void *extras[] = {g->extras};
    rp_adder_step step = {.actions = g->actions,
                          .observations = g->observations,
                          .last_observations = g->last,
                          .rewards = g->rewards,
                          .terminated = g->terminated,
                          .truncated = g->truncated,
                          .discounts = c->given ? g->discounts : NULL,
                          .extras = extras};

    for (size_t k = 0; k < g->copies; k++) {
        rp_test_values *s = &g->steps[k];
        rp_test_play(&g->players[k], s);
        g->actions[k] = s->action;
        g->extras[k] = s->extra;
        g->terminated[k] = s->terminated;
        g->truncated[k] = s->truncated;
        memcpy(g->rewards + k * c->reward_size, s->rewards, c->reward_size * sizeof(double));
        memcpy(g->discounts + k * c->discount_size, s->discounts,
               c->discount_size * sizeof(float));
    }
    copy_observations(g);
    if (g->by_hand) {
        add_by_hand(g, step);
        return;
    }
    assert_ok_err(rp_adder_add(g->t.adder, &step, rp_wait_forever(), &g->t.err), &g->t.err);
}

static void hash_bytes(uint64_t *hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++) *hash = (*hash ^ bytes[i]) * 0x100000001b3;
}

static uint64_t hash_item(const rp_test_item *item)
{
    uint64_t hash = 0xcbf29ce484222325;
    uint64_t rows = item->columns[0].squeeze ? 0 : (uint64_t)item->columns[0].shape.dims[0];

    hash_bytes(&hash, &rows, sizeof rows);
    for (size_t i = 0; i < item->column_count; i++) {
        assert_int_equal(item->columns[i].squeeze, item->columns[0].squeeze);
        hash_bytes(&hash, item->data[i], item->columns[i].bytes);
    }
    return hash;
}

/* Takes the next item and returns its hash, or 0 if there is none. */
static uint64_t next_hash(group *g)
{
    rp_test_item item;
    uint64_t hash;

    if (!rp_test_adder_take(&g->t, 0, &item)) return 0;
    assert_true(item.priority == 1);
    hash = hash_item(&item);
    rp_test_item_deinit(&item);
    return hash;
}

/* Calls `check` for each line of the file of cases. */
static void for_each_case(void (*check)(const rp_test_case *c, size_t number))
{
    static char line[16384];
    FILE *file = fopen(RP_TEST_RL "/adders.txt", "r");
    size_t number = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        rp_test_case c = rp_test_parse_case(line);
        assert_true(strchr(line, '\n') != NULL && c.count > 0);
        check(&c, number++);
    }
    (void)fclose(file);
    assert_true(number > 100);
}

static void check_against_acme(const rp_test_case *c, size_t number)
{
    static group g;
    const char *hashes = c->hashes;

    open_group(&g, c, 1, c->seed, number % 10 == 3);
    for (size_t i = 0; i < STEPS; i++) step_group(&g);
    assert_ok_err(rp_adder_flush(g.t.adder, rp_wait_forever(), &g.t.err), &g.t.err);
    for (size_t i = 0; i < c->count; i++) {
        uint64_t expected = strtoull(hashes, (char **)(uintptr_t)&hashes, 16);
        uint64_t got = next_hash(&g);
        if (got != expected)
            print_error("case %zu, item %zu of %zu differs from Acme's\n", number, i, c->count);
        assert_int_equal(got, expected);
    }
    assert_int_equal(next_hash(&g), 0);
    assert_int_equal(rp_adder_created(g.t.adder), c->count);
    rp_test_adder_close(&g.t);
}

static void items_are_those_of_acme_bit_by_bit(void **state)
{
    (void)state;
    for_each_case(check_against_acme);
}

/* Does what an adder does after 2^30 appends. */
static void renew_writer(group *g)
{
    rp_trajectory_writer *writer = g->t.adder->writer;

    assert_true(rp_trajectory_writer_steps(writer) > 0);
    assert_ok_err(rp_trajectory_writer_end_episode(writer, false, rp_wait_forever(), &g->t.err),
                  &g->t.err);
    assert_int_equal(rp_trajectory_writer_steps(writer), 0);
}

static void check_group(const rp_test_case *c, size_t number)
{
    static group alone[COPIES], g;

    if (!rp_test_chosen(number, 11)) return;
    open_group(&g, c, COPIES, 1000, number % 20 == 8);
    g.by_hand = number % 2 == 1;
    for (size_t k = 0; k < COPIES; k++) open_group(&alone[k], c, 1, 1000 + k, false);
    for (size_t i = 0; i < STEPS; i++) {
        uint64_t hash;
        step_group(&g);
        assert_ok_err(rp_adder_flush(g.t.adder, rp_wait_forever(), &g.t.err), &g.t.err);
        if (i % 7 == 3) renew_writer(&g);
        for (size_t k = 0; k < COPIES; k++) {
            step_group(&alone[k]);
            assert_ok(rp_adder_flush(alone[k].t.adder, rp_wait_forever(), NULL));
            while ((hash = next_hash(&alone[k])) != 0) assert_int_equal(next_hash(&g), hash);
        }
        assert_int_equal(next_hash(&g), 0);
    }
    rp_test_adder_close(&g.t);
    for (size_t k = 0; k < COPIES; k++) rp_test_adder_close(&alone[k].t);
}

static void items_of_a_group_are_those_of_each_copy_alone(void **state)
{
    (void)state;
    for_each_case(check_group);
}

RP_TESTS(adder_golden)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_those_of_acme_bit_by_bit),
        cmocka_unit_test(items_of_a_group_are_those_of_each_copy_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
