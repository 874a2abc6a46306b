/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of JSON and of Prometheus' text format that forgive nothing: what passes here, every
 * real reader takes. */
#ifndef RP_TEST_STRICT_H
#define RP_TEST_STRICT_H

#include <stddef.h>

/* NULL if the text is one JSON value (RFC 8259, UTF-8, no key twice in an object) and blanks;
 * otherwise where it is not. */
const char *rp_test_json_mistake(const char *text, size_t size);

/* NULL if the text follows the exposition format 0.0.4: every family has one HELP and one TYPE,
 * in front of all its samples; names, labels, escapes and numbers are as they must be; no
 * series comes twice; counters end in _total; histograms add up. Otherwise the line, in a
 * static buffer, and what is wrong. */
const char *rp_test_prometheus_mistake(const char *text, size_t size);

/* The value of the series that is written like this, `name{label="x"}`; NaN if there is none.
 */
double rp_test_prometheus_value(const char *text, const char *series);

#endif
