/* SPDX-License-Identifier: Apache-2.0 */
/* The line for a terminal, and CSV files.
 *
 * Invariant:
 *   C1  the columns of a row are those of the head, in its order: `steps` is the first. */
#include "loop/run_log.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error/fail.h"

rp_status rp_run_log_write(rp_run_log *logger, const rp_run_progress *progress, rp_error *err)
{
    return logger->write(logger, progress, err);
}

void rp_run_log_free(rp_run_log *logger)
{
    if (logger != NULL) logger->free(logger);
}

/* Writes 1234567 as "1,234,567". */
static char *with_commas(int64_t number, char text[32])
{
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%" PRId64, number);
    char *at = text;

    for (int i = 0; i < count; i++) {
        *at++ = digits[i];
        if (digits[i] != '-' && (count - i - 1) % 3 == 0 && i + 1 < count) *at++ = ',';
    }
    *at = '\0';
    return text;
}

static char *number_text(double number, int digits, char text[32])
{
    if (!isfinite(number))
        (void)snprintf(text, 32, "-");
    else
        (void)snprintf(text, 32, "%.*f", digits, number);
    return text;
}

static char *time_text(double seconds, char text[32])
{
    if (!isfinite(seconds) || seconds < 0)
        (void)snprintf(text, 32, "-");
    else if (seconds < 100)
        (void)snprintf(text, 32, "%.0f s", seconds);
    else if (seconds < 6000)
        (void)snprintf(text, 32, "%.0f min", seconds / 60);
    else
        (void)snprintf(text, 32, "%.1f h", seconds / 3600);
    return text;
}

char *rp_run_progress_line(const rp_run_progress *p, char *text, size_t size)
{
    char a[32], b[32], c[32], d[32], e[32], f[32], g[32];
    int64_t speed = isfinite(p->steps_per_second) ? (int64_t)p->steps_per_second : 0;

    assert(size >= 1);
    (void)snprintf(text, size,
                   "%s steps  %s episodes  return %s  greedy %s  %s steps/s  %s samples/insert"
                   "  %s left",
                   with_commas(p->steps, a), with_commas(p->episodes, b),
                   number_text(p->mean_return, 1, c), number_text(p->eval_return, 1, d),
                   with_commas(speed, e), number_text(p->samples_per_insert, 1, f),
                   time_text(p->left_seconds, g));
    return text;
}

static const char HEAD[] =
    "steps,seconds,episodes,updates,mean_return,mean_length,eval_steps,eval_return,loss,value,"
    "error,norm,epsilon,samples_per_insert,item_size,steps_per_second\n";

typedef struct csv_logger {
    rp_run_log logger; /* first */
    FILE *file;
} csv_logger;

/* Numbers that are not known are empty, as spreadsheets and pandas expect. */
static void put_number(FILE *file, double number)
{
    if (isfinite(number))
        (void)fprintf(file, ",%.9g", number);
    else
        (void)fputc(',', file);
}

static rp_status write_row(rp_run_log *logger, const rp_run_progress *p, rp_error *err)
{
    FILE *file = ((csv_logger *)logger)->file;
    const double after[] = {p->eval_return,
                            p->loss,
                            p->value,
                            p->error,
                            p->norm,
                            p->epsilon,
                            p->samples_per_insert,
                            (double)p->item_size,
                            p->steps_per_second};

    (void)fprintf(file, "%" PRId64 ",%.3f,%" PRId64 ",%" PRId64, p->steps, p->seconds,
                  p->episodes, p->updates);
    put_number(file, p->mean_return);
    put_number(file, p->mean_length);
    put_number(file, isfinite(p->eval_return) ? (double)p->eval_steps : (double)NAN);
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++) put_number(file, after[i]);
    (void)fputc('\n', file);
    if (fflush(file) == 0 && !ferror(file)) return RP_OK;
    return rp_rl_fail(err, RP_UNAVAILABLE, "the CSV file of the run cannot be written: %s",
                      strerror(errno));
}

static void free_csv(rp_run_log *logger)
{
    csv_logger *l = (csv_logger *)logger;
    rp_allocator alloc = l->logger.alloc;

    (void)fclose(l->file);
    (void)alloc.resize(alloc.ctx, l, sizeof *l, 0);
}

/* Returns where the first row with more than `steps` steps begins, or the end. */
static long find_end(FILE *file, int64_t steps)
{
    char line[1024];
    long at = 0;

    while (fgets(line, sizeof line, file) != NULL) {
        if (at > 0 && strtoll(line, NULL, 10) > steps) return at;
        if (strchr(line, '\n') == NULL) return at; /* the process was killed within it */
        at = ftell(file);
    }
    return at;
}

/* Opens the file, and cuts off what a resumed run writes again. */
static FILE *open_csv(const rp_allocator *alloc, const char *path, bool resume, int64_t steps)
{
    FILE *file = resume ? fopen(path, "r+e") : NULL;
    char *kept = NULL;
    long end, size;

    if (file == NULL) {
        file = fopen(path, "we");
        if (file != NULL) (void)fputs(HEAD, file);
        return file;
    }
    end = size = find_end(file, steps);
    kept = end > 0 ? alloc->resize(alloc->ctx, NULL, 0, (size_t)end) : NULL;
    rewind(file);
    if (kept != NULL && fread(kept, 1, (size_t)end, file) != (size_t)end) end = 0;
    (void)fclose(file);
    file = fopen(path, "we");
    if (file != NULL && kept != NULL && end > 0) (void)fwrite(kept, 1, (size_t)end, file);
    if (file != NULL && (kept == NULL || end == 0)) (void)fputs(HEAD, file);
    if (kept != NULL) (void)alloc->resize(alloc->ctx, kept, (size_t)size, 0);
    return file;
}

rp_status rp_run_log_open_csv(const rp_allocator *alloc, const char *path, bool resume,
                              int64_t steps, rp_run_log **out, rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    csv_logger *l = a.resize(a.ctx, NULL, 0, sizeof *l);

    if (l == NULL) return rp_rl_fail_memory(err, sizeof *l);
    *l = (csv_logger){.logger = {write_row, free_csv, a},
                      .file = open_csv(&a, path, resume, steps)};
    if (l->file == NULL) {
        (void)a.resize(a.ctx, l, sizeof *l, 0);
        return rp_rl_fail(err, RP_UNAVAILABLE, "%s: %s", path, strerror(errno));
    }
    *out = &l->logger;
    return RP_OK;
}
