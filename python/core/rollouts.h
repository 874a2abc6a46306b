/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on rollouts: Client.rollouts(), and the groups of a draw. */
#ifndef REPRISE_PYTHON_ROLLOUTS_H
#define REPRISE_PYTHON_ROLLOUTS_H

#include "core.h"

/* rollouts(action, name, arguments, timeout): `action` is a number of rp_rollouts_action,
 * `arguments` a dict of the fields of rp_rollouts_call. Returns a dict of results. */
PyObject *core_client_rollouts(core_client *self, PyObject *const *args, Py_ssize_t count);

/* rollout_results.c: an entry of a list of rollouts. */
typedef struct core_rollout_entry core_rollout_entry;
struct core_rollout_entry {
    core_rollout_entry *next;
    rp_string name;
    rp_rollout_options options;
    rp_rollout_info info;
    rp_string *cursors;
    size_t cursor_count;
};

/* Makes the dict of a call that has succeeded, and takes its draw. `first`: the entries of a
 * list; `data`: the bytes of a cursor. Both may be NULL. */
PyObject *core_rollout_results(rp_rollouts_call *call, const core_rollout_entry *first,
                               const void *data, size_t size);

/* rollout_draw.c: reprise._core.RolloutDraw. */
extern PyTypeObject core_RolloutDraw;

/* Makes a RolloutDraw, which takes the draw even if it fails. */
PyObject *core_rollout_draw(rp_rollouts_draw *draw);

#endif
