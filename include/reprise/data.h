/* SPDX-License-Identifier: Apache-2.0 */
/* Data directories at rest: looking at one, and moving data in and out, without a server.
 *
 * Nothing here changes the directory or checkpoint that it reads from, nor takes its lock.
 * While a server works on a directory, what is seen of it is not of one moment: files may come
 * and go, and the newest may look torn. rp_data_locked_by() tells.
 *
 * Paths are those of the caller's process. Calls may be made from any thread; callbacks are
 * made on the thread that calls. */
#ifndef REPRISE_DATA_H
#define REPRISE_DATA_H

#include "reprise/durable.h"

RP_BEGIN_DECLS

/* The process that has the directory, 0 if none has, -1 if it cannot be told which. */
RP_API int64_t rp_data_locked_by(const char *directory);

typedef enum rp_data_kind {
    RP_DATA_CURRENT = 1,    /* which checkpoint is the live one */
    RP_DATA_CHECKPOINT = 2, /* a manifest */
    RP_DATA_SEGMENT = 3,
    RP_DATA_JOURNAL = 4,
    RP_DATA_OTHER = 5, /* in quarantine, half written, or not ours */
} rp_data_kind;

typedef enum rp_data_state {
    RP_DATA_FINE = 0,
    RP_DATA_OPEN = 1,    /* fine, and not sealed: it was being written */
    RP_DATA_TORN = 2,    /* its end is not whole; nothing that was said to be safe is lost */
    RP_DATA_DAMAGED = 3, /* `problem` says how */
    RP_DATA_UNUSED = 4,  /* no checkpoint needs it */
} rp_data_state;

/* "checkpoint" and so on; "fine" and so on; NULL for any other number. Static. */
RP_API const char *rp_data_kind_name(rp_data_kind kind);
RP_API const char *rp_data_state_name(rp_data_state state);

enum { RP_DATA_PATH_BYTES = 96 };

typedef struct rp_data_file {
    rp_data_kind kind;
    rp_data_state state;
    char path[RP_DATA_PATH_BYTES]; /* below the directory */
    uint64_t number;               /* of the checkpoint or segment; the journal's first LSN */
    uint64_t bytes;
    int64_t age_ns;               /* since it was written to; -1: not known */
    uint64_t records, good_bytes; /* when all of it is read */
    bool current;                 /* checkpoint: it is the live one */
    uint64_t tables, items, lsn;  /* checkpoint: the last change in it */
    uint64_t live_bytes;          /* segment: that the live checkpoint needs, about */
    uint64_t last_lsn;            /* journal, when all of it is read */
    char problem[RP_ERROR_TEXT_BYTES];
} rp_data_file;

typedef struct rp_data_summary {
    uint64_t files, bytes;
    uint64_t damaged, torn, unused; /* files */
    uint64_t checkpoint;            /* that a server would load; 0: none */
    uint64_t tables, items, lsn;    /* in it */
    uint64_t journalled;            /* records after it, when all is read */
} rp_data_summary;

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_data_look_options {
    const char *directory; /* * */
    bool thorough;         /* read every byte: checksums, chains, and that all that a checkpoint
                              refers to is there. Otherwise headers and manifests only */
    /* Called for each file: CURRENT, checkpoints, segments, journal, others; by number. */
    void (*on_file)(void *ctx, const rp_data_file *file);
    void (*on_progress)(void *ctx, const rp_durable_progress *progress);
    void *ctx;
} rp_data_look_options;

/* Looks at every file. Damage is told by on_file and counted, and is no failure of the call.
 * RP_NOT_FOUND (no such directory, or nothing of ours in it), RP_UNAVAILABLE, RP_NO_RESOURCE.
 */
RP_API RP_NODISCARD rp_status rp_data_look(const rp_data_look_options *options,
                                           rp_data_summary *out, rp_error *err);

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_data_dump_options {
    const char *directory; /* * */
    uint64_t checkpoint;   /* its number; 0: the live one */
    const char *table;     /* this one only; NULL: all */
    uint64_t max_items;    /* of each table; 0: all */
    /* Each table, before its items. `bytes` and what only a running table knows are 0. */
    void (*on_table)(void *ctx, const rp_table_info *table);
    /* Each item, in order of slots, or NULL: they are not read. All is borrowed, until it
     * returns; probability and weight are 0. */
    void (*on_item)(void *ctx, const char *table, const rp_sample *item);
    void *ctx;
} rp_data_dump_options;

/* Reads a checkpoint, one item at a time; changes in the journal are not in it.
 * RP_NOT_FOUND (no such directory, checkpoint or table), RP_CORRUPT (names file, offset and
 * reason; what was told until then is right), RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_data_dump(const rp_data_dump_options *options, rp_error *err);

/* Zero-initialise it; fields marked * must be set. */
typedef struct rp_data_move_options {
    const char *from; /* * */
    const char *to;   /* * */
    void (*on_progress)(void *ctx, const rp_durable_progress *progress);
    /* What could not be read, in a salvage. */
    void (*on_event)(void *ctx, const char *text);
    void *ctx;
} rp_data_move_options;

typedef struct rp_data_moved {
    char path[512]; /* what was written */
    uint64_t tables, items, bytes;
    uint64_t records; /* of the journal */
} rp_data_moved;

/* Each of these loads everything into memory, then writes one checkpoint. RP_EXISTS: `to` is
 * there and not empty. Further RP_NOT_FOUND, RP_CORRUPT (names file, place and reason),
 * RP_PRECONDITION, RP_UNAVAILABLE, RP_NO_RESOURCE. `out` may be NULL. */

/* A new data directory from all that can be read of a damaged one. */
RP_API RP_NODISCARD rp_status rp_data_salvage(const rp_data_move_options *options,
                                              rp_data_moved *out, rp_error *err);
/* A new data directory from a checkpoint of dm-reverb, or the newest in its root. */
RP_API RP_NODISCARD rp_status rp_data_from_reverb(const rp_data_move_options *options,
                                                  rp_data_moved *out, rp_error *err);
/* A checkpoint that dm-reverb loads, in a new folder below `to`, its root, from a data
 * directory, the journal's changes included. */
RP_API RP_NODISCARD rp_status rp_data_to_reverb(const rp_data_move_options *options,
                                                rp_data_moved *out, rp_error *err);

RP_END_DECLS

#endif
