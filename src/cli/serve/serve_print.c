/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/serve_print.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/serve/limit_names.h"
#include "cli/text/signature_spec.h"
#include "cli/text/units.h"
#include "reprise/printable.h"

enum { MAX_OPEN = RP_MAX_NEST_DEPTH + 1 };

static const char *yes_no(bool value)
{
    return value ? "true" : "false";
}

static void print_part(void *out, const char *part, size_t size)
{
    (void)fwrite(part, 1, size, out);
}

/* Prints a text as a YAML scalar: plain if it cannot be read as anything else, or in quotes. */
static void print_text(FILE *out, const char *text)
{
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";

    if (text[0] != '\0' && text[0] != '-' && text[strspn(text, safe)] == '\0' &&
        strcmp(text, "null") != 0) {
        (void)fputs(text, out);
        return;
    }
    (void)fputc('"', out);
    rp_spell_text(text, strlen(text), RP_SPELL_QUOTED, print_part, out);
    (void)fputc('"', out);
}

static void print_pair(FILE *out, const char *key, const char *text)
{
    (void)fprintf(out, "%s: ", key);
    print_text(out, text);
    (void)fputc('\n', out);
}

/* Prints the nodes, which are in preorder. `left` has the number of remaining children of each
 * open node. */
static void print_signature(FILE *out, const rp_signature *signature)
{
    size_t count, depth = 0, left[MAX_OPEN] = {0};
    const rp_nest_node *nodes = rp_signature_nodes(signature, &count);
    char text[320];

    (void)fputs("    signature:", out);
    for (size_t i = 0; i < count; i++) {
        const rp_nest_node *n = &nodes[i];

        if (depth > 0) {
            (void)fprintf(out, "%*s", (int)(4 + 2 * depth), "");
            if (n->key != NULL)
                print_text(out, n->key);
            else
                (void)fputc('-', out);
            if (n->key != NULL) (void)fputc(':', out);
            assert(left[depth - 1] > 0);
            left[depth - 1]--;
        }
        if (n->kind == RP_NEST_LEAF) {
            (void)fprintf(out, " \"%s\"\n", rp_spec_text(&n->spec, text, sizeof text));
        } else {
            (void)fputs(n->kind == RP_NEST_TUPLE ? " !tuple\n" : "\n", out);
            assert(depth < MAX_OPEN);
            left[depth++] = n->child_count;
        }
        while (depth > 0 && left[depth - 1] == 0) depth--;
    }
    assert(depth == 0);
}

static void print_table(FILE *out, const rp_table_settings *t)
{
    char text[256];

    (void)fputs("  ", out);
    print_text(out, t->name);
    (void)fprintf(out, ": # %s\n", rp_table_limiter_text(t, text, sizeof text));
    for (int key = 0; key < RP_TABLE_KEYS; key++)
        if (rp_table_key_matters(t, (rp_table_key)key))
            (void)fprintf(out, "    %s: %s\n", rp_table_key_name((rp_table_key)key),
                          rp_table_key_text(t, (rp_table_key)key, text, sizeof text));
    if (t->signature != NULL) print_signature(out, t->signature);
}

static void print_security(FILE *out, const rp_server_security *s)
{
    if (s->certificate_file != NULL) print_pair(out, "tls_cert", s->certificate_file);
    if (s->key_file != NULL) print_pair(out, "tls_key", s->key_file);
    if (s->client_ca_file != NULL) print_pair(out, "tls_client_ca", s->client_ca_file);
    if (s->require_client_certificate) print_pair(out, "tls_require_client_cert", "true");
    if (s->tokens_file != NULL) print_pair(out, "tokens", s->tokens_file);
    (void)fprintf(out, "insecure: %s\nno_reset: %s\n", yes_no(s->insecure),
                  yes_no(s->reset_off));
    if (s->page_hosts != NULL) print_pair(out, "page_hosts", s->page_hosts);
}

static void print_storage(FILE *out, const rp_storage_settings *s)
{
    static const char *const modes[] = {"checkpoint", "interval", "sync"};
    char text[32];

    if (s->directory == NULL) return;
    assert((size_t)s->mode < sizeof modes / sizeof modes[0]);
    (void)fputs("storage:\n  ", out);
    print_pair(out, "data", s->directory);
    (void)fprintf(out, "  durability: %s\n", modes[s->mode]);
    if (s->mode == RP_DURABLE_INTERVAL)
        (void)fprintf(out, "  sync_every: %" PRId64 "ms\n", s->sync_ms);
    (void)fprintf(out, "  checkpoint_every: %s%s\n",
                  rp_decimal_text((double)s->checkpoint_ms / 1000, text, sizeof text),
                  s->checkpoint_ms == 0 ? " # on demand only" : "s");
    (void)fprintf(out, "  keep_checkpoints: %" PRId64 "\n", s->keep);
    (void)fprintf(out, "  no_final_checkpoint: %s\n", yes_no(s->no_final_checkpoint));
    (void)fprintf(out, "  max_memory: %" PRIu64 " # %s\n", s->max_memory,
                  s->max_memory == 0 ? "all of it"
                                     : rp_size_text(s->max_memory, text, sizeof text));
    (void)fprintf(out, "  salvage: %s\n  accept_changes: %s\n", yes_no(s->salvage),
                  yes_no(s->accept_changes));
}

