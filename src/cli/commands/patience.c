/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants, whenever `lock` is free:
 *   H1  since_ns is 0 exactly if no wait is in progress;
 *   H2  the thread says nothing about a wait before its `next_ns`. */
#include "cli/commands/patience.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/text/units.h"
#include "reprise/printable.h"

struct rp_patience {
    const char *command, *addresses;
    const char *reason; /* of a late response; NULL: none is known */
    rp_client *client;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop;
    int64_t since_ns, until_ns; /* of the wait in progress */
    int64_t next_ns;            /* when to say the next line about it */
};

void rp_patience_say(const char *command, const char *what, int64_t since_ns, int64_t until_ns)
{
    int64_t now_ns = rp_now_ns();
    char waited[32], left[48] = "", safe[2 * RP_ERROR_TEXT_BYTES];

    if (until_ns != RP_FOREVER)
        (void)snprintf(left, sizeof left, ", gives up in %.0f s",
                       until_ns > now_ns ? (double)(until_ns - now_ns) / 1e9 : 0);
    (void)rp_printable(what, strlen(what), safe, sizeof safe);
    (void)fflush(stdout);
    (void)fprintf(stderr, "reprise %s: waiting for %s%s: %s\n", command,
                  rp_elapsed_text(now_ns - since_ns, waited, sizeof waited), left, safe);
}

int64_t rp_patience_next(int64_t since_ns, int64_t due_ns, int64_t now_ns)
{
    assert(due_ns > since_ns);
    do {
        if (due_ns - since_ns > (RP_FOREVER - since_ns) / RP_PATIENCE_FACTOR) return RP_FOREVER;
        due_ns = since_ns + RP_PATIENCE_FACTOR * (due_ns - since_ns);
    } while (due_ns <= now_ns);
    return due_ns;
}

/* Writes why the first shard without a connection has none, and how many more there are. */
static void why_away(rp_client *client, char *text, size_t size)
{
    size_t more = 0, used;
    char other[RP_ERROR_TEXT_BYTES];

    text[0] = '\0';
    for (size_t i = 0; i < rp_client_shard_count(client); i++) {
        (void)rp_client_why_away(client, i, other, sizeof other);
        if (other[0] != '\0' && text[0] != '\0') more++;
        if (text[0] == '\0') (void)snprintf(text, size, "%s", other);
    }
    used = strlen(text);
    if (more > 0)
        (void)snprintf(text + used, size - used, "; nor to %zu more server%s", more,
                       rp_plural(more));
}

/* Says what the wait in progress waits for. With the lock held, which is released meanwhile. */
static void say(rp_patience *p)
{
    int64_t since_ns = p->since_ns, until_ns = p->until_ns;
    char text[RP_ERROR_TEXT_BYTES];

    (void)pthread_mutex_unlock(&p->lock);
    why_away(p->client, text, sizeof text);
    if (text[0] == '\0')
        (void)snprintf(text, sizeof text, "no response from %.200s yet%s%s", p->addresses,
                       p->reason != NULL ? ": " : "", p->reason != NULL ? p->reason : "");
    rp_patience_say(p->command, text, since_ns, until_ns);
    (void)pthread_mutex_lock(&p->lock);
}

static void *watch_main(void *ctx)
{
    rp_patience *p = ctx;

    (void)pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (p->since_ns == 0) {
            (void)pthread_cond_wait(&p->changed, &p->lock);
        } else if (rp_now_ns() < p->next_ns) {
            struct timespec at = {(time_t)(p->next_ns / 1000000000),
                                  (long)(p->next_ns % 1000000000)};

            (void)pthread_cond_timedwait(&p->changed, &p->lock, &at);
        } else {
            p->next_ns = rp_patience_next(p->since_ns, p->next_ns, rp_now_ns()); /* H2 */
            say(p);
        }
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

rp_patience *rp_patience_new(const char *command, const char *addresses, rp_client *client)
{
    rp_patience *p = calloc(1, sizeof *p);
    pthread_condattr_t attributes;

    if (p == NULL) return NULL;
    p->command = command;
    p->addresses = addresses;
    p->client = client;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&p->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&p->lock, NULL);
    if (pthread_create(&p->thread, NULL, watch_main, p) == 0) return p;
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->changed);
    free(p);
    return NULL;
}

void rp_patience_free(rp_patience *p)
{
    if (p == NULL) return;
    (void)pthread_mutex_lock(&p->lock);
    p->stop = true;
    (void)pthread_cond_signal(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->thread, NULL);
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->changed);
    free(p);
}

void rp_patience_explain(rp_patience *p, const char *reason)
{
    if (p != NULL) p->reason = reason;
}

static void set(rp_patience *p, int64_t since_ns, int64_t until_ns)
{
    bool is_wait;

    if (p == NULL) return;
    (void)pthread_mutex_lock(&p->lock);
    is_wait = since_ns != 0 || p->since_ns != 0;
    p->since_ns = since_ns;
    p->until_ns = until_ns;
    p->next_ns = since_ns + RP_PATIENCE_MS * INT64_C(1000000);
    if (is_wait)
        (void)pthread_cond_signal(&p->changed); /* else the thread would wake in vain */
    (void)pthread_mutex_unlock(&p->lock);
}

void rp_patience_begin(rp_patience *p, int64_t until_ns)
{
    set(p, rp_now_ns(), until_ns);
}

void rp_patience_end(rp_patience *p)
{
    set(p, 0, 0);
}
