/* SPDX-License-Identifier: Apache-2.0 */
/* The client's readers must read what the server's writers have written. */
#include "wire/responses.h"

#include "support/hex.h"
#include "util/rng.h"
#include "wire/admin_messages.h"
#include "wire/reverb_messages.h"
#include "wire/signature_wire.h"

static const uint64_t state_id[2] = {0x123456789abcdef0, 7};

static rp_signature *make_signature(void)
{
    rp_nest_node nodes[] = {
        {.kind = RP_NEST_TUPLE, .child_count = 2},
        {.kind = RP_NEST_LEAF, .spec = {"a", RP_FLOAT32, {2, {-1, 84}}}},
        {.kind = RP_NEST_LEAF, .spec = {NULL, RP_INT64, {0, {0}}}},
    };
    rp_signature *signature = NULL;

    assert_ok(
        rp_signature_new(rp_allocator_default(), nodes, COUNT_OF(nodes), &signature, NULL));
    return signature;
}

static const char *const names[] = {"a", "another table", "\xc3\xa4", "b"};

/* Tables with all numbers different. */
static void make_tables(rp_table_info *tables, rp_signature *signature)
{
    for (int i = 0; i < 4; i++)
        tables[i] = (rp_table_info){
            .name = names[i],
            .sampler = {(rp_selector_kind)((RP_PRIORITIZED + i) % 6), i == 0 ? 0.6 : 0},
            .remover = {(rp_selector_kind)(i % 3), 0},
            .limiter = {1.5 + i, 2 + i, -3.5, 1e300},
            .max_size = 100 + i,
            .max_bytes = 200 + (uint64_t)i,
            .max_times_sampled = i - 1,
            .soft_limit = i % 2 == 0,
            .closed = i == 3,
            .paused = (uint32_t)i,
            .signature = i == 1 ? signature : NULL,
            .size = 50 + i,
            .bytes = UINT64_MAX - (uint64_t)i,
            .inserts = 60 + i,
            .samples = 70 + i,
            .deletes = 80 + i,
            .updates = 90 + i,
            .evictions = 11 + i,
            .episodes = 21 + i,
            .deleted_episodes = 31 + i,
            .unique_samples = 41 + i,
            .max_priority = 5.5 + i,
            .total_weight = 6.5 + i,
            .limiter_diff = -7.5 + i,
            .waiting_inserts = 3 + i,
            .waiting_samples = 4 + i,
            .insert_waits = {1 + i, 2 + i, 3 + i},
            .sample_waits = {4 + i, 5 + i, 6 + i},
        };
}

static void expect_reverb_part(const rp_table_info *a, const rp_table_info *b)
{
    assert_string_equal(a->name, b->name);
    assert_true(a->sampler.kind == b->sampler.kind && a->remover.kind == b->remover.kind);
    assert_true(a->sampler.exponent == b->sampler.exponent);
    assert_true(a->limiter.samples_per_insert == b->limiter.samples_per_insert);
    assert_true(a->limiter.min_size == b->limiter.min_size);
    assert_true(a->limiter.min_diff == b->limiter.min_diff);
    assert_true(a->limiter.max_diff == b->limiter.max_diff);
    assert_true(a->max_size == b->max_size && a->max_times_sampled == b->max_times_sampled);
    assert_true(a->size == b->size && a->inserts == b->inserts && a->samples == b->samples);
    assert_true(a->episodes == b->episodes && a->deleted_episodes == b->deleted_episodes);
    assert_true(a->unique_samples == b->unique_samples);
    assert_true((a->signature != NULL) == (b->signature != NULL));
}

