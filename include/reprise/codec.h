/* SPDX-License-Identifier: Apache-2.0 */
/* Compression of the chunks that writers make of the rows of a column. */
#ifndef REPRISE_CODEC_H
#define REPRISE_CODEC_H

#include "reprise/status.h"

RP_BEGIN_DECLS

typedef enum rp_codec {
    RP_CODEC_SNAPPY = 0, /* every Reverb client reads it */
    RP_CODEC_NONE =
        1, /* stored; written as one snappy literal, so Reverb clients read it too */
    RP_CODEC_ZSTD = 2, /* smaller; read by reprise only */
    RP_CODEC_LZ4 = 3,  /* fast to write and to read; read by reprise only */
} rp_codec;

/* Returns "snappy", "none", "zstd" or "lz4", or NULL for any other number. Static. */
RP_API const char *rp_codec_name(rp_codec codec);

typedef struct rp_chunk_options {
    rp_codec codec;
    int level;  /* of zstd; 0: its default */
    bool delta; /* store integer columns of rank >= 1 rows as differences between rows */
} rp_chunk_options;

RP_END_DECLS

#endif
