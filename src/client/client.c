/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and frees clients, and creates their live part in this process or a child of it.
 *
 * Invariants:
 *   C1  `live` belongs to the process whose generation it has; no other process uses it;
 *   C2  channel_count is the number of shards once fill_live() succeeded; 0 for a store;
 *   C3  signature_count <= signature_capacity, and each table is cached once (under live->mu).
 */
#include "client/client.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

static const int64_t MS = 1000000;

enum {
    QUIET_TIMES = 16,
    MAX_QUIET_MS = 10000,
    AGAIN_MS = 1000, /* for a signature that is known: a server that is there answers at once */
};

static void forget_known(const rp_client *client, rp_known_signature *known)
{
    rp_signature_unref(known->signature);
    rp_release(&client->alloc, known->table, strlen(known->table) + 1);
}

static void free_channels(void *arg)
{
    rp_client_live *live = arg;

    for (size_t i = 0; i < live->channel_count; i++) rp_channel_free(live->channels[i]);
}

static void free_live(rp_client *client, rp_client_live *live)
{
    size_t shards = client->addresses.count;

    assert(live->generation == rp_runtime_generation()); /* C1 */
    if (live->channel_count > 0) rp_runtime_run_on_loop(live->runtime, free_channels, live);
    rp_runtime_put(live->runtime);
    rp_tls_unref(live->tls);
    for (size_t i = 0; i < live->signature_count; i++)
        forget_known(client, &live->signatures[i]);
    rp_release(&client->alloc, live->signatures,
               live->signature_capacity * sizeof *live->signatures);
    rp_release(&client->alloc, live->channels, shards * sizeof *live->channels);
    rp_mutex_deinit(&live->mu);
    rp_release(&client->alloc, live, sizeof *live);
}

static rp_status add_channel(rp_client *client, rp_client_live *live, rp_error *err)
{
    const rp_client_options *o = &client->options;
    size_t i = live->channel_count;
    const rp_shard_address *shard = &client->addresses.shards[i];
    const rp_channel_options options = {
        .alloc = &client->alloc,
        .text = shard->text,
        .shared_memory_off = o->shared_memory_off,
        .address = &shard->address,
        .tls = live->tls,
        .server_name = o->server_name != NULL ? o->server_name : shard->name,
        .authorization = o->token,
        .connect_timeout_ns = o->connect_timeout_ms * MS,
        .retry_min_ns = o->retry_min_ms * MS,
        .retry_max_ns = o->retry_max_ms * MS,
        .ping_ns = o->ping_ms * MS,
        .ping_timeout_ns = o->ping_timeout_ms * MS,
        .message_bytes = o->message_bytes,
        .seed = live->seed + i,
    };
    rp_status st = rp_channel_new(live->runtime, &options, &live->channels[i], err);

    if (st == RP_OK) live->channel_count++;
    assert(live->channel_count <= client->addresses.count); /* C2 */
    return st;
}

static rp_status fill_live(rp_client *client, rp_client_live *live, rp_error *err)
{
    const rp_client_options *o = &client->options;
    size_t shards = client->addresses.count;
    rp_status st = rp_runtime_get(&live->runtime, err);

    if (st != RP_OK || client->store != NULL) return st;
    live->channels = rp_alloc_array(&client->alloc, shards, sizeof *live->channels);
    if (live->channels == NULL) return rp_fail_memory(err, shards * sizeof *live->channels);
    if (o->tls)
        st = rp_tls_new_client(&client->alloc,
                               &(rp_tls_client_files){.ca = o->ca_file,
                                                      .certificate = o->certificate_file,
                                                      .key = o->key_file},
                               &live->tls, err);
    while (st == RP_OK && live->channel_count < shards) st = add_channel(client, live, err);
    assert(st != RP_OK || live->channel_count == shards); /* C2 */
    return st;
}

static rp_status make_live(rp_client *client, bool is_child, rp_client_live **out,
                           rp_error *err)
{
    rp_client_live *live = rp_alloc_zero(&client->alloc, sizeof *live);
    rp_status st;

    if (live == NULL) return rp_fail_memory(err, sizeof *live);
    live->generation = rp_runtime_generation();
    atomic_init(&live->left_out, 0);
    live->seed = is_child ? rp_system_seed() : client->seed;
    rp_mutex_init(&live->mu, RP_RANK_CLIENT);
    st = fill_live(client, live, err);
    if (st == RP_OK)
        *out = live;
    else
        free_live(client, live);
    return st;
}

