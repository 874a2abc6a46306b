/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and prints numbers, sizes and times. A parser returns false and writes nothing if the
 * text does not have the form that the comment of the parser describes, if there are spaces
 * around the value, or if the value is out of range. Pure functions. */
#ifndef RP_CLI_TEXT_UNITS_H
#define RP_CLI_TEXT_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parse a whole number in decimal digits. '_' is allowed between two digits: "1_000_000".
 * rp_parse_integer() also accepts a '-' before the digits. */
bool rp_parse_integer(const char *text, int64_t *out);
bool rp_parse_unsigned(const char *text, uint64_t *out);

/* Parses a finite decimal number: "0.6", "-0.4", "1e3". */
bool rp_parse_number(const char *text, double *out);

/* Parses "true" or "false". */
bool rp_parse_boolean(const char *text, bool *out);

/* Parses a size in bytes: "1048576", "64 MiB", "1.5GiB", "4G". KiB, MiB, GiB, TiB and K, M, G,
 * T are powers of 1,024; kB, MB, GB, TB are powers of 1,000. "80%" means 80% of `whole` bytes.
 * A percentage must be above 0 and at most 100; if `whole` is 0, every percentage is an
 * error. */
bool rp_parse_size(const char *text, uint64_t whole, uint64_t *bytes);

/* Parses a time: "500ms", "10s", "1.5m", "1h". A number without a unit is multiplied by
 * `unit_ms` milliseconds. Writes the time in milliseconds. */
bool rp_parse_duration(const char *text, int64_t unit_ms, int64_t *ms);

/* Returns `count` per second. `elapsed_ns` must be > 0. */
uint64_t rp_per_second(uint64_t count, int64_t elapsed_ns);

/* Writes a size with a unit ("512 B", "4 GiB", "18.7 GiB") and returns `text`. `size` must be
 * >= 16. */
char *rp_size_text(uint64_t bytes, char *text, size_t size);

/* Returns the plural ending of a noun after `count`: "" if it is 1, otherwise "s". */
const char *rp_plural(uint64_t count);

/* Writes a time with a unit ("1.2 s", "45 s", "3 min", "5 h", "2 d") and returns `text`. */
char *rp_elapsed_text(int64_t ns, char *text, size_t size);

/* Writes the shortest decimal number that parses to `value` and returns `text`. `size` must be
 * >= 32. */
char *rp_decimal_text(double value, char *text, size_t size);

#endif
