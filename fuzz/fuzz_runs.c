/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the readers of runs. The first byte of the input chooses the reader, the second one
 * when allocations fail; the rest is what the reader gets, in a block of exactly its size.
 *
 *   0  LogScalarsRequest     1  ReadRunsRequest     2  LogScalarsResponse, ReadRunsResponse
 *   3  the JSON body of POST /v1/runs/RUN           4  the image of a run in a checkpoint
 *
 * What 0, 3 and 4 accept goes into a set of runs with a small bound, whose invariants must hold
 * afterwards; its texts must be written without a fault. */
#include "fuzz_memory.h"
#include "runs/run_text.h"
#include "server/http/run_body.h"
#include "wire/run_messages.h"

enum { MOST_BYTES = 100000 };

typedef void fuzz_reader(const rp_allocator *alloc, const uint8_t *data, size_t size);

static void check_status(rp_status st, const rp_error *err)
{
    fuzz_check(st == RP_OK || st == RP_INVALID || st == RP_CORRUPT || st == RP_NO_RESOURCE);
    fuzz_check((st == RP_OK) == (err->text[0] == '\0'));
}

/* Writes every text of the runs, and saves and loads each of them. */
static void write_all(const rp_allocator *alloc, rp_runs *runs)
{
    static rp_run_view view;
    rp_runs *copy = rp_runs_new(alloc);
    rp_buf out;

    rp_buf_init(&out, alloc);
    fuzz_check(rp_runs_check(runs));
    rp_runs_write_list(runs, &out);
    for (uint64_t after = 0; rp_runs_next(runs, after, &view); after = view.id) {
        rp_string name = {view.name.text, strlen(view.name.text)};
        rp_run_page page = {.format = RP_RUN_EVENTS, .max_rows = 10, .more = true};

        rp_buf_clear(&out);
        (void)!rp_runs_write_json(runs, name, 0, &out, NULL);
        while (page.more && rp_runs_write_rows(runs, name, &page, &out, NULL) == RP_OK)
            ;
        rp_buf_clear(&out);
        rp_runs_save(runs, view.id, &out);
        if (copy != NULL && !out.bad)
            fuzz_check(rp_runs_load(copy, out.data, out.size, NULL) != RP_CORRUPT);
    }
    if (copy != NULL) fuzz_check(rp_runs_check(copy));
    rp_runs_free(copy);
    rp_buf_deinit(&out);
}

static void add(const rp_allocator *alloc, const rp_run_report *report)
{
    rp_runs *runs = rp_runs_new(alloc);
    rp_error err = {0};

    if (runs == NULL) return;
    rp_runs_set_most_bytes(runs, MOST_BYTES);
    for (int i = 0; i < 3; i++) {
        err = (rp_error){0};
        check_status(rp_runs_report(runs, report, 5, NULL, &err), &err);
    }
    write_all(alloc, runs);
    rp_runs_free(runs);
}

static void read_report(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_wire_report report, again;
    rp_error err = {0};
    rp_status st = rp_wire_read_report(alloc, data, size, &report, &err);
    rp_buf out;

    check_status(st, &err);
    if (st != RP_OK) return;
    fuzz_check(report.report.scalar_count <= RP_REPORT_SCALARS &&
               report.report.actor_count <= RP_REPORT_ACTORS);
    add(alloc, &report.report);
    rp_buf_init(&out, alloc);
    rp_wire_write_report(&out, &report.report);
    if (!out.bad && rp_wire_read_report(alloc, out.data, out.size, &again, NULL) == RP_OK) {
        fuzz_check(again.report.scalar_count == report.report.scalar_count);
        fuzz_check(again.report.run.size == report.report.run.size);
        rp_wire_report_deinit(&again, alloc);
    }
    rp_buf_deinit(&out);
    rp_wire_report_deinit(&report, alloc);
}

static void read_request(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_wire_read_runs request;
    rp_error err = {0};

    (void)alloc;
    check_status(rp_wire_read_runs_request(data, size, &request, &err), &err);
}

static void read_responses(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_wire_runs_page page;
    uint64_t dropped;
    rp_error err = {0};
    rp_status st = rp_wire_read_runs_page(data, size, &page, &err);

    (void)alloc;
    check_status(st, &err);
    if (st == RP_OK && page.data.size > 0)
        fuzz_check((const uint8_t *)page.data.data >= data &&
                   page.data.size <= (size_t)(data + size - (const uint8_t *)page.data.data));
    err = (rp_error){0};
    check_status(rp_wire_read_report_response(data, size, &dropped, &err), &err);
}

static void read_body(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    static rp_run_body body;
    rp_body in;

    if (size > RP_ASK_BODY_BYTES) return;
    rp_body_init(&in, data, size);
    if (!rp_run_body_read(&in, (rp_string){"run", 3}, &body)) {
        fuzz_check(in.what != NULL && in.byte <= size);
        return;
    }
    add(alloc, &body.report);
}

static void read_image(const rp_allocator *alloc, const uint8_t *data, size_t size)
{
    rp_runs *runs = rp_runs_new(alloc);
    rp_error err = {0};

    if (runs == NULL) return;
    rp_runs_set_most_bytes(runs, MOST_BYTES);
    check_status(rp_runs_load(runs, data, size, &err), &err);
    write_all(alloc, runs);
    rp_runs_free(runs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fuzz_reader *const readers[] = {read_report, read_request, read_responses, read_body,
                                           read_image};
    fuzz_memory memory = {0};
    rp_allocator alloc = fuzz_memory_allocator(&memory);
    uint8_t *message;

    if (size < 2 || size > FUZZ_MAX_BYTES) return 0;
    memory.fails = data[1] > 0;
    memory.until = data[1] > 0 ? data[1] - 1u : 0;
    message = malloc(size - 1);
    fuzz_check(message != NULL);
    memcpy(message, data + 2, size - 2);
    readers[data[0] % (sizeof readers / sizeof readers[0])](&alloc, message, size - 2);
    free(message);
    fuzz_check(memory.live == 0 && memory.live_bytes == 0);
    return 0;
}
