/* SPDX-License-Identifier: Apache-2.0 */
/* Compression of chunks. A chunk is a block of consecutive rows of one or more columns
 * (trajectory_writer.h). Each column of a chunk is compressed separately. Writers make chunks
 * and send them to a server. */
#ifndef REPRISE_CODEC_H
#define REPRISE_CODEC_H

#include "reprise/status.h"

RP_BEGIN_DECLS

typedef enum rp_codec {
    RP_CODEC_SNAPPY = 0, /* every Reverb client can read it */
    RP_CODEC_NONE = 1,   /* not compressed; stored in snappy's format as one literal (a run of
                            plain bytes), so every Reverb client can read it */
    RP_CODEC_ZSTD = 2,   /* smaller than snappy; only reprise can read it */
    RP_CODEC_LZ4 = 3,    /* fast to write and to read; only reprise can read it */
} rp_codec;

/* Returns "snappy", "none", "zstd" or "lz4", or NULL for any other number. Static. */
RP_API const char *rp_codec_name(rp_codec codec);

typedef struct rp_chunk_options {
    rp_codec codec;
    int level;  /* compression level of zstd; 0: the default of zstd */
    bool delta; /* store each row of an integer column as its difference from the previous row.
                   This applies only to columns whose rows are arrays, not scalars */
} rp_chunk_options;

RP_END_DECLS

#endif
