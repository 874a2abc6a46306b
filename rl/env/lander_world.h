/* SPDX-License-Identifier: Apache-2.0 */
/* The physics of the lunar lander, over Box2D, which is C++. lander_world.cpp is the only file
 * that knows Box2D.
 *
 * A world is not plain bytes, so it cannot be the state of a copy. A state has the random
 * stream with which its episode began and the actions since, from which its world can be made
 * again. Worlds are kept in a pool under a key, a hash of that history, so that this is seldom
 * needed: after a snapshot was loaded, or if there are more copies than worlds.
 *
 * Not thread-safe: a pool belongs to one environment. */
#ifndef RP_ENV_LANDER_WORLD_H
#define RP_ENV_LANDER_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RP_LANDER_POINTS = 11, RP_LANDER_MOST_WORLDS = 1024 };

/* Where an episode begins. */
typedef struct rp_lander_start {
    double ground[RP_LANDER_POINTS]; /* heights, every 2 units */
    double force_x, force_y;         /* on the lander in the first step */
} rp_lander_start;

typedef struct rp_lander_body {
    double x, y, speed_x, speed_y, angle, spin;
    bool legs[2]; /* on the ground */
    bool crashed; /* the body touched the ground */
    bool asleep;
} rp_lander_body;

typedef struct rp_lander_world rp_lander_world;
typedef struct rp_lander_pool rp_lander_pool;

/* NULL if there is no memory. Box2D itself cannot run out of memory: it ends the process. */
rp_lander_pool *rp_lander_pool_new(void);
void rp_lander_pool_free(rp_lander_pool *pool); /* NULL is fine */

/* A new world, not yet in the pool. NULL if there is no memory. */
rp_lander_world *rp_lander_world_new(const rp_lander_start *start);
void rp_lander_world_free(rp_lander_world *world); /* NULL is fine */

/* Takes the world of that key out of the pool. NULL if it is not there. */
rp_lander_world *rp_lander_pool_take(rp_lander_pool *pool, uint64_t key);
/* Puts a world into the pool, which owns it from then on. If the pool is full, the world that
 * was put there first goes. */
void rp_lander_pool_put(rp_lander_pool *pool, uint64_t key, rp_lander_world *world);

/* Pushes the lander at a point. */
void rp_lander_push(rp_lander_world *world, double x, double y, double push_x, double push_y);
/* Lets 1/50 s pass. */
void rp_lander_pass(rp_lander_world *world);
void rp_lander_read(const rp_lander_world *world, rp_lander_body *body);

#ifdef __cplusplus
}
#endif

#endif
