/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of sequences and episodes, without a store. */
#include "adder/plan.h"

#include <stdio.h>
#include <string.h>

#include "support/unit.h"

static rp_plan sequence(int64_t length, int64_t period, rp_adder_end end)
{
    return (rp_plan){RP_ADDER_SEQUENCE, length, period, end, false};
}

/* Writes the rows of the items of an episode of `actions`: "0-2 2-4 4-5+1". */
static void describe(const rp_plan *plan, int64_t actions, char *text, size_t size)
{
    rp_plan_rows rows;

    text[0] = 0;
    for (int64_t closed = 1; closed <= actions + 1; closed++) {
        size_t used = strlen(text);
        if (closed <= actions ? !rp_plan_regular(plan, closed, &rows)
                              : !rp_plan_last(plan, closed, &rows))
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%d-%d", used > 0 ? " " : "",
                                 (int)rows.first, (int)(rows.first + rows.rows - 1));
        if (rows.padding > 0)
            (void)snprintf(text + used, size - used, "+%d", (int)rows.padding);
    }
}

static void expect(rp_plan plan, int64_t actions, const char *expected)
{
    char text[256];

    describe(&plan, actions, text, sizeof text);
    assert_string_equal(text, expected);
}

static void sequences_end_as_they_are_told(void **state)
{
    (void)state;

    expect(sequence(3, 2, RP_ADDER_ZERO_PAD), 5, "0-2 2-4 4-5+1");
    expect(sequence(3, 2, RP_ADDER_TRUNCATE), 5, "0-2 2-4 4-5");
    expect(sequence(3, 2, RP_ADDER_WRITE), 5, "0-2 2-4 3-5");
    expect(sequence(3, 2, RP_ADDER_CONTINUE), 5, "0-2 2-4");
}

static void the_last_sequence_is_not_written_twice(void **state)
{
    (void)state;

    for (int end = RP_ADDER_ZERO_PAD; end <= RP_ADDER_CONTINUE; end++) {
        expect(sequence(3, 2, (rp_adder_end)end), 4, "0-2 2-4");
        expect(sequence(3, 3, (rp_adder_end)end), 2, "0-2");
        expect(sequence(1, 1, (rp_adder_end)end), 2, "0-0 1-1 2-2");
    }
}

static void short_episodes_are_padded_truncated_or_dropped(void **state)
{
    (void)state;

    expect(sequence(5, 2, RP_ADDER_ZERO_PAD), 1, "0-1+3");
    expect(sequence(5, 2, RP_ADDER_TRUNCATE), 1, "0-1");
    expect(sequence(5, 2, RP_ADDER_WRITE), 1, "");
    expect(sequence(5, 2, RP_ADDER_CONTINUE), 1, "");
}

static void a_period_longer_than_a_sequence_may_pad_all_rows(void **state)
{
    (void)state;

    expect(sequence(2, 5, RP_ADDER_ZERO_PAD), 2, "0-1 3-2+2");
    expect(sequence(2, 5, RP_ADDER_ZERO_PAD), 5, "0-1 5-5+1");
}

static void episodes_are_written_when_they_end(void **state)
{
    (void)state;

    expect((rp_plan){.kind = RP_ADDER_EPISODE, .length = 6}, 3, "0-3");
    expect((rp_plan){.kind = RP_ADDER_EPISODE, .length = 6, .pad = true}, 3, "0-3+2");
    expect((rp_plan){.kind = RP_ADDER_EPISODE, .length = 4, .pad = true}, 3, "0-3");
}

RP_TESTS(plan)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_end_as_they_are_told),
        cmocka_unit_test(the_last_sequence_is_not_written_twice),
        cmocka_unit_test(short_episodes_are_padded_truncated_or_dropped),
        cmocka_unit_test(a_period_longer_than_a_sequence_may_pad_all_rows),
        cmocka_unit_test(episodes_are_written_when_they_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
