/* SPDX-License-Identifier: Apache-2.0 */
/* Segments whose chunks have lost their location, while something keeps such a chunk. */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "support/segments_rig.h"

typedef struct searcher {
    rp_segments *segments;
    const rp_chunk *chunk;
    rp_disk_location found;
    bool is_found;
    sem_t done;
} searcher;

static void *search(void *arg)
{
    searcher *s = arg;

    s->is_found = rp_segments_locate(s->segments, s->chunk, &s->found);
    (void)sem_post(&s->done);
    return NULL;
}

static rp_disk_location put_synced(rp_rig *rig, rp_chunk *chunk)
{
    rp_disk_location location;

    assert_ok(rp_segments_put_chunk(rig->segments, chunk, &location));
    assert_ok(rp_segments_end_open(rig->segments, NULL));
    return location;
}

/* A client keeps a chunk of a revoked segment for ever. Chunks of later segments are found
 * without the lock of the segments. */
static void later_chunks_are_found_without_a_lock_issue_20(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *kept = rp_rig_chunk(1, 300), *later = rp_rig_chunk(2, 300);
    rp_disk_location first = put_synced(&rig, kept), location;
    searcher s = {.segments = rig.segments, .chunk = later};
    struct timespec until;
    pthread_t thread;
    bool is_done;

    (void)state;
    rp_segments_revoke(rig.segments, first.segment);
    assert_false(rp_segments_locate(rig.segments, kept, &location));
    location = put_synced(&rig, later);
    assert_true(location.segment > first.segment);

    assert_int_equal(sem_init(&s.done, 0, 0), 0);
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &until), 0);
    until.tv_sec += 20;
    rp_mutex_lock(&rig.segments->mu);
    assert_int_equal(pthread_create(&thread, NULL, search, &s), 0);
    is_done = sem_timedwait(&s.done, &until) == 0;
    rp_mutex_unlock(&rig.segments->mu);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(is_done);
    assert_true(s.is_found && s.found.segment == location.segment);

    /* The kept chunk gets a new location, which is found as well. */
    location = put_synced(&rig, kept);
    assert_true(rp_segments_locate(rig.segments, kept, &first));
    assert_int_equal(first.segment, location.segment);
    (void)sem_destroy(&s.done);
    rp_chunk_unref(kept);
    rp_chunk_unref(later);
    rp_rig_close(&rig);
}

RP_TESTS(segments_revoked)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_chunks_are_found_without_a_lock_issue_20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
