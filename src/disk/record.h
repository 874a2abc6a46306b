/* SPDX-License-Identifier: Apache-2.0 */
/* The format of every file in a data directory: a header of 64 bytes, then records without
 * gaps. All numbers are little-endian; docs/checkpoint.md specifies the bytes. The functions
 * only read and write memory of the caller.
 *
 *   file header   0 "RPRSTORE" | 8 version u32 | 12 kind u32 | 16 compat u32 | 20 read-only u32
 *                 24 incompat u32 | 28 store id, 16 bytes | 44 number u64 | 52 zero, 8 bytes
 *                 60 crc32c of the 60 bytes before it
 *   record        0 length u32 | 4 kind u16 | 6 zero u16 | 8 number u64 | 16 before u32
 *                 20 payload crc32c u32 | 24 zero u32 | 28 crc32c of the 28 bytes before it
 *                 32 payload
 *
 * `before` is the header checksum of the previous record, or in the first record the checksum
 * of the file header. This chain detects stale records from an earlier use of the same disk
 * blocks, and records out of order. */
#ifndef RP_DISK_RECORD_H
#define RP_DISK_RECORD_H

#include "disk/files.h"

enum { RP_FILE_HEADER_BYTES = 64, RP_RECORD_HEADER_BYTES = 32, RP_FORMAT_VERSION = 1 };
enum { RP_MAX_RECORD_BYTES = 1 << 30 };

typedef enum rp_file_kind {
    RP_FILE_CURRENT = 1,
    RP_FILE_MANIFEST = 2,
    RP_FILE_SEGMENT = 3,
    RP_FILE_JOURNAL = 4,
    RP_FILE_RUNS = 5,
    RP_FILE_ROLLOUTS = 6,
} rp_file_kind;

/* Bits of rp_file_header.incompat. */
enum {
    RP_FEATURE_ROLLOUTS = 1 << 0, /* the manifest has a record RP_RECORD_ROLLOUTS */
    RP_FEATURES = RP_FEATURE_ROLLOUTS,
};

typedef enum rp_record_kind {
    /* in segments */
    RP_RECORD_CHUNK = 1, /* the wire form of a chunk */
    RP_RECORD_BLOCK = 2, /* 256 slots of a table: durable/format/image.h */
    RP_RECORD_SEAL = 3,  /* last record of a finished segment or journal file */
    RP_RECORD_MOVED = 4, /* a moved chunk; see rp_record_first() */
    /* in manifests and CURRENT */
    RP_RECORD_STORE = 16,
    RP_RECORD_TABLE = 17,
    RP_RECORD_LOCATIONS = 18, /* the locations of the blocks of a table */
    RP_RECORD_SET = 19, /* the slots of a dense set (table/selector/dense_set.h), in order */
    RP_RECORD_SEGMENTS = 20,
    RP_RECORD_END = 21, /* last record of a manifest: counts, hash of all records before it */
    RP_RECORD_CURRENT = 22,
    RP_RECORD_ROLLOUTS = 23, /* describes the checkpoint's file of rollouts */
    /* in the journal; durable/format/journal_records.h defines the payloads */
    RP_RECORD_INSERT = 32,
    RP_RECORD_SAMPLE = 33,
    RP_RECORD_UPDATE = 34,
    RP_RECORD_DELETE = 35,
    RP_RECORD_EVICT = 36,
    RP_RECORD_RESET = 37,
    RP_RECORD_ALTER = 38,
    RP_RECORD_PAUSE = 39,
    RP_RECORD_CREATE = 40,
    RP_RECORD_DROP = 41,
    RP_RECORD_SYNCED = 42,   /* all records up to this LSN are on stable storage */
    RP_RECORD_LOST = 43,     /* first record of a file: the journal gave up the records that are
                                missing before this file, up to this LSN */
    RP_RECORD_PAD = 44,      /* zeroes, up to the next sector */
    RP_RECORD_RENUMBER = 45, /* the slots of an empty table are numbered from 0 again */
    RP_RECORD_ROLLOUTS_CREATE = 46, /* 46 to 48: durable/format/rollout_records.h */
    RP_RECORD_ROLLOUTS_OP = 47,
    RP_RECORD_ROLLOUTS_DROP = 48,
    /* in RUNS: durable/runs_file.c */
    RP_RECORD_RUN = 64,
    RP_RECORD_RUNS_END = 65,
    /* in rollouts: durable/format/rollouts_file.h */
    RP_RECORD_ROLLOUTS_BEGIN = 66,
    RP_RECORD_ROLLOUTS_PIECE = 67,
    RP_RECORD_ROLLOUTS_END = 68,
} rp_record_kind;

