/* SPDX-License-Identifier: Apache-2.0 */
/* Each option is declared twice, at the same index: its help text, and the kind of its value
 * and the field it is stored in.
 *
 * Invariants:
 *   O1  table_count <= table_capacity and table_count <= RP_CONFIG_MAX_TABLES; names are
 *       unique;
 *   O2  address_count <= RP_CONFIG_MAX_ADDRESSES;
 *   O3  after rp_config_finish() there is a table and an address. */
#include "cli/serve/serve_config.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/serve/address_check.h"
#include "cli/serve/limit_names.h"

enum {
    DEFAULT_DRAIN_MS = 10 * 1000,
    MAX_DRAIN_MS = 24 * 60 * 60 * 1000,
    MAX_LOOPS = 256,
    FIRST_SOCKET = 3,
    DEFAULT_SYNC_MS = 100,
    MAX_SYNC_MS = 60 * 1000,
    DEFAULT_CHECKPOINT_MS = 300 * 1000,
    DEFAULT_KEEP = 3,
    MAX_KEEP = 1000,
};

#define MAX_CHECKPOINT_MS (INT64_C(1000) * 60 * 60 * 24 * 365)

static const char default_address[] = "localhost:8000";
static const char default_table[] = "replay:prioritized:1000000,exponent=0.6";
static const double default_share = 0.6; /* of the memory, for tables: docs/operations.md */
static const double default_queued_share = 0.05;

const rp_option rp_serve_options[RP_SERVE_OPTIONS] = {
    [RP_SERVE_CONFIG] = {"config", "FILE", "read settings from a YAML file; flags win", false,
                         "Settings", NULL},
    [RP_SERVE_CHECK_CONFIG] = {"check-config", NULL, "print the effective settings and exit",
                               false, NULL, NULL},
    [RP_SERVE_TABLE] = {"table", "SPEC", "a table: NAME:SAMPLER[:MAX_SIZE][,key=value...]",
                        true, "Tables", NULL},
    [RP_SERVE_MAX_BYTES] = {"max-bytes", "SIZE",
                            "memory of tables (60% of all); rollouts 1/3 more", false, NULL,
                            NULL},
    [RP_SERVE_POLICY] = {"policy", "WORD", "when that is full: evict, block or reject (evict)",
                         false, NULL, "evict block reject"},
    [RP_SERVE_SEED] = {"seed", "N", "for all random choices (0: from the system)", false, NULL,
                       NULL},
    [RP_SERVE_DATA] = {"data", "DIR", "store the data in DIR, load what it holds", false,
                       "Storage", NULL},
    [RP_SERVE_DURABILITY] = {"durability", "WORD", "checkpoint, interval or sync (checkpoint)",
                             false, NULL, "checkpoint interval sync"},
    [RP_SERVE_SYNC_EVERY] = {"sync-every", "TIME",
                             "period of journal syncs, with interval (100ms)", false, NULL,
                             NULL},
    [RP_SERVE_CHECKPOINT_EVERY] = {"checkpoint-every", "TIME",
                                   "between checkpoints; 0: on demand only (5m)", false, NULL,
                                   NULL},
    [RP_SERVE_KEEP_CHECKPOINTS] = {"keep-checkpoints", "N", "number of checkpoints to keep (3)",
                                   false, NULL, NULL},
    [RP_SERVE_NO_FINAL_CHECKPOINT] = {"no-final-checkpoint", NULL,
                                      "write no checkpoint on SIGTERM", false, NULL, NULL},
    [RP_SERVE_MAX_MEMORY] = {"max-memory", "SIZE",
                             "chunks in memory, the rest on disk (0: all)", false, NULL, NULL},
    [RP_SERVE_SALVAGE] = {"salvage", NULL, "load what can be read of damaged data", false, NULL,
                          NULL},
    [RP_SERVE_ACCEPT_CHANGES] = {"accept-changes", NULL,
                                 "load tables whose selectors differ from those saved", false,
                                 NULL, NULL},
    [RP_SERVE_LISTEN] = {"listen", "ADDR", "host:port, :port or unix:/path (localhost:8000)",
                         true, "Network", NULL},
    [RP_SERVE_PORT] = {"port", "N", "short for --listen localhost:N", false, NULL, NULL},
    [RP_SERVE_LOOPS] = {"loops", "N", "threads (0: one per processor)", false, NULL, NULL},
    [RP_SERVE_LIMIT] = {"limit", "NAME=VALUE",
                        "a limit on peers; a name that is unknown lists all", true, NULL, NULL},
    [RP_SERVE_TLS_CERT] = {"tls-cert", "FILE", "certificate chain, PEM: turns TLS on", false,
                           "Security", NULL},
    [RP_SERVE_TLS_KEY] = {"tls-key", "FILE", "its private key, PEM", false, NULL, NULL},
    [RP_SERVE_TLS_CLIENT_CA] = {"tls-client-ca", "FILE",
                                "authorities of client certificates, PEM", false, NULL, NULL},
    [RP_SERVE_TLS_REQUIRE_CLIENT_CERT] = {"tls-require-client-cert", NULL,
                                          "refuse clients without a certificate", false, NULL,
                                          NULL},
    [RP_SERVE_TOKENS] = {"tokens", "FILE", "bearer tokens and their roles, hashed", false, NULL,
                         NULL},
    [RP_SERVE_INSECURE] = {"insecure", NULL, "allow any address without credentials", false,
                           NULL, NULL},
    [RP_SERVE_NO_RESET] = {"no-reset", NULL, "refuse Reset to all clients", false, NULL, NULL},
    [RP_SERVE_PAGE_HOSTS] = {"page-hosts", "NAMES",
                             "host names of the pages, separated by commas", false, NULL, NULL},
    [RP_SERVE_LOG_LEVEL] = {"log-level", "WORD", "error, warning, info or debug (info)", false,
                            "Running", "error warning info debug"},
    [RP_SERVE_LOG_FORMAT] = {"log-format", "WORD", "text or json (text)", false, NULL,
                             "text json"},
    [RP_SERVE_DRAIN_SECONDS] = {"drain-seconds", "N", "time for open calls on SIGTERM (10)",
                                false, NULL, NULL},
};

