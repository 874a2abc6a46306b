/* SPDX-License-Identifier: Apache-2.0 */
/* Our client as a program for tests in Python:
 *
 *   client_driver ADDRESS write TABLE STEPS CHUNK ITEM...   trajectory writer; prints keys
 *   client_driver ADDRESS steps TABLE STEPS LENGTH          step writer: after each step, an
 *                                                           item of the latest LENGTH steps
 *   client_driver ADDRESS patterns TABLE STEPS LENGTH       structured writer: the same
 *   client_driver ADDRESS sample TABLE COUNT TIMEOUT_MS     prints keys and information
 *   client_driver ADDRESS batch TABLE COUNT                 prints columns, padded, as hex
 *   client_driver ADDRESS mutate TABLE [KEY=PRIORITY...] [-KEY...]
 *   client_driver ADDRESS pause TABLE
 *   client_driver ADDRESS rounds TABLE N                    for every line of input, writes N
 *                                                           items and flushes
 *
 * Column c has the c-th dtype below and shape [2,3]; its bytes follow from step, column and
 * index. An ITEM is a list of columns, separated by '/'. A column is a list of rows
 * "COLUMN.STEP", separated by commas; '!' after a single row means squeezed. If a call fails,
 * the program prints the error and ends with status 1. */
#include <inttypes.h>
#include <reprise/reprise.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 16, STRINGS = 14, ROW_ELEMENTS = 6, MAX_REFS = 4096, MAX_COUNT = 256 };

static const rp_dtype dtypes[COLUMNS] = {
    RP_FLOAT16,    RP_FLOAT32, RP_FLOAT64, RP_INT8,    RP_INT16,  RP_INT32,
    RP_INT64,      RP_UINT8,   RP_UINT16,  RP_UINT32,  RP_UINT64, RP_COMPLEX64,
    RP_COMPLEX128, RP_BOOL,    RP_STRING,  RP_FLOAT32,
};

static void check(rp_status status, const rp_error *err)
{
    if (status == RP_OK) return;
    printf("%s: %s\n", rp_status_name(status), err->text);
    exit(1);
}

static rp_wait patience(void)
{
    return rp_wait_ms(20000);
}

static long number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (end == text) exit(2);
    return n;
}

/* Sets `values` to step `step` of every column. The data is valid until the next call. */
static void fill(long step, rp_value values[COLUMNS])
{
    static uint8_t bytes[COLUMNS][ROW_ELEMENTS * 16];
    static char texts[ROW_ELEMENTS][32];
    static rp_string strings[ROW_ELEMENTS];

    for (long c = 0; c < COLUMNS; c++) {
        for (long i = 0; i < (long)sizeof bytes[c]; i++) {
            bytes[c][i] = (uint8_t)(step * 31 + c * 7 + i * 13);
            if (dtypes[c] == RP_BOOL) bytes[c][i] &= 1;
        }
        values[c] = (rp_value){(uint32_t)c, NULL, {dtypes[c], {2, {2, 3}}, bytes[c]}};
    }
    for (size_t i = 0; i < ROW_ELEMENTS; i++) {
        int n = snprintf(texts[i], sizeof texts[i], "%ld-%zu", step, i);
        strings[i] = (rp_string){texts[i], i == 0 ? 0 : (size_t)n};
    }
    values[STRINGS].tensor.data = strings;
}

/* Reads an ITEM. */
static size_t parse_item(char *text, rp_ref refs[MAX_REFS], rp_item_column columns[COLUMNS])
{
    size_t used = 0, count = 0;

    for (char *rest = text, *word; (word = strsep(&rest, "/")) != NULL && count < COLUMNS;) {
        rp_item_column *column = &columns[count++];

        *column = (rp_item_column){.refs = refs + used};
        for (char *row; (row = strsep(&word, ",")) != NULL && used < MAX_REFS;) {
            char *dot = strchr(row, '.');

            if (dot == NULL) exit(2);
            if (row[strlen(row) - 1] == '!') column->squeeze = true;
            refs[used++] = (rp_ref){(uint32_t)number(row), (uint64_t)number(dot + 1)};
            column->count++;
        }
    }
    return count;
}

