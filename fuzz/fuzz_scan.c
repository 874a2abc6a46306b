/* SPDX-License-Identifier: Apache-2.0 */
/* Scans a segment with arbitrary bytes. The first byte says which checksums are corrected, so
 * that the fields after them are parsed: bit 0 that of the header, bit 1 those of the records
 * and of their chain. The next two bytes say which allocation fails, if any. */
#include "disk/records_scan.h"
#include "fuzz.h"
#include "fuzz_memory.h"
#include "util/little_endian.h"

static uint8_t bytes[FUZZ_MAX_BYTES];
static size_t byte_count;

/* The only file. */
static rp_file the_file;

static rp_status open_file(rp_files *fs, const char *path, rp_open_how how, rp_file **out,
                           rp_error *err)
{
    (void)path;
    (void)err;
    fuzz_check(how == RP_OPEN_READ);
    the_file.files = fs;
    *out = &the_file;
    return RP_OK;
}

static void close_file(rp_file *file)
{
    fuzz_check(file == &the_file);
}

static rp_status read_file(rp_file *file, uint64_t offset, void *data, size_t size, size_t *got,
                           rp_error *err)
{
    (void)file;
    (void)err;
    *got = offset >= byte_count ? 0 : byte_count - (size_t)offset;
    if (*got > size) *got = size;
    if (*got > 0) memcpy(data, bytes + offset, *got);
    return RP_OK;
}

static rp_status size_of_file(rp_file *file, uint64_t *out, rp_error *err)
{
    (void)file;
    (void)err;
    *out = byte_count;
    return RP_OK;
}

static const rp_files_ops ops = {
    .open = open_file, .close = close_file, .read = read_file, .size = size_of_file};

/* Corrects the checksums of all records that the lengths lead to. */
static void mend(void)
{
    uint32_t before = rp_get_u32(bytes + 60);
    size_t at = RP_FILE_HEADER_BYTES;

    while (byte_count - at >= RP_RECORD_HEADER_BYTES) {
        size_t left = byte_count - at - RP_RECORD_HEADER_BYTES, size = rp_get_u32(bytes + at);
        uint32_t kind = rp_get_u16(bytes + at + 4);

        if (size > left) size = left;
        before = rp_record_write(bytes + at, (rp_record_kind)kind, rp_get_u64(bytes + at + 8),
                                 before, bytes + at + RP_RECORD_HEADER_BYTES, size);
        at += RP_RECORD_HEADER_BYTES + size;
    }
}

typedef struct seen {
    uint64_t end, count;
} seen;

static bool visit(void *ctx, uint64_t offset, const rp_record *record)
{
    seen *s = ctx;

    fuzz_check(offset == s->end);
    s->end = offset + RP_RECORD_HEADER_BYTES + record->size;
    fuzz_check(s->end <= byte_count);
    fuzz_check(memcmp(record->payload, bytes + offset + RP_RECORD_HEADER_BYTES, record->size) ==
               0);
    s->count++;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rp_files files = {&ops};
    fuzz_memory memory = {0};
    rp_allocator alloc = fuzz_memory_allocator(&memory);
    seen s = {RP_FILE_HEADER_BYTES, 0};
    rp_file_header header;
    uint64_t end = 0;
    rp_status st;

    if (size < 1 || size > FUZZ_MAX_BYTES) return 0;
    byte_count = size - 1;
    memcpy(bytes, data + 1, byte_count);
    if (byte_count >= RP_FILE_HEADER_BYTES) {
        if (data[0] & 1) rp_put_u32(bytes + 60, rp_crc32c(0, bytes, 60));
        if (data[0] & 2) mend();
    }
    memory.fails = (data[0] & 12) != 0;
    memory.until = (size_t)(data[0] >> 2 & 3) - memory.fails;
    st = rp_records_scan(&(rp_records_scan_options){.alloc = &alloc,
                                                    .files = &files,
                                                    .path = "file",
                                                    .kind = RP_FILE_SEGMENT,
                                                    .each = visit,
                                                    .ctx = &s},
                         &header, &end, NULL);
    fuzz_check(st == RP_OK || st == RP_CORRUPT || st == RP_PRECONDITION ||
               (st == RP_NO_RESOURCE && memory.failed > 0));
    fuzz_check(memory.live == 0 && end <= byte_count);
    if (end > 0) fuzz_check(end == s.end);
    return 0;
}
