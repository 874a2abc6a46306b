/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/record.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "util/error.h"
#include "util/little_endian.h"

static const uint8_t magic[8] = {'R', 'P', 'R', 'S', 'T', 'O', 'R', 'E'};

/* Offsets of the fields. */
enum {
    FILE_VERSION = 8,
    FILE_KIND = 12,
    FILE_COMPAT = 16,
    FILE_READ_ONLY = 20,
    FILE_INCOMPAT = 24,
    FILE_STORE = 28,
    FILE_NUMBER = 44,
    FILE_ZERO = 52,
    FILE_CRC = 60,

    RECORD_LENGTH = 0,
    RECORD_KIND = 4,
    RECORD_ZERO = 6,
    RECORD_NUMBER = 8,
    RECORD_BEFORE = 16,
    RECORD_PAYLOAD_CRC = 20,
    RECORD_ZERO_2 = 24,
    RECORD_CRC = 28,
};

uint32_t rp_file_header_write(uint8_t out[RP_FILE_HEADER_BYTES], const rp_file_header *header)
{
    uint32_t crc;

    memset(out, 0, RP_FILE_HEADER_BYTES);
    memcpy(out, magic, sizeof magic);
    rp_put_u32(out + FILE_VERSION, header->version);
    rp_put_u32(out + FILE_KIND, (uint32_t)header->kind);
    rp_put_u32(out + FILE_COMPAT, header->compat);
    rp_put_u32(out + FILE_READ_ONLY, header->read_only);
    rp_put_u32(out + FILE_INCOMPAT, header->incompat);
    memcpy(out + FILE_STORE, header->store.bytes, sizeof header->store.bytes);
    rp_put_u64(out + FILE_NUMBER, header->number);
    crc = rp_crc32c(0, out, FILE_CRC);
    rp_put_u32(out + FILE_CRC, crc);
    return crc;
}

rp_status rp_file_header_read(const uint8_t *data, size_t size, rp_file_header *out,
                              uint32_t *crc, rp_error *err)
{
    rp_file_header h = {0};
    uint32_t sum, kind;

    if (size < RP_FILE_HEADER_BYTES)
        return rp_fail(err, RP_CORRUPT, "file header: %zu bytes of %d are there", size,
                       RP_FILE_HEADER_BYTES);
    if (memcmp(data, magic, sizeof magic) != 0)
        return rp_fail(err, RP_CORRUPT, "file header: it does not begin with RPRSTORE");
    sum = rp_crc32c(0, data, FILE_CRC);
    if (rp_get_u32(data + FILE_CRC) != sum)
        return rp_fail(err, RP_CORRUPT,
                       "file header: its checksum is %08" PRIx32 ", not %08" PRIx32, sum,
                       rp_get_u32(data + FILE_CRC));
    /* The checksum is right: what follows is newer or wrong, but no damage. */
    h.version = rp_get_u32(data + FILE_VERSION);
    if (h.version > RP_FORMAT_VERSION)
        return rp_fail(err, RP_PRECONDITION,
                       "file header: version %" PRIu32 " of the format is newer than %d",
                       h.version, RP_FORMAT_VERSION);
    h.incompat = rp_get_u32(data + FILE_INCOMPAT);
    if ((h.incompat & ~(uint32_t)RP_FEATURES) != 0)
        return rp_fail(err, RP_PRECONDITION,
                       "file header: unknown features 0x%" PRIx32 " are needed to read it",
                       h.incompat & ~(uint32_t)RP_FEATURES);
    kind = rp_get_u32(data + FILE_KIND);
    if (h.version == 0 || kind < RP_FILE_CURRENT || kind > RP_FILE_ROLLOUTS ||
        rp_get_u64(data + FILE_ZERO) != 0)
        return rp_fail(err, RP_CORRUPT, "file header: version %" PRIu32 ", kind %" PRIu32,
                       h.version, kind);
    h.kind = (rp_file_kind)kind;
    h.compat = rp_get_u32(data + FILE_COMPAT);
    h.read_only = rp_get_u32(data + FILE_READ_ONLY);
    memcpy(h.store.bytes, data + FILE_STORE, sizeof h.store.bytes);
    h.number = rp_get_u64(data + FILE_NUMBER);
    *out = h;
    if (crc != NULL) *crc = sum;
    return RP_OK;
}