static void run_write(rp_client *client, char **words, int count)
{
    static rp_ref refs[MAX_REFS];
    rp_trajectory_writer_options options = {0};
    rp_item_column columns[COLUMNS];
    rp_value values[COLUMNS];
    rp_trajectory_writer *writer;
    rp_error err = {0};
    uint64_t key;

    options.column.history = (int32_t)number(words[1]);
    options.column.chunk_length = (int32_t)number(words[2]);
    check(rp_trajectory_writer_new(client, &options, patience(), &writer, &err), &err);
    for (long step = 0; step < number(words[1]); step++) {
        fill(step, values);
        check(rp_trajectory_writer_append(writer, values, COLUMNS, 0, NULL, &err), &err);
    }
    for (int i = 3; i < count; i++) {
        size_t n = parse_item(words[i], refs, columns);

        check(rp_trajectory_writer_create_item(writer, &(rp_new_item){words[0], i, columns, n},
                                               patience(), &key, &err),
              &err);
        printf("%" PRIu64 "\n", key);
    }
    check(rp_trajectory_writer_end_episode(writer, true, patience(), &err), &err);
    rp_trajectory_writer_free(writer);
}

static void run_steps(rp_client *client, char **words)
{
    rp_step_writer_options options = {.chunk_length = 2};
    rp_value values[COLUMNS];
    rp_tensor step[COLUMNS];
    rp_step_writer *writer;
    rp_error err = {0};
    long length = number(words[2]);

    options.max_sequence_length = (int32_t)length;
    check(rp_step_writer_new(client, &options, patience(), &writer, &err), &err);
    for (long t = 0; t < number(words[1]); t++) {
        fill(t, values);
        for (int c = 0; c < COLUMNS; c++) step[c] = values[c].tensor;
        check(rp_step_writer_append(writer, step, COLUMNS, &err), &err);
        if (t < length - 1) continue;
        check(rp_step_writer_create_item(writer, words[0], (int32_t)length, (double)t,
                                         patience(), NULL, &err),
              &err);
    }
    check(rp_step_writer_flush(writer, patience(), &err), &err);
    rp_step_writer_free(writer);
}

static void run_patterns(rp_client *client, char **words)
{
    rp_pattern_node nodes[COLUMNS] = {{0}};
    rp_pattern pattern = {.table = words[0], .nodes = nodes, .node_count = COLUMNS};
    rp_structured_writer_options options = {.chunk_length = 2};
    rp_structured_writer *writer;
    rp_value values[COLUMNS];
    rp_error err = {0};

    for (uint32_t c = 0; c < COLUMNS; c++)
        nodes[c] = (rp_pattern_node){.source = c,
                                     .has_start = true,
                                     .start = (int32_t)-number(words[2]),
                                     .has_stop = true,
                                     .stop = 0};
    pattern.priority.value = 1.5;
    check(rp_structured_writer_new(client, &pattern, 1, &options, &writer, &err), &err);
    for (long t = 0; t < number(words[1]); t++) {
        fill(t, values);
        check(rp_structured_writer_append(writer, values, COLUMNS, 0, patience(), &err), &err);
    }
    check(rp_structured_writer_end_episode(writer, true, patience(), &err), &err);
    rp_structured_writer_free(writer);
}

static void run_rounds(rp_client *client, char **words)
{
    rp_trajectory_writer_options options = {.column = {.history = 2}};
    rp_trajectory_writer *writer;
    rp_error err = {0};
    char line[16];
    int64_t step = 0;

    check(rp_trajectory_writer_new(client, &options, patience(), &writer, &err), &err);
    while (fgets(line, sizeof line, stdin) != NULL) {
        for (long i = 0; i < number(words[1]); i++, step++) {
            rp_value value = {0, NULL, {RP_INT64, {0, {0}}, &step}};
            rp_ref refs[2];
            rp_item_column column = {.refs = refs, .count = step == 0 ? 1 : 2};

            check(rp_trajectory_writer_append(writer, &value, 1, 0, &refs[1], &err), &err);
            if (!rp_trajectory_writer_find(writer, 0, -2, &refs[0])) refs[0] = refs[1];
            check(rp_trajectory_writer_create_item(
                      writer, &(rp_new_item){words[0], 1, &column, 1}, patience(), NULL, &err),
                  &err);
        }
        check(rp_trajectory_writer_flush(writer, 0, patience(), &err), &err);
        printf("flushed\n");
        (void)fflush(stdout);
    }
    rp_trajectory_writer_free(writer);
}

static void run_sample(rp_client *client, char **words)
{
    rp_sampler_options options = {.table = words[0],
                                  .max_samples = number(words[1]),
                                  .rate_limiter_timeout_ms = number(words[2])};
    rp_sample samples[MAX_COUNT];
    rp_sampler *sampler;
    rp_error err = {0};
    size_t n;

    check(rp_sampler_new(client, &options, &sampler, &err), &err);
    for (int64_t taken = 0; taken < options.max_samples; taken += (int64_t)n) {
        check(rp_sampler_next(sampler, samples, MAX_COUNT, &n, patience(), &err), &err);
        for (size_t i = 0; i < n; i++)
            printf("%" PRIu64 " %.17g %.17g %" PRId64 " %" PRId32 "\n", samples[i].key,
                   samples[i].priority, samples[i].probability, samples[i].table_size,
                   samples[i].times_sampled);
        rp_samples_release(samples, n);
    }
    rp_sampler_free(sampler);
}