/* Prints the settings that need a restart. */
static void print_fixed(FILE *out, const rp_config *c)
{
    static const char *const policies[] = {"evict", "block", "reject"};
    char text[32];

    assert((size_t)c->policy < sizeof policies / sizeof policies[0]);
    (void)fputs("tables:\n", out);
    for (size_t i = 0; i < c->table_count; i++) print_table(out, &c->tables[i]);
    (void)fprintf(out, "max_bytes: %" PRIu64 " # %s\n", c->max_bytes,
                  c->max_bytes == 0 ? "no limit"
                                    : rp_size_text(c->max_bytes, text, sizeof text));
    (void)fprintf(out, "policy: %s\n", policies[c->policy]);
    (void)fprintf(out, "seed: %" PRIu64 "%s\n", c->seed,
                  c->seed == 0 ? " # from the system" : "");
    print_storage(out, &c->storage);
    (void)fputs("listen:\n", out);
    for (size_t i = 0; i < c->address_count; i++) {
        (void)fputs("  - ", out);
        print_text(out, c->addresses[i]);
        (void)fputc('\n', out);
    }
    (void)fprintf(out, "loops: %" PRId64 "%s\n", c->loops,
                  c->loops == 0 ? " # one per processor" : "");
    print_security(out, &c->security);
}

void rp_config_print(FILE *out, const rp_config *c)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    rp_server_limits limits = rp_limits_filled(&c->limits);
    char text[32];

    assert((size_t)c->log_level < sizeof levels / sizeof levels[0]);
    print_fixed(out, c);
    (void)fprintf(out, "log_level: %s\nlog_format: %s\n", levels[c->log_level],
                  c->log_format == RP_LOG_JSON ? "json" : "text");
    (void)fprintf(out, "drain_seconds: %s\n",
                  rp_decimal_text((double)c->drain_ms / 1000, text, sizeof text));
    (void)fputs("limits:\n", out);
    for (size_t i = 0; i < rp_limit_count(); i++)
        (void)fprintf(out, "  %s: %s\n", rp_limit_name(i),
                      rp_limit_text(&limits, i, text, sizeof text));
}

/* Returns the output of print_fixed(), to be freed with free(); NULL without memory. */
static char *fixed_text(const rp_config *c)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL) return NULL;
    print_fixed(out, c);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}

/* A setting in the output of print_fixed(): a key of the first or second level, with its lines
 * up to the next such key. */
typedef struct entry {
    const char *at; /* its first line */
    size_t size, indent, name;
    const char *section;
    size_t section_name;
} entry;

static bool begins_entry(const char *line)
{
    size_t indent = strspn(line, " ");

    return indent <= 2 && line[indent] != '\0' && strchr("-#\n", line[indent]) == NULL;
}

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');

    return end != NULL ? end + 1 : at + strlen(at);
}

/* Reads the entry at `e->at + e->size`. False at the end. */
static bool next_entry(entry *e)
{
    const char *at = e->at + e->size, *end;

    if (*at == '\0') return false;
    for (end = next_line(at); *end != '\0' && !begins_entry(end); end = next_line(end)) {}
    e->at = at;
    e->size = (size_t)(end - at);
    e->indent = strspn(at, " ");
    e->name = strcspn(at + e->indent, ":\n");
    if (e->indent == 0) {
        e->section = at;
        e->section_name = e->name;
    }
    return true;
}

static bool same_name(const entry *a, const entry *b)
{
    return a->indent == b->indent && a->name == b->name && a->section_name == b->section_name &&
           memcmp(a->section, b->section, a->section_name) == 0 &&
           memcmp(a->at + a->indent, b->at + b->indent, a->name) == 0;
}

/* Moves `y` to the entry of `text` with the name of `x`. Searches from where it is: both texts
 * have most entries in the same order. */
static bool find_entry(const entry *x, const char *text, entry *y)
{
    while (next_entry(y))
        if (same_name(x, y)) return true;
    *y = (entry){.at = text};
    while (next_entry(y))
        if (same_name(x, y)) return true;
    *y = (entry){.at = text};
    return false;
}

/* Adds the keys of `a` that `b` does not have, or, with `is_same`, has with another value. */
static void add_keys(const char *a, const char *b, bool is_same, char *keys, size_t size)
{
    entry x = {.at = a}, y = {.at = b};

    while (next_entry(&x)) {
        bool is_found = find_entry(&x, b, &y);
        size_t used = strlen(keys);

        if (used + 1 >= size) return;
        if (is_found && (!is_same || (x.size == y.size && memcmp(x.at, y.at, x.size) == 0)))
            continue;
        (void)snprintf(keys + used, size - used, "%s%.*s%s%.*s", used > 0 ? ", " : "",
                       x.indent > 0 ? (int)x.section_name : 0, x.section,
                       x.indent > 0 ? "." : "", (int)x.name, x.at + x.indent);
    }
}

bool rp_config_needs_restart(const rp_config *now, const rp_config *then, char *keys,
                             size_t size)
{
    char *a = fixed_text(now), *b = fixed_text(then);
    bool differs = a != NULL && b != NULL && strcmp(a, b) != 0;

    assert(size > 0);
    keys[0] = '\0';
    if (differs) {
        add_keys(a, b, true, keys, size);
        add_keys(b, a, false, keys, size);
    }
    free(a);
    free(b);
    return differs;
}