static const char *const policies[] = {"evict", "block", "reject"};
static const char *const durabilities[] = {"checkpoint", "interval", "sync"};
static const char *const levels[] = {"error", "warning", "info", "debug"};
static const char *const formats[] = {"text", "json"};

typedef enum kind { OTHER, INTEGER, SEED, SIZE, SECONDS, TEXT, SWITCH, WORD } kind;

typedef struct setting {
    kind kind;
    size_t offset;
    int64_t low, high;
    const char *const *words;
} setting;

#define AT(field) offsetof(rp_config, field)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const setting settings[RP_SERVE_OPTIONS] = {
    [RP_SERVE_CONFIG] = {TEXT, AT(file), 0, 0, NULL},
    [RP_SERVE_CHECK_CONFIG] = {SWITCH, AT(check_only), 0, 0, NULL},
    [RP_SERVE_MAX_BYTES] = {SIZE, AT(max_bytes), 0, 0, NULL},
    [RP_SERVE_POLICY] = {WORD, AT(policy), 0, COUNT_OF(policies), policies},
    [RP_SERVE_SEED] = {SEED, AT(seed), 0, 0, NULL},
    [RP_SERVE_DATA] = {TEXT, AT(storage.directory), 0, 0, NULL},
    [RP_SERVE_DURABILITY] = {WORD, AT(storage.mode), 0, COUNT_OF(durabilities), durabilities},
    [RP_SERVE_SYNC_EVERY] = {SECONDS, AT(storage.sync_ms), 0, MAX_SYNC_MS, NULL},
    [RP_SERVE_CHECKPOINT_EVERY] = {SECONDS, AT(storage.checkpoint_ms), 0, MAX_CHECKPOINT_MS,
                                   NULL},
    [RP_SERVE_KEEP_CHECKPOINTS] = {INTEGER, AT(storage.keep), 1, MAX_KEEP, NULL},
    [RP_SERVE_NO_FINAL_CHECKPOINT] = {SWITCH, AT(storage.no_final_checkpoint), 0, 0, NULL},
    [RP_SERVE_MAX_MEMORY] = {SIZE, AT(storage.max_memory), 0, 0, NULL},
    [RP_SERVE_SALVAGE] = {SWITCH, AT(storage.salvage), 0, 0, NULL},
    [RP_SERVE_ACCEPT_CHANGES] = {SWITCH, AT(storage.accept_changes), 0, 0, NULL},
    [RP_SERVE_PORT] = {INTEGER, AT(port), 0, 65535, NULL},
    [RP_SERVE_LOOPS] = {INTEGER, AT(loops), 0, MAX_LOOPS, NULL},
    [RP_SERVE_TLS_CERT] = {TEXT, AT(security.certificate_file), 0, 0, NULL},
    [RP_SERVE_TLS_KEY] = {TEXT, AT(security.key_file), 0, 0, NULL},
    [RP_SERVE_TLS_CLIENT_CA] = {TEXT, AT(security.client_ca_file), 0, 0, NULL},
    [RP_SERVE_TLS_REQUIRE_CLIENT_CERT] = {SWITCH, AT(security.require_client_certificate), 0, 0,
                                          NULL},
    [RP_SERVE_TOKENS] = {TEXT, AT(security.tokens_file), 0, 0, NULL},
    [RP_SERVE_INSECURE] = {SWITCH, AT(security.insecure), 0, 0, NULL},
    [RP_SERVE_NO_RESET] = {SWITCH, AT(security.reset_off), 0, 0, NULL},
    [RP_SERVE_PAGE_HOSTS] = {TEXT, AT(security.page_hosts), 0, 0, NULL},
    [RP_SERVE_LOG_LEVEL] = {WORD, AT(log_level), 0, COUNT_OF(levels), levels},
    [RP_SERVE_LOG_FORMAT] = {WORD, AT(log_format), 0, COUNT_OF(formats), formats},
    [RP_SERVE_DRAIN_SECONDS] = {SECONDS, AT(drain_ms), 0, MAX_DRAIN_MS, NULL},
};

