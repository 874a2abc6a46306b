/* SPDX-License-Identifier: Apache-2.0 */
/* Formats log lines: each is one event with fields, in logfmt or JSON. Also limits the rate of
 * log lines of each event. Pure functions. */
#ifndef RP_CLI_SERVE_LOG_LINES_H
#define RP_CLI_SERVE_LOG_LINES_H

#include "reprise/server.h"

enum {
    RP_FIELDS_BYTES = 3072,
    RP_LOG_LINE_BYTES = 4096, /* a write of up to this size to a pipe is atomic */
};

/* A list of fields, such as: key=value key="va lue". Values are quoted and escaped where
 * necessary (reprise/printable.h). A field that does not fit is dropped. */
typedef struct rp_fields {
    char text[RP_FIELDS_BYTES];
    size_t size;
} rp_fields;

void rp_fields_init(rp_fields *fields);
/* Adds a field. `key` must consist of letters, digits and '_'. */
void rp_fields_add(rp_fields *fields, const char *key, const char *format, ...) RP_PRINTF(3, 4);

/* Parses the next field of the text `*fields` and advances the pointer past it. Writes the key
 * and the unescaped value, both cut to fit. Returns false if there is no further field. */
bool rp_fields_next(const char **fields, char *key, size_t key_bytes, char *value,
                    size_t value_bytes);

typedef struct rp_log_entry {
    int64_t wall_ns; /* time of the event */
    rp_log_level level;
    const char *event;
    const char *fields;  /* text of the fields in the form of rp_fields */
    uint64_t suppressed; /* lines of this event that the rate limit dropped since its last line;
                            not printed if 0 */
} rp_log_entry;

/* Writes the line, ending with a line feed, and returns its length. In JSON, values that are
 * numbers or booleans are written without quotes, and all other values as strings, in which
 * bytes that are not UTF-8 become U+FFFD. If fields do not fit, they are dropped and the field
 * `cut=true` is added. `size` must be >= 512. */
size_t rp_log_line(const rp_log_entry *entry, bool json, char *line, size_t size);

/* A rate limit for the lines of each event: in each time window of window_ns, the first `burst`
 * lines of an event are written and the others dropped. The owner zero-initialises the struct
 * and sets window_ns and burst. */
enum { RP_LOG_EVENTS = 64 };
typedef struct rp_log_rate {
    int64_t window_ns;
    uint32_t burst;
    struct rp_log_rate_event {
        char name[48];       /* all events beyond RP_LOG_EVENTS share the last entry */
        int64_t begin_ns;    /* begin of the current window */
        uint32_t count;      /* lines in the current window */
        uint64_t suppressed; /* lines dropped since the last line was written */
    } events[RP_LOG_EVENTS];
    size_t event_count;
} rp_log_rate;

/* Returns true if the rate limit allows a line of `event` now. In this case, sets `*suppressed`
 * to the number of lines of this event that were dropped since the last one was written. */
bool rp_log_rate_admit(rp_log_rate *rate, const char *event, int64_t now_ns,
                       uint64_t *suppressed);

#endif
