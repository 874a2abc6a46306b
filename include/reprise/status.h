/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses, error messages, and the few macros every other header uses.
 *
 * A call that can fail returns an rp_status and nothing else; its results go to out-parameters,
 * which are written only on RP_OK unless the call says otherwise. Calls at the edges also take
 * an `rp_error *err` as their last parameter: a buffer of the caller's that receives the code
 * and a sentence naming the thing, the value and the bound. It may be NULL. */
#ifndef REPRISE_STATUS_H
#define REPRISE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RP_API __attribute__((visibility("default")))
#define RP_NODISCARD __attribute__((warn_unused_result))
#define RP_PRINTF(format_index, first_arg)                                                     \
    __attribute__((format(printf, format_index, first_arg)))
#else
#define RP_API
#define RP_NODISCARD
#define RP_PRINTF(format_index, first_arg)
#endif

#ifdef __cplusplus
#define RP_BEGIN_DECLS extern "C" {
#define RP_END_DECLS }
#else
#define RP_BEGIN_DECLS
#define RP_END_DECLS
#endif

RP_BEGIN_DECLS

/* What every fallible call returns. The values are the gRPC canonical codes, so that the C API,
 * the wire and the Python exceptions share one numbering. Values never change meaning. */
typedef enum rp_status {
    RP_OK = 0,
    RP_CANCELLED = 1,        /* closed, or cancelled by its owner, while waiting */
    RP_INVALID = 3,          /* the caller's mistake; retrying cannot help */
    RP_DEADLINE = 4,         /* the deadline passed first */
    RP_NOT_FOUND = 5,        /* no table, key or column of that name */
    RP_EXISTS = 6,           /* the name is taken */
    RP_DENIED = 7,           /* known, but not allowed to do this */
    RP_NO_RESOURCE = 8,      /* out of memory, or over a configured limit */
    RP_PRECONDITION = 9,     /* right call, wrong state */
    RP_UNIMPLEMENTED = 12,   /* no such call, or not supported */
    RP_INTERNAL = 13,        /* a bug of ours */
    RP_UNAVAILABLE = 14,     /* the peer is gone; retry with backoff */
    RP_CORRUPT = 15,         /* bytes failed a checksum or a bound */
    RP_UNAUTHENTICATED = 16, /* who are you? credentials are missing or wrong */
} rp_status;

/* The name of a status, "RP_OK" and so on. Static; "RP_UNKNOWN" for any other number. */
RP_API const char *rp_status_name(rp_status status);

enum { RP_ERROR_TEXT_BYTES = 256 };

/* A status with its sentence. The caller owns it; zero-initialise it or leave it as it is: it
 * is written only when a call fails. */
typedef struct rp_error {
    rp_status code;
    char text[RP_ERROR_TEXT_BYTES]; /* lower case, no full stop, cut to fit; printable, what
                                       others wrote is escaped in it (printable.h) */
} rp_error;

RP_END_DECLS

#endif
