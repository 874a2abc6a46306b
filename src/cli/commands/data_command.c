/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise data`: works on a data directory without a server. Each action is a function. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/data_print.h"
#include "cli/text/progress_bar.h"
#include "cli/text/units.h"

enum { EXIT_MISUSE = 2 };

typedef enum option {
    JSON,
    QUIET,
    CHECKPOINT,
    TABLE,
    ITEMS,
    FROM,
    TO,
    OPTIONS,
} option;

static const rp_option options[OPTIONS] = {
    [JSON] = {"json", NULL, "print JSON, for programs", false, NULL, NULL},
    [QUIET] = {"quiet", NULL, "do not show progress", false, NULL, NULL},
    [CHECKPOINT] = {"checkpoint", "N", "dump this checkpoint, not the current one", false,
                    "dump", NULL},
    [TABLE] = {"table", "NAME", "dump this table only", false, NULL, NULL},
    [ITEMS] = {"items", "N", "items of each table, at most (0: none)", false, NULL, NULL},
    [FROM] = {"from", "FORMAT", "create DIR from a checkpoint of this format", false, "convert",
              "reverb"},
    [TO] = {"to", "FORMAT", "write a checkpoint of this format below PATH", false, NULL,
            "reverb"},
};

static const char text[] =
    "Actions:\n"
    "  list DIR              list checkpoints, segments and journal files\n"
    "  verify DIR            read every byte of these files and report damage\n"
    "  dump DIR              print tables and items: keys, priorities, shapes\n"
    "  salvage DIR NEW       copy all that can be read to a new directory\n"
    "  convert --from reverb PATH DIR\n"
    "  convert --to reverb DIR PATH\n"
    "                        convert from and to checkpoints of dm-reverb\n"
    "No action changes the files it reads. Exit status 1: damage was found, or it failed.\n";

static const char *const examples[] = {
    "reprise data list data",
    "reprise data verify data",
    "reprise data dump data --table replay --items 3 --json",
    "reprise data salvage data salvaged",
    "reprise data convert --to reverb data checkpoints",
    "reprise data convert --from reverb checkpoints copied",
    NULL,
};

/* The state of an action. */
typedef struct data {
    const rp_flags *flags;
    const char *action;
    bool json;
    rp_progress_bar bar;
    rp_text_buffer buffer;
    rp_grid grid;
    bool only_bad; /* list only files that are damaged or torn */
    uint64_t rows;
    uint64_t spared; /* damaged files without which a server starts: it needs CURRENT and the
                        newest manifest only if no older manifest is good */
    uint64_t bad_checkpoints, journals; /* damaged manifests; files of the journal */
} data;

/* Returns advice for a source that is not there or has not what it should, or NULL. */
static const char *source_hint(const data *d, const char *text_)
{
    bool is_reverb = rp_flags_get(d->flags, FROM) != NULL; /* convert --from reverb */
    char manifests[4096];

    if (strstr(text_, "to make it in") != NULL) return "make that directory first";
    if (strstr(text_, "no such directory") == NULL &&
        strstr(text_, "not a directory") == NULL &&
        strstr(text_, "no data of reprise") == NULL &&
        strstr(text_, "no checkpoint of dm-reverb") == NULL &&
        strstr(text_, "no checkpoint in this directory") == NULL)
        return NULL;
    (void)snprintf(manifests, sizeof manifests, "%s/manifest", d->flags->words[1]);
    if (is_reverb && access(manifests, F_OK) == 0)
        return "it has data of reprise, which --to reverb converts";
    if (is_reverb) return "give a checkpoint of dm-reverb, or the folder of its checkpoints";
    if (rp_flags_get(d->flags, TO) != NULL)
        return "give the directory of reprise serve --data; --from reverb converts a "
               "checkpoint "
               "of dm-reverb";
    return "give the directory of reprise serve --data";
}

/* Returns advice for an error, or NULL. */
static const char *hint(const data *d, rp_status st, const char *text_)
{
    switch (st) {
    case RP_CORRUPT:
        if (strcmp(d->action, "dump") == 0) return "reprise data verify lists all damage";
        if (strcmp(d->action, "convert") == 0)
            return "reprise data salvage copies what can be read to a new directory";
        return NULL;
    case RP_NOT_FOUND:
        if (strstr(text_, "has no table") != NULL && strstr(text_, " more") == NULL)
            return NULL; /* all are named */
        if (strstr(text_, "has no table") != NULL)
            return "reprise data dump DIR --items 0 lists the tables";
        if (source_hint(d, text_) != NULL) return source_hint(d, text_);
        return "reprise data list DIR shows what is there";
    case RP_EXISTS: return "name a directory that is not there yet";
    case RP_NO_RESOURCE: return "this needs memory and disk for all of the data";
    default: return NULL;
    }
}

static int fail(data *d, rp_status st, const rp_error *err)
{
    const char *next = hint(d, st, err->text);
    rp_text_buffer safe = {0};

    assert(st != RP_OK);
    rp_progress_bar_end(&d->bar);
    (void)fflush(stdout);
    rp_text_buffer_put_safe(&safe, err->text, strlen(err->text));
    (void)fprintf(stderr, "reprise data: %s%s%s\n",
                  err->text[0] != '\0' ? rp_text_buffer_text(&safe) : rp_status_name(st),
                  next != NULL ? "; " : "", next != NULL ? next : "");
    rp_text_buffer_deinit(&safe);
    return EXIT_FAILURE;
}

static int misuse(const char *format, const char *value)
{
    rp_problem problem;

    (void)rp_problem_set(&problem, NULL, format, value);
    (void)fprintf(stderr, "reprise data: %s\n", problem.text);
    return EXIT_MISUSE;
}

/* Prints the buffer and clears it. Returns `status`, or 1 if there was no memory for it. */
static int print(data *d, int status)
{
    rp_progress_bar_end(&d->bar);
    if (d->buffer.failed) {
        (void)fputs("reprise data: out of memory\n", stderr);
        return EXIT_FAILURE;
    }
    (void)fwrite(rp_text_buffer_text(&d->buffer), 1, d->buffer.size, stdout);
    rp_text_buffer_clear(&d->buffer);
    return status;
}

/* Warns that a server may change the files while they are read. */
static void warn_if_locked(const char *directory)
{
    int64_t pid = rp_data_locked_by(directory);

    if (pid == 0) return;
    if (pid > 0)
        (void)fprintf(stderr,
                      "reprise data: process %" PRId64 " is using this directory: files may "
                      "change while they are read\n",
                      pid);
    else
        (void)fputs("reprise data: a process is using this directory: files may change while "
                    "they are read\n",
                    stderr);
}

/* Parses the number of an option, if it was given. Returns 0 or the exit status. */
static int take_number(const data *d, option o, uint64_t *out)
{
    const char *value = rp_flags_get(d->flags, o);

    assert(o == ITEMS || o == CHECKPOINT);
    if (value == NULL || rp_parse_unsigned(value, out)) return 0;
    return misuse(o == ITEMS ? "--items: expected a number, got '%.60s'"
                             : "--checkpoint: expected a number, got '%.60s'",
                  value);
}

static void on_progress(void *ctx, const rp_durable_progress *progress)
{
    rp_progress_bar_show(&((data *)ctx)->bar, progress);
}

static void on_file(void *ctx, const rp_data_file *file)
{
    data *d = ctx;

    d->journals += file->kind == RP_DATA_JOURNAL;
    d->bad_checkpoints += file->state == RP_DATA_DAMAGED && file->kind == RP_DATA_CHECKPOINT;
    d->spared += file->state == RP_DATA_DAMAGED &&
                 (file->kind == RP_DATA_CURRENT || file->kind == RP_DATA_CHECKPOINT ||
                  file->kind == RP_DATA_OTHER);
    if (d->json) {
        rp_data_file_json(&d->buffer, file);
        return;
    }
    if (d->only_bad && file->state != RP_DATA_DAMAGED && file->state != RP_DATA_TORN) return;
    rp_data_row(&d->grid, file);
    d->rows++;
}

static void finish_look(data *d, const rp_data_summary *s, bool thorough)
{
    char size[32];

    if (d->json) {
        rp_json_close(&d->buffer, ']');
        rp_data_summary_json(&d->buffer, s);
        rp_json_close(&d->buffer, '}');
        rp_text_buffer_put(&d->buffer, "\n");
        return;
    }
    if (d->rows > 0) rp_grid_write(&d->grid, &d->buffer);
    if (thorough && s->damaged > 0)
        rp_text_buffer_format(&d->buffer, "%" PRIu64 " of %" PRIu64 " files damaged; ",
                              s->damaged, s->files);
    else
        rp_text_buffer_format(&d->buffer, "%" PRIu64 " file%s, %s; ", s->files,
                              rp_plural(s->files), rp_size_text(s->bytes, size, sizeof size));
    if (thorough && s->damaged == 0) rp_text_buffer_put(&d->buffer, "all fine; ");
    rp_data_summary_words(&d->buffer, s);
    rp_text_buffer_put(&d->buffer, "\n");
    if (s->damaged > 0 && s->checkpoint != 0 && d->spared == s->damaged &&
        d->bad_checkpoints > 0 && d->journals == 0)
        rp_text_buffer_format(&d->buffer,
                              "reprise serve --data DIR loads checkpoint %" PRIu64
                              ", without the changes after it; reprise data salvage DIR NEW "
                              "first copies all that "
                              "can be read to a new directory\n",
                              s->checkpoint);
    else if (s->damaged > 0 && s->checkpoint != 0 && d->spared == s->damaged)
        rp_text_buffer_format(
            &d->buffer,
            "reprise serve --data DIR loads checkpoint %" PRIu64
            " and the journal since then; --salvage is needed only if it refuses to start\n",
            s->checkpoint);
    else if (s->damaged > 0)
        rp_text_buffer_put(
            &d->buffer,
            s->checkpoint != 0
                ? "reprise serve --data DIR --salvage loads the intact part; reprise data "
                  "salvage copies all that can be read to a new directory\n"
                : "reprise data salvage copies all that can be read to a new "
                  "directory\n");
}

static int look(data *d, bool thorough)
{
    const rp_data_look_options o = {
        .directory = d->flags->words[1],
        .thorough = thorough,
        .on_file = on_file,
        .on_progress = on_progress,
        .ctx = d,
    };
    rp_data_summary summary;
    rp_error err = {0};
    rp_status st;

    assert(d->flags->word_count == 2);
    warn_if_locked(o.directory);
    d->only_bad = thorough;
    rp_data_headings(&d->grid);
    if (d->json) {
        rp_json_open(&d->buffer, '{');
        rp_json_key(&d->buffer, "files");
        rp_json_open(&d->buffer, '[');
    }
    st = rp_data_look(&o, &summary, &err);
    if (st != RP_OK) return fail(d, st, &err);
    assert(summary.damaged <= summary.files);
    finish_look(d, &summary, thorough);
    return print(d, summary.damaged > 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static int run_list(data *d)
{
    return look(d, false);
}

static int run_verify(data *d)
{
    return look(d, true);
}

/* Prints the buffer once it is large: a checkpoint may not fit in memory as text. */
static void print_some(data *d)
{
    if (d->buffer.size < 1 << 16 || d->buffer.failed) return;
    (void)fwrite(rp_text_buffer_text(&d->buffer), 1, d->buffer.size, stdout);
    rp_text_buffer_clear(&d->buffer);
}

static void on_table(void *ctx, const rp_table_info *table)
{
    data *d = ctx;

    if (d->json)
        rp_data_table_json(&d->buffer, table);
    else
        rp_data_table_words(&d->buffer, table);
}

static void on_item(void *ctx, const char *table, const rp_sample *item)
{
    data *d = ctx;

    if (d->json)
        rp_data_item_json(&d->buffer, table, item);
    else
        rp_data_item_words(&d->buffer, item);
    print_some(d);
}

/* Says how many changes are in the journal only. */
static void tell_journal(const data *d)
{
    const rp_data_look_options o = {.directory = d->flags->words[1], .counts_journal = true};
    rp_data_summary s;
    rp_error err = {0};

    if (rp_data_look(&o, &s, &err) != RP_OK || s.journalled == 0) return;
    (void)fflush(stdout);
    (void)fprintf(stderr,
                  "reprise data: %" PRIu64
                  " record%s of the journal %s not in checkpoint %" PRIu64
                  ", which this is; reprise data salvage DIR NEW applies %s\n",
                  s.journalled, rp_plural(s.journalled), s.journalled == 1 ? "is" : "are",
                  s.checkpoint, s.journalled == 1 ? "it" : "them");
}

static int run_dump(data *d)
{
    rp_data_dump_options o = {
        .directory = d->flags->words[1],
        .table = rp_flags_get(d->flags, TABLE),
        .on_table = on_table,
        .on_item = on_item,
        .ctx = d,
    };
    rp_error err = {0};
    rp_status st;
    int status = take_number(d, CHECKPOINT, &o.checkpoint);

    if (status == 0) status = take_number(d, ITEMS, &o.max_items);
    if (status != 0) return status;
    if (rp_flags_get(d->flags, ITEMS) != NULL && o.max_items == 0) o.on_item = NULL;
    warn_if_locked(o.directory);
    st = rp_data_dump(&o, &err);
    status = print(d, EXIT_SUCCESS);
    if (st != RP_OK) status = fail(d, st, &err);
    /* A table that is missing may be in the journal only. */
    if (o.checkpoint == 0 && (st == RP_OK || strstr(err.text, "has no table") != NULL))
        tell_journal(d);
    return status;
}

static void on_event(void *ctx, const char *event)
{
    data *d = ctx;
    rp_text_buffer safe = {0};

    /* A server would move the file; this command changes nothing. */
    const char *moved = strstr(event, ": moved to quarantine");

    rp_progress_bar_end(&d->bar);
    rp_text_buffer_put_safe(&safe, event,
                            moved != NULL ? (size_t)(moved - event) : strlen(event));
    (void)fprintf(stderr, "reprise data: %s\n", rp_text_buffer_text(&safe));
    rp_text_buffer_deinit(&safe);
}

static void report(data *d, const rp_data_moved *moved)
{
    char size[32];

    if (d->json) {
        rp_json_open(&d->buffer, '{');
        rp_json_key(&d->buffer, "path");
        rp_json_put_text(&d->buffer, moved->path);
        rp_json_key(&d->buffer, "tables");
        rp_json_put_unsigned(&d->buffer, moved->tables);
        rp_json_key(&d->buffer, "items");
        rp_json_put_unsigned(&d->buffer, moved->items);
        rp_json_key(&d->buffer, "bytes");
        rp_json_put_unsigned(&d->buffer, moved->bytes);
        rp_json_key(&d->buffer, "records");
        rp_json_put_unsigned(&d->buffer, moved->records);
        rp_json_close(&d->buffer, '}');
    } else {
        rp_text_buffer_put_safe(&d->buffer, moved->path, strlen(moved->path));
        rp_text_buffer_format(&d->buffer, ": %" PRIu64 " item%s in %" PRIu64 " table%s, %s",
                              moved->items, rp_plural(moved->items), moved->tables,
                              rp_plural(moved->tables),
                              rp_size_text(moved->bytes, size, sizeof size));
    }
    rp_text_buffer_put(&d->buffer, "\n");
}

typedef rp_status move_fn(const rp_data_move_options *options, rp_data_moved *out,
                          rp_error *err);

static int move_data(data *d, move_fn *function)
{
    const rp_data_move_options o = {
        .from = d->flags->words[1],
        .to = d->flags->words[2],
        .on_progress = on_progress,
        .on_event = on_event,
        .ctx = d,
    };
    rp_data_moved moved;
    rp_error err = {0};
    rp_status st;

    assert(d->flags->word_count == 3);
    warn_if_locked(o.from);
    st = function(&o, &moved, &err);
    if (st != RP_OK) return fail(d, st, &err);
    report(d, &moved);
    return print(d, EXIT_SUCCESS);
}

static int run_salvage(data *d)
{
    return move_data(d, rp_data_salvage);
}

static int run_convert(data *d)
{
    const char *from = rp_flags_get(d->flags, FROM), *to = rp_flags_get(d->flags, TO);
    const char *format = from != NULL ? from : to;

    if ((from == NULL) == (to == NULL))
        return misuse("convert: %s", "give either --from reverb or --to reverb");
    if (strcmp(format, "reverb") != 0)
        return misuse(from != NULL ? "--from: expected reverb, got '%.60s'"
                                   : "--to: expected reverb, got '%.60s'",
                      format);
    return move_data(d, from != NULL ? rp_data_from_reverb : rp_data_to_reverb);
}

static const struct {
    const char *name;
    size_t words;     /* after the name */
    uint32_t options; /* a bit for each allowed option, besides --json and --quiet */
    int (*run)(data *d);
    const char *usage; /* the arguments in words */
} actions[] = {
    {"list", 1, 0, run_list, "DIR"},
    {"verify", 1, 0, run_verify, "DIR"},
    {"dump", 1, 1u << CHECKPOINT | 1u << TABLE | 1u << ITEMS, run_dump, "DIR"},
    {"salvage", 2, 0, run_salvage, "DIR and NEW, a directory that is not there yet"},
    {"convert", 2, 1u << FROM | 1u << TO, run_convert,
     "--from reverb PATH DIR, or --to reverb DIR PATH"},
};

static bool is_on(const rp_flags *flags, option o)
{
    const char *value = rp_flags_get(flags, o);
    return value != NULL && strcmp(value, "false") != 0;
}

static int run_action(data *d, size_t action)
{
    const uint32_t takes = actions[action].options | 1u << JSON | 1u << QUIET;

    static_assert(OPTIONS <= 32, "`takes` has a bit for each option");
    if (d->flags->word_count != 1 + actions[action].words) {
        rp_problem problem;

        (void)rp_problem_set(&problem, NULL, "%s: takes %s, got %zu argument%s",
                             actions[action].name, actions[action].usage,
                             d->flags->word_count - 1, rp_plural(d->flags->word_count - 1));
        return misuse("%s", problem.text);
    }
    for (size_t i = 0; i < d->flags->count; i++) {
        size_t o = d->flags->list[i].option;
        rp_problem problem;

        assert(o < OPTIONS);
        if ((takes & 1u << o) != 0) continue;
        (void)rp_problem_set(&problem, NULL, "%s takes no --%s", actions[action].name,
                             options[o].name);
        return misuse("%s", problem.text);
    }
    return actions[action].run(d);
}

static int run(const rp_flags *flags)
{
    data d = {.flags = flags, .json = is_on(flags, JSON)};
    int status = EXIT_MISUSE;

    rp_progress_bar_init(&d.bar, is_on(flags, QUIET));
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(flags->words[0], actions[i].name) == 0) {
            d.action = actions[i].name;
            status = run_action(&d, i);
        }
    assert(d.action != NULL); /* the parser has checked the action */
    rp_grid_deinit(&d.grid);
    rp_text_buffer_deinit(&d.buffer);
    return status;
}

const rp_command rp_data_command = {
    .name = "data",
    .summary = "Verifies, lists, dumps, salvages and converts data without a server.",
    .usage = "ACTION [OPTION...] DIR [PATH]",
    .text = text,
    .examples = examples,
    .actions = "list verify dump salvage convert",
    .options = options,
    .option_count = OPTIONS,
    .min_words = 2,
    .max_words = 3,
    .run = run,
};
