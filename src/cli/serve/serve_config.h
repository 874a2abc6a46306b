/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of `reprise serve`, from a file and from the flags of the command line.
 *
 * The file is applied first and the flags after it, so the flags take precedence. A flag
 * replaces the same setting of the file. A table or limit among the flags replaces the table or
 * limit with the same name. The first address or port among the flags replaces all addresses
 * and ports of the file. In the end, rp_config_finish() fills in defaults. */
#ifndef RP_CLI_SERVE_SERVE_CONFIG_H
#define RP_CLI_SERVE_SERVE_CONFIG_H

#include "cli/help/flags.h"
#include "cli/serve/table_spec.h"
#include "cli/text/arena.h"
#include "reprise/server.h"

/* The options, in the order of --help. An option is a setting with a flag and, for most, a key
 * in the file. */
typedef enum rp_serve_option {
    RP_SERVE_CONFIG,
    RP_SERVE_CHECK_CONFIG,
    RP_SERVE_TABLE,
    RP_SERVE_MAX_BYTES,
    RP_SERVE_POLICY,
    RP_SERVE_SEED,
    RP_SERVE_DATA, /* the first option of `storage` */
    RP_SERVE_DURABILITY,
    RP_SERVE_SYNC_EVERY,
    RP_SERVE_CHECKPOINT_EVERY,
    RP_SERVE_KEEP_CHECKPOINTS,
    RP_SERVE_NO_FINAL_CHECKPOINT,
    RP_SERVE_MAX_MEMORY,
    RP_SERVE_SALVAGE,
    RP_SERVE_ACCEPT_CHANGES, /* the last option of `storage` */
    RP_SERVE_LISTEN,
    RP_SERVE_PORT,
    RP_SERVE_LOOPS,
    RP_SERVE_LIMIT,
    RP_SERVE_TLS_CERT,
    RP_SERVE_TLS_KEY,
    RP_SERVE_TLS_CLIENT_CA,
    RP_SERVE_TLS_REQUIRE_CLIENT_CERT,
    RP_SERVE_TOKENS,
    RP_SERVE_INSECURE,
    RP_SERVE_NO_RESET,
    RP_SERVE_PAGE_HOSTS,
    RP_SERVE_LOG_LEVEL,
    RP_SERVE_LOG_FORMAT,
    RP_SERVE_DRAIN_SECONDS,
    RP_SERVE_OPTIONS,
} rp_serve_option;

extern const rp_option rp_serve_options[RP_SERVE_OPTIONS];

enum { RP_CONFIG_MAX_ADDRESSES = 16, RP_CONFIG_MAX_TABLES = 4096 };

typedef enum rp_log_format { RP_LOG_TEXT = 0, RP_LOG_JSON = 1 } rp_log_format;

/* The data directory and its durability: the map `storage` in the file. */
typedef struct rp_storage_settings {
    const char *directory; /* NULL: no data directory */
    int mode;              /* rp_durability */
    int64_t sync_ms;       /* time between syncs with RP_DURABLE_INTERVAL */
    int64_t checkpoint_ms; /* time between checkpoints; 0: only on demand */
    int64_t keep;          /* number of checkpoints to keep */
    uint64_t max_memory;   /* bytes of chunks to keep in memory; 0: no limit */
    bool salvage, accept_changes, no_final_checkpoint;
} rp_storage_settings;

typedef struct rp_config {
    rp_arena arena;  /* owns the strings to which the pointers below point, except those of
                        argv */
    uint64_t memory; /* number of bytes that the value "100%" of a size means */
    bool from_flags; /* true while flags are applied, false while the file is */

    const char *file; /* the file of --config; NULL: none */
    bool check_only;  /* --check-config */

    rp_table_settings *tables; /* owns their signatures */
    size_t table_count, table_capacity;
    bool default_table; /* no table was configured, so `tables` has a default table */
    uint64_t max_bytes;
    int policy; /* rp_budget_policy */
    uint64_t seed;
    rp_storage_settings storage;

    const char *addresses[RP_CONFIG_MAX_ADDRESSES];
    rp_place address_places[RP_CONFIG_MAX_ADDRESSES];
    size_t address_count;
    int64_t port; /* value of --port; -1: not given */
    int64_t loops;
    rp_server_limits limits; /* 0 in a field: the default */
    rp_server_security security;

    int log_level; /* rp_log_level */
    int log_format;
    int64_t drain_ms;

    uint32_t given[2]; /* which options are set, one bit each: [0] in the file, [1] by flags */
    rp_place places[RP_SERVE_OPTIONS]; /* where each option was last set */
} rp_config;

/* Initialises an empty configuration. Borrows `alloc`; NULL means the C library's allocator.
 * `memory` is the result of rp_memory_size(). */
void rp_config_init(rp_config *config, const rp_allocator *alloc, uint64_t memory);
void rp_config_deinit(rp_config *config);

/* Returns the key of an option in the file: "tables", "limits", or the name of the option with
 * '_' for '-'. The keys of the options of the data directory begin with "storage.". Returns
 * NULL if memory runs out. */
const char *rp_config_key(rp_config *config, rp_serve_option option);
/* Returns true if the option's key is in the map `storage` of the file. */
bool rp_config_is_storage(rp_serve_option option);

/* Sets one option. The texts of `value` must outlive the configuration. A value of
 * RP_SERVE_TABLE is a table such as "replay:uniform:1000"; a value of RP_SERVE_LIMIT is
 * "name=value". RP_SERVE_LISTEN adds an address to the list. Errors: RP_INVALID,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_set(rp_config *config, rp_serve_option option,
                                     const rp_setting *value, rp_problem *problem);

/* Adds a table. A table of the flags replaces the file's table with the same name. On success,
 * takes over the ownership of table->signature. Returns RP_INVALID if the name occurs twice in
 * the file or twice in the flags. Other errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_add_table(rp_config *config, const rp_table_settings *table,
                                           rp_problem *problem);

/* Adds the addresses "fd:3", "fd:4", ... of the `count` sockets that were passed to the
 * process. Skips addresses that are configured already. Returns RP_INVALID if there are too
 * many addresses. Other errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_add_sockets(rp_config *config, size_t count,
                                             rp_problem *problem);

/* Fills in defaults and checks that the settings fit together. Must be called last. Errors:
 * RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_finish(rp_config *config, rp_problem *problem);

/* Creates the store with its tables; the caller owns it. If there is a data directory, does not
 * create the default table: the caller creates that table if the directory turns out to have no
 * tables. If the store reports an error, the problem names the position of the setting that
 * caused it. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_make_store(const rp_config *config, rp_store **out,
                                            rp_problem *problem);

#endif
