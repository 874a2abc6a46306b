/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that store.c, client.c and server.c share: they return the C store of an object,
 * read the options of a table, and convert arguments. */
#ifndef REPRISE_PYTHON_STORE_H
#define REPRISE_PYTHON_STORE_H

#include "core.h"

/* Reads the arguments of Store.add_table(): (name, *, limiter, max_size, sampler, remover,
 * max_times_sampled, max_bytes, soft_limit, signature, seed). Borrows the name from `args`. On
 * success the caller drops `out->signature` (may be NULL) with rp_signature_unref(). */
int core_table_options_from(PyObject *args, PyObject *kwargs, rp_table_options *out);

/* Returns the C store of a reprise._core.Store. In a forked child, returns NULL with an
 * exception: the child has only a copy of the store, which no server and no other process
 * uses. */
rp_store *core_store_of(PyObject *store);

/* Returns the name of a table, borrowed from a str. ValueError if it contains a NUL. */
const char *core_name_from(PyObject *obj);
/* Like core_name_from(), as an "O&" converter for PyArg_Parse...(). `name` points to a const
 * char pointer. */
int core_name_converter(PyObject *obj, void *name);

/* "O&" converters, which return 1 on success. The first reads a limiter: (samples_per_insert,
 * min_size, min_diff, max_diff). The second reads an unsigned 64-bit number, since the format
 * "K" would reduce a larger number modulo 2^64. */
int core_limiter_converter(PyObject *obj, void *out);
int core_u64_converter(PyObject *obj, void *out);

#endif
