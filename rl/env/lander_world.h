/* SPDX-License-Identifier: Apache-2.0 */
/* The physics of the lunar lander. lander_world.cpp implements it with Box2D, a C++ library
 * that no other file uses.
 *
 * A world is Box2D's simulation of one lander. The state of an environment must be plain bytes
 * (rp_env_class), and a world is not. A state therefore holds the history of its world: the
 * random stream at the start of the episode, and the actions since. From the history the world
 * can be made again, by simulating the episode from its start. Since this simulation is slow, a
 * pool keeps the worlds between steps. The key of a world in the pool is a hash of its history.
 * A world is missing from the pool only after a snapshot was loaded, or if there are more
 * environments than the pool can hold worlds.
 *
 * Not thread-safe. A pool belongs to one rp_env. */
#ifndef RP_ENV_LANDER_WORLD_H
#define RP_ENV_LANDER_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RP_LANDER_POINTS = 11, RP_LANDER_MOST_WORLDS = 1024 };

/* The random start of an episode. */
typedef struct rp_lander_start {
    double ground[RP_LANDER_POINTS]; /* height of the ground at x = 0, 2, 4, ... */
    double force_x, force_y;         /* force on the lander in the first step */
} rp_lander_start;

/* The lander at one moment. */
typedef struct rp_lander_body {
    double x, y, speed_x, speed_y, angle, spin;
    bool legs[2]; /* for each leg: it touches the ground */
    bool crashed; /* the body has touched the ground */
    bool asleep;  /* the lander has come to rest */
} rp_lander_body;

typedef struct rp_lander_world rp_lander_world;
typedef struct rp_lander_pool rp_lander_pool;

/* Makes an empty pool. Returns NULL if memory runs out. (If memory runs out within Box2D, in
 * any function of this file, Box2D ends the process.) */
rp_lander_pool *rp_lander_pool_new(void);
void rp_lander_pool_free(rp_lander_pool *pool); /* NULL is fine */

/* Makes a world, which the caller owns. Returns NULL if memory runs out. */
rp_lander_world *rp_lander_world_new(const rp_lander_start *start);
void rp_lander_world_free(rp_lander_world *world); /* NULL is fine */

/* Removes the world with this key from the pool and returns the world, which the caller then
 * owns. Returns NULL if the pool has no world with this key. */
rp_lander_world *rp_lander_pool_take(rp_lander_pool *pool, uint64_t key);
/* Puts a world into the pool, which then owns the world. If the pool is full, first frees the
 * world that has been in the pool for the longest time. */
void rp_lander_pool_put(rp_lander_pool *pool, uint64_t key, rp_lander_world *world);

/* Pushes the lander at the point (x, y) with the impulse (push_x, push_y). */
void rp_lander_push(rp_lander_world *world, double x, double y, double push_x, double push_y);
/* Simulates the next 1/50 s. */
void rp_lander_pass(rp_lander_world *world);
void rp_lander_read(const rp_lander_world *world, rp_lander_body *body);

#ifdef __cplusplus
}
#endif

#endif