rp_status rp_client_get_live(rp_client *client, rp_client_live **out, rp_error *err)
{
    /* Acquire: another thread may have created it. */
    rp_client_live *live = atomic_load_explicit(&client->live, memory_order_acquire);
    uint64_t generation = rp_runtime_generation();
    rp_status st = RP_OK;

    if (live == NULL || live->generation != generation) {
        rp_runtime_lock_clients();
        live = atomic_load_explicit(&client->live, memory_order_relaxed);
        if (live == NULL || live->generation != generation)
            st = make_live(client, live != NULL, &live, err);
        /* The parent's live part leaks in the child: see runtime.c. */
        if (st == RP_OK) atomic_store_explicit(&client->live, live, memory_order_release);
        rp_runtime_unlock_clients();
    }
    assert(st != RP_OK || live->generation == generation); /* C1 */
    if (st == RP_OK) *out = live;
    return st;
}

/* Copies text to `*at`, which advances past its terminator. Returns the copy. */
static const char *copy(char **at, const char *text)
{
    char *here = *at;
    size_t bytes;

    if (text == NULL) return NULL;
    bytes = strlen(text) + 1;
    memcpy(here, text, bytes);
    *at += bytes;
    return here;
}

/* Returns the bytes that copy() needs. */
static size_t length(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static rp_status take_strings(rp_client *client, const rp_client_options *o, rp_error *err)
{
    static const char bearer[] = "Bearer ";
    rp_client_options *own = &client->options;
    char *at;

    client->strings_bytes = length(o->ca_file) + length(o->certificate_file) +
                            length(o->key_file) + length(o->server_name) + length(o->token) +
                            sizeof bearer;
    client->strings = at = rp_alloc(&client->alloc, client->strings_bytes);
    if (at == NULL) return rp_fail_memory(err, client->strings_bytes);
    own->ca_file = copy(&at, o->ca_file);
    own->certificate_file = copy(&at, o->certificate_file);
    own->key_file = copy(&at, o->key_file);
    own->server_name = copy(&at, o->server_name);
    if (o->token == NULL) return RP_OK;
    own->token = copy(&at, bearer);
    at--; /* overwrite its terminator */
    (void)copy(&at, o->token);
    assert(at <= client->strings + client->strings_bytes);
    return RP_OK;
}

enum { MAX_TOKEN_BYTES = 1024 }; /* as in the server (server/auth/auth.h) */

/* A header with "Bearer " and the token is sent: no spaces, as in the token68 of RFC 6750, and
 * otherwise any character of ASCII that can be printed. */
static rp_status check_token(const char *token, rp_error *err)
{
    if (token[0] == '\0')
        return rp_fail(err, RP_INVALID,
                       "the token is empty: give a token, or leave it out to send none");
    for (const char *c = token; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            return rp_fail(err, RP_INVALID,
                           "the token has %s 0x%02x at position %zu: a token is ASCII text "
                           "from '!' to '~', without spaces",
                           *c == ' ' ? "a space," : "the byte", (unsigned)(unsigned char)*c,
                           (size_t)(c - token));
    if (strlen(token) > MAX_TOKEN_BYTES)
        return rp_fail(
            err, RP_INVALID,
            "the token has %zu characters: a token has at most %d, and its hash is in "
            "the server's tokens file",
            strlen(token), MAX_TOKEN_BYTES);
    return RP_OK;
}

static rp_status check(const rp_client_options *o, rp_error *err)
{
    static const int64_t most_ms = (int64_t)1000 * 3600 * 24 * 365;

    if (o->connect_timeout_ms < 0 || o->connect_timeout_ms > most_ms)
        return rp_fail(err, RP_INVALID, "connect_timeout_ms is %lld, it must be 0 or more",
                       (long long)o->connect_timeout_ms);
    if (o->retry_min_ms < 0 || o->retry_min_ms > most_ms || o->retry_max_ms < 0 ||
        o->retry_max_ms > most_ms)
        return rp_fail(err, RP_INVALID,
                       "retry_min_ms is %lld and retry_max_ms %lld, both must "
                       "be 0 or more",
                       (long long)o->retry_min_ms, (long long)o->retry_max_ms);
    if (o->ping_ms < 0 || o->ping_ms > most_ms || o->ping_timeout_ms < 0 ||
        o->ping_timeout_ms > most_ms)
        return rp_fail(err, RP_INVALID,
                       "ping_ms is %lld and ping_timeout_ms %lld, both must be 0 or more",
                       (long long)o->ping_ms, (long long)o->ping_timeout_ms);
    if ((int)o->spread < RP_SPREAD_TURNS || o->spread > RP_SPREAD_KEYS)
        return rp_fail(err, RP_INVALID, "spread is %d, which is not a kind of spread",
                       (int)o->spread);
    return o->token != NULL ? check_token(o->token, err) : RP_OK;
}

/* Fills in the defaults of the limits on memory. */
static void fill_limits(rp_client_options *o)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

    if (o->item_bytes == 0) o->item_bytes = (size_t)1 << 30;
    if (o->batch_bytes == 0 && pages > 0 && page_bytes > 0)
        o->batch_bytes = (size_t)pages / 2 * (size_t)page_bytes;
    if (o->batch_bytes == 0) o->batch_bytes = (size_t)1 << 30;
}

/* Refuses an address that is given twice: its server would count as two shards. If an
 * address begins with "dns:", the user has written a name and not the addresses, so none are
 * compared. */
static rp_status refuse_twice(const rp_address_list *list, const char *addresses, rp_error *err)
{
    if (strstr(addresses, "dns:") != NULL) return RP_OK;
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(list->shards[i].text, list->shards[k].text) == 0)
                return rp_fail(err, RP_INVALID, "address '%s' is given twice",
                               list->shards[i].text);
    return RP_OK;
}

