/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a table in a configuration. A table is configured by one line of text,
 *
 *   NAME:SAMPLER[:MAX_SIZE][,key=value...]
 *
 * or key by key from a file. SAMPLER is the name of the selector that chooses the items to
 * sample: one of the six of reprise/table.h, or "queue" or "stack". "queue" and "stack" also
 * determine the remover (the selector of the items to evict) and the rate limiter. */
#ifndef RP_CLI_SERVE_TABLE_SPEC_H
#define RP_CLI_SERVE_TABLE_SPEC_H

#include "cli/text/arena.h"
#include "cli/text/problem.h"
#include "reprise/table.h"

/* The keys, in the order in which a printed configuration lists them. */
typedef enum rp_table_key {
    RP_KEY_SAMPLER,
    RP_KEY_EXPONENT,
    RP_KEY_REMOVER,
    RP_KEY_REMOVER_EXPONENT,
    RP_KEY_MAX_SIZE,
    RP_KEY_MIN_SIZE,
    RP_KEY_SAMPLES_PER_INSERT,
    RP_KEY_ERROR_BUFFER,
    RP_KEY_MIN_DIFF,
    RP_KEY_MAX_DIFF,
    RP_KEY_MAX_TIMES_SAMPLED,
    RP_KEY_MAX_BYTES,
    RP_KEY_SOFT_LIMIT,
    RP_KEY_SEED,
    RP_TABLE_KEYS,
} rp_table_key;

/* Values of rp_table_settings.sampler in addition to the selectors. */
enum { RP_FORM_QUEUE = RP_MAX_HEAP + 1, RP_FORM_STACK, RP_FORMS };

/* The settings of a table. Borrows its texts. */
typedef struct rp_table_settings {
    const char *name;
    const char *title; /* begins error texts: "--table replay", "tables.replay" */
    rp_place place;
    uint32_t given; /* which keys were set, one bit each */
    int sampler, remover;
    double exponent, remover_exponent;
    double samples_per_insert, error_buffer, min_diff, max_diff;
    int64_t max_size, min_size, max_times_sampled;
    uint64_t max_bytes, seed;
    bool soft_limit;
    rp_signature *signature; /* released by the owner of this struct; NULL: none */
} rp_table_settings;

/* Returns the name of a key, as a static string. */
const char *rp_table_key_name(rp_table_key key);
/* Returns the key with that name, or RP_TABLE_KEYS if there is none. */
rp_table_key rp_table_key_find(const char *name);

enum { RP_TABLE_KEY_HINT_BYTES = 320 };
/* Writes a hint for an error about the unknown key `name`: the most similar key, as in ", did
 * you mean 'max_size'?". If no key is similar, the hint lists the keys from `first` on. `more`
 * is a further key that is allowed, which is not in rp_table_key, or NULL. Returns `text`. */
char *rp_table_key_hint(const char *name, rp_table_key first, const char *more,
                        char text[RP_TABLE_KEY_HINT_BYTES]);

/* Initialises settings in which no key is set. Borrows the texts. */
void rp_table_settings_init(rp_table_settings *table, const char *name, const char *title,
                            const rp_place *place);

/* Sets one key. `memory` is the number of bytes that "max_bytes=100%" means; if it is 0,
 * percentages are refused. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_table_settings_set(rp_table_settings *table, rp_table_key key,
                                             const rp_setting *value, uint64_t memory,
                                             rp_problem *problem);

/* Parses "SAMPLER[:MAX_SIZE][,key=value...]" and sets these keys. Copies texts to the arena.
 * Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_table_settings_parse(rp_table_settings *table, rp_arena *arena,
                                               const char *text, uint64_t memory,
                                               rp_problem *problem);

/* Initialises settings and parses a whole line, with the name. Until the name is known, error
 * texts begin with `title`, for example "--table". Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_table_spec_parse(rp_table_settings *table, rp_arena *arena,
                                           const char *title, const char *text, uint64_t memory,
                                           rp_problem *problem);

/* Fills in defaults and checks that the values fit together. Must be called once, after all
 * keys are set. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_table_settings_finish(rp_table_settings *table, rp_problem *problem);

/* Returns the options for rp_store_add_table(); they borrow from `table`. */
rp_table_options rp_table_settings_options(const rp_table_settings *table);

/* Returns true if the key has an effect on this table. For example, the exponent has no effect
 * if the sampler is FIFO. Must be called after rp_table_settings_finish(). */
bool rp_table_key_matters(const rp_table_settings *table, rp_table_key key);

/* Writes the value of a key as in a configuration file. `size` must be >= 32. Returns
 * `text`. */
char *rp_table_key_text(const rp_table_settings *table, rp_table_key key, char *text,
                        size_t size);

enum { RP_TABLE_HINT_BYTES = 64 };

/* Returns a hint to append to `err`, an error about the options of this table. If error_buffer
 * was set and makes min_diff and max_diff too close to each other, writes a hint with the
 * smallest possible error_buffer to `text` and returns `text`. Otherwise returns "". */
const char *rp_table_settings_hint(const rp_table_settings *table, const rp_error *err,
                                   char *text, size_t size);

/* Describes in words when inserts and samples of this table have to wait. Must be called after
 * rp_table_settings_finish(). Cuts the text to `size` bytes. Returns `text`. */
char *rp_table_limiter_text(const rp_table_settings *table, char *text, size_t size);

#endif
