/* SPDX-License-Identifier: Apache-2.0 */
/* Our own environments by name. */
#include <assert.h>
#include <string.h>

#include "env/env_classes.h"

static const rp_env_class *const CLASSES[] = {
    &rp_env_acrobot,      &rp_env_bricks,       &rp_env_cartpole,
    &rp_env_catch,        &rp_env_deep_sea,
#if defined(RP_HAVE_BOX2D)
    &rp_env_lunar_lander,
#endif
    &rp_env_memory_chain, &rp_env_mountain_car, &rp_env_mountain_car_continuous,
    &rp_env_pendulum,
};

enum { CLASS_COUNT = sizeof CLASSES / sizeof CLASSES[0] };

const rp_env_class *rp_env_class_at(size_t index)
{
    assert(index == 0 || index >= CLASS_COUNT ||
           strcmp(CLASSES[index - 1]->name, CLASSES[index]->name) < 0);
    return index < CLASS_COUNT ? CLASSES[index] : NULL;
}

const rp_env_class *rp_env_find(const char *name)
{
    for (size_t i = 0; i < CLASS_COUNT; i++) {
        const char *alias = CLASSES[i]->alias;
        if (strcmp(CLASSES[i]->name, name) == 0) return CLASSES[i];
        if (alias != NULL && strcmp(alias, name) == 0) return CLASSES[i];
    }
    return NULL;
}
