/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and prints numbers, sizes and times. Pure functions. Parsers take the whole text as
 * one value, without spaces around it. They return false and write nothing if it is not a value
 * or does not fit. */
#ifndef RP_CLI_TEXT_UNITS_H
#define RP_CLI_TEXT_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal digits, with '_' allowed between two of them: "1_000_000". rp_parse_integer() also
 * accepts a '-' before them. */
bool rp_parse_integer(const char *text, int64_t *out);
bool rp_parse_unsigned(const char *text, uint64_t *out);

/* A decimal number, finite: "0.6", "-0.4", "1e3". */
bool rp_parse_number(const char *text, double *out);

/* "true" or "false". */
bool rp_parse_boolean(const char *text, bool *out);

/* Bytes: "1048576", "64 MiB", "1.5GiB", "4G". KiB, MiB, GiB, TiB and K, M, G, T are powers of
 * 1,024; kB, MB, GB, TB of 1,000. "80%" is that part of `whole`, from above 0 to 100; false if
 * `whole` is 0. */
bool rp_parse_size(const char *text, uint64_t whole, uint64_t *bytes);

/* A time, in milliseconds: "500ms", "10s", "1.5m", "1h", or a plain number of units of
 * `unit_ms`. */
bool rp_parse_duration(const char *text, int64_t unit_ms, int64_t *ms);

/* Returns the rate per second; `elapsed_ns` must be > 0. */
uint64_t rp_per_second(uint64_t count, int64_t elapsed_ns);

/* Writes a size with a unit ("512 B", "4 GiB", "18.7 GiB") and returns `text`. `size` must be
 * >= 16. */
char *rp_size_text(uint64_t bytes, char *text, size_t size);

/* Returns the ending of a noun after a count: "" after 1, "s" after any other number. */
const char *rp_plural(uint64_t count);

/* Writes a time with a unit ("1.2 s", "45 s", "3 min", "5 h", "2 d") and returns `text`. */
char *rp_elapsed_text(int64_t ns, char *text, size_t size);

/* Writes the shortest decimal number that parses to `value` and returns `text`. `size` must be
 * >= 32. */
char *rp_decimal_text(double value, char *text, size_t size);

#endif
