/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/memory_guard.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "store/store.h"
#include "table/table.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/thread.h"

enum {
    /* 48 of the 64 MiB in docs/operations.md. The rest, and half of its quarter of max_bytes,
     * is for growth between two measurements. */
    BASE_BYTES = 48 << 20,
    JOURNAL_BYTES = 64 << 20, /* records that wait to be written: disk/journal_queue.h */
    CONNECTION_BYTES = 64 << 10,
    CALL_BYTES = 8 << 10,
    TABLE_BYTES = 256 << 10,
    TRIM_SHARE = 20,  /* trims take at most 1/20 of the time */
    BYTES_PER_NS = 4, /* the most by which the process grows */
    SHORTEST_REST_MS = 5,
    LONGEST_REST_MS = 250,
    STATM_BYTES = 256,
    LOG_BYTES = 160,
};
#define MS INT64_C(1000000)
#define ADVANCE_NS (TRIM_SHARE * 250 * MS)
#define SANITIZER_BYTES                                                                        \
    (UINT64_C(1) << 42)      /* bytes that a sanitizer may use: more than any process has */
#define RETRY_NS (1000 * MS) /* between trims if little has changed */

uint64_t rp_memory_beside(uint64_t limit, const rp_memory_load *load)
{
    return limit / 8 + load->held_bytes + (uint64_t)load->connections * CONNECTION_BYTES +
           (uint64_t)load->calls * CALL_BYTES + (uint64_t)load->tables * TABLE_BYTES +
           BASE_BYTES + (load->has_journal ? JOURNAL_BYTES : 0);
}

uint64_t rp_memory_for_checkpoint(uint64_t limit, uint64_t removed, uint64_t image)
{
    if (image >= limit || removed >= limit - image) return limit;
    return removed + image;
}

uint64_t rp_memory_excess(const rp_memory_look *now)
{
    uint64_t wanted = now->used + now->beside;

    return now->resident > wanted ? now->resident - wanted : 0;
}

static uint64_t room(const rp_memory_look *now)
{
    uint64_t bound = now->limit + now->beside;

    return now->resident < bound ? bound - now->resident : 0;
}

static bool is_near(const rp_memory_look *now)
{
    return room(now) < now->limit / 16 + 1;
}

bool rp_memory_wants_trim(const rp_memory_past *past, const rp_memory_look *now, int64_t now_ns)
{
    uint64_t excess = rp_memory_excess(now);

    if (!is_near(now) || excess == 0) return false;
    if (past->trimmed_ns == 0) return true;
    if (past->paid_ns > now_ns + ADVANCE_NS) return false;
    return excess > past->excess + now->limit / 64 ||
           (excess != past->excess && now_ns >= past->trimmed_ns + RETRY_NS);
}

void rp_memory_record_trim(rp_memory_past *past, int64_t from_ns, int64_t to_ns)
{
    assert(to_ns >= from_ns);
    if (past->paid_ns < from_ns) past->paid_ns = from_ns;
    past->paid_ns += TRIM_SHARE * (to_ns - from_ns);
    past->trimmed_ns = to_ns;
    past->excess = UINT64_MAX;
}

uint64_t rp_memory_most_lost(uint64_t limit)
{
    return limit / 4 * 3;
}

uint64_t rp_memory_decide_lost(rp_memory_past *past, const rp_memory_look *now)
{
    uint64_t excess = rp_memory_excess(now);
    uint64_t kept = rp_memory_most_lost(now->limit), lost;

    if (excess < past->excess) past->excess = excess;
    if (kept > past->excess) kept = past->excess;
    lost = is_near(now) ? kept + (excess - past->excess) : 0;
    past->lost = lost < now->limit ? lost : now->limit; /* M2 */
    return past->lost;
}

int64_t rp_memory_rest_ns(const rp_memory_look *now)
{
    uint64_t ns = room(now) / BYTES_PER_NS;

    if (ns < SHORTEST_REST_MS * MS) return SHORTEST_REST_MS * MS;
    return ns < LONGEST_REST_MS * MS ? (int64_t)ns : LONGEST_REST_MS * MS;
}

/* Parses a decimal number and the blank behind it. */
static bool parse_number(const char **text, uint64_t *out)
{
    const char *at = *text;

    for (*out = 0; *at >= '0' && *at <= '9'; at++) {
        if (*out > (UINT64_MAX >> 12) / 10 - 10) return false; /* so that bytes fit, too */
        *out = *out * 10 + (uint64_t)(*at - '0');
    }
    if (at == *text || *at != ' ') return false;
    *text = at + 1;
    return true;
}

bool rp_memory_parse_statm(const char *text, uint64_t *pages)
{
    uint64_t size, resident, shared;

    if (!parse_number(&text, &size) || !parse_number(&text, &resident) ||
        !parse_number(&text, &shared))
        return false;
    *pages = resident > shared ? resident - shared : 0;
    return true;
}

/* Measures the resident bytes. Blocks of the arena are shared memory, which
 * rp_memory_parse_statm() does not count, so they are added. */
static bool measure(const rp_memory_guard *g, uint64_t *bytes)
{
    char text[STATM_BYTES];
    ssize_t n = pread(fileno(g->statm), text, sizeof text - 1, 0);
    uint64_t pages;

    if (n <= 0) return false;
    text[n] = '\0';
    if (!rp_memory_parse_statm(text, &pages)) return false;
    *bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    if (g->host.arena != NULL) *bytes += rp_shared_arena_look(g->host.arena).used_bytes;
    return true;
}

