/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the state of tables, rate limiters and data directories as text and as JSON. Functions
 * with an argument `out` append to it. Pure functions. */
#ifndef RP_CLI_TEXT_INFO_PRINT_H
#define RP_CLI_TEXT_INFO_PRINT_H

#include "cli/text/text_buffer.h"
#include "reprise/client.h"

/* A server whose tables are missing, because it could not be reached. */
typedef struct rp_unreachable {
    const char *address; /* borrowed */
    char error[RP_ERROR_TEXT_BYTES];
} rp_unreachable;

/* The data to print, all borrowed. */
typedef struct rp_tables_view {
    const rp_client_table *tables;
    size_t count;
    const char *const *shards; /* addresses of the shards (servers) */
    size_t shard_count;
    const rp_client_durability *durability; /* of shards that report it; may be NULL */
    size_t durability_count;
    const rp_unreachable *unreachable; /* servers whose tables are missing; may be NULL */
    size_t unreachable_count;
} rp_tables_view;

/* Writes the durability of a shard (how it stores data on disk) as a sentence. Writes nothing
 * if the shard is not durable. */
void rp_durability_words(rp_text_buffer *out, const rp_client_durability *durability);
/* Writes the sentence of rp_durability_words() for each durable shard, on a line of its own. */
void rp_durability_lines(rp_text_buffer *out, const rp_tables_view *view);
/* Writes the durability of all shards as a JSON array with an object per shard. */
void rp_durability_json(rp_text_buffer *out, const rp_tables_view *view);
/* Writes all fields of the durability of every shard, as lines of text or as one line of
 * JSON. */
void rp_durability_report(rp_text_buffer *out, const rp_tables_view *view, bool json);

/* Writes progress: "42 % of 10 GiB, 512 MiB/s, 12 s left". Returns `text`. */
char *rp_progress_words(const rp_durable_progress *progress, char *text, size_t size);

/* Writes an overview: a line of headings, then a line per table and shard. */
void rp_info_glance(rp_text_buffer *out, const rp_tables_view *view);

/* Writes all fields of the tables named `name`, as text. */
void rp_info_details(rp_text_buffer *out, const rp_tables_view *view, const char *name);

/* Writes the tables named `name` as a JSON array of objects. If `name` is NULL, writes all
 * tables. */
void rp_tables_json(rp_text_buffer *out, const rp_tables_view *view, const char *name);

/* Writes the members of a table's JSON object, without the braces. */
void rp_tables_json_members(rp_text_buffer *out, const rp_tables_view *view,
                            const rp_client_table *table);

/* Writes the JSON member "unreachable": an array of objects with an address and an error. */
void rp_unreachable_json(rp_text_buffer *out, const rp_unreachable *list, size_t count);

/* Writes the rule of a rate limiter: "4 samples an insert, within -8 and 8". */
void rp_limiter_words(rp_text_buffer *out, const rp_limiter_options *limiter);

/* Returns true if `diff`, a value of a rate limiter's option min_diff or max_diff, means that
 * this bound is not set. */
bool rp_limiter_unbounded(double diff);

/* Draws the state of a table's rate limiter as a bar of `width` >= 5 columns. While the table
 * has fewer items than min_size, the bar shows which part of min_size it has: "[####......]".
 * After that, the bar marks the position of the limiter's value between min_diff and max_diff:
 * "[-----|-----]". At the left end samples wait; at the right end inserts wait. If min_diff or
 * max_diff is not set, the bar contains a word instead, such as "free", or "paused" for a
 * paused table. */
void rp_limiter_bar(rp_text_buffer *out, const rp_table_info *info, size_t width);

/* Writes a number of bytes in at most eight characters: "512 B", "1.5 KiB", "1023 MiB". Returns
 * `text`. */
char *rp_bytes_text(double bytes, char text[16]);

/* Writes a count in at most six characters: "0", "999", "12.3k", "4.6M". Returns `text`. */
char *rp_count_text(double count, char text[16]);

#endif
