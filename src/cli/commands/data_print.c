/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/data_print.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/progress_bar.h"
#include "cli/text/signature_spec.h"
#include "cli/text/units.h"

static const char *name_of_kind(rp_data_kind kind)
{
    switch (kind) {
    case RP_DATA_CURRENT: return "current";
    case RP_DATA_CHECKPOINT: return "checkpoint";
    case RP_DATA_SEGMENT: return "segment";
    case RP_DATA_JOURNAL: return "journal";
    case RP_DATA_RUNS: return "runs";
    case RP_DATA_ROLLOUTS: return "rollouts";
    case RP_DATA_OTHER: return "other";
    }
    return "unknown";
}

static const char *name_of_state(rp_data_state state)
{
    switch (state) {
    case RP_DATA_FINE: return "fine";
    case RP_DATA_OPEN: return "open";
    case RP_DATA_TORN: return "torn";
    case RP_DATA_DAMAGED: return "damaged";
    case RP_DATA_UNUSED: return "unused";
    case RP_DATA_JOURNALLED: return "journal";
    }
    return "unknown";
}

void rp_data_headings(rp_grid *grid)
{
    static const char *const headings[RP_DATA_COLUMNS] = {"FILE", "KIND",  "SIZE",
                                                          "AGE",  "STATE", ""};

    rp_grid_init(grid, RP_DATA_COLUMNS, 1u << 2 | 1u << 3);
    for (size_t i = 0; i < RP_DATA_COLUMNS; i++) rp_grid_cell(grid, "%s", headings[i]);
    assert(grid->cell_count == RP_DATA_COLUMNS);
}

/* Writes the last cell of a line: the damage, or what the file holds. */
static void details(const rp_data_file *f, char *text, size_t size)
{
    text[0] = '\0';
    if (f->state == RP_DATA_DAMAGED)
        (void)snprintf(text, size, "%s", f->problem);
    else if (f->kind == RP_DATA_CHECKPOINT)
        (void)snprintf(text, size, "%" PRIu64 " item%s in %" PRIu64 " table%s%s", f->items,
                       rp_plural(f->items), f->tables, rp_plural(f->tables),
                       f->current ? ", current" : "");
    else if (f->state == RP_DATA_JOURNALLED)
        (void)snprintf(text, size, "changes in the journal may need it");
    else if (f->kind == RP_DATA_SEGMENT && f->bytes > 0)
        (void)snprintf(text, size, "%d %% live",
                       (int)(100.0 * (double)f->live_bytes / (double)f->bytes));
    else if (f->kind == RP_DATA_JOURNAL && f->last_lsn > 0)
        (void)snprintf(text, size, "changes %" PRIu64 " to %" PRIu64, f->number, f->last_lsn);
    else if (f->kind == RP_DATA_JOURNAL)
        (void)snprintf(text, size, "changes from %" PRIu64 " on", f->number);
    else if (f->kind == RP_DATA_RUNS && f->records > 0)
        (void)snprintf(text, size, "%" PRIu64 " run%s", f->records - 1,
                       rp_plural(f->records - 1)); /* the last is the end */
    else if (f->kind == RP_DATA_ROLLOUTS && f->state != RP_DATA_UNUSED)
        (void)snprintf(text, size, "%" PRIu64 " of checkpoint %" PRIu64, f->rollouts,
                       f->number);
    else if (f->kind == RP_DATA_CURRENT)
        (void)snprintf(text, size, "checkpoint %" PRIu64, f->number);
}

void rp_data_row(rp_grid *grid, const rp_data_file *f)
{
    char text[RP_ERROR_TEXT_BYTES];
    rp_text_buffer path = {0};

    assert(grid->columns == RP_DATA_COLUMNS && grid->cell_count % RP_DATA_COLUMNS == 0);
    rp_text_buffer_put_safe(&path, f->path, strlen(f->path));
    rp_grid_cell(grid, "%s", rp_text_buffer_text(&path));
    rp_text_buffer_deinit(&path);
    rp_grid_cell(grid, "%s", name_of_kind(f->kind));
    rp_grid_cell(grid, "%s", rp_size_text(f->bytes, text, sizeof text));
    rp_grid_cell(grid, "%s", f->age_ns >= 0 ? rp_span_text(f->age_ns, text) : "");
    rp_grid_cell(grid, "%s", name_of_state(f->state));
    details(f, text, sizeof text);
    rp_grid_cell(grid, "%s", text);
    assert(grid->cell_count % RP_DATA_COLUMNS == 0);
}

