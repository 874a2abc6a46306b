/* SPDX-License-Identifier: Apache-2.0 */
#include "support/recording.h"

#include <stdio.h>

#include "support/hex.h"

enum { LINE_BYTES = 16384 };

static rp_test_line parse_line(char *text)
{
    rp_test_line line = {0};
    char side[8];
    int at = 0;
    size_t length;

    text[strcspn(text, "\n")] = '\0';
    assert_int_equal(sscanf(text, "%d %7s %31s %n", &line.call, side, line.method, &at), 3);
    line.from_client = strcmp(side, "client") == 0;
    text += at;
    length = strlen(text);
    line.data = malloc(length + 1);
    assert_non_null(line.data);
    if (text[0] == '!') {
        memcpy(line.data, text + 1, length);
        line.event = (const char *)line.data;
    } else if (strcmp(text, "-") != 0) {
        line.size = rp_test_hex(text, line.data, length);
    }
    return line;
}

rp_test_recording rp_test_recording_read(const char *name)
{
    rp_test_recording recording = {0};
    char path[1024], text[LINE_BYTES];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/wire/%s", RP_TEST_DATA, name);
    file = fopen(path, "r");
    if (file == NULL) fail_msg("%s cannot be opened", path);
    while (fgets(text, sizeof text, file) != NULL) {
        assert_non_null(strchr(text, '\n'));
        if (text[0] == '#') continue;
        recording.lines =
            realloc(recording.lines, (recording.count + 1) * sizeof *recording.lines);
        assert_non_null(recording.lines);
        recording.lines[recording.count++] = parse_line(text);
    }
    (void)fclose(file);
    return recording;
}

void rp_test_recording_free(rp_test_recording *recording)
{
    for (size_t i = 0; i < recording->count; i++) free(recording->lines[i].data);
    free(recording->lines);
    *recording = (rp_test_recording){0};
}

bool rp_test_line_is(const rp_test_line *line, const char *method, bool from_client)
{
    return line->event == NULL && line->from_client == from_client &&
           strcmp(line->method, method) == 0;
}
