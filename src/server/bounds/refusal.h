/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons for which the server refuses a call or closes a connection. Metrics and logs use
 * the words below. docs/security.md says which limit causes which refusal. */
#ifndef RP_SERVER_BOUNDS_REFUSAL_H
#define RP_SERVER_BOUNDS_REFUSAL_H

/* X(NAME, "word") */
#define RP_REFUSALS(X)                                                                         \
    /* limits of rp_server_limits, in their order */                                           \
    X(CONNECTIONS, "connections")                                                              \
    X(STREAMS, "streams")                                                                      \
    X(CALLS, "calls")                                                                          \
    X(MESSAGE_BYTES, "message_bytes")                                                          \
    X(CHUNK_BYTES, "chunk_bytes")                                                              \
    X(TENSOR_BYTES, "tensor_bytes")                                                            \
    X(ITEM_BYTES, "item_bytes")                                                                \
    X(COLUMNS, "columns")                                                                      \
    X(SLICES, "slices")                                                                        \
    X(ITEMS, "items")                                                                          \
    X(KEYS, "keys")                                                                            \
    X(DISTINCT_SAMPLES, "distinct_samples")                                                    \
    X(STREAM_PINNED, "stream_pinned_bytes")                                                    \
    X(CONNECTION_PINNED, "connection_pinned_bytes")                                            \
    X(PINNED, "pinned_bytes")                                                                  \
    X(CHUNKS, "chunks")                                                                        \
    X(STREAM_QUEUED, "stream_queued_bytes")                                                    \
    X(CONNECTION_QUEUED, "connection_queued_bytes")                                            \
    X(QUEUED, "queued_bytes")                                                                  \
    X(HEADER_BYTES, "header_bytes")                                                            \
    X(HEADER_FIELDS, "header_fields")                                                          \
    X(ABUSE, "abuse")                                                                          \
    X(HANDSHAKE, "handshake")                                                                  \
    X(STALL, "stall")                                                                          \
    X(SLOW_MESSAGE, "slow_message")                                                            \
    X(PING_TIMEOUT, "ping_timeout")                                                            \
    X(TABLES, "tables")                                                                        \
    /* other reasons */                                                                        \
    X(DESCRIPTORS, "descriptors") /* none left for a connection */                             \
    X(MEMORY, "memory")           /* an allocation failed */                                   \
    X(TLS, "tls")                 /* a handshake that failed */                                \
    X(PROTOCOL, "protocol")       /* bytes that are no HTTP/2 */                               \
    X(FRAMING, "framing")         /* DATA that is no gRPC message */                           \
    X(COMPRESSION, "compression") /* a message compressed by gRPC */                           \
    X(DECODE, "decode")           /* a message that cannot be decoded */                       \
    X(UNKNOWN_METHOD, "unknown_method")                                                        \
    X(UNAUTHENTICATED, "unauthenticated") /* credentials missing or wrong */                   \
    X(AUTH_BRAKE, "auth_brake")           /* too many wrong tokens from an address */          \
    X(DENIED, "denied")                   /* a role too low */                                 \
    X(RESET_OFF, "reset_off")                                                                  \
    X(DRAINING, "draining")                                                                    \
    X(LOADING, "loading")                                                                      \
    X(JOURNAL, "journal")                   /* a change while the journal is behind */         \
    X(PAGE_HOST, "page_host")               /* a request for an unknown host name: page.h */   \
    X(PAGE_CONNECTIONS, "page_connections") /* too many connections of HTTP/1.1 */

#define RP_REFUSAL_ENUM(name, word) RP_REFUSED_##name,
typedef enum rp_refusal { RP_REFUSALS(RP_REFUSAL_ENUM) RP_REFUSAL_COUNT } rp_refusal;
#undef RP_REFUSAL_ENUM

/* Returns the name of a reason, "connections" for example. The text is static. */
const char *rp_refusal_name(rp_refusal refusal);

#endif