void rp_data_file_json(rp_text_buffer *out, const rp_data_file *f)
{
    rp_json_open(out, '{');
    rp_json_key(out, "path");
    rp_json_put_text(out, f->path);
    rp_json_key(out, "kind");
    rp_json_put_text(out, name_of_kind(f->kind));
    rp_json_key(out, "state");
    rp_json_put_text(out, name_of_state(f->state));
    rp_json_key(out, "number");
    rp_json_put_unsigned(out, f->number);
    rp_json_key(out, "bytes");
    rp_json_put_unsigned(out, f->bytes);
    rp_json_key(out, "age_seconds");
    rp_json_put_number(out, (double)f->age_ns / 1e9);
    if (f->kind == RP_DATA_CHECKPOINT) {
        rp_json_key(out, "current");
        rp_json_put_boolean(out, f->current);
        rp_json_key(out, "tables");
        rp_json_put_unsigned(out, f->tables);
        rp_json_key(out, "items");
        rp_json_put_unsigned(out, f->items);
        rp_json_key(out, "lsn");
        rp_json_put_unsigned(out, f->lsn);
    }
    if (f->kind == RP_DATA_ROLLOUTS) {
        rp_json_key(out, "rollouts");
        rp_json_put_unsigned(out, f->rollouts);
    }
    if (f->kind == RP_DATA_SEGMENT) {
        rp_json_key(out, "live_bytes");
        rp_json_put_unsigned(out, f->live_bytes);
    }
    if (f->records > 0) {
        rp_json_key(out, "records");
        rp_json_put_unsigned(out, f->records);
        rp_json_key(out, "good_bytes");
        rp_json_put_unsigned(out, f->good_bytes);
    }
    if (f->state == RP_DATA_DAMAGED) {
        rp_json_key(out, "problem");
        rp_json_put_text(out, f->problem);
    }
    rp_json_close(out, '}');
}

void rp_data_summary_words(rp_text_buffer *out, const rp_data_summary *s)
{
    if (s->checkpoint == 0) {
        rp_text_buffer_put(out, "no checkpoint can be loaded");
        return;
    }
    rp_text_buffer_format(
        out, "checkpoint %" PRIu64 ": %" PRIu64 " item%s in %" PRIu64 " table%s", s->checkpoint,
        s->items, rp_plural(s->items), s->tables, rp_plural(s->tables));
    if (s->rollouts > 0) rp_text_buffer_format(out, ", %" PRIu64 " rollouts", s->rollouts);
    if (s->journalled > 0)
        rp_text_buffer_format(out, ", and %" PRIu64 " record%s in the journal", s->journalled,
                              rp_plural(s->journalled));
}

void rp_data_summary_json(rp_text_buffer *out, const rp_data_summary *s)
{
    const struct {
        const char *name;
        uint64_t value;
    } members[] = {
        {"file_count", s->files}, {"bytes", s->bytes},
        {"damaged", s->damaged},  {"torn", s->torn},
        {"unused", s->unused},    {"checkpoint", s->checkpoint},
        {"tables", s->tables},    {"items", s->items},
        {"lsn", s->lsn},          {"journalled", s->journalled},
    };

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        rp_json_key(out, members[i].name);
        rp_json_put_unsigned(out, members[i].value);
    }
}

void rp_data_table_words(rp_text_buffer *out, const rp_table_info *t)
{
    rp_text_buffer_put_safe(out, t->name, strlen(t->name));
    rp_text_buffer_format(
        out,
        ": %" PRId64 " of %" PRId64 " item%s, sampler %s, remover %s, %" PRId64
        " insert%s, %" PRId64 " sample%s, %" PRId64 " delete%s\n",
        t->size, t->max_size, rp_plural((uint64_t)t->max_size),
        rp_selector_name(t->sampler.kind), rp_selector_name(t->remover.kind), t->inserts,
        rp_plural((uint64_t)t->inserts), t->samples, rp_plural((uint64_t)t->samples),
        t->deletes, rp_plural((uint64_t)t->deletes));
}

