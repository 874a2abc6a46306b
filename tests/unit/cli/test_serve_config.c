/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/serve_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/serve/config_flags.h"
#include "cli/serve/config_yaml.h"
#include "cli/serve/limit_names.h"
#include "cli/serve/serve_print.h"
#include "cli/text/yaml_tree.h"
#include "server/bounds/limits.h"
#include "support/unit.h"

static const uint64_t memory = UINT64_C(1000000);

static rp_config config;
static rp_problem problem;

static int end(void **state)
{
    (void)state;
    rp_config_deinit(&config);
    return 0;
}

/* Flags that follow a file: pairs of an option and its value. */
typedef struct given {
    rp_serve_option option;
    const char *value;
} given;

/* Reads the text, then the flags, and finishes. */
static rp_status read_with(const char *yaml, const given *list, size_t count)
{
    rp_flags flags = {0};
    rp_status st;

    rp_config_deinit(&config);
    rp_config_init(&config, NULL, memory);
    for (size_t i = 0; i < count; i++)
        flags.list[flags.count++] = (rp_flag){list[i].option, list[i].value};
    st = rp_config_read_text(&config, "f.yaml", yaml, strlen(yaml), &problem);
    if (st == RP_OK) st = rp_config_from_flags(&config, &flags, &problem);
    if (st == RP_OK) st = rp_config_finish(&config, &problem);
    return st;
}

static void accept_with(const char *yaml, const given *list, size_t count)
{
    if (read_with(yaml, list, count) != RP_OK) fail_msg("%s: %s", yaml, problem.text);
}

static void accept(const char *yaml)
{
    accept_with(yaml, NULL, 0);
}

static void assert_problem(rp_status st, const char *what, const char *message)
{
    if (st == RP_INVALID && strcmp(problem.text, message) == 0) return;
    fail_msg("%s:\n  %s\ninstead of\n  %s", what, st == RP_OK ? "(accepted)" : problem.text,
             message);
}

static void refuse(const char *yaml, const char *message)
{
    assert_problem(read_with(yaml, NULL, 0), yaml, message);
}

static void refuse_flag(rp_serve_option option, const char *value, const char *message)
{
    given list[] = {{option, value}};

    assert_problem(read_with("", list, 1), value, message);
}

static void an_empty_config_is_one_table_on_localhost(void **state)
{
    (void)state;
    accept("");
    assert_int_equal(config.table_count, 1);
    assert_true(config.default_table);
    assert_string_equal(config.tables[0].name, "replay");
    assert_int_equal(config.tables[0].sampler, RP_PRIORITIZED);
    assert_int_equal(config.address_count, 1);
    assert_string_equal(config.addresses[0], "localhost:8000");
    assert_int_equal(config.max_bytes, 600000);
    assert_int_equal(config.limits.queued_bytes, 50000);
    assert_int_equal(config.policy, RP_BUDGET_EVICT);
    assert_int_equal(config.log_level, RP_LOG_INFO);
    assert_int_equal(config.drain_ms, 10000);
    accept("# only a comment\n");
    accept("~\n");
}

static void a_file_can_say_everything(void **state)
{
    (void)state;
    accept("tables:\n"
           "  replay: {sampler: prioritized, max_size: 10, exponent: 0.5}\n"
           "  fifo: queue:7\n"
           "max_bytes: 50%\n"
           "policy: reject\n"
           "seed: 18446744073709551615\n"
           "listen: [\"localhost:1\", unix:/tmp/x]\n"
           "loops: 3\n"
           "insecure: true\n"
           "no_reset: true\n"
           "log_level: debug\n"
           "log_format: json\n"
           "drain_seconds: 1.5\n"
           "limits:\n"
           "  connections: 5\n"
           "  message_bytes: 1MiB\n"
           "  queued_bytes: 10%\n"
           "  stall_ms: 2s\n");
    assert_int_equal(config.table_count, 2);
    assert_false(config.default_table);
    assert_string_equal(config.tables[1].name, "fifo");
    assert_int_equal(config.tables[1].sampler, RP_FORM_QUEUE);
    assert_int_equal(config.max_bytes, 500000);
    assert_int_equal(config.policy, RP_BUDGET_REJECT);
    assert_int_equal(config.seed, UINT64_MAX);
    assert_int_equal(config.address_count, 2);
    assert_string_equal(config.addresses[1], "unix:/tmp/x");
    assert_int_equal(config.loops, 3);
    assert_true(config.security.insecure && config.security.reset_off);
    assert_int_equal(config.log_level, RP_LOG_DEBUG);
    assert_int_equal(config.log_format, RP_LOG_JSON);
    assert_int_equal(config.drain_ms, 1500);
    assert_int_equal(config.limits.connections, 5);
    assert_int_equal(config.limits.message_bytes, 1 << 20);
    assert_int_equal(config.limits.queued_bytes, 100000);
    assert_int_equal(config.limits.stall_ms, 2000);
    assert_int_equal(config.limits.streams, 0); /* a default of the server's */
}

