/* SPDX-License-Identifier: Apache-2.0 */
/* rp_test_echo() as a program, for tests in other languages. It reads requests on standard
 * input and writes a response to each on standard output:
 *
 *   request   name of a message, newline, length (decimal), newline, bytes
 *   response  status (decimal), newline, length, newline, the message as written again, or the
 *             text of the error
 *
 * Ends with the input. */
#include <stdio.h>
#include <stdlib.h>

#include "support/echo.h"

static void answer(const char *message, const uint8_t *data, size_t size)
{
    rp_buf out;
    rp_error err = {0};
    rp_status st;

    rp_buf_init(&out, rp_allocator_default());
    st = rp_test_echo(message, data, size, &out, &err);
    if (st != RP_OK) {
        rp_buf_clear(&out);
        rp_buf_text(&out, err.text);
    }
    (void)printf("%d\n%zu\n", (int)st, out.size);
    if (out.size > 0) (void)fwrite(out.data, 1, out.size, stdout);
    (void)fflush(stdout);
    rp_buf_deinit(&out);
}

int main(void)
{
    char message[64], length[32];

    while (fgets(message, sizeof message, stdin) != NULL &&
           fgets(length, sizeof length, stdin) != NULL) {
        size_t size = strtoul(length, NULL, 10);
        uint8_t *data = malloc(size > 0 ? size : 1); /* of its exact size, for the sanitizers */
        if (data == NULL || fread(data, 1, size, stdin) != size) return 1;
        message[strcspn(message, "\n")] = '\0';
        answer(message, data, size);
        free(data);
    }
    return 0;
}
