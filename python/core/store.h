/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a table, for who makes one: a store here, or a client elsewhere; and what else
 * those two and servers take. */
#ifndef REPRISE_PYTHON_STORE_H
#define REPRISE_PYTHON_STORE_H

#include "core.h"

/* Options from the arguments that Store.add_table() takes: (name, *, limiter, max_size,
 * sampler, remover, max_times_sampled, max_bytes, soft_limit, signature, seed). The name is
 * borrowed from `args`; on success drop
 * `out->signature` (may be NULL) with rp_signature_unref(). */
int core_table_options_from(PyObject *args, PyObject *kwargs, rp_table_options *out);

/* The store of a reprise._core.Store; NULL with an exception in a forked child, whose copy of
 * it nobody else sees. */
rp_store *core_store_of(PyObject *store);

/* -1 with that exception for a client of such a store. */
int core_client_check(PyObject *client);

/* The name of a table, borrowed from a str. ValueError if there is a NUL in it. */
const char *core_name_from(PyObject *obj);

/* "O&" converters, 1 on success: a limiter (samples_per_insert, min_size, min_diff, max_diff);
 * and an unsigned number of 64 bits, which "K" would take modulo 2^64. */
int core_limiter_converter(PyObject *obj, void *out);
int core_u64_converter(PyObject *obj, void *out);

#endif
