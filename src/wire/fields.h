/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the fields of protobuf messages, for the other files of this folder.
 *
 * Readers follow proto3. Fields may be in any order. If a field that is not declared as
 * repeated occurs several times, the last value of a scalar counts, and submessages are merged.
 * A field with an unknown number or the wrong type is skipped. Repeated numbers may be packed
 * or not. The results of readers borrow from the bytes.
 *
 * Writers omit default values. They append to an rp_buf, which sets `bad` when there is no
 * memory. So no writer returns an error: the caller must check `bad` at the end. */
#ifndef RP_WIRE_FIELDS_H
#define RP_WIRE_FIELDS_H

#include "chunk/protobuf.h"
#include "reprise/table.h"
#include "util/buf.h"

/* The largest size of the name of a table, a service or a type. */
enum { RP_WIRE_MAX_NAME_BYTES = RP_MAX_TABLE_NAME_BYTES };

/* Returns true if the bytes are text: UTF-8 without a zero byte, which is valid both in a
 * proto3 string and in a C string. */
bool rp_wire_is_text(const void *data, size_t size);

/* Reads a field of type string. `what` is its name for the error. Returns RP_INVALID if the
 * string is not text or has more than RP_WIRE_MAX_NAME_BYTES. */
RP_NODISCARD rp_status rp_wire_read_text(const rp_pb_field *field, const char *what,
                                         rp_string *out, rp_error *err);

/* Reads a message whose only field, number 1, is a string. The limits and errors are the same
 * as for rp_wire_read_text(). `*out` is "" if the field is absent. */
RP_NODISCARD rp_status rp_wire_read_only_text(const uint8_t *data, size_t size,
                                              const char *message, const char *what,
                                              rp_string *out, rp_error *err);

/* Sets the error for malformed bytes. `message` is the name of the message. Returns RP_INVALID.
 */
rp_status rp_wire_malformed(rp_error *err, const char *message);

/* For readers of responses. A malformed response is an error of the peer, not of the caller, so
 * RP_INVALID becomes RP_CORRUPT. Other statuses are returned unchanged. */
rp_status rp_wire_blame_peer(rp_status status, rp_error *err);

/* Adds to `*count` the number of values in one field of a `repeated uint64`, packed or not.
 * Returns false if the bytes are not varints. */
RP_NODISCARD bool rp_wire_count_numbers(const rp_pb_field *field, size_t *count);

/* Copies the values of a field that rp_wire_count_numbers() has counted. Returns the address
 * after the last value written. */
uint64_t *rp_wire_copy_numbers(const rp_pb_field *field, uint64_t *out);

/* Returns true if the field is a well-formed KeyWithPriority. */
RP_NODISCARD bool rp_wire_is_update(const rp_pb_field *field);

/* A fast path: reads the next field if it is a KeyWithPriority with the field number `number`
 * (below 16) that has first a key and then a priority. All known writers send the fields in
 * this order. If the result is false, nothing was read, and the caller must use rp_pb_next().
 */
RP_NODISCARD bool rp_wire_next_update(rp_pb_reader *reader, uint32_t number, rp_update *update);
/* As rp_wire_next_update(), but skips the field instead of reading it. */
RP_NODISCARD bool rp_wire_skip_update(rp_pb_reader *reader, uint32_t number);

/* Copies all KeyWithPriority fields with the field number `number`. The caller must have
 * checked the message before. */
void rp_wire_copy_updates(const uint8_t *data, size_t size, uint32_t number,
                          rp_update *updates);

/* Returns the value of an int32 field: the low 32 bits of its varint. */
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

/* Each of these functions appends a field with the number `number`, unless the value is 0 or
 * empty. To pass a signed value as uint64_t, sign-extend it first: (uint64_t)(int64_t)value. */
void rp_wire_put_number(rp_buf *out, uint32_t number, uint64_t value);
void rp_wire_put_int(rp_buf *out, uint32_t number, int64_t value);
void rp_wire_put_double(rp_buf *out, uint32_t number, double value);
void rp_wire_put_bytes(rp_buf *out, uint32_t number, const void *data, size_t size);
void rp_wire_put_text(rp_buf *out, uint32_t number, const char *text); /* NULL is fine */

/* These two functions append a field even if the value is 0 or empty, for oneofs and optional
 * fields. */
void rp_wire_put_number_always(rp_buf *out, uint32_t number, uint64_t value);
void rp_wire_put_bytes_always(rp_buf *out, uint32_t number, const void *data, size_t size);

/* Appends one KeyWithPriority field for each update. */
void rp_wire_put_updates(rp_buf *out, uint32_t number, const rp_update *updates, size_t count);

/* Appends a packed repeated field. Appends nothing if `count` is 0. */
void rp_wire_put_packed(rp_buf *out, uint32_t number, const uint64_t *values, size_t count);

/* Begin and end a submessage: fields written between the two calls are its content. One byte is
 * reserved for its length, so content of 128 bytes and more is moved when the submessage ends.
 * `mark` is the result of rp_wire_begin(). The caller must end nested submessages in the
 * reverse order of their beginnings. */
size_t rp_wire_begin(rp_buf *out, uint32_t number);
void rp_wire_end(rp_buf *out, size_t mark);

#endif
