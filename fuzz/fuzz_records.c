/* SPDX-License-Identifier: Apache-2.0 */
/* Reads headers of files and records. A header that is accepted must be written to the same
 * bytes again, and must be refused after one of its bits was flipped. The first byte says what
 * is done with the rest:
 *
 *   bit 0   checksums are corrected first, so that the fields after them are parsed
 *   bit 1   the input is a record, not a file header
 *   2 .. 7  the bit that is flipped in an accepted header */
#include "disk/record.h"
#include "fuzz.h"
#include "util/little_endian.h"

static uint8_t bytes[FUZZ_MAX_BYTES];

static void mend(size_t size, size_t crc_at)
{
    if (size >= crc_at + 4) rp_put_u32(bytes + crc_at, rp_crc32c(0, bytes, crc_at));
}

static void file_header(size_t size, bool right, size_t bit)
{
    uint8_t again[RP_FILE_HEADER_BYTES];
    rp_file_header header;
    uint32_t crc;
    rp_status st;

    if (right) mend(size, 60);
    st = rp_file_header_read(bytes, size, &header, &crc, NULL);
    fuzz_check(st == RP_OK || st == RP_CORRUPT || st == RP_PRECONDITION);
    if (st != RP_OK) return;
    fuzz_check(rp_file_header_write(again, &header) == crc);
    fuzz_check(memcmp(again, bytes, sizeof again) == 0);
    bytes[bit * 8 % sizeof again] ^= (uint8_t)(1 << bit % 8);
    fuzz_check(rp_file_header_read(bytes, size, &header, &crc, NULL) == RP_CORRUPT);
}

static void record(size_t size, bool right, size_t bit)
{
    uint8_t again[RP_RECORD_HEADER_BYTES];
    uint32_t before = 0, payload_crc;
    rp_record r;
    rp_status st;

    if (right && size >= RP_RECORD_HEADER_BYTES) {
        size_t length = size - RP_RECORD_HEADER_BYTES;
        if (rp_get_u32(bytes) < length) length = rp_get_u32(bytes);
        rp_put_u32(bytes + 20, rp_crc32c(0, bytes + RP_RECORD_HEADER_BYTES, length));
        mend(size, 28);
    }
    st = rp_record_header_read(bytes, size, &r, &before, &payload_crc, NULL);
    fuzz_check(st == RP_OK || st == RP_CORRUPT);
    if (st == RP_OK) fuzz_check(r.size <= RP_MAX_RECORD_BYTES && r.payload == NULL);
    st = rp_record_read(bytes, size, &before, &r, NULL);
    fuzz_check(st == RP_OK || st == RP_CORRUPT);
    if (st != RP_OK) return;
    fuzz_check(r.payload == bytes + RP_RECORD_HEADER_BYTES);
    fuzz_check(r.size <= size - RP_RECORD_HEADER_BYTES);
    fuzz_check(rp_record_write(again, r.kind, r.number, before, r.payload, r.size) == r.crc);
    fuzz_check(memcmp(again, bytes, sizeof again) == 0);
    before++;
    fuzz_check(rp_record_read(bytes, size, &before, &r, NULL) == RP_CORRUPT);
    bytes[bit * 8 % (RP_RECORD_HEADER_BYTES + r.size)] ^= (uint8_t)(1 << bit % 8);
    fuzz_check(rp_record_read(bytes, size, NULL, &r, NULL) == RP_CORRUPT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > FUZZ_MAX_BYTES) return 0;
    memcpy(bytes, data + 1, size - 1);
    if (data[0] & 2)
        record(size - 1, data[0] & 1, data[0] >> 2);
    else
        file_header(size - 1, data[0] & 1, data[0] >> 2);
    return 0;
}
