/* SPDX-License-Identifier: Apache-2.0 */
/* Builds requests for fuzz targets. The requests have the right form, and the fuzz input
 * chooses the numbers in them. A table name has one letter. */
#ifndef RP_FUZZ_REQUESTS_H
#define RP_FUZZ_REQUESTS_H

#include "chunk/chunk_api.h"
#include "chunk/protobuf.h"
#include "fuzz.h"

/* A message, or a part of a message, that is being built. Fields that do not fit are dropped.
 */
typedef struct fuzz_message {
    uint8_t data[1 << 15];
    size_t size;
} fuzz_message;

static inline bool fuzz_message_fits(const fuzz_message *m, size_t more)
{
    return more < sizeof m->data - m->size - 32;
}

static inline void fuzz_message_varint(fuzz_message *m, uint32_t number, uint64_t value)
{
    if (!fuzz_message_fits(m, 0)) return;
    m->size = (size_t)(rp_pb_put_varint_field(m->data + m->size, number, value) - m->data);
}

static inline void fuzz_message_bytes(fuzz_message *m, uint32_t number, const void *data,
                                      size_t size)
{
    if (!fuzz_message_fits(m, size)) return;
    m->size = (size_t)(rp_pb_put_bytes_head(m->data + m->size, number, size) - m->data);
    memcpy(m->data + m->size, data, size);
    m->size += size;
}

static inline void fuzz_message_double(fuzz_message *m, uint32_t number, double value)
{
    if (!fuzz_message_fits(m, 0)) return;
    m->data[m->size++] = (uint8_t)rp_pb_tag(number, RP_PB_FIXED64);
    memcpy(m->data + m->size, &value, sizeof value);
    m->size += sizeof value;
}

enum { FUZZ_CHUNK_KEYS = 8, FUZZ_CHUNK_KINDS = 3, FUZZ_CHUNK_ROWS = 3, FUZZ_CHUNK_BIG = 1500 };

/* Chunks of one column, made once. There are three kinds: 3 uncompressed rows of int32[2]; the
 * same rows, compressed; and 3 rows of int32[1500], which are large enough to be sent without a
 * copy. */
typedef struct fuzz_chunks {
    rp_chunk *chunks[FUZZ_CHUNK_KINDS][FUZZ_CHUNK_KEYS];
} fuzz_chunks;

static inline rp_chunk *fuzz_chunk_make(uint64_t key, int kind)
{
    static int32_t row[FUZZ_CHUNK_BIG];
    rp_spec spec = {"x", RP_INT32, {.rank = 1, .dims = {kind == 2 ? FUZZ_CHUNK_BIG : 2}}};
    rp_chunk_options options = {.codec = kind == 1 ? RP_CODEC_ZSTD : RP_CODEC_NONE};
    rp_chunk_origin origin = {.key = key, .episode = 7, .last_step = FUZZ_CHUNK_ROWS - 1};
    rp_tensor tensor = {RP_INT32, spec.shape, row};
    rp_chunk_builder *builder = NULL;
    rp_chunk *chunk = NULL;

    fuzz_check(rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &options, &builder,
                                    NULL) == RP_OK);
    for (int i = 0; i < FUZZ_CHUNK_ROWS; i++) {
        row[0] = (int32_t)key;
        fuzz_check(rp_chunk_builder_append(builder, &tensor, NULL) == RP_OK);
    }
    fuzz_check(rp_chunk_builder_finish(builder, &origin, &chunk, NULL) == RP_OK);
    rp_chunk_builder_free(builder);
    return chunk;
}

static inline void fuzz_chunks_init(fuzz_chunks *c)
{
    for (int kind = 0; kind < FUZZ_CHUNK_KINDS; kind++)
        for (uint64_t key = 0; key < FUZZ_CHUNK_KEYS; key++)
            c->chunks[kind][key] = fuzz_chunk_make(key, kind);
}

/* Returns an extreme or invalid priority if `which` is below 8, otherwise an ordinary one. */
static inline double fuzz_priority(uint8_t which)
{
    static const double special[] = {
        0, -1, 1e30, 1e300, 0x1p-1074, __builtin_inf(), __builtin_nan(""), -0.0};

    return which < 8 ? special[which] : (double)which / 16;
}

/* Appends an item of one or two columns, each of one or two slices. */
static inline void fuzz_put_item(fuzz_message *out, fuzz_input *in, char table)
{
    static fuzz_message item, trajectory, column, slice;
    uint8_t how = fuzz_byte(in), shape = fuzz_byte(in);

    item.size = trajectory.size = 0;
    fuzz_message_varint(&item, 1, fuzz_byte(in));
    fuzz_message_bytes(&item, 2, &table, 1);
    fuzz_message_double(&item, 5, fuzz_priority(fuzz_byte(in)));
    if ((how & 0x80) != 0) fuzz_message_varint(&item, 6, how);
    for (int c = 0; c <= (shape & 1); c++) {
        column.size = 0;
        for (int s = 0; s <= (shape >> 1 & 1); s++) {
            slice.size = 0;
            fuzz_message_varint(&slice, 1, (how & 7) + (unsigned)s);
            if ((shape & 4) != 0) fuzz_message_varint(&slice, 2, shape >> 6);
            fuzz_message_varint(&slice, 3, 1 + (shape >> 4 & 3));
            if ((shape & 8) != 0) fuzz_message_varint(&slice, 4, how >> 5);
            fuzz_message_bytes(&column, 1, slice.data, slice.size);
        }
        if ((how & 8) != 0) fuzz_message_varint(&column, 2, 1);
        fuzz_message_bytes(&trajectory, 1, column.data, column.size);
    }
    fuzz_message_bytes(&item, 8, trajectory.data, trajectory.size);
    fuzz_message_bytes(out, 2, item.data, item.size);
}

