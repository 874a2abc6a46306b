/* SPDX-License-Identifier: Apache-2.0 */
/* Reads consecutive records of a manifest: a kind, two bytes of length, a payload. Their
 * checksums are assumed to be correct. If the input ends with a record of kind 255, an END
 * record with the correct checksum of the manifest is made. CURRENT is read as it is. */
#include "durable/format/manifest.h"
#include "durable/format/manifest_hash.h"
#include "fuzz_memory.h"

enum { MAKE_END = 255, MAX_KINDS = RP_RECORD_ROLLOUTS - RP_RECORD_STORE + 1 };

static void end_it(rp_manifest_reader *reader, const rp_manifest_hash *hash, uint64_t records,
                   uint64_t tables, uint64_t segments)
{
    uint8_t payload[40];
    rp_record record = {RP_RECORD_END, records + 1, payload, sizeof payload, 0};
    rp_manifest *m = NULL;

    rp_put_u64(payload, records);
    rp_put_u64(payload + 8, tables);
    rp_put_u64(payload + 16, segments);
    rp_manifest_hash_take(hash, payload + 24);
    if (rp_manifest_reader_add(reader, &record, NULL) != RP_OK ||
        rp_manifest_reader_take(reader, &m, NULL) != RP_OK)
        return;
    fuzz_check(!m->store.rollouts.is_there ||
               (m->store.rollouts.lsn >= m->store.lsn && m->store.rollouts.count <= 256));
    for (size_t i = 1; i < m->segment_count; i++)
        fuzz_check(m->segments[i - 1].number < m->segments[i].number);
    for (size_t t = 0; t < m->table_count; t++)
        for (int w = 0; w < 2; w++)
            for (uint64_t i = 0; i < m->tables[t].state.set_counts[w]; i++)
                fuzz_check(m->tables[t].sets[w][i] < m->tables[t].state.slots_used);
    rp_manifest_free(m);
}

static void check_records(const rp_allocator *alloc, fuzz_input *in)
{
    static _Alignas(64) rp_manifest_hash hash;
    rp_manifest_reader *reader = NULL;
    uint64_t number = 0, tables = 0, segments = 0;

    if (rp_manifest_reader_new(alloc, &reader) != RP_OK) return;
    rp_manifest_hash_init(&hash);
    while (fuzz_left(in) > 0) {
        uint8_t kind = fuzz_byte(in);
        size_t size;
        rp_record record = {.kind = (rp_record_kind)(RP_RECORD_STORE + kind % MAX_KINDS),
                            .number = ++number};

        if (kind == MAKE_END) {
            end_it(reader, &hash, number - 1, tables, segments);
            break;
        }
        size = fuzz_short(in);
        if (size > fuzz_left(in)) size = fuzz_left(in);
        record.payload = in->at;
        record.size = size;
        in->at += size;
        if (rp_manifest_reader_add(reader, &record, NULL) != RP_OK) break;
        rp_manifest_hash_add(&hash, &record);
        tables += record.kind == RP_RECORD_TABLE;
        if (record.kind == RP_RECORD_SEGMENTS && size > 0) segments += record.payload[0];
    }
    rp_manifest_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size > 0 ? data + size : data};
    uint8_t mode = fuzz_byte(&in);
    fuzz_memory memory = {.fails = (mode & 2) != 0, .until = mode >> 2};
    rp_allocator alloc = fuzz_memory_allocator(&memory);
    rp_current current;

    if (size > FUZZ_MAX_BYTES) return 0;
    if (mode & 1) {
        if (rp_current_decode(in.at, fuzz_left(&in), &current, NULL) == RP_OK) {
            uint8_t bytes[RP_CURRENT_BYTES];

            rp_current_encode(&current, bytes);
            fuzz_check(fuzz_left(&in) == sizeof bytes &&
                       memcmp(bytes, in.at, sizeof bytes) == 0);
        }
    } else {
        check_records(&alloc, &in);
    }
    fuzz_check(memory.live == 0 && memory.live_bytes == 0);
    return 0;
}
