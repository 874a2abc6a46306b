/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train/run_folder.h"

#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/text/nearest.h"
#include "cli/text/units.h"
#include "reprise/rl/safetensors.h"

enum { MOST_RUNS = 100000 };

char *rp_run_folder_file(const rp_run_folder *folder, const char *name,
                         char out[RP_RUN_PATH_BYTES + 64])
{
    (void)snprintf(out, RP_RUN_PATH_BYTES + 64, "%s/%s", folder->path, name);
    return out;
}

bool rp_run_folder_set_agent(rp_run_folder *folder, const char *name)
{
    static const char *const agents[] = {"apex-dpg", "apex-dqn", "apex-sac",
                                         "dpg",      "dqn",      "sac"};

    for (size_t i = 0; i < sizeof agents / sizeof agents[0]; i++) {
        if (strcmp(name, agents[i]) != 0) continue;
        folder->agent = agents[i];
        folder->kind = rp_agent_find(name + (i < 3 ? strlen("apex-") : 0));
        assert(folder->kind != NULL);
        return true;
    }
    return false;
}

rp_status rp_run_find_env(const char *name, const rp_env_class **out, rp_problem *problem)
{
    rp_nearest nearest;
    char list[300] = "";

    *out = rp_env_find(name);
    if (*out != NULL) return RP_OK;
    if (strcmp(name, "lunarlander") == 0)
        return rp_problem_set(problem, NULL,
                              "--env: 'lunarlander' needs Box2D, and this reprise was built "
                              "without: install libbox2d-dev and build it again");
    rp_nearest_init(&nearest, name);
    for (size_t i = 0; rp_env_class_at(i) != NULL; i++)
        rp_nearest_offer(&nearest, rp_env_class_at(i)->name);
    if (rp_nearest_get(&nearest) != NULL)
        return rp_problem_set(problem, NULL, "--env: unknown '%.100s', did you mean '%s'?",
                              name, rp_nearest_get(&nearest));
    for (size_t i = 0; rp_env_class_at(i) != NULL; i++)
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                       i > 0 ? ", " : "", rp_env_class_at(i)->name);
    return rp_problem_set(problem, NULL, "--env: unknown '%.100s'; there are %s", name, list);
}

rp_status rp_run_folder_choose(rp_run_folder *folder, const char *given, const char *env,
                               bool latest, rp_problem *problem)
{
    struct stat info;
    char path[RP_RUN_PATH_BYTES];
    int number = 1;

    if (given != NULL) {
        if (strlen(given) + 1 > sizeof folder->path || given[0] == '\0')
            return rp_problem_set(problem, NULL, "--dir: expected 1 to %d bytes",
                                  RP_RUN_PATH_BYTES - 1);
        (void)snprintf(folder->path, sizeof folder->path, "%s", given);
        return RP_OK;
    }
    for (; number < MOST_RUNS; number++) {
        (void)snprintf(path, sizeof path, "runs/%s-%s-%d", folder->agent, env, number);
        if (stat(path, &info) != 0) break;
    }
    if (latest) number--;
    for (; latest && number > 0; number--) { /* one without settings is no run */
        (void)snprintf(path, sizeof path, "runs/%s-%s-%d/settings.txt", folder->agent, env,
                       number);
        if (stat(path, &info) == 0) break;
    }
    if (number == 0)
        return rp_problem_set(problem, NULL, "--resume: there is no run runs/%s-%s-1",
                              folder->agent, env);
    (void)snprintf(folder->path, sizeof folder->path, "runs/%s-%s-%d", folder->agent, env,
                   number);
    return RP_OK;
}

/* Makes a folder and those above it. `*made`: how many were not there. */
static bool make_folders(const char *path, size_t *made)
{
    char part[RP_RUN_PATH_BYTES];
    size_t size = strlen(path);

    assert(size < sizeof part);
    for (size_t i = 1; i <= size; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) == 0)
            (*made)++;
        else if (errno != EEXIST)
            return false;
    }
    return true;
}

static int remove_entry(const char *path, const struct stat *about, int type, struct FTW *at)
{
    (void)about;
    (void)type;
    (void)at;
    return remove(path);
}

