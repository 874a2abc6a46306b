/* SPDX-License-Identifier: Apache-2.0 */
/* Two actors write overlapping items of three steps; a learner draws stacked batches with
 * importance weights and sets new priorities. All three use one client of a server:
 *
 *   reprise serve --table replay:prioritized:1000 --port 8000 &
 *   actor_learner localhost:8000
 *
 * Without an argument, the client uses a store in this process; the calls are the same. */
#include <pthread.h>
#include <reprise/reprise.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ACTORS = 2, STEPS = 100, BATCHES = 10, SIZE = 32 };

/* If a call has failed, prints its error and ends the program. */
static void check(rp_status status, const rp_error *err)
{
    if (status == RP_OK) return;
    fprintf(stderr, "actor_learner: %s: %s\n", rp_status_name(status), err->text);
    exit(1);
}

/* Waits for the server, and says so: the library prints nothing while a call waits. */
static void reach(rp_client *client)
{
    rp_client_tables *tables = NULL;
    rp_status status = RP_UNAVAILABLE;
    rp_error err = {0};

    for (int tries = 0; tries < 15 && status == RP_UNAVAILABLE; tries++) {
        status = rp_client_get_table(client, "replay", rp_wait_ms(2000), &tables, &err);
        if (status != RP_UNAVAILABLE) break;
        fprintf(stderr, "actor_learner: waits for the server: %s\n", err.text);
        sleep(2);
    }
    check(status, &err);
    rp_client_tables_free(tables);
}

static void *act(void *client)
{
    rp_trajectory_writer_options options = {.column = {.history = 3}};
    rp_wait wait = rp_wait_ms(30000);
    rp_trajectory_writer *writer;
    rp_ref obs[3] = {{0, 0}}, reward[3] = {{0, 0}}; /* the latest three rows of each column */
    rp_error err = {0};

    check(rp_trajectory_writer_new(client, &options, wait, &writer, &err), &err);
    for (int step = 0; step < STEPS; step++) {
        float x[2] = {(float)step, (float)step / 2}, r = step % 5 == 0;
        rp_value values[] = {{0, "observation", {RP_FLOAT32, {1, {2}}, x}},
                             {1, "reward", {RP_FLOAT32, {0, {0}}, &r}}};
        rp_item_column columns[] = {{obs, 3, false, NULL}, {reward, 3, false, NULL}};
        rp_ref latest[2];

        check(rp_trajectory_writer_append(writer, values, 2, 0, latest, &err), &err);
        obs[0] = obs[1], obs[1] = obs[2], obs[2] = latest[0];
        reward[0] = reward[1], reward[1] = reward[2], reward[2] = latest[1];
        if (step >= 2)
            check(rp_trajectory_writer_create_item(
                      writer, &(rp_new_item){"replay", 1, columns, 2}, wait, NULL, &err),
                  &err);
    }
    check(rp_trajectory_writer_end_episode(writer, true, wait, &err), &err); /* flushes */
    rp_trajectory_writer_free(writer);
    return NULL;
}

static void learn(rp_client *client)
{
    static float obs[SIZE][3][2], reward[SIZE][3]; /* items, steps, numbers */
    void *const memory[] = {obs, reward};
    const size_t bytes[] = {sizeof obs, sizeof reward};
    rp_sampler_options options = {
        .table = "replay", .beta = 0.4, .rate_limiter_timeout_ms = -1};
    rp_wait wait = rp_wait_ms(30000);
    rp_update updates[SIZE];
    rp_sampler *sampler;
    rp_batch *batch;
    rp_error err = {0};
    double loss = 0;

    check(rp_sampler_new(client, &options, &sampler, &err), &err);
    for (int n = 0; n < BATCHES; n++) {
        check(rp_sampler_batch(sampler, SIZE, RP_RAGGED_REFUSE, true, wait, &batch, &err),
              &err);
        check(rp_batch_decode(batch, memory, bytes, &err), &err);
        const rp_sample *samples = rp_batch_samples(batch);
        for (size_t i = 0; i < SIZE; i++) {
            double error = reward[i][2] - (obs[i][2][0] - obs[i][1][0]); /* as a TD error */
            loss += samples[i].weight * error * error;
            updates[i] = (rp_update){samples[i].key, 0.1 + error * error};
        }
        check(rp_client_mutate(client, "replay",
                               &(rp_mutation){.updates = updates, .update_count = SIZE}, wait,
                               &err),
              &err);
        rp_batch_free(batch);
    }
    rp_sampler_free(sampler);
    printf("learned from %d batches of %d items of 3 steps, %s\n", BATCHES, SIZE,
           loss > 0 ? "and was surprised" : "and was not surprised");
}

int main(int argc, char **argv)
{
    rp_table_options table = {.name = "replay", .sampler = {RP_PRIORITIZED, 0.6}};
    pthread_t actors[ACTORS];
    rp_store *store = NULL;
    rp_client *client;
    rp_error err = {0};

    table.limiter = rp_limiter_min_size(SIZE), table.max_size = 1000;
    if (argc > 1) {
        check(rp_client_new(argv[1], NULL, &client, &err), &err);
        reach(client);
    } else {
        check(rp_store_new(NULL, &store, &err), &err);
        check(rp_store_add_table(store, &table, NULL, &err), &err);
        check(rp_client_local(store, NULL, &client, &err), &err);
    }
    for (int i = 0; i < ACTORS; i++)
        if (pthread_create(&actors[i], NULL, act, client) != 0) return 1;
    learn(client);
    for (int i = 0; i < ACTORS; i++) pthread_join(actors[i], NULL);
    rp_client_free(client);
    rp_store_free(store);
    return 0;
}
