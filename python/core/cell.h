/* SPDX-License-Identifier: Apache-2.0 */
/* Cells: single values that were appended to a trajectory writer, as reprise._core.WeakCellRef.
 *
 * A cell does not keep its value in memory. The writer keeps the latest values of each column.
 * A cell expires when the writer no longer keeps its value, or when the writer is closed. */
#ifndef REPRISE_PYTHON_CELL_H
#define REPRISE_PYTHON_CELL_H

#include "writer_state.h"

typedef struct core_cell {
    PyObject_HEAD
    writer_state *state; /* a reference */
    rp_ref ref;
} core_cell;

/* Makes a WeakCellRef for the cell `ref` of the writer. */
PyObject *core_cell_new(writer_state *state, rp_ref ref);

/* Returns true unless the cell has expired. */
bool core_cell_exists(const writer_state *state, rp_ref ref);

/* Sets `*spec` to the dtype and the shape of the value in a cell. RuntimeError if the cell has
 * expired. */
int core_cell_spec(writer_state *state, rp_ref ref, rp_spec *spec);

/* Copies the values of the `count` cells `refs` into a new array. All cells must have the dtype
 * and shape of `spec`. The first dimension of the array is the number of cells. If `squeeze` is
 * true, `count` must be 1, and the array does not have this first dimension. Acquires the
 * writer (writer_enter()) for the copy. */
PyObject *core_cells_copy(writer_state *state, const rp_spec *spec, const rp_ref *refs,
                          Py_ssize_t count, bool squeeze);

/* Keeps the strings of the new cell `ref` in `state`, since strings cannot be read back from
 * the C writer. Drops the strings of the cell that was appended `history` cells earlier to the
 * same column. If memory runs out, the strings are not kept, and core_cells_copy() fails for
 * this cell. */
void core_cell_keep_strings(writer_state *state, rp_ref ref, int32_t history,
                            const rp_tensor *tensor);

#endif
