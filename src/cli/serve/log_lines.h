/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: what happened, as fields, in one line of logfmt or of JSON. Pure functions. */
#ifndef RP_CLI_SERVE_LOG_LINES_H
#define RP_CLI_SERVE_LOG_LINES_H

#include "reprise/server.h"

enum {
    RP_FIELDS_BYTES = 3072,
    RP_LOG_LINE_BYTES = 4096, /* a pipe takes so much in one piece */
};

/* Fields being gathered, "key=value key="va lue"": values are quoted where needed, and what
 * does not show as itself is escaped (reprise/printable.h). A field that does not fit is left
 * out. */
typedef struct rp_fields {
    char text[RP_FIELDS_BYTES];
    size_t size;
} rp_fields;

void rp_fields_init(rp_fields *fields);
/* `key` is letters, digits and '_'. */
void rp_fields_add(rp_fields *fields, const char *key, const char *format, ...) RP_PRINTF(3, 4);

/* Takes the next field off `*fields`: its key and its value as it was before quoting, both cut
 * to fit. False if there is none. */
bool rp_fields_next(const char **fields, char *key, size_t key_bytes, char *value,
                    size_t value_bytes);

typedef struct rp_log_entry {
    int64_t wall_ns; /* of what happened */
    rp_log_level level;
    const char *event;
    const char *fields;  /* as above */
    uint64_t suppressed; /* lines of this event left out before; 0: not said */
} rp_log_entry;

/* Writes the line with its line feed and returns its length. JSON has every value as a string
 * but numbers and booleans; bytes that are not UTF-8 become U+FFFD. Fields that do not fit are
 * left out, and `cut=true` says so. `size` >= 512. */
size_t rp_log_line(const rp_log_entry *entry, bool json, char *line, size_t size);

/* How often each event is written: the first `burst` of it within `window_ns`, then none until
 * the window is over. Zero-initialise it and set these two. */
enum { RP_LOG_EVENTS = 64 };
typedef struct rp_log_rate {
    int64_t window_ns;
    uint32_t burst;
    struct rp_log_rate_event {
        char name[48]; /* the last stands for all that found no place */
        int64_t begin_ns;
        uint32_t count;
        uint64_t suppressed;
    } events[RP_LOG_EVENTS];
    size_t event_count;
} rp_log_rate;

/* True if a line of `event` may be written now; `*suppressed` is how many were not since the
 * last one. */
bool rp_log_rate_admit(rp_log_rate *rate, const char *event, int64_t now_ns,
                       uint64_t *suppressed);

#endif