static void expect_own_part(const rp_table_info *a, const rp_table_info *b)
{
    assert_string_equal(a->name, b->name);
    assert_true(a->total_weight == b->total_weight && a->size == b->size);
    assert_true(a->bytes == b->bytes && a->max_bytes == b->max_bytes);
    assert_true(a->soft_limit == b->soft_limit && a->closed == b->closed);
    assert_int_equal(a->paused, b->paused);
    assert_true(a->deletes == b->deletes && a->updates == b->updates);
    assert_true(a->evictions == b->evictions && a->max_priority == b->max_priority);
    assert_true(a->limiter_diff == b->limiter_diff);
    assert_true(a->waiting_inserts == b->waiting_inserts);
    assert_true(a->waiting_samples == b->waiting_samples);
    assert_memory_equal(&a->insert_waits, &b->insert_waits, sizeof a->insert_waits);
    assert_memory_equal(&a->sample_waits, &b->sample_waits, sizeof a->sample_waits);
}

static void server_info_and_status_are_merged_per_table(void **state)
{
    rp_signature *signature = make_signature();
    rp_table_info tables[4];
    rp_wire_tables *infos = NULL, *status = NULL;
    const rp_allocator *alloc = rp_allocator_default();
    uint64_t id[2];
    rp_buf out;

    (void)state;
    make_tables(tables, signature);
    rp_buf_init(&out, alloc);
    rp_wire_write_server_info(&out, state_id, tables, 4);
    assert_ok(rp_wire_read_server_info(alloc, out.data, out.size, id, &infos, NULL));
    assert_true(id[0] == state_id[0] && id[1] == state_id[1]);
    assert_int_equal(infos->count, 4);
    for (size_t i = 0; i < 4; i++) expect_reverb_part(&infos->tables[i], &tables[i]);
    assert_true(infos->tables[2].total_weight == 0 && infos->tables[2].bytes == 0);

    rp_buf_clear(&out); /* in another order, with one that is new and without one */
    tables[0].name = "new";
    for (size_t i = 4; i-- > 0;) rp_wire_write_table_status(&out, &tables[i]);
    assert_ok(rp_wire_read_status(alloc, out.data, out.size, &status, NULL));
    assert_int_equal(status->count, 4);
    for (size_t i = 0; i < 4; i++) expect_own_part(&status->tables[i], &tables[3 - i]);
    rp_wire_tables_merge(infos, status);
    assert_true(infos->tables[0].total_weight == 0);
    for (size_t i = 1; i < 4; i++) {
        expect_reverb_part(&infos->tables[i], &tables[i]);
        expect_own_part(&infos->tables[i], &tables[i]);
    }
    rp_wire_tables_free(infos);
    rp_wire_tables_merge(status, status);
    rp_wire_tables_free(status);
    rp_signature_unref(signature);
    rp_buf_deinit(&out);
}

static void no_tables_are_an_empty_list(void **state)
{
    rp_wire_tables *list = NULL;
    uint64_t id[2] = {1, 1};

    (void)state;
    assert_ok(rp_wire_read_server_info(rp_allocator_default(), NULL, 0, id, &list, NULL));
    assert_true(list->count == 0 && id[0] == 0 && id[1] == 0);
    rp_wire_tables_merge(list, list);
    rp_wire_tables_free(list);
    assert_ok(rp_wire_read_status(rp_allocator_default(), NULL, 0, &list, NULL));
    assert_int_equal(list->count, 0);
    rp_wire_tables_free(list);
    rp_wire_tables_free(NULL);
}

static void unknown_selectors_and_signatures_of_other_servers_are_accepted(void **state)
{
    /* a selector and a signature that are not known, twice a signature, no name */
    rp_test_bytes b = rp_test_bytes_of("1219 0a02 4801 1202 0801 3205 0a03 616263"
                                       "3206 8a0203 1201 00 3200");
    rp_wire_tables *list = NULL;

    (void)state;
    assert_ok(
        rp_wire_read_server_info(rp_allocator_default(), b.data, b.size, NULL, &list, NULL));
    assert_int_equal(list->count, 1);
    assert_int_equal(list->tables[0].sampler.kind, RP_UNIFORM);
    assert_int_equal(list->tables[0].remover.kind, RP_FIFO);
    assert_null(list->tables[0].signature);
    assert_string_equal(list->tables[0].name, "");
    rp_wire_tables_free(list);
}