static rp_status new_client(rp_store *store, const char *addresses,
                            const rp_client_options *options, rp_client **out, rp_error *err)
{
    static const rp_client_options defaults;
    const rp_client_options *o = options != NULL ? options : &defaults;
    const rp_allocator *alloc = o->alloc != NULL ? o->alloc : rp_allocator_default();
    rp_client_live *live;
    rp_client *client;
    rp_status st = check(o, err);

    if (st != RP_OK) return st;
    client = rp_alloc_zero(alloc, sizeof *client);
    if (client == NULL) return rp_fail_memory(err, sizeof *client);
    client->alloc = *alloc;
    client->store = store;
    client->options = *o;
    client->options.alloc = &client->alloc;
    fill_limits(&client->options);
    client->options.tls =
        o->tls || o->ca_file != NULL || o->certificate_file != NULL || o->key_file != NULL;
    client->seed = o->seed != 0 ? o->seed : rp_system_seed();
    atomic_init(&client->live, NULL);
    st = take_strings(client, o, err);
    if (st == RP_OK && store == NULL)
        st = rp_address_list_parse(&client->alloc, addresses, &client->addresses, err);
    if (st == RP_OK && store == NULL) st = refuse_twice(&client->addresses, addresses, err);
    if (st == RP_OK) st = rp_client_get_live(client, &live, err);
    if (st != RP_OK) {
        rp_client_free(client);
        return st;
    }
    *out = client;
    return RP_OK;
}

rp_status rp_client_new(const char *addresses, const rp_client_options *options,
                        rp_client **out, rp_error *err)
{
    if (addresses == NULL) return rp_fail(err, RP_INVALID, "no addresses are given");
    return new_client(NULL, addresses, options, out, err);
}

rp_status rp_client_local(rp_store *store, const rp_client_options *options, rp_client **out,
                          rp_error *err)
{
    if (store == NULL) return rp_fail(err, RP_INVALID, "no store is given");
    return new_client(store, NULL, options, out, err);
}

void rp_client_free(rp_client *client)
{
    rp_client_live *live;

    if (client == NULL) return;
    live = atomic_load_explicit(&client->live, memory_order_acquire);
    if (live != NULL && live->generation == rp_runtime_generation()) free_live(client, live);
    if (client->addresses.shards != NULL) rp_address_list_deinit(&client->addresses);
    rp_release(&client->alloc, client->strings, client->strings_bytes);
    rp_allocator alloc = client->alloc;
    rp_release(&alloc, client, sizeof *client);
}

