/* SPDX-License-Identifier: Apache-2.0 */
/* Offline tools for data directories (durable.h): inspect, verify, dump, salvage, import and
 * export, without a server.
 *
 * A data directory has segments, checkpoints and a journal. Segments are files of chunks
 * (blocks of compressed rows) and items. A checkpoint is a manifest, which is a file that
 * refers to records of segments. The journal is a log of the changes after a checkpoint. Each
 * change has a number, its LSN. The file CURRENT names the live checkpoint: the one that a
 * server would load.
 *
 * No call changes the directory or checkpoint that it reads, or locks it. While a server uses a
 * directory, the result is not a consistent snapshot: files appear and disappear, and the
 * newest file can look torn (cut off at its end). rp_data_locked_by() returns the process that
 * uses a directory.
 *
 * Paths are resolved in the process of the caller. Every call is safe from any thread.
 * Callbacks run on the calling thread. */
#ifndef REPRISE_DATA_H
#define REPRISE_DATA_H

#include "reprise/durable.h"

RP_BEGIN_DECLS

/* Returns the id of the process that uses the directory, 0 if no process uses it, or -1 if a
 * process uses it and its id is unknown. */
RP_API int64_t rp_data_locked_by(const char *directory);

typedef enum rp_data_kind {
    RP_DATA_CURRENT = 1,    /* the file CURRENT */
    RP_DATA_CHECKPOINT = 2, /* the manifest of a checkpoint */
    RP_DATA_SEGMENT = 3,    /* chunks and items, to which checkpoints refer */
    RP_DATA_JOURNAL = 4,    /* a part of the journal */
    RP_DATA_RUNS = 5,       /* runs of programs (runs.h) */
    RP_DATA_OTHER = 6,      /* a file in the folder quarantine (damaged), a temporary file, or
                               an unknown file */
    RP_DATA_ROLLOUTS = 7,   /* the rollouts (rollouts.h) of a checkpoint */
} rp_data_kind;

typedef enum rp_data_state {
    RP_DATA_FINE = 0,
    RP_DATA_OPEN = 1,    /* fine, but its writer has not closed it */
    RP_DATA_TORN = 2,    /* the end of the file is incomplete; no acknowledged change is lost */
    RP_DATA_DAMAGED = 3, /* `problem` has the reason */
    RP_DATA_UNUSED = 4,  /* neither a checkpoint nor the journal needs the file */
    RP_DATA_JOURNALLED = 5, /* a segment that no checkpoint needs, but that changes in the
                               journal possibly need */
} rp_data_state;

enum { RP_DATA_PATH_BYTES = 96 };

typedef struct rp_data_file {
    rp_data_kind kind;
    rp_data_state state;
    char path[RP_DATA_PATH_BYTES]; /* path relative to the directory */
    uint64_t number; /* number of the checkpoint or segment; of a journal file: its first LSN */
    uint64_t bytes;
    int64_t age_ns;               /* time since the last write; -1: unknown */
    uint64_t records, good_bytes; /* if `thorough`: number of good records, and the offset at
                                     which the last of them ends */
    bool current;                 /* the file is the live checkpoint */
    uint64_t tables, items, lsn;  /* of a checkpoint: its number of tables, its number of items,
                                     and the LSN of the last change that it contains */
    uint64_t rollouts;   /* of a checkpoint or its file of rollouts: number of rollouts */
    uint64_t live_bytes; /* of a segment: about how many bytes the live checkpoint needs */
    uint64_t last_lsn;   /* of a journal file, if `thorough`: its last LSN */
    char problem[RP_ERROR_TEXT_BYTES];
} rp_data_file;

typedef struct rp_data_summary {
    uint64_t files, bytes;
    uint64_t damaged, torn, unused; /* numbers of files in these states */
    uint64_t checkpoint;            /* number of the live checkpoint; 0: none */
    uint64_t tables, items, lsn;    /* of the live checkpoint */
    uint64_t rollouts;              /* of the live checkpoint */
    uint64_t journalled; /* journal records after the live checkpoint, if they are counted
                            (counts_journal or thorough) */
} rp_data_summary;

