/* SPDX-License-Identifier: Apache-2.0 */
/* TFRecord: the framing of TensorFlow's record files, which dm-reverb uses for checkpoints.
 *
 *   record   length u64 | masked crc32c of these 8 bytes u32 | data | masked crc32c of data u32
 *
 * Numbers are little-endian. A file has no header, and its records follow each other without
 * gaps. To mask a crc is to rotate it 15 bits to the right and to add a constant. Crcs are
 * masked because the crc of data that contains its own crcs detects fewer errors. */
#ifndef RP_DURABLE_REVERB_TFRECORD_H
#define RP_DURABLE_REVERB_TFRECORD_H

#include "durable/reverb/byte_stream.h"
#include "util/buf.h"

enum { RP_TFRECORD_HEAD_BYTES = 12, RP_TFRECORD_FOOT_BYTES = 4 };

/* Pure functions over bytes. */
uint32_t rp_tfrecord_mask(uint32_t crc);
void rp_tfrecord_put_head(uint8_t out[RP_TFRECORD_HEAD_BYTES], uint64_t length);
void rp_tfrecord_put_foot(uint8_t out[RP_TFRECORD_FOOT_BYTES], const void *data, size_t size);
/* Returns false if the checksum is wrong. */
RP_NODISCARD bool rp_tfrecord_get_head(const uint8_t head[RP_TFRECORD_HEAD_BYTES],
                                       uint64_t *length);
RP_NODISCARD bool rp_tfrecord_check_data(const void *data, size_t size,
                                         const uint8_t foot[RP_TFRECORD_FOOT_BYTES]);

/* Returns true if the bytes begin with the head of a record, as the bytes of an uncompressed
 * file do. Used as rp_inflate_options.is_plain. */
bool rp_tfrecord_is_plain(const uint8_t *first, size_t size);

/* Reads the records of a stream, one at a time, into a buffer. The buffer grows as bytes are
 * read. So a false length in the head of a record does not make the reader allocate memory. */
typedef struct rp_tfrecord_reader {
    rp_byte_source source; /* borrowed */
    size_t max_record;     /* bytes of the largest accepted record */
    uint64_t count;        /* records read, including the current one */
    uint64_t offset;       /* offset of the next record in the uncompressed stream */
    rp_buf buf;
} rp_tfrecord_reader;

void rp_tfrecord_reader_init(rp_tfrecord_reader *r, const rp_allocator *alloc,
                             rp_byte_source source, size_t max_record);
void rp_tfrecord_reader_deinit(rp_tfrecord_reader *r);

/* Reads the next record. `*data` is valid until the next call, and NULL at the end of the
 * stream. The error text does not name the file. Errors: RP_CORRUPT (a truncated record or a
 * wrong checksum), RP_NO_RESOURCE (larger than max_record; memory), and the errors of the
 * source. */
RP_NODISCARD rp_status rp_tfrecord_next(rp_tfrecord_reader *r, const uint8_t **data,
                                        size_t *size, rp_error *err);

/* Writes one record. Returns the statuses of the sink. */
RP_NODISCARD rp_status rp_tfrecord_write(rp_byte_sink sink, const void *data, size_t size,
                                         rp_error *err);

#endif
