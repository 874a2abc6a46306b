/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as text and as JSON. Pure. */
#ifndef RP_CLI_TEXT_INFO_PRINT_H
#define RP_CLI_TEXT_INFO_PRINT_H

#include "cli/text/sheet.h"
#include "reprise/client.h"

/* What there is to show. Borrows everything. */
typedef struct rp_tables_view {
    const rp_client_table *tables;
    size_t count;
    const char *const *shards; /* their addresses */
    size_t shard_count;
    const rp_client_durability *durability; /* of shards; may be NULL */
    size_t durability_count;
} rp_tables_view;

/* How the data of a shard survives it, in a sentence; nothing if it does not. */
void rp_durability_words(rp_sheet *out, const rp_client_durability *durability);
/* A line of it for every shard whose data does. */
void rp_durability_lines(rp_sheet *out, const rp_tables_view *view);
/* An array of objects, one for each shard. */
void rp_durability_json(rp_sheet *out, const rp_tables_view *view);
/* All there is to say of every shard: lines, or a line of JSON. */
void rp_durability_report(rp_sheet *out, const rp_tables_view *view, bool json);

/* "42 % of 10 GiB, 512 MiB/s, 12 s left": how far something is. Returns `text`. */
char *rp_progress_words(const rp_durable_progress *progress, char *text, size_t size);

/* A line for each table of each shard, under a line of headings. */
void rp_info_glance(rp_sheet *out, const rp_tables_view *view);

/* Everything about the tables of one name. */
void rp_info_details(rp_sheet *out, const rp_tables_view *view, const char *name);

/* An array of objects; `name` NULL: of all tables. */
void rp_tables_json(rp_sheet *out, const rp_tables_view *view, const char *name);

/* The members of one table's object, without its braces. */
void rp_tables_json_members(rp_sheet *out, const rp_tables_view *view,
                            const rp_client_table *table);

/* When inserts and samples wait, in few words: "4 samples an insert, within -8 and 8". */
void rp_limiter_words(rp_sheet *out, const rp_limiter_options *limiter);

/* Whether a bound of a limiter is none. */
bool rp_limiter_unbounded(double diff);

/* Where a limiter stands: "[-----|-----]", `width` columns in all (>= 5). On the left samples
 * wait, on the right inserts do; without bounds, how full the table is until samples may be
 * drawn, and then "[    free    ]". */
void rp_limiter_bar(rp_sheet *out, const rp_table_info *info, size_t width);

/* A count in at most six characters: "0", "999", "12.3k", "4.6M". */
char *rp_count_text(double count, char text[16]);

#endif
