/* SPDX-License-Identifier: Apache-2.0 */
/* Included by every cmocka test. */
#ifndef RP_TEST_UNIT_H
#define RP_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "reprise/store.h"
#include "support/oom.h"

/* The thread sanitizer ends a forked child of a process with threads if the child starts a
 * thread. In such a child, the allocator of the address sanitizer may stay locked for ever. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define RP_TEST_NO_FORK
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define RP_TEST_NO_FORK
#endif
#endif

/* For tests with intended data races, which the thread sanitizer would report. */
#if defined(__SANITIZE_THREAD__)
#define RP_TEST_NO_RACE
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RP_TEST_NO_RACE
#endif
#endif

/* The factor for the length of long tests: RP_TEST_SCALE. Its default is 1 in a plain build, a
 * tenth under sanitizers and a hundredth in an emulator. */
static inline double rp_test_scale(void)
{
    const char *text = getenv("RP_TEST_SCALE");
    double scale = text != NULL ? strtod(text, NULL) : 1.0;

    return scale > 0 ? scale : 1.0;
}

/* For tests that an emulator cannot run: it ends a forked child of a process with threads that
 * starts threads, and uses much resident memory itself. Also for tests that take too long. */
static inline void rp_test_skip_if_emulated(void)
{
    if (rp_test_scale() < 0.02) skip();
}

/* The step of a loop over all points of failure: `step` in a plain build, `wider` in slower
 * builds. */
static inline size_t rp_test_step(size_t step, size_t wider)
{
    return rp_test_scale() < 0.5 ? wider : step;
}

/* How many of something a test does: `full` in a plain build, and where everything is slower a
 * part of that by the scale, at least the `least` that shows what the test is about. */
static inline size_t rp_test_part(size_t full, size_t least)
{
    double part = (double)full * rp_test_scale();

    if (part >= (double)full) return full;
    return part > (double)least ? (size_t)part : least;
}

/* True for one in `n` of many cases in the short runs of the sanitizers, which are slowest; for
 * all of them elsewhere. */
static inline bool rp_test_chosen(size_t number, size_t n)
{
    return rp_test_scale() >= 0.1 || number % n == 0;
}

/* A number that sets how long a test takes, a count or a step: `brief` in the short runs of the
 * sanitizers and in an emulator, `full` elsewhere. With `brief` the test still takes every
 * branch that it is about. */
static inline size_t rp_test_length(size_t full, size_t brief)
{
    return rp_test_scale() >= 0.1 ? full : brief;
}

/* Defines the function that runs the tests of one file: tests/unit/table/test_alter.c has
 * RP_TESTS(alter). The tests of a module are one program, and suite.c calls the file that its
 * argument names. */
#define RP_TESTS(name)                                                                         \
    int rp_tests_##name(void);                                                                 \
    int rp_tests_##name(void)

/* Returns the table of that name, which must exist. Borrowed, valid until it is dropped. */
static inline rp_table *rp_test_table(rp_store *store, const char *name)
{
    rp_table *table = rp_store_find_table(store, (rp_string){name, strlen(name)});

    rp_table_unref(table); /* the store has another reference */
    return table;
}

/* True if all bytes have this value. A call of the library, which the sanitizers look at as a
 * whole. */
static inline bool rp_test_is_all(const void *data, uint8_t value, size_t size)
{
    const uint8_t *bytes = data;

    return size == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, size - 1) == 0);
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Checks that the status is RP_OK. If not, prints the text of the error. */
static inline void rp_test_ok(rp_status st, const rp_error *err, const char *file, int line)
{
    if (st == RP_OK) return;
    print_error("%s: %s\n", rp_status_name(st), err != NULL ? err->text : "");
    _fail(file, line);
}
#define assert_ok(call) rp_test_ok((call), NULL, __FILE__, __LINE__)
#define assert_ok_err(call, err) rp_test_ok((call), (err), __FILE__, __LINE__)

/* Checks that the status is `expected`, and that the text of the error contains `part`. */
static inline void rp_test_fails(rp_status st, rp_status expected, const rp_error *err,
                                 const char *part, const char *file, int line)
{
    if (st == expected && (st == err->code) && strstr(err->text, part) != NULL) return;
    print_error("got %s, '%s'; expected %s with '%s'\n", rp_status_name(st), err->text,
                rp_status_name(expected), part);
    _fail(file, line);
}
#define assert_fails(call, expected, err, part)                                                \
    rp_test_fails((call), (expected), (err), (part), __FILE__, __LINE__)

/* Runs `scenario` so that only 0, 1, 2, ... allocations succeed, until it succeeds. Every
 * failure must be RP_NO_RESOURCE, with all memory freed. */
static inline void rp_test_survives_oom(rp_status (*scenario)(const rp_allocator *))
{
    for (size_t room = 0;; room++) {
        rp_test_oom o = RP_TEST_OOM_INIT(room);
        rp_allocator alloc = rp_test_oom_allocator(&o);
        rp_status st = scenario(&alloc);

        assert_int_equal(o.live, 0);
        assert_int_equal(o.live_bytes, 0);
        if (st == RP_OK) {
            assert_true(room > 0); /* a scenario that allocates nothing proves nothing */
            return;
        }
        assert_int_equal(st, RP_NO_RESOURCE);
    }
}

#endif