void rp_config_init(rp_config *c, const rp_allocator *alloc, uint64_t memory)
{
    *c = (rp_config){
        .memory = memory,
        .port = -1,
        .log_level = RP_LOG_INFO,
        .drain_ms = DEFAULT_DRAIN_MS,
        .storage = {.sync_ms = DEFAULT_SYNC_MS,
                    .checkpoint_ms = DEFAULT_CHECKPOINT_MS,
                    .keep = DEFAULT_KEEP},
    };
    rp_arena_init(&c->arena, alloc);
}

void rp_config_deinit(rp_config *c)
{
    if (c == NULL) return;
    for (size_t i = 0; i < c->table_count; i++) rp_signature_unref(c->tables[i].signature);
    c->table_count = 0;
    rp_arena_deinit(&c->arena);
}

bool rp_config_is_storage(rp_serve_option option)
{
    return option >= RP_SERVE_DATA && option <= RP_SERVE_ACCEPT_CHANGES;
}

const char *rp_config_key(rp_config *c, rp_serve_option option)
{
    char *key;

    assert(option < RP_SERVE_OPTIONS);
    if (option == RP_SERVE_TABLE) return "tables";
    if (option == RP_SERVE_LIMIT) return "limits";
    key = rp_arena_format(&c->arena, "%s%s", rp_config_is_storage(option) ? "storage." : "",
                          rp_serve_options[option].name);
    for (char *p = key; p != NULL && *p != '\0'; p++)
        if (*p == '-') *p = '_';
    return key;
}

static bool is_given(const rp_config *c, rp_serve_option option)
{
    assert(option < RP_SERVE_OPTIONS);
    return ((c->given[0] | c->given[1]) & (1u << option)) != 0;
}

/* Returns true if the same source has set this option before. */
static bool is_given_here(const rp_config *c, rp_serve_option option)
{
    return (c->given[c->from_flags ? 1 : 0] & (1u << option)) != 0;
}

/* Returns the name of an option in the source that set it last. */
static const char *title_of(rp_config *c, rp_serve_option option)
{
    const char *title = c->places[option].file != NULL
                            ? rp_config_key(c, option)
                            : rp_arena_format(&c->arena, "--%s", rp_serve_options[option].name);

    return title != NULL ? title : rp_serve_options[option].name;
}

/* Addresses and ports of the command line replace those of the file. */
static void begin_addresses(rp_config *c)
{
    if (is_given_here(c, RP_SERVE_LISTEN) || is_given_here(c, RP_SERVE_PORT)) return;
    c->address_count = 0;
    c->port = -1;
}

