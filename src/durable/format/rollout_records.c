/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/format/rollout_records.h"

#include <assert.h>

#include "durable/format/pack.h"
#include "util/error.h"

bool rp_rollout_record_is(rp_record_kind kind)
{
    return kind == RP_RECORD_ROLLOUTS_CREATE || kind == RP_RECORD_ROLLOUTS_OP ||
           kind == RP_RECORD_ROLLOUTS_DROP;
}

void rp_rollout_record_write_name(rp_buf *out, rp_string name)
{
    assert(name.size >= 1 && name.size <= RP_ROLLOUT_NAME_BYTES);
    rp_pack_number(out, name.size);
    rp_buf_append(out, name.data, name.size);
}

rp_status rp_rollout_record_read(rp_record_kind kind, const uint8_t *data, size_t size,
                                 rp_rollout_record *out, rp_error *err)
{
    rp_unpack in = rp_unpack_open(data, size);
    size_t name_size = (size_t)rp_unpack_bounded(&in, RP_ROLLOUT_NAME_BYTES);
    const char *name = (const char *)rp_unpack_bytes(&in, name_size);

    assert(rp_rollout_record_is(kind));
    if (name_size == 0 || name == NULL || memchr(name, '\0', name_size) != NULL) in.bad = true;
    if (kind == RP_RECORD_ROLLOUTS_DROP && rp_unpack_left(&in) > 0) in.bad = true;
    if (in.bad)
        return rp_fail(err, RP_CORRUPT,
                       "journal record of kind %d: its %zu bytes are malformed", (int)kind,
                       size);
    out->name = (rp_string){name, name_size};
    out->body = (rp_bytes){in.at, rp_unpack_left(&in)};
    return RP_OK;
}