static void inconsistent_table_lists_are_corrupt(void **state)
{
    static const char *const infos[] = {
        "0a01 08",      "12",           "1201 08",           "1203 0a01 08",
        "1203 1201 08", "1203 2a01 08", "1205 2a03 2a01 10", "1205 2a03 3201 10",
        "1203 4201 ff",
    };
    static const char *const statuses[] = {"0a", "0a01 08", "0a03 0a01 ff", "0a04 8a0101 08",
                                           "0a04 920101 08"};
    const rp_allocator *alloc = rp_allocator_default();
    rp_wire_tables *list = NULL;
    rp_error err = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(infos); i++) {
        rp_test_bytes b = rp_test_bytes_of(infos[i]);
        assert_fails(rp_wire_read_server_info(alloc, b.data, b.size, NULL, &list, &err),
                     RP_CORRUPT, &err, "");
    }
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        rp_test_bytes b = rp_test_bytes_of(statuses[i]);
        assert_fails(rp_wire_read_status(alloc, b.data, b.size, &list, &err), RP_CORRUPT, &err,
                     "");
    }
}

static void the_number_of_tables_has_a_limit(void **state)
{
    uint8_t *bytes = calloc(RP_WIRE_MAX_TABLES + 1, 2);
    const rp_allocator *alloc = rp_allocator_default();
    rp_wire_tables *list = NULL;
    rp_error err = {0};

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i <= RP_WIRE_MAX_TABLES; i++) bytes[2 * i] = 0x0a;
    assert_ok(rp_wire_read_status(alloc, bytes, (size_t)2 * RP_WIRE_MAX_TABLES, &list, NULL));
    assert_int_equal(list->count, RP_WIRE_MAX_TABLES);
    rp_wire_tables_free(list);
    assert_fails(
        rp_wire_read_status(alloc, bytes, 2 * (RP_WIRE_MAX_TABLES + (size_t)1), &list, &err),
        RP_NO_RESOURCE, &err, "10000 tables");
    free(bytes);
}

/* A dict of one long key, in which there are `leaves` leaves: their paths all begin with it. */
static rp_signature *make_wide_signature(const char *key, uint32_t leaves)
{
    rp_nest_node *nodes = calloc(leaves + 2, sizeof *nodes);
    rp_signature *signature = NULL;
    rp_error err = {0};

    nodes[0] = (rp_nest_node){.kind = RP_NEST_DICT, .child_count = 1};
    nodes[1] = (rp_nest_node){.kind = RP_NEST_LIST, .key = key, .child_count = leaves};
    for (uint32_t i = 0; i < leaves; i++)
        nodes[i + 2] = (rp_nest_node){.kind = RP_NEST_LEAF, .spec = {NULL, RP_INT64, {0, {0}}}};
    assert_ok_err(rp_signature_new(rp_allocator_default(), nodes, leaves + 2, &signature, &err),
                  &err);
    free(nodes);
    return signature;
}

static void all_signatures_together_have_a_limit_issue_20(void **state)
{
    enum { TABLES = 200 };
    char key[201];
    rp_signature *signature;
    rp_table_info *tables = calloc(TABLES, sizeof *tables);
    rp_wire_tables *list = NULL;
    rp_error err = {0};
    rp_buf out;

    (void)state;
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    signature = make_wide_signature(key, 4096); /* more than 1.5 MB in memory */
    for (int i = 0; i < TABLES; i++)
        tables[i] = (rp_table_info){.name = "t", .max_size = 1, .signature = signature};
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_server_info(&out, state_id, tables, TABLES);
    assert_fails(
        rp_wire_read_server_info(rp_allocator_default(), out.data, out.size, NULL, &list, &err),
        RP_NO_RESOURCE, &err, "signatures");
    rp_buf_deinit(&out);
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_server_info(&out, state_id, tables, 20);
    assert_ok_err(
        rp_wire_read_server_info(rp_allocator_default(), out.data, out.size, NULL, &list, &err),
        &err);
    rp_wire_tables_free(list);
    rp_buf_deinit(&out);
    rp_signature_unref(signature);
    free(tables);
}

