/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a table, for who makes one: a store here, or a client elsewhere. */
#ifndef REPRISE_PYTHON_STORE_H
#define REPRISE_PYTHON_STORE_H

#include "core.h"

/* Options from the arguments that Store.add_table() takes: (name, *, limiter, max_size,
 * sampler, remover, max_times_sampled, max_bytes, soft_limit, signature, seed). The name is
 * borrowed from `args`; on success drop
 * `out->signature` (may be NULL) with rp_signature_unref(). */
int core_table_options_from(PyObject *args, PyObject *kwargs, rp_table_options *out);

#endif
