/* SPDX-License-Identifier: Apache-2.0 */
/* An actor writes ten steps. Every two consecutive steps are an item of one table, every three
 * an item of another, and the items share the data of their steps. Then a learner draws a batch
 * of items of three steps and sets their priorities. */
#include <reprise/reprise.h>
#include <stdio.h>
#include <stdlib.h>

/* If a call has failed, prints its error and ends the program. */
static void check(rp_status status, const rp_error *err)
{
    if (status == RP_OK) return;
    fprintf(stderr, "overlapping: %s: %s\n", rp_status_name(status), err->text);
    exit(1);
}

static void act(rp_client *client)
{
    rp_step_writer_options options = {.max_sequence_length = 3};
    float obs[2] = {0, 1}; /* position and speed */
    rp_wait wait = rp_wait_forever();
    rp_step_writer *writer;
    rp_error err = {0};

    check(rp_step_writer_new(client, &options, wait, &writer, &err), &err);
    for (int step = 0; step < 10; step++) {
        int32_t move = step % 4 == 3 ? -1 : 1;
        rp_tensor row[] = {{RP_FLOAT32, {1, {2}}, obs}, {RP_INT32, {0, {0}}, &move}};
        check(rp_step_writer_append(writer, row, 2, &err), &err);
        if (step >= 1)
            check(rp_step_writer_create_item(writer, "my_table_a", 2, 1, wait, NULL, &err),
                  &err);
        if (step >= 2)
            check(rp_step_writer_create_item(writer, "my_table_b", 3, 1, wait, NULL, &err),
                  &err);
        obs[1] += 0.5f * (float)move; /* the environment responds */
        obs[0] += obs[1];
    }
    check(rp_step_writer_end_episode(writer, wait, &err), &err); /* flushes all items */
    rp_step_writer_free(writer);
}

static void learn(rp_table *table)
{
    rp_sample_options batch = {.count = 4};
    rp_sample samples[4];
    const rp_trajectory *items[4];
    float x[4][3][2]; /* observations: four items, three steps, two numbers */
    rp_decoder *decoder;
    rp_error err = {0};
    size_t n;

    check(rp_table_sample(table, &batch, samples, &n, rp_wait_forever(), &err), &err);
    for (size_t i = 0; i < n; i++) items[i] = samples[i].trajectory;
    check(rp_decoder_new(rp_allocator_default(), 1 << 20, &decoder), &err);
    check(rp_decoder_stack(decoder, items, n, 0, x, sizeof x, &err), &err);
    for (size_t i = 0; i < n; i++) {
        rp_update update = {samples[i].key, x[i][2][0]}; /* the position, as an example */
        check(rp_table_update(table, &update, 1, NULL, &err), &err);
        printf("p = %.3f, from %.1f to %.1f\n", samples[i].probability, x[i][0][0], x[i][2][0]);
    }
    rp_samples_release(samples, n);
    rp_decoder_free(decoder);
}

int main(void)
{
    rp_table_options a = {.name = "my_table_a", .sampler = {RP_UNIFORM, 0}, .max_size = 99};
    rp_table_options b = {.name = "my_table_b", .sampler = {RP_PRIORITIZED, 1}, .max_size = 99};
    rp_error err = {0};
    rp_client *client;
    rp_store *store;
    rp_table *table;

    a.limiter = b.limiter = rp_limiter_min_size(1); /* both evict the oldest: RP_FIFO is 0 */
    check(rp_store_new(&(rp_store_options){.seed = 1}, &store, &err), &err);
    check(rp_store_add_table(store, &a, NULL, &err), &err);
    check(rp_store_add_table(store, &b, &table, &err), &err);
    check(rp_client_local(store, NULL, &client, &err), &err);
    act(client);
    for (int i = 0; i < 2; i++)
        learn(table); /* the second batch is drawn by the new priorities */
    rp_client_free(client);
    rp_store_free(store);
}