static void keys_of_one_response_have_a_limit_issue_20(void **state)
{
    size_t size = 20 << 20, count = 7;
    uint8_t *data = calloc(1, size);
    rp_error err = {0};

    (void)state;
    data[0] = 0x0a; /* all that follows is packed keys of one byte, each 0 */
    memcpy(data + 1, (uint8_t[]){0xfb, 0xff, 0xff, 0x09}, 4); /* size - 5 */
    assert_fails(rp_wire_read_insert_response(data, size, &count, &err), RP_NO_RESOURCE, &err,
                 "16777216");
    assert_int_equal(count, 7);
    free(data);
}

static void keys_are_confirmed_packed_or_not(void **state)
{
    uint64_t keys[] = {2, 0, UINT64_MAX, 300}, read[8];
    rp_test_bytes b = rp_test_bytes_of("0a01 02"),
                  mixed = rp_test_bytes_of("0801 0a020203 0804");
    rp_test_bytes bad = rp_test_bytes_of("0a01 80");
    rp_error err = {0};
    size_t count;
    rp_buf out;

    (void)state;
    assert_ok(rp_wire_read_insert_response(b.data, b.size, &count, NULL));
    rp_wire_insert_response_keys(b.data, b.size, read);
    assert_true(count == 1 && read[0] == 2);
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_insert_response(&out, keys, COUNT_OF(keys));
    assert_ok(rp_wire_read_insert_response(out.data, out.size, &count, NULL));
    assert_int_equal(count, COUNT_OF(keys));
    rp_wire_insert_response_keys(out.data, out.size, read);
    assert_memory_equal(read, keys, sizeof keys);
    assert_ok(rp_wire_read_insert_response(mixed.data, mixed.size, &count, NULL));
    rp_wire_insert_response_keys(mixed.data, mixed.size, read);
    assert_true(count == 4 && read[0] == 1 && read[1] == 2 && read[2] == 3 && read[3] == 4);
    assert_fails(rp_wire_read_insert_response(bad.data, bad.size, &count, &err), RP_CORRUPT,
                 &err, "InsertStreamResponse");
    rp_buf_deinit(&out);
}

static void paths_and_counts_are_read(void **state)
{
    rp_test_bytes none = rp_test_bytes_of("0a02 c328"), cut = rp_test_bytes_of("08");
    rp_error err = {0};
    rp_string path;
    int64_t found;
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_checkpoint_response(&out, "/tmp/checkpoint");
    assert_ok(rp_wire_read_checkpoint_response(out.data, out.size, &path, NULL));
    assert_true(path.size == 15 && memcmp(path.data, "/tmp/checkpoint", 15) == 0);
    assert_ok(rp_wire_read_checkpoint_response(NULL, 0, &path, NULL));
    assert_int_equal(path.size, 0);
    assert_fails(rp_wire_read_checkpoint_response(none.data, none.size, &path, &err),
                 RP_CORRUPT, &err, "UTF-8");
    assert_fails(rp_wire_read_checkpoint_response(cut.data, cut.size, &path, &err), RP_CORRUPT,
                 &err, "CheckpointResponse");
    rp_buf_clear(&out);
    rp_wire_write_found(&out, 12345);
    assert_ok(rp_wire_read_found(out.data, out.size, &found, NULL));
    assert_int_equal(found, 12345);
    assert_ok(rp_wire_read_found(NULL, 0, &found, NULL));
    assert_int_equal(found, 0);
    assert_fails(rp_wire_read_found(cut.data, cut.size, &found, &err), RP_CORRUPT, &err, "");
    rp_buf_deinit(&out);
}

