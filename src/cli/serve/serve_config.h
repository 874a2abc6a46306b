/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of `reprise serve`, from a file and from the command line.
 *
 * The file is read first and the flags after it, so that flags take precedence. A flag replaces
 * the same setting of the file; a table or limit replaces the one of the same name; the first
 * address or port replaces all addresses and ports of the file. Then rp_config_finish() fills
 * in defaults. */
#ifndef RP_CLI_SERVE_SERVE_CONFIG_H
#define RP_CLI_SERVE_SERVE_CONFIG_H

#include "cli/help/flags.h"
#include "cli/serve/table_spec.h"
#include "cli/text/arena.h"
#include "reprise/server.h"

/* The options, in the order in which help lists them. */
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

/* The data directory and its durability: `storage` in a file. */
typedef struct rp_storage_settings {
    const char *directory; /* NULL: no storage */
    int mode;              /* rp_durability */
    int64_t sync_ms;       /* the interval of RP_DURABLE_INTERVAL */
    int64_t checkpoint_ms; /* 0: on demand only */
    int64_t keep;          /* checkpoints */
    uint64_t max_memory;   /* of chunks; 0: no limit */
    bool salvage, accept_changes, no_final_checkpoint;
} rp_storage_settings;

typedef struct rp_config {
    rp_arena arena;  /* pointers below point into it, or to argv */
    uint64_t memory; /* bytes that 100 % stands for */
    bool from_flags; /* rp_config_set() is called for a flag, not for the file */

    const char *file; /* NULL: none */
    bool check_only;

    rp_table_settings *tables; /* their signatures are owned */
    size_t table_count, table_capacity;
    bool default_table; /* no table was configured */
    uint64_t max_bytes;
    int policy; /* rp_budget_policy */
    uint64_t seed;
    rp_storage_settings storage;

    const char *addresses[RP_CONFIG_MAX_ADDRESSES];
    rp_place address_places[RP_CONFIG_MAX_ADDRESSES];
    size_t address_count;
    int64_t port; /* -1: not given */
    int64_t loops;
    rp_server_limits limits; /* zeros are defaults */
    rp_server_security security;

    int log_level; /* rp_log_level */
    int log_format;
    int64_t drain_ms;

    uint32_t given[2]; /* a bit for each option that is set: [0] in the file, [1] by flags */
    rp_place places[RP_SERVE_OPTIONS]; /* where each option was last set */
} rp_config;

/* Initialises an empty configuration. `alloc` NULL: the C library's; borrowed otherwise.
 * `memory` is that of rp_memory_size(). */
void rp_config_init(rp_config *config, const rp_allocator *alloc, uint64_t memory);
void rp_config_deinit(rp_config *config);

/* Returns the key of an option in a file: "tables", "limits", or the name of the option with
 * '_' for '-', after "storage." if it is an option of storage. NULL if there is no memory. */
const char *rp_config_key(rp_config *config, rp_serve_option option);
bool rp_config_is_storage(rp_serve_option option);

/* Sets one option; the texts must live as long as the configuration. RP_SERVE_TABLE and
 * RP_SERVE_LIMIT take "replay:uniform:1000" and "name=value"; RP_SERVE_LISTEN adds an address.
 * RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_set(rp_config *config, rp_serve_option option,
                                     const rp_setting *value, rp_problem *problem);

/* Adds a table; a table of the flags replaces that of the same name in the file. Takes its
 * signature on success. RP_INVALID (the name occurs twice in the file, or twice in the flags),
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_add_table(rp_config *config, const rp_table_settings *table,
                                           rp_problem *problem);

/* Adds the addresses "fd:3", "fd:4", ... of `count` sockets that were passed to the process,
 * unless they are configured already. RP_INVALID (too many), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_add_sockets(rp_config *config, size_t count,
                                             rp_problem *problem);

/* Fills in defaults and checks settings against each other. Call it last. RP_INVALID,
 * RP_NO_RESOURCE.
 */
RP_NODISCARD rp_status rp_config_finish(rp_config *config, rp_problem *problem);

/* Creates the store with its tables, but without the default table if there is a data
 * directory: the caller creates it if the directory has no tables. Errors of the store get the
 * place of their setting. Returns owned. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_make_store(const rp_config *config, rp_store **out,
                                            rp_problem *problem);

#endif