static void flags_win_over_the_file(void **state)
{
    static const char yaml[] = "tables: {a: fifo, b: lifo}\n"
                               "listen: [localhost:1, localhost:2]\n"
                               "insecure: true\nseed: 1\nmax_bytes: 0\n"
                               "limits: {connections: 5, streams: 6}\n";
    given list[] = {{RP_SERVE_TABLE, "b:uniform:3"},
                    {RP_SERVE_TABLE, "c:max_heap"},
                    {RP_SERVE_PORT, "9"},
                    {RP_SERVE_INSECURE, "false"},
                    {RP_SERVE_SEED, "2"},
                    {RP_SERVE_LIMIT, "connections=7"}};

    (void)state;
    accept_with(yaml, list, COUNT_OF(list));
    assert_int_equal(config.table_count, 3);
    assert_int_equal(config.tables[0].sampler, RP_FIFO);
    assert_int_equal(config.tables[1].sampler, RP_UNIFORM);
    assert_string_equal(config.tables[2].name, "c");
    assert_int_equal(config.address_count, 1);
    assert_string_equal(config.addresses[0], "localhost:9");
    assert_false(config.security.insecure);
    assert_int_equal(config.seed, 2);
    assert_int_equal(config.max_bytes, 0); /* said, and not the default */
    assert_int_equal(config.limits.connections, 7);
    assert_int_equal(config.limits.streams, 6);

    list[1] = (given){RP_SERVE_LISTEN, "unix:/a"};
    list[3] = (given){RP_SERVE_LISTEN, "localhost:3"};
    accept_with("port: 4\nlisten: localhost:5\n", list + 3, 1);
    assert_int_equal(config.address_count, 1);
    assert_string_equal(config.addresses[0], "localhost:3");
    accept_with("port: 4\n", list + 1, 3); /* both are wanted */
    assert_int_equal(config.address_count, 3);
    assert_string_equal(config.addresses[2], "localhost:9");
}