static rp_status add_address(rp_config *c, const rp_setting *value, rp_problem *problem)
{
    char why[128];
    bool is_open;

    begin_addresses(c);
    if (rp_address_check(value->text, &is_open, why, sizeof why) != RP_OK)
        return rp_problem_set(problem, &value->place, "%s: '%.200s': %s", value->key,
                              value->text, why);
    for (size_t i = 0; i < c->address_count; i++)
        if (strcmp(c->addresses[i], value->text) == 0)
            return rp_problem_set(problem, &value->place, "%s: '%.200s' given twice",
                                  value->key, value->text);
    if (c->address_count == RP_CONFIG_MAX_ADDRESSES)
        return rp_problem_set(problem, &value->place, "%s: more than %d addresses", value->key,
                              RP_CONFIG_MAX_ADDRESSES);
    assert(c->address_count < RP_CONFIG_MAX_ADDRESSES); /* O2 */
    c->addresses[c->address_count] = value->text;
    c->address_places[c->address_count++] = value->place;
    return RP_OK;
}

static rp_status set_table(rp_config *c, const rp_setting *value, rp_problem *problem)
{
    rp_table_settings table;
    rp_status st =
        rp_table_spec_parse(&table, &c->arena, value->key, value->text, c->memory, problem);

    return st == RP_OK ? rp_config_add_table(c, &table, problem) : st;
}

static rp_status set_limit(rp_config *c, const rp_setting *value, rp_problem *problem)
{
    const char *equals = strchr(value->text, '=');
    rp_setting number = *value;
    const char *name;

    if (equals == NULL)
        return rp_problem_set(problem, &value->place, "%s: expected NAME=VALUE, got '%.100s'",
                              value->key, value->text);
    name = rp_arena_text(&c->arena, value->text, (size_t)(equals - value->text));
    number.text = equals + 1;
    if (c->from_flags) number.key = rp_arena_format(&c->arena, "%s %s", value->key, name);
    if (name == NULL || number.key == NULL) return rp_problem_memory(problem);
    return rp_limit_set(&c->limits, name, &number, c->memory, problem);
}

/* Sets an option of kind OTHER. */
static rp_status set_other(rp_config *c, rp_serve_option option, const rp_setting *value,
                           rp_problem *problem)
{
    assert(option == RP_SERVE_LISTEN || option == RP_SERVE_TABLE || option == RP_SERVE_LIMIT);
    if (option == RP_SERVE_LISTEN) return add_address(c, value, problem);
    if (option == RP_SERVE_TABLE) return set_table(c, value, problem);
    return set_limit(c, value, problem);
}

rp_status rp_config_set(rp_config *c, rp_serve_option option, const rp_setting *value,
                        rp_problem *problem)
{
    const setting *s = &settings[option];
    void *at = (char *)c + s->offset;
    rp_status st = RP_OK;

    assert(option < RP_SERVE_OPTIONS && value->text != NULL && value->key != NULL);
    static_assert(RP_SERVE_OPTIONS <= 32, "`given` has a bit for each option");
    if (option == RP_SERVE_PORT) begin_addresses(c);
    switch (s->kind) {
    case OTHER: st = set_other(c, option, value, problem); break;
    case INTEGER: st = rp_setting_integer(value, s->low, s->high, at, problem); break;
    case SEED: st = rp_setting_unsigned(value, at, problem); break;
    case SIZE: st = rp_setting_size(value, c->memory, at, problem); break;
    case SECONDS: st = rp_setting_duration(value, 1000, s->high, at, problem); break;
    case TEXT: st = rp_setting_text(value, at, problem); break;
    case SWITCH: st = rp_setting_boolean(value, at, problem); break;
    case WORD: st = rp_setting_choice(value, s->words, (size_t)s->high, at, problem); break;
    }
    if (st != RP_OK) return st;
    c->given[c->from_flags ? 1 : 0] |= 1u << option;
    c->places[option] = value->place;
    return RP_OK;
}

rp_status rp_config_add_table(rp_config *c, const rp_table_settings *table, rp_problem *problem)
{
    rp_table_settings *grown;

    for (size_t i = 0; i < c->table_count; i++) {
        if (strcmp(c->tables[i].name, table->name) != 0) continue;
        if ((c->tables[i].place.file != NULL) == (table->place.file != NULL))
            return rp_problem_set(problem, &table->place, "%s: given twice", table->title);
        rp_signature_unref(c->tables[i].signature);
        c->tables[i] = *table;
        return RP_OK;
    }
    if (c->table_count == RP_CONFIG_MAX_TABLES)
        return rp_problem_set(problem, &table->place, "%s: more than %d tables", table->title,
                              RP_CONFIG_MAX_TABLES);
    grown =
        rp_arena_grow(&c->arena, c->tables, c->table_count, &c->table_capacity, sizeof *grown);
    if (grown == NULL) return rp_problem_memory(problem);
    c->tables = grown;
    assert(c->table_count < c->table_capacity); /* O1 */
    c->tables[c->table_count++] = *table;
    return RP_OK;
}