static void give_up_channels(void *arg)
{
    rp_client_live *live = arg;

    for (size_t i = 0; i < live->channel_count; i++) rp_channel_give_up(live->channels[i]);
}

void rp_client_give_up(rp_client *client)
{
    rp_client_live *live = atomic_load_explicit(&client->live, memory_order_acquire);

    if (live == NULL || live->generation != rp_runtime_generation() || live->channel_count == 0)
        return;
    atomic_store(&live->has_given_up, true);
    rp_runtime_run_on_loop(live->runtime, give_up_channels, live);
}

bool rp_client_has_given_up(const rp_client *client)
{
    const rp_client_live *live = atomic_load_explicit(&client->live, memory_order_acquire);

    return live != NULL && live->generation == rp_runtime_generation() &&
           atomic_load(&live->has_given_up);
}

size_t rp_client_shard_count(const rp_client *client)
{
    return client->store != NULL ? 1 : client->addresses.count;
}

const char *rp_client_shard_address(const rp_client *client, size_t shard)
{
    if (client->store != NULL) return "local";
    return client->addresses.shards[shard].text;
}

void rp_client_text_free(rp_client *client, char *text)
{
    if (text != NULL) rp_release(&client->alloc, text, strlen(text) + 1);
}

static rp_known_signature *find_known(rp_client_live *live, const char *table)
{
    for (size_t i = 0; i < live->signature_count; i++)
        if (strcmp(live->signatures[i].table, table) == 0) return &live->signatures[i];
    return NULL;
}

/* Replaces a signature in the cache: the table may have been created anew. */
static void renew(rp_known_signature *known, const rp_table_info *info)
{
    if (known->signature == info->signature) return;
    rp_signature_unref(known->signature);
    known->signature = info->signature != NULL ? rp_signature_ref(info->signature) : NULL;
}

/* Adds a signature to the cache. Without memory it will be queried again. */
static void remember(rp_client *client, rp_client_live *live, const rp_table_info *info)
{
    size_t bytes = strlen(info->name) + 1, capacity = live->signature_capacity;
    rp_known_signature *known = find_known(live, info->name);
    char *name;

    if (known != NULL) {
        renew(known, info);
        return;
    }
    if (live->signature_count == capacity) {
        size_t more = capacity == 0 ? 8 : 2 * capacity;
        if (!rp_resize_array(&client->alloc, &live->signatures, capacity, more,
                             sizeof *live->signatures))
            return;
        live->signature_capacity = more;
    }
    name = rp_alloc(&client->alloc, bytes);
    if (name == NULL) return;
    memcpy(name, info->name, bytes);
    if (info->signature != NULL) (void)rp_signature_ref(info->signature);
    assert(live->signature_count < live->signature_capacity); /* C3 */
    live->signatures[live->signature_count++] = (rp_known_signature){name, info->signature};
}

/* Gets a signature from the cache. Returns false if it is not there. */
static bool find_cached(rp_client_live *live, const char *table, rp_signature **out)
{
    rp_known_signature *known;

    *out = NULL;
    rp_mutex_lock(&live->mu);
    known = find_known(live, table);
    if (known != NULL && known->signature != NULL) *out = rp_signature_ref(known->signature);
    rp_mutex_unlock(&live->mu);
    return known != NULL;
}

/* Adds the signatures of `tables` to the cache, and gets that of `table`. */
static rp_status take_signatures(rp_client *client, rp_client_live *live,
                                 const rp_client_tables *tables, const char *table,
                                 rp_signature **out, rp_error *err)
{
    rp_signature *found = NULL;
    bool is_found = false;

    for (size_t i = tables->count; i-- > 0;) { /* that of the first shard stays */
        const rp_table_info *info = &tables->tables[i].info;

        rp_mutex_lock(&live->mu);
        remember(client, live, info);
        rp_mutex_unlock(&live->mu);
        if (strcmp(info->name, table) != 0) continue;
        is_found = true;
        rp_signature_unref(found);
        found = info->signature != NULL ? rp_signature_ref(info->signature) : NULL;
    }
    if (!is_found) return rp_client_no_table(tables, table, err);
    *out = found;
    return RP_OK;
}

