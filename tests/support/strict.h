/* SPDX-License-Identifier: Apache-2.0 */
/* Strict readers of JSON and of Prometheus' text format: text that they accept, every real
 * reader accepts. */
#ifndef RP_TEST_STRICT_H
#define RP_TEST_STRICT_H

#include <stddef.h>

/* Returns NULL if the text is one JSON value (RFC 8259, UTF-8, no duplicate keys) and blanks;
 * otherwise the position of the error. */
const char *rp_test_json_mistake(const char *text, size_t size);

/* Returns NULL if the text follows the exposition format 0.0.4: every family has one HELP and
 * one TYPE, before all its samples; names, labels, escapes and numbers are valid; no series
 * occurs twice; counters end in _total; histograms add up. Otherwise returns the line and the
 * error, in a static buffer. */
const char *rp_test_prometheus_mistake(const char *text, size_t size);

/* Returns the value of a series, written as `name{label="x"}`; NaN if there is none. */
double rp_test_prometheus_value(const char *text, const char *series);

#endif
