/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses, error texts, and the few macros that every other header uses.
 *
 * A call that can fail returns an rp_status. Its results go to out-parameters. If the call
 * fails, it does not write the out-parameters; the comment on the call names any exception.
 * Many calls also take an `rp_error *err` as their last parameter: a buffer of the caller, to
 * which a call that fails writes the status and a text. The text names the object, the wrong
 * value and the bound. `err` may be NULL.
 *
 * In the comment on a call, "Errors:" is followed by the statuses that the call can return
 * besides RP_OK. "Returns owned" means that the caller must free the result. The caller must
 * not free a result that is "borrowed" or "static". A static result is valid for ever. "May be
 * NULL" and "NULL is fine" mean that the caller is allowed to pass NULL. */
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

/* The result of a call that can fail. The values are the gRPC canonical codes, so that the C
 * API, the wire and the Python exceptions share one numbering. Values never change meaning. */
typedef enum rp_status {
    RP_OK = 0,
    RP_CANCELLED = 1,        /* the object was closed, or the wait was cancelled */
    RP_INVALID = 3,          /* an argument is wrong; retrying cannot help */
    RP_DEADLINE = 4,         /* the deadline passed before the call was done */
    RP_NOT_FOUND = 5,        /* no such table, key, column, file or other object */
    RP_EXISTS = 6,           /* the name is taken */
    RP_DENIED = 7,           /* the caller is known, but not allowed to do this */
    RP_NO_RESOURCE = 8,      /* out of memory, or over a limit */
    RP_PRECONDITION = 9,     /* the object is in the wrong state for this call */
    RP_UNIMPLEMENTED = 12,   /* no such call, or not supported */
    RP_INTERNAL = 13,        /* a bug of the library */
    RP_UNAVAILABLE = 14,     /* the server or the disk cannot be used now; retry with backoff */
    RP_CORRUPT = 15,         /* damaged data: a checksum or a bound is wrong */
    RP_UNAUTHENTICATED = 16, /* credentials are missing or wrong */
} rp_status;

/* Returns the name of a status, such as "RP_OK", or "RP_UNKNOWN" for any other number.
 * Static. */
RP_API const char *rp_status_name(rp_status status);

enum { RP_ERROR_TEXT_BYTES = 256 };

/* A status and a text that explains it. Owned by the caller, who need not initialise it: a call
 * writes it only when it fails. */
typedef struct rp_error {
    rp_status code;
    char text[RP_ERROR_TEXT_BYTES]; /* lower case, no full stop, cut to fit; text from a peer or
                                       a file is escaped (printable.h) */
} rp_error;

RP_END_DECLS

#endif
