/* SPDX-License-Identifier: Apache-2.0 */
/* The position and encoding of a column in the message of a chunk. */
#ifndef RP_CHUNK_COLUMN_PLACE_H
#define RP_CHUNK_COLUMN_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* The encoding of a column in the message. */
typedef enum rp_column_form {
    RP_FORM_CODED,         /* compressed or delta encoded */
    RP_FORM_STORED,        /* plain rows, readable in place */
    RP_FORM_STRING_LIST,   /* the format "list" of string_list.h */
    RP_FORM_STRING_VALUES, /* the format "values" of string_list.h: the content is the whole
                              TensorProto */
} rp_column_form;

/* The position of a column in the message. */
typedef struct rp_column_place {
    size_t content_at; /* offset of its content, which has rp_chunk_column.stored_bytes bytes */
    size_t rows_at;    /* only for RP_FORM_STORED: offset of the first plain row */
    size_t row_bytes;  /* size of a decoded row; for strings: elements * sizeof(rp_string) */
    rp_column_form form;
    bool delta; /* the rows are delta encoded */
} rp_column_place;

#endif