/* Makes a measurement. False if memory cannot be measured. */
static bool look(rp_memory_guard *g, rp_memory_load load, rp_memory_look *out)
{
    const rp_budget *b = rp_store_budget(g->host.store);
    rp_budget_memory memory = rp_budget_memory_now(b);
    uint64_t freed = atomic_load(&b->freed);
    rp_store_info info;

    rp_store_get_info(g->host.store, &info);
    load.tables = info.table_count;
    *out = (rp_memory_look){
        .limit = memory.limit,
        .used = memory.used,
        .beside = rp_memory_beside(memory.limit, &load),
    };
    if (atomic_load(&b->cuts) > 0)
        out->beside +=
            rp_memory_for_checkpoint(memory.limit, freed - g->freed, rp_budget_image(b));
    else
        g->freed = freed;
    if (b->spill != NULL) out->beside += memory.limit / 4; /* chunks read back, or written */
    if (RP_SANITIZED) out->beside += SANITIZER_BYTES;
    return measure(g, &out->resident);
}

/* Returns empty pages to the system, and measures again. */
static bool trim(rp_memory_guard *g, const rp_memory_load *load, rp_memory_look *now)
{
    uint64_t before = now->resident;
    int64_t from_ns = rp_now_ns();
    char fields[LOG_BYTES];
    int64_t to_ns;

    rp_trim_memory();
    to_ns = rp_now_ns();
    rp_memory_record_trim(&g->past, from_ns, to_ns);
    if (!look(g, *load, now)) return false;
    if (g->host.log.write == NULL) return true;
    (void)snprintf(fields, sizeof fields, "resident=%llu given_back=%llu seconds=%.6f",
                   (unsigned long long)now->resident,
                   (unsigned long long)(before > now->resident ? before - now->resident : 0),
                   (double)(to_ns - from_ns) / 1e9);
    g->host.log.write(g->host.log.ctx, RP_LOG_DEBUG, "memory", fields);
    return true;
}

/* Measures once, trims if necessary, and sets the lost bytes. Returns how long to sleep; 0:
 * memory cannot be measured. */
static int64_t act(rp_memory_guard *g, const rp_memory_load *load)
{
    rp_memory_look now;
    uint64_t lost;

    if (!look(g, *load, &now)) return 0;
    if (now.limit == 0) return LONGEST_REST_MS * MS;
    if (rp_memory_wants_trim(&g->past, &now, rp_now_ns()) && !trim(g, load, &now)) return 0;
    lost = rp_memory_decide_lost(&g->past, &now);
    rp_budget_set_lost(rp_store_budget(g->host.store), lost);
    if (lost == 0) return rp_memory_rest_ns(&now);
    /* More bytes than this are lost only until the next trim. Inserts wait for the trim then,
     * and nothing is evicted. */
    if (lost <= rp_memory_most_lost(now.limit)) rp_store_relieve(g->host.store);
    return SHORTEST_REST_MS * MS;
}

static void log_failure(const rp_memory_guard *g)
{
    if (g->host.log.write == NULL) return;
    g->host.log.write(g->host.log.ctx, RP_LOG_WARNING, "memory",
                      "failed=\"/proc/self/statm cannot be read\" note=\"lost memory is not "
                      "counted\"");
}

static void *run(void *arg)
{
    rp_memory_guard *g = arg;
    int64_t rest_ns = LONGEST_REST_MS * MS;

    rp_mutex_lock(&g->mu);
    while (!g->stopping) {
        rp_memory_load load = {0};

        if (rp_cond_wait(&g->stop_cv, &g->mu, rp_now_ns() + rest_ns)) continue;
        rp_mutex_unlock(&g->mu);
        if (g->host.describe(g->host.ctx, &load)) rest_ns = act(g, &load);
        if (rest_ns == 0) {
            log_failure(g);
            rp_budget_set_lost(rp_store_budget(g->host.store), 0); /* M1 */
            return NULL;
        }
        rp_mutex_lock(&g->mu);
    }
    rp_mutex_unlock(&g->mu);
    return NULL;
}

rp_status rp_memory_guard_start(rp_memory_guard *g, const rp_memory_host *host, rp_error *err)
{
    uint64_t bytes;

    assert(!g->is_running && host->describe != NULL);
    *g = (rp_memory_guard){.host = *host, .statm = fopen("/proc/self/statm", "re")};
    if (g->statm == NULL || !measure(g, &bytes)) {
        if (g->statm != NULL) (void)fclose(g->statm);
        log_failure(g);
        return RP_OK;
    }
    rp_mutex_init(&g->mu, RP_RANK_MEMORY);
    rp_cond_init(&g->stop_cv);
    g->is_running = rp_thread_start(&g->thread, "rp-memory", run, g);
    if (g->is_running) return RP_OK;
    rp_cond_deinit(&g->stop_cv);
    rp_mutex_deinit(&g->mu);
    (void)fclose(g->statm);
    return rp_fail(err, RP_NO_RESOURCE, "no thread to measure the memory of the process");
}

void rp_memory_guard_stop(rp_memory_guard *g)
{
    if (!g->is_running) return;
    rp_mutex_lock(&g->mu);
    g->stopping = true;
    rp_cond_signal(&g->stop_cv);
    rp_mutex_unlock(&g->mu);
    (void)pthread_join(g->thread, NULL);
    g->is_running = false;
    rp_cond_deinit(&g->stop_cv);
    rp_mutex_deinit(&g->mu);
    (void)fclose(g->statm);
    rp_budget_set_lost(rp_store_budget(g->host.store), 0); /* M1 */
}
