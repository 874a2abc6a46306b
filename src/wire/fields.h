/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of messages: what the readers share, and writing into a buffer.
 *
 * Readers follow proto3: fields may come in any order, of a number that stands twice the last
 * counts, submessages that stand twice are merged, a field with an unknown number or the wrong
 * type is skipped, repeated numbers may be packed or not. They are pure functions of the bytes;
 * what they return borrows from those.
 *
 * Writers leave out what has its default. They append to an rp_buf, which remembers that it ran
 * out of memory, so nothing here fails: look at `bad` at the end. */
#ifndef RP_WIRE_FIELDS_H
#define RP_WIRE_FIELDS_H

#include "chunk/protobuf.h"
#include "reprise/table.h"
#include "util/buf.h"

/* Of a table, a service or a type. */
enum { RP_WIRE_MAX_NAME_BYTES = RP_MAX_TABLE_NAME_BYTES };

/* True if the bytes are UTF-8 without a zero: what a proto3 string may hold and a C string too.
 */
bool rp_wire_is_text(const void *data, size_t size);

/* Takes a field of type string. `what` names it in the sentence. RP_INVALID if it is no text or
 * has more than RP_WIRE_MAX_NAME_BYTES. */
RP_NODISCARD rp_status rp_wire_read_text(const rp_pb_field *field, const char *what,
                                         rp_string *out, rp_error *err);

/* Reads a message whose one field, number 1, is such a string; "" if it is left out. */
RP_NODISCARD rp_status rp_wire_read_only_text(const uint8_t *data, size_t size,
                                              const char *message, const char *what,
                                              rp_string *out, rp_error *err);

/* The sentence for bytes that are no message. Returns RP_INVALID. */
rp_status rp_wire_malformed(rp_error *err, const char *message);

/* For readers of answers: what is wrong with one is not the caller's fault. RP_INVALID becomes
 * RP_CORRUPT, others stay as they are. */
rp_status rp_wire_blame_peer(rp_status status, rp_error *err);

/* Adds to `*count` the numbers in one field of `repeated uint64`, packed or not. False if the
 * bytes are no varints. */
RP_NODISCARD bool rp_wire_count_numbers(const rp_pb_field *field, size_t *count);

/* Copies the numbers of such a field, which have been counted; returns where the next go. */
uint64_t *rp_wire_copy_numbers(const rp_pb_field *field, uint64_t *out);

/* True if the field is a KeyWithPriority; checks nothing but its form. */
RP_NODISCARD bool rp_wire_is_update(const rp_pb_field *field);

/* Takes the next field if it is a KeyWithPriority of that number, below 16, with a key and a
 * priority in this order, as all the world writes them. False: leaves it to who looks closer.
 */
RP_NODISCARD bool rp_wire_next_update(rp_pb_reader *reader, uint32_t number, rp_update *update);

/* Copies the KeyWithPriority fields of that number of a message that has been checked. */
void rp_wire_copy_updates(const uint8_t *data, size_t size, uint32_t number,
                          rp_update *updates);

/* An int32 is what the low 32 bits of its varint say. */
static inline int32_t rp_wire_int32(const rp_pb_field *field)
{
    return (int32_t)(uint32_t)field->value;
}

static inline double rp_wire_double(const rp_pb_field *field)
{
    double value;
    memcpy(&value, &field->value, sizeof value);
    return value;
}

/* 0, and what is empty, are left out. An int32 or int64 goes in as (uint64_t)(int64_t). */
void rp_wire_put_number(rp_buf *out, uint32_t number, uint64_t value);
void rp_wire_put_int(rp_buf *out, uint32_t number, int64_t value);
void rp_wire_put_double(rp_buf *out, uint32_t number, double value);
void rp_wire_put_bytes(rp_buf *out, uint32_t number, const void *data, size_t size);
void rp_wire_put_text(rp_buf *out, uint32_t number, const char *text); /* NULL is fine */

/* The same, written even if it has its default: for oneofs and optional fields. */
void rp_wire_put_number_always(rp_buf *out, uint32_t number, uint64_t value);
void rp_wire_put_bytes_always(rp_buf *out, uint32_t number, const void *data, size_t size);

/* KeyWithPriority, as often as there are updates. */
void rp_wire_put_updates(rp_buf *out, uint32_t number, const rp_update *updates, size_t count);

/* Repeated numbers, packed; none: nothing. */
void rp_wire_put_packed(rp_buf *out, uint32_t number, const uint64_t *values, size_t count);

/* A submessage: what is written between begin and end is its contents. One byte is kept free
 * for its length; contents of 128 bytes and more are moved up when it ends. `mark` is what
 * begin returned. Submessages end in the reverse order of their beginnings. */
size_t rp_wire_begin(rp_buf *out, uint32_t number);
void rp_wire_end(rp_buf *out, size_t mark);

#endif
