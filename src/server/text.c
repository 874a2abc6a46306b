/* SPDX-License-Identifier: Apache-2.0 */
#include "server/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *rp_number_text(double number, char text[RP_NUMBER_TEXT_BYTES])
{
    char *comma;

    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, RP_NUMBER_TEXT_BYTES, "%.*g", digits, number);
        if (strtod(text, NULL) == number) break;
    }
    comma = strchr(text, ',');
    if (comma != NULL) *comma = '.';
    return text;
}

size_t rp_utf8_bytes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    unsigned char low = 0x80, high = 0xbf; /* of the second byte */
    size_t bytes;

    if (at[0] < 0x80) return 1;
    if (at[0] < 0xc2 || at[0] > 0xf4) return 0;
    bytes = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (at[0] == 0xe0) low = 0xa0;
    if (at[0] == 0xed) high = 0x9f;
    if (at[0] == 0xf0) low = 0x90;
    if (at[0] == 0xf4) high = 0x8f;
    if (at[1] < low || at[1] > high) return 0;
    for (size_t i = 2; i < bytes; i++)
        if (at[i] < 0x80 || at[i] > 0xbf) return 0; /* a zero ends it here at the latest */
    return bytes;
}