rp_status rp_config_add_sockets(rp_config *c, size_t count, rp_problem *problem)
{
    for (size_t i = 0; i < count; i++) {
        const char *address = rp_arena_format(&c->arena, "fd:%zu", FIRST_SOCKET + i);
        size_t k = 0;

        if (address == NULL) return rp_problem_memory(problem);
        while (k < c->address_count && strcmp(c->addresses[k], address) != 0) k++;
        if (k < c->address_count) continue;
        if (c->address_count == RP_CONFIG_MAX_ADDRESSES)
            return rp_problem_set(problem, NULL, "LISTEN_FDS: more than %d addresses",
                                  RP_CONFIG_MAX_ADDRESSES);
        c->addresses[c->address_count++] = address;
    }
    return RP_OK;
}

/* Checks that an option is given together with the one it needs. */
static rp_status check_pair(rp_config *c, rp_serve_option option, rp_serve_option needs,
                            rp_problem *problem)
{
    if (!is_given(c, option) || is_given(c, needs)) return RP_OK;
    return rp_problem_set(problem, &c->places[option], "%s: needs %s%s as well",
                          title_of(c, option), c->places[option].file != NULL ? "" : "--",
                          c->places[option].file != NULL ? rp_config_key(c, needs)
                                                         : rp_serve_options[needs].name);
}

static rp_status check_file(rp_config *c, rp_serve_option option, const char *path,
                            rp_problem *problem)
{
    if (path == NULL || access(path, R_OK) == 0) return RP_OK;
    return rp_problem_set(problem, &c->places[option], "%s: '%.200s': %s", title_of(c, option),
                          path, strerror(errno));
}

static rp_status check_security(rp_config *c, rp_problem *problem)
{
    const rp_server_security *s = &c->security;
    rp_status st = check_pair(c, RP_SERVE_TLS_CERT, RP_SERVE_TLS_KEY, problem);

    if (st == RP_OK) st = check_pair(c, RP_SERVE_TLS_KEY, RP_SERVE_TLS_CERT, problem);
    if (st == RP_OK) st = check_pair(c, RP_SERVE_TLS_CLIENT_CA, RP_SERVE_TLS_CERT, problem);
    if (st == RP_OK && s->require_client_certificate)
        st = check_pair(c, RP_SERVE_TLS_REQUIRE_CLIENT_CERT, RP_SERVE_TLS_CLIENT_CA, problem);
    if (st == RP_OK) st = check_file(c, RP_SERVE_TLS_CERT, s->certificate_file, problem);
    if (st == RP_OK) st = check_file(c, RP_SERVE_TLS_KEY, s->key_file, problem);
    if (st == RP_OK) st = check_file(c, RP_SERVE_TLS_CLIENT_CA, s->client_ca_file, problem);
    if (st == RP_OK) st = check_file(c, RP_SERVE_TOKENS, s->tokens_file, problem);
    return st;
}

/* Checks the data directory: if the path exists, it must be a directory that can be written. */
static rp_status check_storage(rp_config *c, rp_problem *problem)
{
    const char *path = c->storage.directory;
    rp_status st = RP_OK;
    struct stat info;

    for (int i = RP_SERVE_DURABILITY; i <= RP_SERVE_ACCEPT_CHANGES && st == RP_OK; i++)
        st = check_pair(c, (rp_serve_option)i, RP_SERVE_DATA, problem);
    if (st == RP_OK && c->storage.sync_ms == 0) c->storage.sync_ms = DEFAULT_SYNC_MS;
    if (st != RP_OK || path == NULL || (stat(path, &info) != 0 && errno == ENOENT)) return st;
    if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode))
        errno = ENOTDIR;
    else if (access(path, R_OK | W_OK | X_OK) == 0)
        return RP_OK;
    return rp_problem_set(problem, &c->places[RP_SERVE_DATA], "%s: '%.200s': %s",
                          title_of(c, RP_SERVE_DATA), path, strerror(errno));
}

/* Checks that without credentials only this machine can reach the server. The server checks
 * this again with resolved names; here the error has the place of the setting. */
