/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/health_messages.h"

#include <assert.h>

#include "wire/fields.h"

rp_status rp_wire_read_health_request(const uint8_t *data, size_t size, rp_string *service,
                                      rp_error *err)
{
    return rp_wire_read_only_text(data, size, "HealthCheckRequest", "the service's name",
                                  service, err);
}

void rp_wire_write_health_response(rp_buf *out, rp_wire_serving status)
{
    assert(status <= RP_WIRE_SERVICE_UNKNOWN);
    rp_wire_put_number(out, 1, (uint64_t)status);
}