static void the_shape_of_a_file_is_checked(void **state)
{
    (void)state;
    refuse("prot: 1\n", "f.yaml:1:1: prot: unknown key, did you mean 'port'?");
    refuse("max-bytes: 1\n", "f.yaml:1:1: max-bytes: unknown key, did you mean 'max_bytes'?");
    refuse("table: {}\n", "f.yaml:1:1: table: unknown key, did you mean 'tables'?");
    refuse("config: x\n", "f.yaml:1:1: config: unknown key");
    refuse("seed: 1\nport: 2\nseed: 3\n", "f.yaml:3:1: seed: given twice, first in line 1");
    refuse("- a\n", "f.yaml:1:1: expected keys with values, got a list");
    refuse("word\n", "f.yaml:1:1: expected keys with values, got a value");
    refuse("port:\n", "f.yaml:1:6: port: has no value");
    refuse("port: null\n", "f.yaml:1:7: port: has no value");
    refuse("port: [1]\n", "f.yaml:1:7: port: expected a value, got a list");
    refuse("port: \"1\"\n",
           "f.yaml:1:7: port: expected a whole number from 0 to 65535, got the "
           "string '1'");
    refuse("insecure: \"true\"\n",
           "f.yaml:1:11: insecure: expected true or false, got the string 'true'");
    refuse("tables: [a]\n", "f.yaml:1:9: tables: expected a map, got a list");
    refuse("tables: {a: [fifo]}\n", "f.yaml:1:13: tables.a: expected a map, got a list");
    refuse("tables: {a: }\n", "f.yaml:1:13: tables.a: has no value");
    refuse("tables: {a: {max_size: 1}}\n", "f.yaml:1:10: tables.a: needs a sampler");
    refuse("tables:\n  a:\n    sampler: fifo\n    max_sise: 3\n",
           "f.yaml:4:5: tables.a.max_sise: unknown key, did you mean 'max_size'?");
    refuse("tables: {a: {spi: 3}}\n",
           "f.yaml:1:14: tables.a.spi: unknown key, did you mean 'samples_per_insert'?");
    refuse("tables: {a: {zzz: 3}}\n",
           "f.yaml:1:14: tables.a.zzz: unknown key; the keys are sampler, exponent, remover, "
           "remover_exponent, max_size, min_size, samples_per_insert, error_buffer, min_diff, "
           "max_diff, "
           "max_times_sampled, max_bytes, soft_limit, seed, signature");
    refuse("tables: {a: {sampler: fifo, max_size: [3]}}\n",
           "f.yaml:1:39: tables.a.max_size: expected a value, got a list");
    refuse("tables:\n  a: {sampler: fifo}\n  a: {sampler: lifo}\n",
           "f.yaml:3:3: a: given twice, first in line 2");
    refuse("tables: {a: {sampler: fifo, signature: }}\n",
           "f.yaml:1:40: tables.a.signature: has no value");
    refuse("tables: {a: {sampler: fifo, signature: {x: \"flot32 [?]\"}}}\n",
           "f.yaml:1:44: tables.a.signature.x: unknown dtype 'flot32', did you mean "
           "'float32'?");
    refuse("limits: {conections: 1}\n", "f.yaml:1:22: limits.conections: unknown limit, "
                                        "did you mean 'connections'?");
    refuse("limits: {zzzz: 1}\n",
           "f.yaml:1:16: limits.zzzz: unknown limit; known are connections, streams, calls, "
           "message_bytes, chunk_bytes, tensor_bytes, item_bytes, columns, chunks, slices, "
           "items, keys, distinct_samples, stream_pinned_bytes, connection_pinned_bytes, "
           "pinned_bytes, stream_queued_bytes, connection_queued_bytes, queued_bytes, "
           "shared_held_bytes, run_bytes, header_bytes, header_fields, abuse_burst, "
           "abuse_per_second, handshake_ms, stall_ms, message_grace_ms, ping_ms, "
           "ping_timeout_ms, tables, checkpoint_spacing_ms");
    refuse("limits: 3\n", "f.yaml:1:9: limits: expected a map, got a value");
    refuse("listen: []\n", "f.yaml:1:9: listen: an empty list");
    refuse("listen: [[a]]\n", "f.yaml:1:10: listen: expected a value, got a list");
    refuse("listen: [localhost:1, localhost:1]\n",
           "f.yaml:1:23: listen: 'localhost:1' given twice");
}

static void yaml_that_is_more_than_a_configuration_is_refused(void **state)
{
    char deep[256];

    (void)state;
    refuse("a: &x 1\n", "f.yaml:1:4: anchors are not supported");
    refuse("a: [*x]\n", "f.yaml:1:5: aliases are not supported");
    refuse("a: !!int 1\n", "f.yaml:1:4: unknown tag 'tag:yaml.org,2002:int'");
    refuse("[a]: 1\n", "f.yaml:1:1: a key must be a text");
    refuse("\"a\\0b\": 1\n", "f.yaml:1:1: a key must not hold a zero byte");
    refuse("a: \"a\\0b\"\n", "f.yaml:1:4: a text must not hold a zero byte");
    refuse("port: 1\n---\nport: 2\n", "f.yaml:2:1: a second document: only one is allowed");
    refuse("a: 'open\n", "f.yaml:2:1: not YAML: found unexpected end of stream");
    refuse("a: \xff\n", "f.yaml: not a text in UTF-8: invalid leading UTF-8 octet at byte 3");
    memset(deep, '[', sizeof deep);
    deep[RP_YAML_MAX_DEPTH + 1] = '\0';
    refuse(deep, "f.yaml:1:97: nested more than 96 deep");
}

static void sizes_of_a_file_are_bounded(void **state)
{
    char *text = malloc(RP_YAML_MAX_BYTES + 2);
    size_t used = 0;

    (void)state;
    assert_non_null(text);
    memset(text, '#', RP_YAML_MAX_BYTES + 1);
    text[RP_YAML_MAX_BYTES] = '\0';
    accept(text);
    text[RP_YAML_MAX_BYTES] = '#';
    text[RP_YAML_MAX_BYTES + 1] = '\0';
    refuse(text, "f.yaml: larger than 1048576 bytes");

    used += (size_t)sprintf(text, "listen: [");
    for (int i = 0; i < RP_YAML_MAX_ENTRIES + 1; i++)
        used += (size_t)sprintf(text + used, "[],");
    (void)strcpy(text + used, "]");
    refuse(text, "f.yaml:1:24586: more than 8192 entries");

    used = (size_t)sprintf(text, "listen:\n");
    for (int i = 0; i < RP_CONFIG_MAX_ADDRESSES + 1; i++)
        used += (size_t)sprintf(text + used, "- localhost:%d\n", i + 1);
    refuse(text, "f.yaml:18:3: listen: more than 16 addresses");
    free(text);
}

