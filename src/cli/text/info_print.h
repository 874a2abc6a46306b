/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as text and as JSON. Pure. */
#ifndef RP_CLI_TEXT_INFO_PRINT_H
#define RP_CLI_TEXT_INFO_PRINT_H

#include "cli/text/text_buffer.h"
#include "reprise/client.h"

/* A server that was left out, because it could not be reached. */
typedef struct rp_unreachable {
    const char *address; /* borrowed */
    char error[RP_ERROR_TEXT_BYTES];
} rp_unreachable;

/* The data to print. Borrows everything. */
typedef struct rp_tables_view {
    const rp_client_table *tables;
    size_t count;
    const char *const *shards; /* their addresses */
    size_t shard_count;
    const rp_client_durability *durability; /* of shards; may be NULL */
    size_t durability_count;
    const rp_unreachable *unreachable; /* servers whose tables are missing; may be NULL */
    size_t unreachable_count;
} rp_tables_view;

/* Writes the durability of a shard as a sentence; nothing if the shard is not durable. */
void rp_durability_words(rp_text_buffer *out, const rp_client_durability *durability);
/* Writes such a sentence on a line of its own for every durable shard. */
void rp_durability_lines(rp_text_buffer *out, const rp_tables_view *view);
/* Writes the durability of all shards as a JSON array of objects, one for each shard. */
void rp_durability_json(rp_text_buffer *out, const rp_tables_view *view);
/* Writes all fields of the durability of every shard, as lines of text or as one line of
 * JSON. */
void rp_durability_report(rp_text_buffer *out, const rp_tables_view *view, bool json);

/* Writes progress: "42 % of 10 GiB, 512 MiB/s, 12 s left". Returns `text`. */
char *rp_progress_words(const rp_durable_progress *progress, char *text, size_t size);

/* Writes a line of headings and a line for each table of each shard. */
void rp_info_glance(rp_text_buffer *out, const rp_tables_view *view);

/* Writes all fields of the tables of one name. */
void rp_info_details(rp_text_buffer *out, const rp_tables_view *view, const char *name);

/* Writes the tables of one name as a JSON array of objects; `name` NULL: all tables. */
void rp_tables_json(rp_text_buffer *out, const rp_tables_view *view, const char *name);

/* Writes the members of the object of one table, without the braces. */
void rp_tables_json_members(rp_text_buffer *out, const rp_tables_view *view,
                            const rp_client_table *table);

/* Writes the member "unreachable", an array of objects with address and error. */
void rp_unreachable_json(rp_text_buffer *out, const rp_unreachable *list, size_t count);

/* Writes the rule of a limiter: "4 samples an insert, within -8 and 8". */
void rp_limiter_words(rp_text_buffer *out, const rp_limiter_options *limiter);

/* Returns true if `diff`, the min_diff or max_diff of a limiter, stands for no bound. */
bool rp_limiter_unbounded(double diff);

/* Draws the state of a limiter, "[-----|-----]", in `width` (>= 5) columns. At the left end
 * samples wait, at the right end inserts wait. Without bounds the bar shows how many items are
 * missing until samples may be drawn, and after that "[    free    ]", or "[   paused   ]". */
void rp_limiter_bar(rp_text_buffer *out, const rp_table_info *info, size_t width);

/* Writes a number of bytes in at most eight characters: "512 B", "1.5 KiB", "1023 MiB". Returns
 * `text`. */
char *rp_bytes_text(double bytes, char text[16]);

/* Writes a count in at most six characters: "0", "999", "12.3k", "4.6M". Returns `text`. */
char *rp_count_text(double count, char text[16]);

#endif
