/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train/train_lines.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands/patience.h"
#include "cli/text/units.h"
#include "cli/train/train.h"

enum { MOST_LINES = 20 }; /* with more actors the last ones are not drawn */

char *rp_part_name(const rp_apex_part *part, char out[32])
{
    if (part->role == RP_APEX_ACTOR)
        (void)snprintf(out, 32, "actor %lld", (long long)part->index);
    else
        (void)snprintf(out, 32, "%s", rp_apex_role_name(part->role));
    return out;
}

/* Appends to a line, as far as there is room. */
static size_t append(char *line, size_t size, const char *text)
{
    size_t room = RP_PART_LINE_BYTES - size;

    assert(size < RP_PART_LINE_BYTES);
    (void)snprintf(line + size, room, "%s", text);
    return size + strlen(line + size);
}

static void numbers(const rp_apex_part *p, double threshold, char *out, size_t size)
{
    const rp_agent_metrics *m = &p->metrics;
    char loss[32] = "no loss yet"; /* of this process */

    out[0] = '\0';
    if (!isnan(m->loss)) (void)snprintf(loss, sizeof loss, "loss %.3g", m->loss);
    if (p->role == RP_APEX_LEARNER && p->shards_away > 0)
        (void)snprintf(out, size, "%lld update%s, %s, %lld item%s, %lld shard%s away",
                       (long long)m->updates, rp_plural((uint64_t)m->updates), loss,
                       (long long)m->item_size, rp_plural((uint64_t)m->item_size),
                       (long long)p->shards_away, rp_plural((uint64_t)p->shards_away));
    else if (p->role == RP_APEX_LEARNER)
        (void)snprintf(out, size, "%lld update%s, %s, %lld item%s, %.1f samples an item",
                       (long long)m->updates, rp_plural((uint64_t)m->updates), loss,
                       (long long)m->item_size, rp_plural((uint64_t)m->item_size),
                       m->inserts > 0 ? (double)m->samples / (double)m->inserts : 0);
    else if (p->role == RP_APEX_ACTOR && (isnan(p->mean_return) || isnan(p->exploration)))
        (void)snprintf(
            out, size, "%lld step%s, %lld episode%s", (long long)p->steps,
            rp_plural((uint64_t)p->steps), (long long)p->episodes,
            rp_plural((uint64_t)p->episodes)); /* a remote one that has not reported the rest */
    else if (p->role == RP_APEX_ACTOR)
        (void)snprintf(out, size, "%lld step%s, %lld episode%s, return %.4g, epsilon %.4f",
                       (long long)p->steps, rp_plural((uint64_t)p->steps),
                       (long long)p->episodes, rp_plural((uint64_t)p->episodes), p->mean_return,
                       p->exploration);
    else if (p->verdict.version > 0)
        (void)snprintf(out, size, "return %.4g of %.4g at step %lld%s", p->mean_return,
                       threshold, (long long)p->learner_steps, p->is_solved ? ": solved" : "");
}

char *rp_part_line(const rp_apex_part *p, double threshold, char out[RP_PART_LINE_BYTES])
{
    const bool has_share = p->role != RP_APEX_EVALUATOR && p->wait_share >= 0.01;
    char name[32], text[256];
    const char *comma;
    size_t size;

    (void)snprintf(text, sizeof text, "%-10s ", rp_part_name(p, name));
    size = append(out, 0, text);
    numbers(p, threshold, text, sizeof text);
    comma = text[0] != '\0' ? ", " : "";
    size = append(out, size, text);
    if (has_share)
        (void)snprintf(text, sizeof text, "%swaits %.0f %%", comma, p->wait_share * 100);
    else
        (void)snprintf(text, sizeof text, "%swaits", p->waits_for[0] != '\0' ? comma : "");
    if (has_share || p->waits_for[0] != '\0') size = append(out, size, text);
    if (p->waits_for[0] != '\0') {
        (void)snprintf(text, sizeof text, " for %s", p->waits_for);
        size = append(out, size, text);
    }
    if (p->trouble[0] != '\0') {
        (void)snprintf(text, sizeof text, "; %s", p->trouble);
        (void)append(out, size, text);
    }
    return out;
}