void rp_run_folder_undo(rp_run_folder *folder)
{
    char path[RP_RUN_PATH_BYTES + 64];
    char *slash;

    (void)remove(rp_run_folder_file(folder, "settings.txt", path));
    (void)remove(rp_run_folder_file(folder, "progress.csv", path));
    if (folder->made == 0) return;
    (void)nftw(folder->path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    (void)snprintf(path, sizeof path, "%s", folder->path);
    for (; folder->made > 1 && (slash = strrchr(path, '/')) != NULL; folder->made--) {
        *slash = '\0';
        if (rmdir(path) != 0) break;
    }
    folder->made = 0;
}

static rp_status file_problem(rp_problem *problem, const char *path)
{
    return rp_problem_set(problem, NULL, "%.500s: %s", path, strerror(errno));
}

rp_status rp_run_folder_make(rp_run_folder *folder, rp_problem *problem)
{
    return make_folders(folder->path, &folder->made) ? RP_OK
                                                     : file_problem(problem, folder->path);
}

rp_status rp_run_folder_check(const rp_run_folder *folder, rp_problem *problem)
{
    rp_env *env = NULL;
    rp_net *net = NULL;
    rp_error err;
    rp_status st =
        rp_env_new(NULL, folder->env_class, &(rp_env_options){.copies = 1}, &env, &err);

    if (st == RP_OK)
        st = folder->kind->new_net(NULL, &folder->settings, rp_env_get_spec(env), &net, &err);
    rp_net_free(net);
    rp_env_free(env);
    return st == RP_OK ? RP_OK : rp_problem_set(problem, NULL, "%s", err.text);
}

/* Writes the values of the folder, and closes the file. Returns false on failure. */
static bool write_settings(const rp_run_folder *folder, FILE *file)
{
    const rp_settings_table *table = folder->kind->settings();
    char number[40];
    bool bad;

    (void)fprintf(file, "agent %s\nenv %s\nseed %" PRIu64 "\n", folder->agent,
                  folder->env_class->name, folder->seed);
    if (folder->steps > 0) (void)fprintf(file, "steps %" PRId64 "\n", folder->steps);
    if (folder->actors > 0) (void)fprintf(file, "actors %" PRId64 "\n", folder->actors);
    if (folder->keep_going) (void)fprintf(file, "keep-going 1\n");
    for (size_t i = 0; i < table->count; i++)
        (void)fprintf(file, "%s %s\n", table->list[i].name,
                      rp_decimal_text(rp_settings_get(table, &folder->settings, i), number,
                                      sizeof number));
    bad = ferror(file) != 0;
    return fclose(file) == 0 && !bad;
}

rp_status rp_run_folder_create(rp_run_folder *folder, rp_problem *problem)
{
    char path[RP_RUN_PATH_BYTES + 64];
    FILE *file;

    if (rp_run_folder_check(folder, problem) != RP_OK) return RP_INVALID;
    folder->made = 0;
    if (!make_folders(folder->path, &folder->made)) return file_problem(problem, folder->path);
    file = fopen(rp_run_folder_file(folder, "settings.txt", path), "wxe");
    if (file == NULL && errno == EEXIST)
        return rp_problem_set(problem, NULL,
                              "%.500s: there is a run already; --resume continues it",
                              folder->path);
    if (file == NULL) return file_problem(problem, path);
    if (!write_settings(folder, file)) {
        rp_status st = file_problem(problem, path);

        (void)remove(path); /* half of the settings would be those of another run */
        return st;
    }
    return RP_OK;
}

rp_status rp_run_folder_rewrite(const rp_run_folder *folder, rp_problem *problem)
{
    char path[RP_RUN_PATH_BYTES + 64], next[RP_RUN_PATH_BYTES + 64];
    FILE *file = fopen(rp_run_folder_file(folder, "settings.new", next), "we");

    if (file == NULL) return file_problem(problem, next);
    if (write_settings(folder, file) &&
        rename(next, rp_run_folder_file(folder, "settings.txt", path)) == 0)
        return RP_OK;
    (void)file_problem(problem, next);
    (void)remove(next);
    return RP_INVALID;
}

/* Takes the name of the agent, and its defaults. A run that is resumed has the agent that was
 * asked for. */
static bool take_agent(rp_run_folder *folder, const char *value)
{
    if (folder->agent != NULL && strcmp(folder->agent, value) != 0) return false;
    if (!rp_run_folder_set_agent(folder, value)) return false;
    rp_settings_init(folder->kind->settings(), &folder->settings, NULL);
    return true;
}

/* Takes one line, "name value". Returns false if it is none. */
static bool take_line(rp_run_folder *folder, const char *name, const char *value)
{
    const rp_settings_table *table;
    double number;
    size_t i;

    if (strcmp(name, "agent") == 0) return take_agent(folder, value);
    if (strcmp(name, "env") == 0) {
        folder->env_class = rp_env_find(value);
        return folder->env_class != NULL;
    }
    if (strcmp(name, "seed") == 0) return rp_parse_unsigned(value, &folder->seed);
    if (strcmp(name, "steps") == 0 || strcmp(name, "actors") == 0)
        return rp_parse_integer(value, name[0] == 's' ? &folder->steps : &folder->actors);
    if (strcmp(name, "keep-going") == 0) return folder->keep_going = strcmp(value, "1") == 0;
    if (folder->kind == NULL) return false; /* the agent comes first */
    table = folder->kind->settings();
    i = rp_settings_find(table, name);
    if (i == table->count || !rp_parse_number(value, &number)) return false;
    if (number < table->list[i].low || number > table->list[i].high) return false;
    rp_settings_set(table, &folder->settings, i, number);
    return true;
}

rp_status rp_run_folder_read(rp_run_folder *folder, rp_problem *problem)
{
    char path[RP_RUN_PATH_BYTES + 64], line[256], name[128], value[128];
    FILE *file = fopen(rp_run_folder_file(folder, "settings.txt", path), "re");
    rp_run_folder other = {.agent = NULL};
    rp_error err;
    size_t number = 0;

    if (file == NULL && errno == ENOENT)
        return rp_problem_set(problem, NULL,
                              "%.500s: there is no run%s; give the folder of a run, which "
                              "reprise train prints at its end",
                              folder->path,
                              access(folder->path, F_OK) == 0 ? " in it: no settings.txt"
                                                              : ": no such folder");
    if (file == NULL)
        return rp_problem_set(problem, NULL, "%.500s: there is no run: %s", folder->path,
                              strerror(errno));
    folder->kind = NULL;
    folder->env_class = NULL;
    folder->steps = folder->actors = 0;
    folder->keep_going = false;
    while (fgets(line, sizeof line, file) != NULL) {
        number++;
        if (sscanf(line, "agent %127s", value) == 1 && folder->agent != NULL &&
            strcmp(folder->agent, value) != 0 && rp_run_folder_set_agent(&other, value)) {
            (void)fclose(file);
            return rp_problem_set(problem, NULL,
                                  "%.500s: this run is of %s, not of %s: train %s --dir %.300s "
                                  "--resume",
                                  folder->path, value, folder->agent, value, folder->path);
        }
        if (sscanf(line, "%127s %127s", name, value) == 2 && take_line(folder, name, value))
            continue;
        (void)fclose(file);
        line[strcspn(line, "\n")] = '\0';
        return rp_problem_set(problem, &(rp_place){path, number, 1},
                              "'%.100s' is no setting of a run", line);
    }
    (void)fclose(file);
    if (folder->kind == NULL || folder->env_class == NULL)
        return rp_problem_set(problem, NULL, "%.500s: names no %s", path,
                              folder->kind == NULL ? "agent" : "environment");
    if (rp_settings_check(folder->kind->settings(), &folder->settings, &err) != RP_OK)
        return rp_problem_set(problem, NULL, "%.500s: %s", path, err.text);
    return RP_OK;
}

rp_status rp_run_policy_open(rp_run_policy *run, const rp_run_folder *folder, size_t rows,
                             rp_problem *problem)
{
    char path[RP_RUN_PATH_BYTES + 64];
    rp_error err = {0};
    struct stat about;
    const rp_env_spec *spec;
    rp_status st =
        rp_env_new(NULL, folder->env_class, &(rp_env_options){.copies = rows}, &run->env, &err);

    if (st == RP_OK) {
        spec = rp_env_get_spec(run->env);
        st = folder->kind->new_net(NULL, &folder->settings, spec, &run->net, &err);
    }
    if (st == RP_OK) {
        run->params = calloc(rp_net_size(run->net), sizeof *run->params);
        if (run->params == NULL) return rp_problem_memory(problem);
        st = folder->kind->new_policy(NULL, run->net, &folder->settings, spec, rows,
                                      &run->policy, &err);
    }
    (void)rp_run_folder_file(folder, "policy.safetensors", path);
    if (st == RP_OK && stat(path, &about) == 0 && !S_ISREG(about.st_mode)) /* it may wait */
        return rp_problem_set(problem, NULL, "%.500s is no file", path);
    if (st == RP_OK && stat(path, &about) != 0 && errno == ENOENT)
        return rp_problem_set(
            problem, NULL,
            "%.300s: no policy was saved yet: there is no policy.safetensors in it; a run "
            "saves "
            "one when it ends or is interrupted: repeat this then, or continue it with reprise "
            "train %s --dir %.300s --resume",
            folder->path, folder->agent, folder->path);
    if (st == RP_OK)
        st = rp_net_load(rp_allocator_default(), run->net, path, run->params, &err);
    return st == RP_OK ? RP_OK : rp_problem_set(problem, NULL, "%s", err.text);
}

void rp_run_policy_close(rp_run_policy *run)
{
    rp_policy_free(run->policy);
    free(run->params);
    rp_net_free(run->net);
    rp_env_free(run->env);
    *run = (rp_run_policy){0};
}
