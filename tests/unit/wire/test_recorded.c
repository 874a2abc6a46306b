/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded conversation of a Reverb client and server: every message is read, and is the same
 * bytes when it is written again. */
#include "support/echo.h"
#include "support/hex.h"
#include "support/recording.h"
#include "wire/fields.h"

static const char *const recording_name = "dm-reverb-0.14.txt";

/* Copies a ServerInfoResponse without what is in its TableWorkerTimes: tables of ours have no
 * worker. */
static void without_worker_times(const uint8_t *data, size_t size, rp_buf *out)
{
    rp_pb_reader reader = rp_pb_open(data, size), table;
    rp_pb_field f, part;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        size_t mark = rp_wire_begin(out, f.number);
        if (f.number != 2) rp_buf_append(out, f.data, f.size);
        table = rp_pb_open(f.data, f.number == 2 ? f.size : 0);
        for (const uint8_t *from = table.at; rp_pb_next(&table, &part) == RP_PB_FIELD;
             from = table.at) {
            if (part.number != 12) rp_buf_append(out, from, (size_t)(table.at - from));
            if (part.number == 12) rp_wire_put_bytes_always(out, 12, NULL, 0);
        }
        rp_wire_end(out, mark);
    }
}

static void expect_same(const rp_test_line *line, const char *message, const rp_buf *written,
                        const uint8_t *data, size_t size)
{
    if (!written->bad && written->size == size &&
        (size == 0 || memcmp(written->data, data, size) == 0))
        return;
    print_error("call %d: %s differs\n", line->call, message);
    fail();
}

/* Reads and writes one message; returns how many bytes it had. */
static size_t check_message(const rp_test_line *line, rp_buf *written, rp_buf *expected)
{
    char message[64];
    rp_error err = {0};

    (void)snprintf(message, sizeof message, "%s%s", line->method,
                   line->from_client ? "Request" : "Response");
    rp_buf_clear(written);
    rp_buf_clear(expected);
    assert_ok_err(rp_test_echo(message, line->data, line->size, written, &err), &err);
    if (rp_test_line_is(line, "ServerInfo", false))
        without_worker_times(line->data, line->size, expected);
    else
        rp_buf_append(expected, line->data, line->size);
    expect_same(line, message, written, expected->data, expected->size);
    return line->size;
}

static void recorded_messages_round_trip(void **state)
{
    rp_test_recording recording = rp_test_recording_read(recording_name);
    rp_buf written, expected;
    size_t messages = 0, bytes = 0;

    (void)state;
    rp_buf_init(&written, rp_allocator_default());
    rp_buf_init(&expected, rp_allocator_default());
    for (size_t i = 0; i < recording.count; i++) {
        if (recording.lines[i].event != NULL) continue;
        bytes += check_message(&recording.lines[i], &written, &expected);
        messages++;
    }
    assert_int_equal(messages, 84);
    assert_int_equal(bytes, 9642);
    rp_buf_deinit(&written);
    rp_buf_deinit(&expected);
    rp_test_recording_free(&recording);
}

/* Whether a line of a request that is cut off anywhere is refused or read as a shorter one,
 * never past its end: the block has exactly its size, for the sanitizers. */
static void recorded_messages_may_end_anywhere(void **state)
{
    rp_test_recording recording = rp_test_recording_read(recording_name);
    rp_buf out;
    size_t refused = 0, read = 0;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    for (size_t i = 0; i < recording.count; i++) {
        const rp_test_line *line = &recording.lines[i];
        char message[64];
        if (line->event != NULL || !line->from_client) continue;
        (void)snprintf(message, sizeof message, "%sRequest", line->method);
        for (size_t size = 0; size < line->size; size++) {
            uint8_t *cut = malloc(size + 1);
            rp_error err = {0};
            rp_status st;
            assert_non_null(cut);
            memcpy(cut, line->data, size);
            rp_buf_clear(&out);
            st = rp_test_echo_request(message, cut, size, &out, &err);
            assert_true(st == RP_OK || st == RP_INVALID);
            assert_true((st == RP_OK) == (err.text[0] == '\0'));
            refused += st != RP_OK;
            read += st == RP_OK;
            free(cut);
        }
    }
    assert_true(refused > 4000 && read > 40);
    rp_buf_deinit(&out);
    rp_test_recording_free(&recording);
}

RP_TESTS(recorded)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_messages_round_trip),
        cmocka_unit_test(recorded_messages_may_end_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
