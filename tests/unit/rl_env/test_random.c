/* SPDX-License-Identifier: Apache-2.0 */
/* Our generators against draws of NumPy's: tests/rl/golden/random.txt, whose format is in
 * tests/rl/make_golden_random.py. */
#include "reprise/rl/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/unit.h"

enum { DRAWS = 3000, FIRST = 4, LINE_BYTES = 1024 };

typedef struct draw_case {
    char generator[16], kind[16];
    uint64_t seed, low, high, hash, first[FIRST];
} draw_case;

static double double_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t draw_pcg64(rp_pcg64 *rng, const draw_case *c, size_t index)
{
    int64_t low = (int64_t)c->low, high = (int64_t)c->high;

    if (strcmp(c->kind, "next") == 0) return rp_pcg64_next(rng);
    if (strcmp(c->kind, "double") == 0) return bits_of(rp_pcg64_double(rng));
    if (strcmp(c->kind, "uniform") == 0)
        return bits_of(rp_pcg64_uniform(rng, double_of(c->low), double_of(c->high)));
    if (strcmp(c->kind, "integers") == 0) return (uint64_t)rp_pcg64_integers(rng, low, high);
    assert_string_equal(c->kind, "mixed");
    if (index % 3 == 0) return bits_of(rp_pcg64_double(rng));
    return (uint64_t)rp_pcg64_integers(rng, low, high);
}

static uint64_t draw_mt19937(rp_mt19937 *rng, const draw_case *c)
{
    if (strcmp(c->kind, "next") == 0) return rp_mt19937_next(rng);
    if (strcmp(c->kind, "double") == 0) return bits_of(rp_mt19937_double(rng));
    if (strcmp(c->kind, "uniform") == 0)
        return bits_of(rp_mt19937_uniform(rng, double_of(c->low), double_of(c->high)));
    if (strcmp(c->kind, "randint") == 0) return rp_mt19937_randint(rng, (uint32_t)c->high);
    assert_string_equal(c->kind, "normal");
    return bits_of(rp_mt19937_normal(rng));
}

static void check_draws(const draw_case *c)
{
    uint64_t hash = 0xcbf29ce484222325u;
    bool is_pcg64 = strcmp(c->generator, "pcg64") == 0;
    rp_pcg64 pcg64;
    rp_mt19937 mt19937;

    rp_pcg64_seed(&pcg64, c->seed);
    rp_mt19937_seed(&mt19937, (uint32_t)c->seed);
    for (size_t i = 0; i < DRAWS; i++) {
        uint64_t drawn = is_pcg64 ? draw_pcg64(&pcg64, c, i) : draw_mt19937(&mt19937, c);
        if (i < FIRST) assert_int_equal(drawn, c->first[i]);
        hash = (hash ^ drawn) * 0x100000001b3u;
        hash ^= hash >> 32;
    }
    if (hash != c->hash) fail_msg("%s %s: draws differ", c->generator, c->kind);
    assert_true(is_pcg64 ? rp_pcg64_check(&pcg64) : rp_mt19937_check(&mt19937));
}

static bool parse_draws(const char *line, draw_case *c)
{
    unsigned long long n[4 + FIRST];

    if (sscanf(line, "%15s %15s %llx %llx %llx %llx %llx %llx %llx %llx", c->generator, c->kind,
               &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7]) != 10)
        return false;
    c->seed = n[0];
    c->low = n[1];
    c->high = n[2];
    c->hash = n[3];
    for (size_t i = 0; i < FIRST; i++) c->first[i] = n[4 + i];
    return true;
}

static FILE *open_golden(void)
{
    FILE *file = fopen(RP_TEST_RL "/random.txt", "r");

    assert_non_null(file);
    return file;
}

static void draws_equal_those_of_numpy(void **state)
{
    (void)state;
    FILE *file = open_golden();
    char line[LINE_BYTES];
    size_t count = 0;

    while (fgets(line, sizeof line, file) != NULL) {
        draw_case c;
        if (line[0] == '#' || strncmp(line, "sequence", 8) == 0) continue;
        assert_true(parse_draws(line, &c));
        check_draws(&c);
        count++;
    }
    fclose(file);

    assert_true(count > 100);
}

static size_t parse_words(const char *text, uint32_t *words, size_t most)
{
    size_t count = 0;
    char *end;

    for (; count < most; count++, text = end) {
        unsigned long word = strtoul(text, &end, 16);
        if (end == text) break;
        words[count] = (uint32_t)word;
    }
    return count;
}

static void seed_sequences_equal_those_of_numpy(void **state)
{
    (void)state;
    FILE *file = open_golden();
    char line[LINE_BYTES];
    size_t count = 0;

    while (fgets(line, sizeof line, file) != NULL) {
        uint32_t entropy[8], expected[12], found[12];
        const char *colon = strchr(line, ':');
        if (strncmp(line, "sequence ", 9) != 0) continue;
        assert_non_null(colon);
        size_t entropy_count = parse_words(line + 9, entropy, 8);
        assert_int_equal(parse_words(colon + 1, expected, 12), 12);
        rp_seed_sequence(entropy, entropy_count, found, 12);
        assert_memory_equal(found, expected, sizeof found);
        count++;
    }
    fclose(file);

    assert_int_equal(count, 5);
}

static void a_copied_generator_repeats_its_draws(void **state)
{
    (void)state;
    rp_pcg64 rng, copy;

    rp_pcg64_seed(&rng, 3);
    (void)rp_pcg64_integers(&rng, 0, 10); /* leaves a spare word */
    copy = rng;

    for (int i = 0; i < 100; i++)
        assert_int_equal(rp_pcg64_integers(&rng, 0, 1000), rp_pcg64_integers(&copy, 0, 1000));
}

static void one_possible_integer_draws_nothing(void **state)
{
    (void)state;
    rp_pcg64 rng, before;
    rp_mt19937 twister, twister_before;

    rp_pcg64_seed(&rng, 3);
    rp_mt19937_seed(&twister, 3);
    before = rng;
    twister_before = twister;

    assert_int_equal(rp_pcg64_integers(&rng, 7, 8), 7);
    assert_int_equal(rp_mt19937_randint(&twister, 1), 0);
    assert_memory_equal(&rng, &before, sizeof rng);
    assert_memory_equal(&twister, &twister_before, sizeof twister);
}

static void bytes_that_are_no_generator_are_found(void **state)
{
    (void)state;
    rp_pcg64 rng;
    rp_mt19937 twister;

    rp_pcg64_seed(&rng, 3);
    rng.increment_low &= ~(uint64_t)1;
    assert_false(rp_pcg64_check(&rng));
    rp_pcg64_seed(&rng, 3);
    rng.has_spare = 2;
    assert_false(rp_pcg64_check(&rng));

    rp_mt19937_seed(&twister, 3);
    twister.position = RP_MT19937_WORDS + 1;
    assert_false(rp_mt19937_check(&twister));
    rp_mt19937_seed(&twister, 3);
    twister.normal = NAN;
    assert_false(rp_mt19937_check(&twister));
}

RP_TESTS(random)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_equal_those_of_numpy),
        cmocka_unit_test(seed_sequences_equal_those_of_numpy),
        cmocka_unit_test(a_copied_generator_repeats_its_draws),
        cmocka_unit_test(one_possible_integer_draws_nothing),
        cmocka_unit_test(bytes_that_are_no_generator_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