static void conflicting_settings_are_refused(void **state)
{
    given twice[] = {{RP_SERVE_TABLE, "a:fifo"}, {RP_SERVE_TABLE, "a:lifo"}};

    (void)state;
    assert_problem(read_with("", twice, 2), "twice", "--table a: given twice");
    refuse("tls_cert: /dev/null\n", "f.yaml:1:11: tls_cert: needs tls_key as well");
    refuse_flag(RP_SERVE_TLS_KEY, "/dev/null", "--tls-key: needs --tls-cert as well");
    refuse_flag(RP_SERVE_TLS_CLIENT_CA, "/dev/null",
                "--tls-client-ca: needs --tls-cert as well");
    refuse("tls_require_client_cert: true\n",
           "f.yaml:1:26: tls_require_client_cert: needs tls_client_ca as well");
    accept("tls_require_client_cert: false\n");
    refuse("tokens: /nonexistent/tokens\n",
           "f.yaml:1:9: tokens: '/nonexistent/tokens': No such file or directory");
    refuse("listen: :8000\n",
           "f.yaml:1:9: listen: ':8000' can be reached from elsewhere, and there are no "
           "credentials, so every client would be an administrator: give tokens or "
           "tls_client_ca, or "
           "insecure: true to allow it");
    accept("listen: :8000\ninsecure: true\n");
    accept("listen: 10.0.0.1:8000\ntokens: /dev/null\n");
    refuse("tables: {a: fifo, b: fifo, c: fifo}\nlimits: {tables: 2}\n",
           "f.yaml:1:28: tables.c: 3 tables are more than the limit tables=2");
}

static void flags_are_checked_as_well(void **state)
{
    (void)state;
    refuse_flag(RP_SERVE_LIMIT, "connections",
                "--limit: expected NAME=VALUE, got 'connections'");
    refuse_flag(RP_SERVE_LIMIT, "conections=1",
                "--limit conections: unknown limit, did you mean 'connections'?");
    refuse_flag(
        RP_SERVE_LIMIT, "stall_ms=x",
        "--limit stall_ms: expected a time from 0 to 31536000 s, such as 500 or 10s, got "
        "'x'");
    refuse_flag(
        RP_SERVE_LIMIT, "message_bytes=16777215TiB",
        "--limit message_bytes: must be from 4096 to 4294967295, or 0 for the default; got "
        "'16777215TiB'");
    refuse_flag(RP_SERVE_LIMIT, "connections=-1",
                "--limit connections: expected a whole number from 0 to 1000000, got '-1'");
    refuse_flag(RP_SERVE_LISTEN, "localhost",
                "--listen: 'localhost': there is no port: expected host:port, :port or "
                "unix:/path");
    refuse_flag(RP_SERVE_PORT, "65536",
                "--port: expected a whole number from 0 to 65535, got '65536'");
    refuse_flag(RP_SERVE_PORT, "",
                "--port: expected a whole number from 0 to 65535, got nothing");
    refuse_flag(RP_SERVE_LOOPS, "257",
                "--loops: expected a whole number from 0 to 256, got "
                "'257'");
    refuse_flag(
        RP_SERVE_POLICY, "evit",
        "--policy: unknown value 'evit', did you mean 'evict'? (evict, block or reject)");
    refuse_flag(RP_SERVE_LOG_LEVEL, "loud",
                "--log-level: expected error, warning, info or debug, got 'loud'");
    refuse_flag(
        RP_SERVE_DRAIN_SECONDS, "25h",
        "--drain-seconds: expected a time from 0 to 86400 s, such as 30 or 30s, got '25h'");
    refuse_flag(RP_SERVE_TOKENS, "", "--tokens: expected a text, got nothing");
}