/* Appends an InsertStreamRequest. */
static inline void fuzz_put_insert(fuzz_message *out, fuzz_input *in, const fuzz_chunks *c,
                                   char table)
{
    uint8_t how = fuzz_byte(in);

    for (int i = 0; i < (how & 3); i++) {
        uint8_t which = fuzz_byte(in);
        size_t size;
        const uint8_t *wire = rp_chunk_wire(
            c->chunks[which / FUZZ_CHUNK_KEYS % FUZZ_CHUNK_KINDS][which % FUZZ_CHUNK_KEYS],
            &size);
        size_t at = out->size;
        fuzz_message_bytes(out, 1, wire, size);
        if ((which & 0xc0) == 0xc0 && out->size > at) {
            size_t place = at + fuzz_byte(in) % (out->size - at);
            out->data[place] = fuzz_byte(in);
        }
    }
    for (int i = 0; i < (how >> 2 & 3); i++) fuzz_put_item(out, in, table);
    for (int i = 0; i < (how >> 4 & 7); i++) fuzz_message_varint(out, 3, fuzz_byte(in));
}

/* Requests of every kind except InsertStream, for the table 't'. `table_at` is the offset of
 * the name; 0: the request has no name. */
static const struct fuzz_template {
    const char *path, *bytes;
    size_t size, table_at;
} fuzz_templates[] = {
#define REVERB "/deepmind.reverb.ReverbService/"
#define REPLAY "/reprise.v1.Replay/"
    {REVERB "SampleStream", "\12\1t\20\1\32\2\10\5", 9, 2},
    {REVERB "SampleStream", "\12\1t\20\3\32\0", 7, 2},
    {REVERB "SampleStream", "\12\1t\20\xff\x7f\32\13\10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1",
     19, 2},
    {REVERB "MutatePriorities", "\12\1t\22\13\10\1\21\0\0\0\0\0\0\360\77\32\2\2\3", 20, 2},
    {REVERB "Reset", "\12\1t", 3, 2},
    {REVERB "Checkpoint", "", 0, 0},
    {REVERB "ServerInfo", "", 0, 0},
    {REVERB "InitializeConnection", "\10\1\22\1t", 5, 4},
    {REPLAY "CreateTable", "\12\5\12\1t\40\5", 7, 4},
    {REPLAY "CreateTable", "\12\13\12\1t\22\2\32\0\40\5\60\2", 13, 4},
    {REPLAY "DropTable", "\12\1t", 3, 2},
    {REPLAY "AlterTable", "\12\1t\20\2\30\0\40\1", 9, 2},
    {REPLAY "AlterTable", "\12\1t\52\15\11\0\0\0\0\0\0\0\100\20\1\60\1", 18, 2},
    {REPLAY "PauseTable", "\12\1t\20\1", 5, 2},
    {REPLAY "ResumeTable", "\12\1t\20\1", 5, 2},
    {REPLAY "WhyBlocked", "\12\1t\20\5", 5, 2},
    {REPLAY "Clients", "", 0, 0},
    {REPLAY "Status", "\12\1t", 3, 2},
    {REPLAY "Status", "", 0, 2},
    {REPLAY "Peek", "\12\1t\22\4\1\2\3\4\30\1\40\1", 13, 2},
    {REPLAY "Sample", "\12\1t\20\3\30\1\50\1\61\0\0\0\0\0\0\340\77\70\1", 20, 2},
    {REPLAY "Sample", "\12\1t\20\2\40\5", 7, 2},
    {REPLAY "Update", "\12\1t\22\13\10\1\21\0\0\0\0\0\0\340\77\22\0", 18, 2},
    {REPLAY "Delete", "\12\1t\22\2\1\2", 7, 2},
    {"/grpc.health.v1.Health/Check", "", 0, 0},
    {"/grpc.health.v1.Health/Watch", "", 0, 0},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "\72\1*", 3, 0},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
     "\32\26tensorflow/types.proto", 24, 0},
    {"/reprise.v1.Runs/LogScalars", "\12\1r\22\16\12\1x\20\5\41\0\0\0\0\0\0\340\77", 19, 2},
    {"/reprise.v1.Runs/ReadRuns", "\12\1r\20\1", 5, 2},
#undef REVERB
#undef REPLAY
};

enum { FUZZ_TEMPLATES = sizeof fuzz_templates / sizeof fuzz_templates[0] };

/* Sets `out` to the template with the number `which`. The input decides whether one byte of it
 * is changed. */
static inline void fuzz_put_template(fuzz_message *out, fuzz_input *in, size_t which,
                                     char table)
{
    const struct fuzz_template *t = &fuzz_templates[which % FUZZ_TEMPLATES];
    uint8_t change = fuzz_byte(in);

    out->size = t->size;
    memcpy(out->data, t->bytes, t->size);
    if (t->table_at > 0) out->data[t->table_at] = (uint8_t)table;
    if (change < t->size) out->data[change] = fuzz_byte(in);
}

#endif
