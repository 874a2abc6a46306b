/* SPDX-License-Identifier: Apache-2.0 */
/* reprise._core.TableExtension: an extension of one table in this process. */
#ifndef REPRISE_PYTHON_EXTENSION_H
#define REPRISE_PYTHON_EXTENSION_H

#include "core.h"

extern PyTypeObject core_TableExtension;

/* Makes the C extensions of a sequence of TableExtension (NULL and None: none) for a table that
 * is to be added to `store`. Free `*out` with core_extensions_free(), and before that, if the
 * table was not made, `discard` them. ValueError: an extension belongs to a table already, or
 * its target is not in the store. */
int core_extensions_from(PyObject *sequence, rp_store *store, rp_extension **out,
                         size_t *count);
void core_extensions_free(rp_extension *extensions, size_t count, bool discard);

#endif
