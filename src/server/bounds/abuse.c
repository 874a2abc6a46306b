/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/abuse.h"

const char *rp_abuse_name(rp_abuse_kind kind)
{
    switch (kind) {
    case RP_ABUSE_CLIENT_RESET: return "client_reset";
    case RP_ABUSE_SERVER_RESET: return "server_reset";
    case RP_ABUSE_PING: return "ping";
    case RP_ABUSE_SETTINGS: return "settings";
    case RP_ABUSE_EMPTY_FRAME: return "empty_frame";
    case RP_ABUSE_WINDOW_UPDATE: return "window_update";
    case RP_ABUSE_PRIORITY: return "priority";
    case RP_ABUSE_BAD_FRAME: return "bad_frame";
    case RP_ABUSE_UNKNOWN_FRAME: return "unknown_frame";
    case RP_ABUSE_REFUSED_STREAM: return "refused_stream";
    case RP_ABUSE_TLS_RECORD: return "tls_record";
    case RP_ABUSE_LATE_FRAME: return "late_frame";
    case RP_ABUSE_FRAGMENT: return "fragment";
    case RP_ABUSE_TABLE_SIZE: return "table_size";
    case RP_ABUSE_KINDS: break;
    }
    return "unknown";
}

rp_bucket_rate rp_abuse_rate(const rp_server_limits *limits)
{
    return rp_bucket_rate_of(limits->abuse_burst, limits->abuse_per_second);
}
