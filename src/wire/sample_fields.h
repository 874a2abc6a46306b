/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers of the responses of SampleStream (proto/reverb) and SampleShared
 * (proto/reprise/v1). sample_response.c writes these fields, sample_reader.c reads them. */
#ifndef RP_WIRE_SAMPLE_FIELDS_H
#define RP_WIRE_SAMPLE_FIELDS_H

enum {
    RP_PB_RESPONSE_ENTRY = 1,
    RP_PB_ENTRY_INFO = 1,
    RP_PB_ENTRY_CHUNK = 2,
    RP_PB_ENTRY_END = 3,
    RP_PB_ENTRY_HOLD = 4,
    RP_PB_ENTRY_SHARED = 5,
    RP_PB_SHARED_OFFSET = 1,
    RP_PB_SHARED_SIZE = 2,
    RP_PB_INFO_ITEM = 1,
    RP_PB_INFO_PROBABILITY = 2,
    RP_PB_INFO_TABLE_SIZE = 3,
    RP_PB_INFO_RATE_LIMITED = 4,
};

#endif
