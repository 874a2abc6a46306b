/* SPDX-License-Identifier: Apache-2.0 */
/* Client.rollouts(): operations on rollouts, and the groups that an operation draws. "Rollouts"
 * are a named buffer of groups of items (reprise/rollouts.h). */
#ifndef REPRISE_PYTHON_ROLLOUTS_H
#define REPRISE_PYTHON_ROLLOUTS_H

#include "core.h"

/* rollouts(action, name, arguments, timeout). `action` is a number of rp_rollouts_action;
 * `arguments` is a dict of fields of rp_rollouts_call. Returns a dict of results. */
PyObject *core_client_rollouts(core_client *self, PyObject *const *args, Py_ssize_t count);

/* rollout_results.c: one entry of the list of all rollouts of a server. */
typedef struct core_rollout_entry core_rollout_entry;
struct core_rollout_entry {
    core_rollout_entry *next;
    rp_string name;
    rp_rollout_options options;
    rp_rollout_info info;
    rp_string *cursors;
    size_t cursor_count;
};

/* Makes the dict of results of `call`, which has succeeded, and takes ownership of its draw.
 * `first` is the first entry of the list of rollouts, or NULL if `call` did not request the
 * list. `data` are the `size` bytes of a cursor (a named byte string that is stored with the
 * rollouts), or NULL. */
PyObject *core_rollout_results(rp_rollouts_call *call, const core_rollout_entry *first,
                               const void *data, size_t size);

/* rollout_draw.c: reprise._core.RolloutDraw. */
extern PyTypeObject core_RolloutDraw;

/* Makes a RolloutDraw. Takes ownership of `draw`, even on failure. */
PyObject *core_rollout_draw(rp_rollouts_draw *draw);

#endif