static rp_status check_addresses(rp_config *c, rp_problem *problem)
{
    const rp_server_security *s = &c->security;
    char why[128];
    bool is_open;

    if (s->insecure || s->client_ca_file != NULL || s->tokens_file != NULL) return RP_OK;
    for (size_t i = 0; i < c->address_count; i++)
        if (rp_address_check(c->addresses[i], &is_open, why, sizeof why) == RP_OK && is_open)
            return rp_problem_set(
                problem, &c->address_places[i],
                "%s: '%.200s' can be reached from elsewhere, and there are no credentials, so "
                "every client would be an administrator: give %s, or %s to allow it",
                c->address_places[i].file != NULL ? "listen" : "--listen", c->addresses[i],
                c->address_places[i].file != NULL ? "tokens or tls_client_ca"
                                                  : "--tokens or --tls-client-ca",
                c->address_places[i].file != NULL ? "insecure: true" : "--insecure");
    return RP_OK;
}

static rp_status fill_addresses(rp_config *c, rp_problem *problem)
{
    if (c->port >= 0) {
        const char *address = rp_arena_format(&c->arena, "localhost:%d", (int)c->port);

        if (address == NULL) return rp_problem_memory(problem);
        if (c->address_count == RP_CONFIG_MAX_ADDRESSES)
            return rp_problem_set(problem, &c->places[RP_SERVE_PORT],
                                  "%s: more than %d addresses", title_of(c, RP_SERVE_PORT),
                                  RP_CONFIG_MAX_ADDRESSES);
        c->address_places[c->address_count] = c->places[RP_SERVE_PORT];
        c->addresses[c->address_count++] = address;
    }
    if (c->address_count == 0) c->addresses[c->address_count++] = default_address;
    return RP_OK;
}

rp_status rp_config_finish(rp_config *c, rp_problem *problem)
{
    size_t most = rp_limits_filled(&c->limits).tables;
    rp_status st = RP_OK;

    if (c->table_count == 0) {
        rp_setting value = {.key = "--table", .text = default_table};

        c->default_table = true;
        st = set_table(c, &value, problem);
    }
    for (size_t i = 0; i < c->table_count && st == RP_OK; i++)
        st = rp_table_settings_finish(&c->tables[i], problem);
    if (st == RP_OK && c->table_count > most)
        st = rp_problem_set(problem, &c->tables[most].place,
                            "%s: %zu tables are more than the limit tables=%zu",
                            c->tables[most].title, c->table_count, most);
    if (st == RP_OK) st = fill_addresses(c, problem);
    if (st == RP_OK) st = check_addresses(c, problem);
    if (st == RP_OK) st = check_security(c, problem);
    if (st == RP_OK) st = check_storage(c, problem);
    /* With max_memory the data may exceed the memory: the rest is on disk. */
    if (!is_given(c, RP_SERVE_MAX_BYTES) && c->storage.max_memory == 0)
        c->max_bytes = (uint64_t)(default_share * (double)c->memory);
    if (c->limits.queued_bytes == 0) /* the server's default ignores the control group */
        c->limits.queued_bytes = (size_t)(default_queued_share * (double)c->memory);
    assert(c->address_count <= RP_CONFIG_MAX_ADDRESSES);                   /* O2 */
    assert(st != RP_OK || (c->table_count >= 1 && c->address_count >= 1)); /* O3 */
    return st;
}

rp_status rp_config_make_store(const rp_config *c, rp_store **out, rp_problem *problem)
{
    rp_store_options options = {
        .alloc = c->arena.alloc,
        .max_bytes = c->max_bytes,
        .policy = (rp_budget_policy)c->policy,
        .seed = c->seed,
    };
    rp_store *store = NULL;
    char hint[RP_TABLE_HINT_BYTES];
    size_t count;
    rp_error err = {0};
    rp_status st = rp_store_new(&options, &store, &err);

    if (st != RP_OK) (void)rp_problem_set(problem, NULL, "%s", err.text);
    /* The directory may have tables: the default one is only created if it has none. */
    count = c->default_table && c->storage.directory != NULL ? 0 : c->table_count;
    for (size_t i = 0; i < count && st == RP_OK; i++) {
        rp_table_options table = rp_table_settings_options(&c->tables[i]);

        st = rp_store_add_table(store, &table, NULL, &err);
        if (st != RP_OK)
            (void)rp_problem_set(
                problem, &c->tables[i].place, "%s: %s%s", c->tables[i].title, err.text,
                rp_table_settings_hint(&c->tables[i], &err, hint, sizeof hint));
    }
    if (st == RP_OK)
        *out = store;
    else
        rp_store_free(store);
    return st;
}