static void errors_of_the_store_have_line_and_column(void **state)
{
    rp_store *store = NULL;

    (void)state;
    accept("tables:\n  good: fifo\n"
           "  bad: {sampler: uniform, samples_per_insert: 4, error_buffer: 1}\n");
    assert_int_equal(rp_config_make_store(&config, &store, &problem), RP_INVALID);
    assert_non_null(strstr(problem.text, "f.yaml:3:3: tables.bad: "));
    assert_non_null(strstr(problem.text, "both wait for ever"));
    assert_null(store);
}

static void sockets_that_were_passed_replace_the_default(void **state)
{
    (void)state;
    rp_config_init(&config, NULL, memory);
    assert_ok(rp_config_add_sockets(&config, 2, &problem));
    assert_ok(rp_config_finish(&config, &problem));
    assert_int_equal(config.address_count, 2);
    assert_string_equal(config.addresses[0], "fd:3");
    assert_string_equal(config.addresses[1], "fd:4");
    rp_config_deinit(&config);

    rp_config_init(&config, NULL, memory);
    assert_ok(rp_config_read_text(&config, "f", "listen: [fd:3, localhost:7]", 27, &problem));
    assert_ok(rp_config_add_sockets(&config, 1, &problem));
    assert_ok(rp_config_finish(&config, &problem));
    assert_int_equal(config.address_count, 2);
}