static void selector_json(rp_text_buffer *out, const char *key,
                          const rp_selector_options *selector)
{
    assert(key[0] == 's' || key[0] == 'r'); /* "sampler" or "remover" */
    rp_json_key(out, key);
    rp_json_put_text(out, rp_selector_name(selector->kind));
    if (selector->kind != RP_PRIORITIZED) return;
    rp_json_key(out, key[0] == 's' ? "exponent" : "remover_exponent");
    rp_json_put_number(out, selector->exponent);
}

void rp_data_table_json(rp_text_buffer *out, const rp_table_info *t)
{
    const struct {
        const char *name;
        int64_t value;
    } members[] = {
        {"size", t->size},
        {"max_size", t->max_size},
        {"max_times_sampled", t->max_times_sampled},
        {"inserts", t->inserts},
        {"samples", t->samples},
        {"deletes", t->deletes},
        {"updates", t->updates},
        {"evictions", t->evictions},
        {"unique_samples", t->unique_samples},
        {"deleted_episodes", t->deleted_episodes},
    };

    rp_json_open(out, '{');
    rp_json_key(out, "table");
    rp_json_put_text(out, t->name);
    selector_json(out, "sampler", &t->sampler);
    selector_json(out, "remover", &t->remover);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        rp_json_key(out, members[i].name);
        rp_json_put_integer(out, members[i].value);
    }
    rp_json_close(out, '}');
    rp_text_buffer_put(out, "\n");
}

static void shape_words(rp_text_buffer *out, const rp_trajectory_column *column)
{
    assert(column->shape.rank >= 0 && column->shape.rank <= RP_MAX_RANK);
    rp_text_buffer_format(out, "%s [", rp_dtype_text(column->dtype));
    for (int32_t i = 0; i < column->shape.rank; i++)
        rp_text_buffer_format(out, "%s%" PRId64, i > 0 ? ", " : "", column->shape.dims[i]);
    rp_text_buffer_put(out, "]");
}

void rp_data_item_words(rp_text_buffer *out, const rp_sample *item)
{
    char text[32];

    rp_text_buffer_format(out, "  %" PRIu64 "  priority %s  sampled %" PRId32 "  ", item->key,
                          rp_decimal_text(item->priority, text, sizeof text),
                          item->times_sampled);
    for (size_t i = 0; i < rp_trajectory_column_count(item->trajectory); i++) {
        rp_trajectory_column column = rp_trajectory_get_column(item->trajectory, i);

        if (i > 0) rp_text_buffer_put(out, ", ");
        shape_words(out, &column);
    }
    rp_text_buffer_put(out, "\n");
}

void rp_data_item_json(rp_text_buffer *out, const char *table, const rp_sample *item)
{
    rp_json_open(out, '{');
    rp_json_key(out, "table");
    rp_json_put_text(out, table);
    rp_json_key(out, "key");
    rp_json_put_unsigned(out, item->key);
    rp_json_key(out, "priority");
    rp_json_put_number(out, item->priority);
    rp_json_key(out, "times_sampled");
    rp_json_put_integer(out, item->times_sampled);
    rp_json_key(out, "inserted_at_ns");
    rp_json_put_integer(out, item->inserted_at_ns);
    rp_json_key(out, "columns");
    rp_json_open(out, '[');
    for (size_t i = 0; i < rp_trajectory_column_count(item->trajectory); i++) {
        rp_trajectory_column column = rp_trajectory_get_column(item->trajectory, i);

        rp_json_open(out, '{');
        rp_json_key(out, "dtype");
        rp_json_put_text(out, rp_dtype_text(column.dtype));
        rp_json_key(out, "shape");
        rp_json_open(out, '[');
        for (int32_t k = 0; k < column.shape.rank; k++)
            rp_json_put_integer(out, column.shape.dims[k]);
        rp_json_close(out, ']');
        rp_json_close(out, '}');
    }
    rp_json_close(out, ']');
    rp_json_close(out, '}');
    rp_text_buffer_put(out, "\n");
}