static void waiting_calls_are_described(void **state)
{
    enum { MS = 1000000 };
    rp_waiting calls[3] = {
        {.is_insert = true,
         .wanted = 5,
         .done = 2,
         .waiting_ns = 7 * MS,
         .until_ns = RP_FOREVER},
        {.wanted = 1, .waiting_ns = 8 * MS, .until_ns = 1000 * MS + 500 * MS},
        {.wanted = 3, .until_ns = 5}, /* it is over already */
    };
    const rp_wire_caller callers[3] = {{"10.0.0.1:5", 7}, {"this process", 0}, {NULL, 8}};
    rp_wire_waiting read[3];
    rp_wire_blocked found = {.calls = read, .capacity = 3};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(calls[i].why, sizeof calls[i].why, "because of %zu", i);
        rp_wire_write_waiting_call(&out, names[i], &calls[i], &callers[i], 1000 * MS);
    }
    rp_wire_write_waiting_total(&out, 17);
    assert_ok(rp_wire_read_blocked(out.data, out.size, 2000 * MS, &found, NULL));
    assert_true(found.count == 3 && found.total == 17);
    for (size_t i = 0; i < 3; i++) {
        const rp_waiting *w = &read[i].waiting;
        assert_int_equal(read[i].table.size, strlen(names[i]));
        assert_memory_equal(read[i].table.data, names[i], strlen(names[i]));
        assert_true(w->is_insert == calls[i].is_insert && w->wanted == calls[i].wanted);
        assert_true(w->done == calls[i].done && w->waiting_ns == calls[i].waiting_ns);
        assert_string_equal(w->why, calls[i].why);
        assert_int_equal(read[i].client_id, callers[i].id);
        assert_int_equal(read[i].client.size,
                         strlen(callers[i].address ? callers[i].address : ""));
    }
    assert_memory_equal(read[0].client.data, callers[0].address, read[0].client.size);
    assert_true(read[0].waiting.until_ns == RP_FOREVER);
    assert_true(read[1].waiting.until_ns == 2500 * (int64_t)MS);
    assert_true(read[2].waiting.until_ns == 2000 * (int64_t)MS);
    found.capacity = 1;
    assert_ok(rp_wire_read_blocked(out.data, out.size, 0, &found, NULL));
    assert_true(found.count == 1 && found.total == 17);
    rp_buf_deinit(&out);
}

static void a_sentence_that_is_too_long_is_cut_between_characters(void **state)
{
    uint8_t bytes[1000] = {0x0a, 0, 0, 0x3a, 0, 0};
    size_t length = 600;
    rp_wire_waiting read;
    rp_wire_blocked found = {.calls = &read, .capacity = 1};

    (void)state;
    for (size_t i = 0; i < length; i += 2) memcpy(bytes + 6 + i, "\xc3\xa4", 2);
    bytes[1] = (uint8_t)((length + 3) | 0x80), bytes[2] = (uint8_t)((length + 3) >> 7);
    bytes[4] = (uint8_t)(length | 0x80), bytes[5] = (uint8_t)(length >> 7);
    assert_ok(rp_wire_read_blocked(bytes, length + 6, 0, &found, NULL));
    assert_int_equal(strlen(read.waiting.why), (sizeof read.waiting.why - 1) / 2 * 2);
    /* and a wait of ages is one without end */
    rp_test_bytes ages = rp_test_bytes_of("0a0a 30ffffffffffffffff7f 1000");
    assert_ok(rp_wire_read_blocked(ages.data, ages.size, 99, &found, NULL));
    assert_true(read.waiting.until_ns == RP_FOREVER);
}

static bool is_expected(rp_status st)
{
    return st == RP_OK || st == RP_CORRUPT || st == RP_NO_RESOURCE;
}

