/* SPDX-License-Identifier: Apache-2.0 */
/* The abuse budget of a connection: a token bucket from which each suspicious event takes a
 * token. Such events are cheap for the peer, cost the server work, and are rare in honest use.
 * When the budget is spent, the server ends the connection with GOAWAY(ENHANCE_YOUR_CALM).
 *
 * Each connection has its own rp_abuse. */
#ifndef RP_SERVER_BOUNDS_ABUSE_H
#define RP_SERVER_BOUNDS_ABUSE_H

#include "reprise/server.h"
#include "server/bounds/bucket.h"

typedef enum rp_abuse_kind {
    RP_ABUSE_CLIENT_RESET,   /* RST_STREAM from the peer */
    RP_ABUSE_SERVER_RESET,   /* a RST_STREAM that the peer made the server send */
    RP_ABUSE_PING,           /* more PINGs than the server's data explains, or an
                                acknowledgement of a PING that the server has not sent */
    RP_ABUSE_SETTINGS,       /* SETTINGS after the first */
    RP_ABUSE_EMPTY_FRAME,    /* empty DATA that does not end its call; a small CONTINUATION */
    RP_ABUSE_WINDOW_UPDATE,  /* more WINDOW_UPDATE frames than the server's data and calls
                                explain */
    RP_ABUSE_PRIORITY,       /* PRIORITY */
    RP_ABUSE_BAD_FRAME,      /* a frame that HTTP/2 forbids and that does not end the session */
    RP_ABUSE_UNKNOWN_FRAME,  /* a frame of an unknown type, GOAWAY, or headers far over their
                                limits */
    RP_ABUSE_REFUSED_STREAM, /* a call beyond the limit of open calls */
    RP_ABUSE_TLS_RECORD,     /* a TLS record without data: KeyUpdate, alert, renegotiation */
    RP_ABUSE_LATE_FRAME,     /* DATA or RST_STREAM of a call that is over */
    RP_ABUSE_FRAGMENT,   /* DATA with only a few bytes of a message, which stays incomplete */
    RP_ABUSE_TABLE_SIZE, /* more HPACK size updates than a header block may need */
    RP_ABUSE_KINDS,
} rp_abuse_kind;

/* Returns the name of a kind in metrics and logs, "client_reset" for example. The text is
 * static. */
const char *rp_abuse_name(rp_abuse_kind kind);

typedef struct rp_abuse {
    rp_bucket bucket;   /* zeroed: nothing has been charged */
    rp_abuse_kind last; /* kind of the last event: the reason to log once the budget is spent */
} rp_abuse;

/* Returns the rate that the limits abuse_burst and abuse_per_second give. The caller must have
 * completed `limits` (rp_server_limits_complete()). */
rp_bucket_rate rp_abuse_rate(const rp_server_limits *limits);

/* Charges one event. Returns false if the budget is spent: the caller must then end the
 * connection. */
static inline bool rp_abuse_spend(rp_abuse *abuse, const rp_bucket_rate *rate,
                                  rp_abuse_kind kind, int64_t now_ns)
{
    abuse->last = kind;
    return rp_bucket_spend(&abuse->bucket, rate, now_ns);
}

#endif
