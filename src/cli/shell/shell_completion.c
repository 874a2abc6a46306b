/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/shell_completion.h"

#include <assert.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/help/word_kinds.h"

void rp_candidates_add(rp_candidates *c, const char *word, const char *prefix)
{
    size_t same = 0;

    if (strncmp(word, prefix, strlen(prefix)) != 0) return;
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->list[i], word) == 0) return;
    if (c->count == 0) {
        same = strlen(word);
    } else {
        while (same < c->common && word[same] == c->list[0][same]) same++;
        /* Do not cut a character of UTF-8. */
        while (same > 0 && ((unsigned char)word[same] & 0xc0) == 0x80) same--;
    }
    c->common = same; /* also of candidates over the bound, which are not listed */
    if (c->count < RP_MOST_CANDIDATES) c->list[c->count++] = word;
}

void rp_candidates_add_name(rp_candidates *c, const char *name, const char *prefix)
{
    if (name[0] != '-') rp_candidates_add(c, name, prefix);
}

/* Adds the words of a list that is separated by spaces. */
static void add_list(rp_arena *arena, const char *list, const char *prefix, rp_candidates *out)
{
    while (*list != '\0') {
        size_t length = strcspn(list, " ");
        const char *word = rp_arena_text(arena, list, length);

        if (word != NULL) rp_candidates_add(out, word, prefix);
        list += length;
        list += strspn(list, " ");
    }
}

/* Adds the files that begin with `prefix`; folders end with a slash. Hidden files need a dot.
 */
static void add_files(rp_arena *arena, const char *prefix, rp_candidates *out)
{
    const char *slash = strrchr(prefix, '/');
    size_t folder_size = slash != NULL ? (size_t)(slash - prefix) + 1 : 0;
    const char *folder = rp_arena_text(arena, prefix, folder_size);
    const char *start = prefix + folder_size;
    const struct dirent *entry;
    DIR *dir = folder != NULL ? opendir(folder_size > 0 ? folder : ".") : NULL;

    if (dir == NULL) return;
    while ((entry = readdir(dir)) != NULL) {
        const char *path = rp_arena_format(arena, "%s%s", folder, entry->d_name);
        struct stat st;

        if (path == NULL || (entry->d_name[0] == '.' && start[0] != '.')) continue;
        if (strncmp(path, prefix, strlen(prefix)) != 0) continue;
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            path = rp_arena_format(arena, "%s/", path);
        if (path != NULL) rp_candidates_add_name(out, path, prefix);
    }
    (void)closedir(dir);
}

static const rp_command *find_command(const rp_completer *p, const char *name)
{
    for (size_t i = 0; i < p->command_count; i++)
        if (strcmp(p->commands[i]->name, name) == 0) return p->commands[i];
    return NULL;
}

static void add_commands(const rp_completer *p, bool builtins, const char *prefix,
                         rp_candidates *out)
{
    for (size_t i = 0; i < p->command_count; i++)
        rp_candidates_add(out, p->commands[i]->name, prefix);
    for (size_t i = 0; builtins && p->builtins[i] != NULL; i++)
        rp_candidates_add(out, p->builtins[i], prefix);
}

/* Returns the option of a word such as "--name", or NULL. */
static const rp_option *find_option(const rp_command *c, const char *word)
{
    if (strncmp(word, "--", 2) != 0) return NULL;
    for (size_t i = 0; i < rp_command_option_count(c); i++)
        if (strcmp(rp_command_option(c, i)->name, word + 2) == 0)
            return rp_command_option(c, i);
    return NULL;
}

static void add_options(const rp_command *c, rp_arena *arena, const char *prefix,
                        rp_candidates *out)
{
    for (size_t i = 0; i < rp_command_option_count(c); i++) {
        const char *word = rp_arena_format(arena, "--%s", rp_command_option(c, i)->name);

        if (word != NULL) rp_candidates_add(out, word, prefix);
    }
    rp_candidates_add(out, "--help", prefix);
}

/* Completes a word of a command that is no option. `place` is its place among such words, from
 * 1, and `first` the first of them. */
static void complete_word(const rp_completer *p, const rp_command *c, rp_arena *arena,
                          size_t place, const char *first, const char *prefix,
                          rp_candidates *out)
{
    rp_word_kind kind = rp_word_kind_of(c, place, first);

    if (kind == RP_WORD_ACTION) add_list(arena, c->actions, prefix, out);
    if (kind == RP_WORD_COMMAND) add_commands(p, false, prefix, out);
    if (kind == RP_WORD_TABLE) p->add_tables(p->ctx, prefix, out);
    if (kind == RP_WORD_FILE) add_files(arena, prefix, out);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void rp_shell_complete(const rp_completer *p, rp_arena *arena, const char *line, size_t size,
                       rp_candidates *out)
{
    static rp_shell_words w; /* too large for a stack */
    const char *prefix, *first = NULL;
    const rp_option *option = NULL;
    const rp_command *c;
    size_t words, place = 1, base = 0;
    rp_problem problem;

    *out = (rp_candidates){.from = size};
    if (rp_shell_split(arena, line, size, &w, &problem) != RP_OK) return;
    words = w.ends_inside ? w.count - 1 : w.count; /* before the one to complete */
    prefix = w.ends_inside ? w.words[words] : "";
    if (w.ends_inside) out->from = w.starts[words];
    if (words > 0 && strcmp(w.words[0], "reprise") == 0) base = 1; /* typed out of habit */
    if (words == base) {
        add_commands(p, true, prefix, out);
    } else if ((c = find_command(p, w.words[base])) != NULL) {
        for (size_t i = base + 1; i < words; i++) {
            bool is_value = option != NULL && option->argument != NULL;

            option = is_value ? NULL : find_option(c, w.words[i]);
            if (is_value || w.words[i][0] == '-') continue;
            if (first == NULL) first = w.words[i];
            place++;
        }
        if (option != NULL && option->words != NULL)
            add_list(arena, option->words, prefix, out);
        else if (option != NULL && option->argument != NULL && rp_option_takes_file(option))
            add_files(arena, prefix, out);
        else if (option != NULL && option->argument != NULL)
            return; /* any value */
        else if (prefix[0] == '-')
            add_options(c, arena, prefix, out);
        else
            complete_word(p, c, arena, place, first, prefix, out);
    }
    assert(out->count <= RP_MOST_CANDIDATES);
    qsort(out->list, out->count, sizeof out->list[0], compare);
}