size_t rp_part_lines_draw(const rp_apex_part *parts, size_t count, double threshold,
                          size_t drawn)
{
    size_t lines = 0;
    char line[RP_PART_LINE_BYTES];

    if (drawn > 0) (void)fprintf(stderr, "\x1b[%zuF", drawn);
    for (size_t i = 0; i < count && lines < MOST_LINES; i++) {
        if (parts[i].has_left) continue;
        (void)fprintf(stderr, "%.*s\x1b[K\n", rp_train_columns(),
                      rp_part_line(&parts[i], threshold, line));
        lines++;
    }
    if (lines < drawn) (void)fputs("\x1b[J", stderr);
    (void)fflush(stderr);
    return lines;
}

void rp_part_lines_clear(size_t drawn)
{
    if (drawn > 0) (void)fprintf(stderr, "\x1b[%zuF\x1b[J", drawn);
}

/* True if the part may wait for long: the short waits of the limiter have no numbers yet. Its
 * trouble, if it has some, is said elsewhere. */
static bool is_long(const rp_apex_part *p)
{
    return p->waits_for[0] != '\0' && p->trouble[0] == '\0' &&
           strcmp(p->waits_for, "the learner") != 0 && strcmp(p->waits_for, "the actors") != 0;
}

void rp_part_wait_look(rp_part_wait *w, const rp_apex_part *p, const char *address,
                       int64_t now_ns)
{
    static const char replay[] = "the replay:", learner[] = "parameters of the learner";
    bool is_away =
        strncmp(p->waits_for, replay, sizeof replay - 1) == 0; /* whatever the cause */
    const char *what = is_away ? replay : p->waits_for;
    char text[sizeof p->waits_for + 1400], name[32];

    if (!is_long(p)) {
        w->since_ns = 0;
    } else if (w->since_ns == 0 || strcmp(what, w->what) != 0) {
        w->since_ns = now_ns;
        w->next_ns = now_ns + RP_PATIENCE_MS * INT64_C(1000000);
        (void)snprintf(w->what, sizeof w->what, "%s", what);
    }
    if (w->since_ns == 0 || now_ns < w->next_ns) return;
    w->next_ns = rp_patience_next(w->since_ns, w->next_ns, now_ns);
    (void)snprintf(text, sizeof text, "%s needs %s%s", rp_part_name(p, name), p->waits_for,
                   rp_train_hint(p->waits_for));
    if (strstr(p->waits_for, address) == NULL)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       "; the replay is %.1000s", address);
    if (strstr(p->waits_for, learner) != NULL)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       ", and a --role learner has to run on it");
    rp_patience_say("train", text, w->since_ns, RP_FOREVER);
}

const char *rp_train_hint(const char *text)
{
    static const struct {
        const char *part, *hint;
    } hints[] = {
        {"is not signed by what",
         "; --report-ca FILE has to be the file of that certificate, or of its authority"},
        {"wants TLS", "; --report-ca FILE uses TLS and trusts the authority in FILE"},
        {"does it want TLS", "; --report-ca FILE uses TLS and trusts the authority in FILE"},
        {"wrong version number", "; the server does not use TLS: leave out --report-ca"},
        {"self-signed", "; --report-ca FILE trusts the certificate in FILE"},
        {"unable to get local issuer", "; --report-ca FILE trusts the authority in FILE"},
    };

    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (strstr(text, hints[i].part) != NULL) return hints[i].hint;
    return "";
}

void rp_parts_report(rp_run_reporter *reporter, const rp_apex_part *parts, size_t count)
{
    rp_run_actor actors[RP_REPORT_ACTORS];
    char names[RP_REPORT_ACTORS][32];
    int64_t newest = 0;
    size_t used = 0;

    if (reporter == NULL) return;
    for (size_t i = 0; i < count; i++)
        if (parts[i].version > newest) newest = parts[i].version;
    for (size_t i = 0; i < count && used < RP_REPORT_ACTORS; i++) {
        const rp_apex_part *p = &parts[i];

        if (p->role != RP_APEX_ACTOR || p->has_left) continue;
        (void)rp_part_name(p, names[used]);
        actors[used] = (rp_run_actor){{names[used], strlen(names[used])},
                                      p->exploration,
                                      p->mean_return,
                                      p->version,
                                      newest - p->version};
        used++;
    }
    rp_run_reporter_set_actors(reporter, actors, used);
}