static void print_column(const rp_batch_column *column, const int64_t *lengths, size_t count,
                         const uint8_t *data)
{
    const rp_string *strings = (const rp_string *)(const void *)data;
    char shape[128];

    printf("%s %s ", rp_dtype_name(column->dtype),
           rp_shape_text(&column->shape, shape, sizeof shape));
    for (size_t i = 0; lengths != NULL && i < count; i++)
        printf("%s%" PRId64, i > 0 ? "," : "", lengths[i]);
    printf(" ");
    if (column->dtype == RP_STRING)
        for (size_t i = 0; i < column->bytes / sizeof *strings; i++)
            printf("%.*s,", (int)strings[i].size, strings[i].data);
    else
        for (size_t i = 0; i < column->bytes; i++) printf("%02x", data[i]);
    printf("\n");
}

static void run_batch(rp_client *client, char **words)
{
    rp_sampler_options options = {
        .table = words[0], .max_samples = number(words[1]), .rate_limiter_timeout_ms = 5000};
    void *memory[64] = {NULL};
    size_t bytes[64] = {0}, columns;
    rp_sampler *sampler;
    rp_batch *batch;
    rp_error err = {0};

    check(rp_sampler_new(client, &options, &sampler, &err), &err);
    check(rp_sampler_batch(sampler, (size_t)number(words[1]), RP_RAGGED_PAD, true, patience(),
                           &batch, &err),
          &err);
    columns = rp_batch_column_count(batch);
    if (columns > 64) exit(2);
    for (size_t c = 0; c < columns; c++) {
        bytes[c] = rp_batch_get_column(batch, c)->bytes;
        memory[c] = malloc(bytes[c] + 1);
        if (memory[c] == NULL) exit(2);
    }
    check(rp_batch_decode(batch, memory, bytes, &err), &err);
    for (size_t c = 0; c < columns; c++) {
        print_column(rp_batch_get_column(batch, c), rp_batch_lengths(batch, c),
                     rp_batch_size(batch), memory[c]);
        free(memory[c]);
    }
    rp_batch_free(batch);
    rp_sampler_free(sampler);
}

static void run_mutate(rp_client *client, char **words, int count)
{
    rp_update updates[MAX_COUNT];
    uint64_t deletes[MAX_COUNT];
    size_t update_count = 0, delete_count = 0;
    rp_error err = {0};

    for (int i = 1; i < count && i < MAX_COUNT; i++) {
        const char *value = strchr(words[i], '=');

        if (value == NULL)
            deletes[delete_count++] = strtoull(words[i] + 1, NULL, 10);
        else
            updates[update_count++] =
                (rp_update){strtoull(words[i], NULL, 10), strtod(value + 1, NULL)};
    }
    check(rp_client_mutate(client, words[0],
                           &(rp_mutation){.updates = updates,
                                          .update_count = update_count,
                                          .deletes = deletes,
                                          .delete_count = delete_count},
                           patience(), &err),
          &err);
}

int main(int argc, char **argv)
{
    rp_client *client;
    rp_error err = {0};
    char **words = argv + 3;
    int count = argc - 3;

    if (argc < 4) return 2;
    check(rp_client_new(argv[1], NULL, &client, &err), &err);
    if (strcmp(argv[2], "write") == 0 && count > 3)
        run_write(client, words, count);
    else if (strcmp(argv[2], "steps") == 0 && count == 3)
        run_steps(client, words);
    else if (strcmp(argv[2], "patterns") == 0 && count == 3)
        run_patterns(client, words);
    else if (strcmp(argv[2], "rounds") == 0 && count == 2)
        run_rounds(client, words);
    else if (strcmp(argv[2], "sample") == 0 && count == 3)
        run_sample(client, words);
    else if (strcmp(argv[2], "batch") == 0 && count == 2)
        run_batch(client, words);
    else if (strcmp(argv[2], "mutate") == 0)
        run_mutate(client, words, count);
    else if (strcmp(argv[2], "pause") == 0)
        check(rp_client_pause_table(client, words[0], RP_SIDE_INSERTS, patience(), &err), &err);
    else
        return 2;
    rp_client_free(client);
    return 0;
}