uint32_t rp_record_write(uint8_t out[RP_RECORD_HEADER_BYTES], rp_record_kind kind,
                         uint64_t number, uint32_t before, const void *payload, size_t size)
{
    uint32_t crc;

    assert(size <= RP_MAX_RECORD_BYTES && (unsigned)kind <= UINT16_MAX);
    memset(out, 0, RP_RECORD_HEADER_BYTES);
    rp_put_u32(out + RECORD_LENGTH, (uint32_t)size);
    rp_put_u16(out + RECORD_KIND, (uint16_t)kind);
    rp_put_u64(out + RECORD_NUMBER, number);
    rp_put_u32(out + RECORD_BEFORE, before);
    rp_put_u32(out + RECORD_PAYLOAD_CRC, rp_crc32c(0, payload, size));
    crc = rp_crc32c(0, out, RECORD_CRC);
    rp_put_u32(out + RECORD_CRC, crc);
    return crc;
}

rp_status rp_record_header_read(const uint8_t *data, size_t size, rp_record *out,
                                uint32_t *before, uint32_t *payload_crc, rp_error *err)
{
    uint32_t crc, length;

    if (size < RP_RECORD_HEADER_BYTES)
        return rp_fail(err, RP_CORRUPT, "record header: %zu bytes of %d are there", size,
                       RP_RECORD_HEADER_BYTES);
    crc = rp_crc32c(0, data, RECORD_CRC);
    if (rp_get_u32(data + RECORD_CRC) != crc)
        return rp_fail(err, RP_CORRUPT,
                       "record header: its checksum is %08" PRIx32 ", not %08" PRIx32, crc,
                       rp_get_u32(data + RECORD_CRC));
    length = rp_get_u32(data + RECORD_LENGTH);
    if (length > RP_MAX_RECORD_BYTES)
        return rp_fail(err, RP_CORRUPT, "record header: %" PRIu32 " bytes are more than %d",
                       length, RP_MAX_RECORD_BYTES);
    if (rp_get_u16(data + RECORD_ZERO) != 0 || rp_get_u32(data + RECORD_ZERO_2) != 0)
        return rp_fail(err, RP_CORRUPT, "record header: a field that must be zero is not");
    *out = (rp_record){.kind = (rp_record_kind)rp_get_u16(data + RECORD_KIND),
                       .number = rp_get_u64(data + RECORD_NUMBER),
                       .size = length,
                       .crc = crc};
    if (before != NULL) *before = rp_get_u32(data + RECORD_BEFORE);
    if (payload_crc != NULL) *payload_crc = rp_get_u32(data + RECORD_PAYLOAD_CRC);
    return RP_OK;
}

rp_status rp_record_read(const uint8_t *data, size_t size, const uint32_t *before,
                         rp_record *out, rp_error *err)
{
    uint32_t chained = 0, payload_crc = 0, crc;
    rp_record record = {0};
    rp_status st = rp_record_header_read(data, size, &record, &chained, &payload_crc, err);

    if (st != RP_OK) return st;
    if (before != NULL && chained != *before)
        return rp_fail(err, RP_CORRUPT,
                       "record: it follows one with checksum %08" PRIx32 ", not %08" PRIx32,
                       chained, *before);
    if (record.size > size - RP_RECORD_HEADER_BYTES)
        return rp_fail(err, RP_CORRUPT, "record: %zu bytes of its %zu are there",
                       size - RP_RECORD_HEADER_BYTES, record.size);
    record.payload = data + RP_RECORD_HEADER_BYTES;
    crc = rp_crc32c(0, record.payload, record.size);
    if (crc != payload_crc)
        return rp_fail(err, RP_CORRUPT,
                       "record: the checksum of its payload is %08" PRIx32 ", not %08" PRIx32,
                       crc, payload_crc);
    *out = record;
    return RP_OK;
}