/* Zero-initialise it; fields whose comment begins with * must be set. */
typedef struct rp_data_look_options {
    const char *directory; /* * */
    /* true: read every byte, and check every checksum, and that each block and chunk to which a
     * checkpoint refers exists. The checksum of a record also covers the checksum of the record
     * before it. false: read only headers and manifests. */
    bool thorough;
    bool counts_journal; /* count the records of the journal, even if `thorough` is false */
    /* Called for each file, in this order: CURRENT, checkpoints, segments, journal, RUNS,
     * others, rollouts. Files of one kind come in order of their numbers. */
    void (*on_file)(void *ctx, const rp_data_file *file);
    void (*on_progress)(void *ctx, const rp_durable_progress *progress);
    void *ctx;
} rp_data_look_options;

/* Inspects every file. If a file is damaged, the call passes it to on_file, counts it in `out`,
 * and still succeeds.
 * Errors: RP_NOT_FOUND (no such directory, or a directory without data of reprise),
 * RP_UNAVAILABLE (a file cannot be read), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_data_look(const rp_data_look_options *options,
                                           rp_data_summary *out, rp_error *err);

/* Zero-initialise it; fields whose comment begins with * must be set. */
typedef struct rp_data_dump_options {
    const char *directory; /* * */
    uint64_t checkpoint;   /* number of the checkpoint to read; 0: the live one */
    const char *table;     /* only this table; NULL: all */
    uint64_t max_items;    /* the most items to read of each table; 0: all */
    /* Called for each table, before its items. Fields that only a running table has, such as
     * `bytes`, are 0. May be NULL. */
    void (*on_table)(void *ctx, const rp_table_info *table);
    /* Called for each item, in the order in which the checkpoint stores the items. This order
     * can differ from the order of the inserts. The arguments are borrowed until the callback
     * returns; probability and weight are 0. NULL: items are not read. */
    void (*on_item)(void *ctx, const char *table, const rp_sample *item);
    void *ctx;
} rp_data_dump_options;

/* Reads a checkpoint, one item at a time, without the changes in the journal.
 * Errors: RP_NOT_FOUND (no such directory, checkpoint or table), RP_CORRUPT (the text names the
 * file, the offset and the reason; the items passed to on_item before the error are valid),
 * RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_data_dump(const rp_data_dump_options *options, rp_error *err);

/* Zero-initialise it; fields whose comment begins with * must be set. */
typedef struct rp_data_move_options {
    const char *from; /* * */
    const char *to;   /* * */
    void (*on_progress)(void *ctx, const rp_durable_progress *progress);
    /* rp_data_salvage() reports here which data could not be read. May be NULL. */
    void (*on_event)(void *ctx, const char *text);
    void *ctx;
} rp_data_move_options;

typedef struct rp_data_moved {
    char path[512]; /* of the new directory or checkpoint */
    uint64_t tables, items, bytes;
    uint64_t records; /* journal records that were applied */
} rp_data_moved;

/* Each of the following calls loads all data into memory, then writes one checkpoint. `out` may
 * be NULL. dm-reverb is DeepMind's Reverb. Errors: RP_EXISTS (the new data directory is not
 * empty, or the new folder for dm-reverb exists), RP_NOT_FOUND, RP_CORRUPT (the text names the
 * file, the offset and the reason), RP_PRECONDITION, RP_UNAVAILABLE, RP_NO_RESOURCE. */

/* Writes all readable data of a damaged data directory to a new one. */
RP_API RP_NODISCARD rp_status rp_data_salvage(const rp_data_move_options *options,
                                              rp_data_moved *out, rp_error *err);
/* Imports a checkpoint of dm-reverb to a new data directory. `from` is the folder of the
 * checkpoint, or the root folder of several checkpoints. Of several checkpoints the call
 * imports the newest complete one. */
RP_API RP_NODISCARD rp_status rp_data_from_reverb(const rp_data_move_options *options,
                                                  rp_data_moved *out, rp_error *err);
/* Exports a data directory, with the changes in its journal, as a checkpoint that dm-reverb can
 * load. The call makes a new folder for the checkpoint in the folder `to`. */
RP_API RP_NODISCARD rp_status rp_data_to_reverb(const rp_data_move_options *options,
                                                rp_data_moved *out, rp_error *err);

RP_END_DECLS

#endif
