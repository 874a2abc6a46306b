/* SPDX-License-Identifier: Apache-2.0 */
/* Formats log lines: an event with fields, in one line of logfmt or JSON. Pure functions. */
#ifndef RP_CLI_SERVE_LOG_LINES_H
#define RP_CLI_SERVE_LOG_LINES_H

#include "reprise/server.h"

enum {
    RP_FIELDS_BYTES = 3072,
    RP_LOG_LINE_BYTES = 4096, /* writes of this size to a pipe are atomic */
};

/* A list of fields, "key=value key="va lue"". Values are quoted and escaped where needed
 * (reprise/printable.h). A field that does not fit is dropped. */
typedef struct rp_fields {
    char text[RP_FIELDS_BYTES];
    size_t size;
} rp_fields;

void rp_fields_init(rp_fields *fields);
/* `key` is letters, digits and '_'. */
void rp_fields_add(rp_fields *fields, const char *key, const char *format, ...) RP_PRINTF(3, 4);

/* Parses the next field of `*fields` and advances it: key and unescaped value, both cut to fit.
 * Returns false at the end. */
bool rp_fields_next(const char **fields, char *key, size_t key_bytes, char *value,
                    size_t value_bytes);

typedef struct rp_log_entry {
    int64_t wall_ns; /* time of the event */
    rp_log_level level;
    const char *event;
    const char *fields;  /* as above */
    uint64_t suppressed; /* lines of this event dropped before; 0: not printed */
} rp_log_entry;

/* Writes the line with its line feed and returns its length. In JSON, values are strings unless
 * they are numbers or booleans, and bytes that are not UTF-8 become U+FFFD. Fields that do not
 * fit are dropped, and `cut=true` is added then. `size` >= 512. */
size_t rp_log_line(const rp_log_entry *entry, bool json, char *line, size_t size);

/* A rate limit for each event: it admits the first `burst` lines within `window_ns`, then none
 * until the window ends. Zero-initialise it and set these two fields. */
enum { RP_LOG_EVENTS = 64 };
typedef struct rp_log_rate {
    int64_t window_ns;
    uint32_t burst;
    struct rp_log_rate_event {
        char name[48]; /* the last entry counts all events beyond RP_LOG_EVENTS */
        int64_t begin_ns;
        uint32_t count;
        uint64_t suppressed;
    } events[RP_LOG_EVENTS];
    size_t event_count;
} rp_log_rate;

/* Returns true if a line of `event` may be written now. Sets `*suppressed` to the number of
 * lines of this event that were dropped since the last one was written. */
bool rp_log_rate_admit(rp_log_rate *rate, const char *event, int64_t now_ns,
                       uint64_t *suppressed);

#endif
