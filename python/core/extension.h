/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.TableExtension: an extension (a callback that runs with the operations of a
 * table, reprise/extension.h) of one table in this process. */
#ifndef REPRISE_PYTHON_EXTENSION_H
#define REPRISE_PYTHON_EXTENSION_H

#include "core.h"

extern PyTypeObject core_TableExtension;

/* Makes an array of C extensions from a sequence of TableExtension objects (NULL or None: no
 * extensions), for a table that the caller will add to `store`. The caller frees the array
 * `*out` with core_extensions_free(). If adding the table succeeded, the table owns the C
 * extensions, and `discard` must be false. If it failed, `discard` must be true, which frees
 * the C extensions as well. ValueError if an extension already belongs to a table, or if it
 * copies items to a table (its target) that is not in `store`. */
int core_extensions_from(PyObject *sequence, rp_store *store, rp_extension **out,
                         size_t *count);
void core_extensions_free(rp_extension *extensions, size_t count, bool discard);

#endif