rp_status rp_client_signature(rp_client *client, const char *table, rp_wait wait,
                              rp_signature **out, rp_error *err)
{
    rp_client_tables *tables = NULL;
    rp_client_live *live;
    rp_status st = rp_client_get_live(client, &live, err);

    if (st != RP_OK || find_cached(live, table, out)) return st;
    st = rp_client_get_tables(client, wait, &tables, err);
    if (st == RP_OK) st = take_signatures(client, live, tables, table, out, err);
    rp_client_tables_free(tables);
    return st;
}

rp_status rp_client_signature_again(rp_client *client, const char *table, rp_wait wait,
                                    rp_signature **out, rp_error *err)
{
    rp_client_tables *tables = NULL;
    rp_signature *known = NULL;
    rp_client_live *live;
    rp_status st = rp_client_get_live(client, &live, err);

    if (st != RP_OK) return st;
    if (!find_cached(live, table, &known))
        return rp_client_signature(client, table, wait, out, err);
    st = rp_client_get_tables_there(client, rp_wait_ms(AGAIN_MS), &tables, err);
    if (st == RP_OK) {
        rp_signature_unref(known);
        st = take_signatures(client, live, tables, table, out, err);
        rp_client_tables_free(tables);
        return st;
    }
    *out = known;
    return RP_OK;
}

static bool is_quiet(rp_client_live *live)
{
    bool is;

    rp_mutex_lock(&live->mu);
    is = rp_now_ns() < live->quiet_until_ns;
    rp_mutex_unlock(&live->mu);
    return is;
}

/* No server has responded to a request of this time: the next one is made after QUIET_TIMES as
 * long. */
static void be_quiet(rp_client_live *live, int64_t since_ns)
{
    int64_t now_ns = rp_now_ns(), pause_ns = QUIET_TIMES * (now_ns - since_ns);

    if (pause_ns > MAX_QUIET_MS * MS) pause_ns = MAX_QUIET_MS * MS;
    rp_mutex_lock(&live->mu);
    live->quiet_until_ns = now_ns + pause_ns;
    rp_mutex_unlock(&live->mu);
}

rp_status rp_client_signature_soon(rp_client *client, const char *table, rp_wait wait,
                                   rp_signature **out, rp_error *err)
{
    const int64_t since_ns = rp_now_ns();
    rp_client_tables *tables = NULL;
    rp_client_live *live;
    rp_status st = rp_client_get_live(client, &live, err);

    if (st != RP_OK || find_cached(live, table, out)) return st;
    /* Without a wait, the request would end before it began. */
    if (is_quiet(live) || (client->store == NULL && wait.until_ns <= since_ns))
        return rp_fail(err, RP_DEADLINE, "no server has responded in time");
    st = rp_client_get_tables_there(client, wait, &tables, err);
    if (st == RP_OK)
        st = take_signatures(client, live, tables, table, out, err);
    else if (st == RP_UNAVAILABLE || st == RP_DEADLINE)
        be_quiet(live, since_ns);
    rp_client_tables_free(tables);
    return st;
}

bool rp_client_is_refused(rp_client *client, char *text, size_t size)
{
    rp_client_live *live = NULL;

    if (client->store != NULL || rp_client_get_live(client, &live, NULL) != RP_OK) return false;
    for (size_t i = 0; i < live->channel_count; i++)
        if (!rp_channel_is_refused(live->channels[i])) return false;
    rp_channel_why(live->channels[0], text, size);
    return true;
}

void rp_client_forget_signature(rp_client *client, const char *table)
{
    rp_known_signature *known;
    rp_client_live *live;

    if (rp_client_get_live(client, &live, NULL) != RP_OK) return;
    rp_mutex_lock(&live->mu);
    known = find_known(live, table);
    if (known != NULL) {
        assert(live->signature_count > 0 && known < live->signatures + live->signature_count);
        forget_known(client, known);
        *known = live->signatures[--live->signature_count];
    }
    rp_mutex_unlock(&live->mu);
}