/* What would run, as text in memory of the C library's. */
static char *printed(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    rp_config_print(out, &config);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void printed_configs_read_back_equal(void **state)
{
    static const char yaml[] =
        "tables:\n"
        "  \"a b: # \\\"\\\\\\x01\": fifo:3\n"
        "  \"null\": {sampler: uniform, samples_per_insert: 4, seed: 3}\n"
        "  -x: stack:9\n"
        "  \"\\N\\L\\P\\uFEFF\\uFFFE\\x7f \xc3\xa9\": fifo\n"
        "  signed:\n"
        "    sampler: max_heap\n"
        "    signature:\n"
        "      obs: [\"uint8 [?, 84]\", {x: float32, \"y z\": \"bool []\"}]\n"
        "      pair: !tuple [int32, !tuple [\"int8 [?]\", [string]]]\n"
        "  leaf: {sampler: fifo, signature: \"float32 [?, 3]\"}\n"
        "listen: [unix:/tmp/a b, \"[::1]:7\"]\n"
        "tokens: /dev/null\nlimits: {header_bytes: 1000, tables: 9}\n"
        "drain_seconds: 0.25\nmax_bytes: 123\n";
    char *first, *second;

    (void)state;
    accept(yaml);
    first = printed();
    accept(first);
    second = printed();
    assert_string_equal(first, second);
    free(first);
    free(second);
}

static void changes_that_need_a_restart_are_seen(void **state)
{
    rp_config other;
    char keys[64], few[8];

    (void)state;
    accept("limits: {streams: 3}\nlog_level: debug\ndrain_seconds: 1\n");
    other = config;
    config = (rp_config){.arena = {.alloc = rp_allocator_default()}};
    accept("");
    assert_false(rp_config_needs_restart(&config, &other, keys, sizeof keys));
    assert_string_equal(keys, "");
    accept("port: 9\n");
    assert_true(rp_config_needs_restart(&config, &other, keys, sizeof keys));
    assert_string_equal(keys, "listen");
    accept("tables: {replay: \"prioritized:1000000,exponent=0.7\"}\n");
    assert_true(rp_config_needs_restart(&config, &other, keys, sizeof keys));
    assert_string_equal(keys, "tables.replay");
    accept("tables: {b: fifo, \"a b\": fifo}\nno_reset: true\n");
    assert_true(rp_config_needs_restart(&config, &other, keys, sizeof keys));
    assert_string_equal(keys, "tables.b, tables.\"a b\", no_reset, tables.replay");
    assert_true(rp_config_needs_restart(&config, &other, few, sizeof few));
    assert_string_equal(few, "tables.");
    rp_config_deinit(&other);
}

static void every_limit_can_be_set_by_its_name(void **state)
{
    (void)state;
    assert_int_equal(rp_limit_count() * sizeof(size_t), sizeof(rp_server_limits));
    for (size_t i = 0; i < rp_limit_count(); i++) {
        rp_server_limits limits = {0}, zero = {0}, filled;
        char number[32], text[32];
        rp_setting value = {"key", number, false, {0}};
        int64_t low, high;

        rp_limit_bounds(i, &low, &high);
        (void)snprintf(number, sizeof number, "%lld", low > 300 ? (long long)low + 1 : 300);
        assert_ok(rp_limit_set(&limits, rp_limit_name(i), &value, memory, &problem));
        assert_memory_not_equal(&limits, &zero, sizeof limits);
        assert_string_equal(rp_limit_text(&limits, i, text, sizeof text), number);
        filled = rp_limits_filled(&limits);
        assert_string_equal(rp_limit_text(&filled, i, text, sizeof text), number);
        filled = rp_limits_filled(&zero);
        assert_string_not_equal(rp_limit_text(&filled, i, text, sizeof text), "0");
    }
}

/* The text as a limit, checked by the server itself. */
static rp_status server_says(const char *name, const char *text)
{
    rp_server_limits limits = {0};
    rp_setting value = {"key", text, false, {0}};

    if (rp_limit_set(&limits, name, &value, memory, &problem) != RP_OK) return RP_CANCELLED;
    return rp_server_limits_complete(&limits, NULL);
}

static void bounds_of_limits_are_those_of_the_server(void **state)
{
    char text[32];

    (void)state;
    for (size_t i = 0; i < rp_limit_count(); i++) {
        rp_server_limits limits = {0};
        int64_t low, high, beyond;

        rp_limit_bounds(i, &low, &high);
        (void)snprintf(text, sizeof text, "%lld", (long long)low);
        assert_ok(server_says(rp_limit_name(i), text));
        (void)snprintf(text, sizeof text, "%lld", (long long)high);
        assert_ok(server_says(rp_limit_name(i), text));

        if (high == INT64_MAX) continue;
        (void)snprintf(text, sizeof text, "%lld", (long long)high + 1);
        assert_int_equal(server_says(rp_limit_name(i), text), RP_CANCELLED);
        beyond = high + 1; /* every field has eight bytes, in the order of its name's index */
        memcpy((char *)&limits + i * sizeof beyond, &beyond, sizeof beyond);
        assert_int_equal(rp_server_limits_complete(&limits, NULL), RP_INVALID);
        if (low == 1) continue;
        beyond = low - 1;
        memcpy((char *)&limits + i * sizeof beyond, &beyond, sizeof beyond);
        assert_int_equal(rp_server_limits_complete(&limits, NULL), RP_INVALID);
        (void)snprintf(text, sizeof text, "%lld", (long long)beyond);
        assert_int_equal(server_says(rp_limit_name(i), text), RP_CANCELLED);
    }
}

static rp_status read_all(const rp_allocator *alloc)
{
    static const char yaml[] = "tables: {a: fifo, b: {sampler: uniform, signature: [int32]}}\n"
                               "listen: [localhost:1]\nlimits: {streams: 3}\n";
    rp_flags flags = {.list = {{RP_SERVE_PORT, "9"}, {RP_SERVE_TABLE, "c:queue:9"}},
                      .count = 2};
    rp_store *store = NULL;
    rp_problem ignored;
    rp_config c;
    rp_status st;

    rp_config_init(&c, alloc, memory);
    st = rp_config_read_text(&c, "f", yaml, strlen(yaml), &ignored);
    if (st == RP_OK) st = rp_config_from_flags(&c, &flags, &ignored);
    if (st == RP_OK) st = rp_config_add_sockets(&c, 1, &ignored);
    if (st == RP_OK) st = rp_config_finish(&c, &ignored);
    if (st == RP_OK) st = rp_config_make_store(&c, &store, &ignored);
    rp_store_free(store);
    rp_config_deinit(&c);
    return st;
}

static void running_out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(read_all);
}

#define TEST(f) cmocka_unit_test_teardown(f, end)

RP_TESTS(serve_config)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_config_is_one_table_on_localhost),
        TEST(a_file_can_say_everything),
        TEST(flags_win_over_the_file),
        TEST(the_shape_of_a_file_is_checked),
        TEST(yaml_that_is_more_than_a_configuration_is_refused),
        TEST(sizes_of_a_file_are_bounded),
        TEST(conflicting_settings_are_refused),
        TEST(flags_are_checked_as_well),
        TEST(errors_of_the_store_have_line_and_column),
        TEST(sockets_that_were_passed_replace_the_default),
        TEST(printed_configs_read_back_equal),
        TEST(changes_that_need_a_restart_are_seen),
        TEST(every_limit_can_be_set_by_its_name),
        TEST(bounds_of_limits_are_those_of_the_server),
        TEST(running_out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
