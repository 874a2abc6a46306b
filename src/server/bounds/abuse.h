/* SPDX-License-Identifier: Apache-2.0 */
/* The abuse budget of a connection: one for everything that is cheap to send, costs us work and
 * has little honest use in numbers. When it is spent, the connection gets
 * GOAWAY(ENHANCE_YOUR_CALM).
 *
 * A plain value, one a connection. */
#ifndef RP_SERVER_BOUNDS_ABUSE_H
#define RP_SERVER_BOUNDS_ABUSE_H

#include "reprise/server.h"
#include "server/bounds/bucket.h"

typedef enum rp_abuse_kind {
    RP_ABUSE_CLIENT_RESET,   /* RST_STREAM from the peer */
    RP_ABUSE_SERVER_RESET,   /* a RST_STREAM that the peer made us send */
    RP_ABUSE_PING,           /* PING, or an answer to none of ours */
    RP_ABUSE_SETTINGS,       /* SETTINGS after the first */
    RP_ABUSE_EMPTY_FRAME,    /* DATA without bytes that ends nothing, a small CONTINUATION */
    RP_ABUSE_WINDOW_UPDATE,  /* WINDOW_UPDATE, more than our data and the calls explain */
    RP_ABUSE_PRIORITY,       /* PRIORITY */
    RP_ABUSE_BAD_FRAME,      /* a frame that HTTP/2 forbids, where that does not end it all */
    RP_ABUSE_UNKNOWN_FRAME,  /* of a type that we do not know, or GOAWAY */
    RP_ABUSE_REFUSED_STREAM, /* a call over the limit of calls */
    RP_ABUSE_TLS_RECORD,     /* a TLS record without data: KeyUpdate, alert, renegotiation */
    RP_ABUSE_LATE_FRAME,     /* DATA or RST_STREAM of a call that is over */
    RP_ABUSE_FRAGMENT,       /* DATA with a few bytes of a message that do not complete it */
    RP_ABUSE_TABLE_SIZE,     /* an HPACK size update more than its header block may need */
    RP_ABUSE_KINDS,
} rp_abuse_kind;

/* "client_reset" and so on: the word in metrics and logs. Static. */
const char *rp_abuse_name(rp_abuse_kind kind);

typedef struct rp_abuse {
    rp_bucket bucket;   /* zero: nothing spent yet */
    rp_abuse_kind last; /* what was spent last: what to blame once it is empty */
} rp_abuse;

/* The rate that the limits (with no zeros left in them) allow. */
rp_bucket_rate rp_abuse_rate(const rp_server_limits *limits);

/* Counts one event. False if the budget is spent: end the connection. */
static inline bool rp_abuse_spend(rp_abuse *abuse, const rp_bucket_rate *rate,
                                  rp_abuse_kind kind, int64_t now_ns)
{
    abuse->last = kind;
    return rp_bucket_spend(&abuse->bucket, rate, now_ns);
}

#endif