typedef struct rp_store_id {
    uint8_t bytes[16];
} rp_store_id;

typedef struct rp_file_header {
    uint32_t version;
    rp_file_kind kind;
    uint32_t compat, read_only, incompat; /* feature bits: a file with bits in `incompat` that
                                             are not in RP_FEATURES is refused */
    rp_store_id store;
    uint64_t number; /* number of the segment or manifest, or first LSN of the journal file */
} rp_file_header;

typedef struct rp_record {
    rp_record_kind kind;
    uint64_t number; /* its meaning depends on the kind: in the journal it is an LSN */
    const uint8_t *payload;
    size_t size;
    uint32_t crc; /* checksum of the header: `before` of the next record */
} rp_record;

/* Returns true if a record of kind `kind` is valid where a record of kind `wanted` is expected.
 * The kinds must be equal, except that the record of a moved chunk is also valid as a chunk. */
static inline bool rp_record_is(rp_record_kind kind, rp_record_kind wanted)
{
    return kind == wanted || (kind == RP_RECORD_MOVED && wanted == RP_RECORD_CHUNK);
}

/* The record of a moved chunk has, as its `number`, the packed location (disk/location.h) that
 * the chunk had before its first move. Returns this location, or 0 if `kind` is not
 * RP_RECORD_MOVED. */
static inline uint64_t rp_record_first(rp_record_kind kind, uint64_t number)
{
    return kind == RP_RECORD_MOVED ? number : 0;
}

/* Returns the CRC-32C of `data`, continued from `crc` (0 at the start). Uses hardware
 * instructions if the processor has them. */
uint32_t rp_crc32c(uint32_t crc, const void *data, size_t size);

/* Writes the header of a file and returns its checksum. */
uint32_t rp_file_header_write(uint8_t out[RP_FILE_HEADER_BYTES], const rp_file_header *header);
/* Reads the header of a file. If `crc` is not NULL, sets `*crc` to the value that the first
 * record must have as `before`. Errors: RP_CORRUPT, RP_PRECONDITION (a newer version or an
 * unknown feature, which the error text names). */
RP_NODISCARD rp_status rp_file_header_read(const uint8_t *data, size_t size,
                                           rp_file_header *out, uint32_t *crc, rp_error *err);

/* Writes the header of a record and returns its checksum. `size` is at most
 * RP_MAX_RECORD_BYTES. */
uint32_t rp_record_write(uint8_t out[RP_RECORD_HEADER_BYTES], rp_record_kind kind,
                         uint64_t number, uint32_t before, const void *payload, size_t size);

/* Reads only the header of a record. Sets out->payload to NULL, and out->size to the size of
 * the payload, which is at most RP_MAX_RECORD_BYTES; fewer bytes may follow in `data`. `before`
 * and `payload_crc` may be NULL. Errors: RP_CORRUPT. */
RP_NODISCARD rp_status rp_record_header_read(const uint8_t *data, size_t size, rp_record *out,
                                             uint32_t *before, uint32_t *payload_crc,
                                             rp_error *err);

/* Reads and checks the whole record at the start of `data`. If `before` is not NULL, also
 * checks that the record's `before` is `*before`. The payload borrows from `data`. Errors:
 * RP_CORRUPT. */
RP_NODISCARD rp_status rp_record_read(const uint8_t *data, size_t size, const uint32_t *before,
                                      rp_record *out, rp_error *err);

#endif