static void try_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    rp_wire_waiting waiting[4];
    rp_wire_blocked blocked = {.calls = waiting, .capacity = 4};
    rp_wire_tables *list = NULL;
    size_t count;
    uint64_t *keys;
    rp_string path;
    int64_t found;

    assert_non_null(copy);
    if (size > 0) memcpy(copy, data, size);
    if (rp_wire_read_insert_response(copy, size, &count, NULL) == RP_OK) {
        keys = malloc((count + 1) * sizeof *keys);
        rp_wire_insert_response_keys(copy, size, keys);
        free(keys);
    }
    assert_true(is_expected(rp_wire_read_checkpoint_response(copy, size, &path, NULL)));
    assert_true(is_expected(rp_wire_read_found(copy, size, &found, NULL)));
    assert_true(is_expected(rp_wire_read_blocked(copy, size, 5, &blocked, NULL)));
    if (rp_wire_read_server_info(rp_allocator_default(), copy, size, NULL, &list, NULL) ==
        RP_OK)
        rp_wire_tables_free(list);
    if (rp_wire_read_status(rp_allocator_default(), copy, size, &list, NULL) == RP_OK)
        rp_wire_tables_free(list);
    free(copy);
}

static void damaged_responses_do_no_harm(void **state)
{
    rp_signature *signature = make_signature();
    rp_waiting call = {.wanted = 1, .until_ns = 5, .why = "so"};
    rp_table_info tables[4];
    rp_buf out;
    rp_rng rng;

    (void)state;
    make_tables(tables, signature);
    rp_rng_init(&rng, 1);
    rp_buf_init(&out, rp_allocator_default());
    for (int kind = 0; kind < 3; kind++) {
        rp_buf_clear(&out);
        if (kind == 0) rp_wire_write_server_info(&out, state_id, tables, 4);
        if (kind == 1)
            for (size_t i = 0; i < 4; i++) rp_wire_write_table_status(&out, &tables[i]);
        if (kind == 2)
            rp_wire_write_waiting_call(&out, "t", &call, &(rp_wire_caller){"a:1", 5}, 0);
        for (size_t size = 0; size <= out.size; size++) try_bytes(out.data, size);
        for (size_t round = 0; round < rp_test_length(20000, 3000); round++) {
            size_t at = rp_rng_below(&rng, out.size);
            uint8_t was = out.data[at];
            out.data[at] ^= (uint8_t)(1u << rp_rng_below(&rng, 8));
            try_bytes(out.data, out.size);
            if (rp_rng_below(&rng, 4) != 0) out.data[at] = was; /* damage adds up */
        }
    }
    rp_buf_deinit(&out);
    rp_signature_unref(signature);
}

static rp_status read_tables(const rp_allocator *alloc)
{
    rp_signature *signature = make_signature();
    rp_table_info tables[4];
    rp_wire_tables *list = NULL;
    rp_error err = {0};
    rp_status st;
    rp_buf out;

    make_tables(tables, signature);
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_server_info(&out, state_id, tables, 4);
    st = rp_wire_read_server_info(alloc, out.data, out.size, NULL, &list, &err);
    if (st == RP_OK) {
        assert_non_null(list->tables[1].signature);
        rp_wire_tables_free(list);
    } else {
        assert_int_equal(err.code, st);
    }
    rp_buf_deinit(&out);
    rp_signature_unref(signature);
    return st;
}

static void running_out_of_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    rp_test_survives_oom(read_tables);
}

RP_TESTS(answers)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_info_and_status_are_merged_per_table),
        cmocka_unit_test(no_tables_are_an_empty_list),
        cmocka_unit_test(unknown_selectors_and_signatures_of_other_servers_are_accepted),
        cmocka_unit_test(inconsistent_table_lists_are_corrupt),
        cmocka_unit_test(the_number_of_tables_has_a_limit),
        cmocka_unit_test(all_signatures_together_have_a_limit_issue_20),
        cmocka_unit_test(keys_of_one_response_have_a_limit_issue_20),
        cmocka_unit_test(keys_are_confirmed_packed_or_not),
        cmocka_unit_test(paths_and_counts_are_read),
        cmocka_unit_test(waiting_calls_are_described),
        cmocka_unit_test(a_sentence_that_is_too_long_is_cut_between_characters),
        cmocka_unit_test(damaged_responses_do_no_harm),
        cmocka_unit_test(running_out_of_memory_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
