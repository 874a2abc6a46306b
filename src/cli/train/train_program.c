/* SPDX-License-Identifier: Apache-2.0 */
/* Reads programs: see train_program.h.
 *
 * Invariant:
 *   G1  no option is in `flags` twice. */
#include "cli/train/train_program.h"

#include <assert.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/text/nearest.h"
#include "cli/text/units.h"
#include "cli/text/yaml_tree.h"
#include "reprise/rl/apex.h"

enum { MOST_ENVS = 64 };

typedef enum value_kind { WHOLE, UNSIGNED, NUMBER, SWITCH, TEXT, ENV } value_kind;

/* A key that stands for an option. */
typedef struct program_key {
    const char *section; /* NULL: at the top */
    const char *name;
    rp_train_option option;
    value_kind kind;
    double low, high; /* of numbers */
} program_key;

static const program_key keys[] = {
    {NULL, "env", RP_TRAIN_ENV, ENV, 0, 0},
    {NULL, "seed", RP_TRAIN_SEED, UNSIGNED, 0, 0},
    {NULL, "seconds", RP_TRAIN_SECONDS, WHOLE, 1, 1e12},
    {NULL, "report", RP_TRAIN_REPORT, TEXT, 0, 0},
    {NULL, "report_name", RP_TRAIN_REPORT_NAME, TEXT, 0, 0},
    {NULL, "report_ca", RP_TRAIN_REPORT_CA, TEXT, 0, 0},
    {NULL, "image", RP_TRAIN_IMAGE, TEXT, 0, 0},
    {"replay", "shards", RP_TRAIN_SHARDS, WHOLE, 1, RP_PROGRAM_MAX_SHARDS},
    {"replay", "tokens", RP_TRAIN_TOKENS, TEXT, 0, 0},
    {"replay", "tls_cert", RP_TRAIN_TLS_CERT, TEXT, 0, 0},
    {"replay", "tls_key", RP_TRAIN_TLS_KEY, TEXT, 0, 0},
    {"replay", "insecure", RP_TRAIN_INSECURE, SWITCH, 0, 0},
    {"learner", "steps", RP_TRAIN_STEPS, WHOLE, 1, 1e12},
    {"actors", "count", RP_TRAIN_ACTORS, WHOLE, 1, RP_APEX_MAX_ACTORS},
    {"evaluator", "episodes", RP_TRAIN_EVAL_EPISODES, WHOLE, 1, 1e12},
    {"evaluator", "confirm_episodes", RP_TRAIN_CONFIRM_EPISODES, WHOLE, 1, 1e12},
    {"evaluator", "threshold", RP_TRAIN_THRESHOLD, NUMBER, -1e300, 1e300},
    {"evaluator", "keep_going", RP_TRAIN_KEEP_GOING, SWITCH, 0, 0},
};

enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

/* Keys that stand for no option, or not always for the same: agent, dir; serve and addresses of
 * the replay; the settings of the agent. */
static const char *const sections[] = {"replay", "learner", "actors", "evaluator", "settings"};

void rp_program_init(rp_program *p, const rp_allocator *alloc)
{
    *p = (rp_program){.dir = NULL};
    rp_arena_init(&p->arena, alloc);
}

void rp_program_deinit(rp_program *p)
{
    rp_arena_deinit(&p->arena);
}

/* The value of an option, NULL if it is not there. */
static const char *get(const rp_program *p, rp_train_option option)
{
    return rp_flags_get(&p->flags, option);
}

/* Sets an option, unless it is there. */
static rp_status add(rp_program *p, size_t option, const char *value, rp_problem *problem)
{
    if (value == NULL) return rp_problem_memory(problem);
    if (rp_flags_get(&p->flags, option) != NULL) return RP_OK; /* G1 */
    assert(p->flags.count < RP_MAX_FLAGS && option < RP_TRAIN_OPTIONS);
    p->flags.list[p->flags.count++] = (rp_flag){option, value};
    return RP_OK;
}

/* True if both are NULL, or the same text. */
static bool is_same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool is_null(const rp_yaml *node)
{
    return node->kind == RP_YAML_SCALAR && !node->quoted &&
           (node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
            strcmp(node->text, "null") == 0);
}

static const char *kind_name(rp_yaml_kind kind)
{
    return kind == RP_YAML_MAP ? "a map" : kind == RP_YAML_LIST ? "a list" : "a value";
}

static rp_status expect(const rp_yaml *node, rp_yaml_kind kind, const char *key,
                        rp_problem *problem)
{
    if (is_null(node)) return rp_problem_set(problem, &node->place, "%s: has no value", key);
    if (node->kind == kind) return RP_OK;
    return rp_problem_set(problem, &node->place, "%s: expected %s, got %s", key,
                          kind_name(kind), kind_name(node->kind));
}

/* The key of a node as the user knows it: "actors.count". NULL: no memory. */
static const char *full_key(rp_program *p, const char *section, const char *key)
{
    return rp_arena_format(&p->arena, "%s%s%s", section != NULL ? section : "",
                           section != NULL ? "." : "", key);
}

static rp_status take_text(rp_program *p, const char *section, const rp_yaml *node,
                           const char **out, rp_problem *problem)
{
    rp_setting value = {full_key(p, section, node->key), node->text, node->quoted, node->place};
    rp_status st = value.key != NULL ? expect(node, RP_YAML_SCALAR, value.key, problem)
                                     : rp_problem_memory(problem);

    return st == RP_OK ? rp_setting_text(&value, out, problem) : st;
}

/* RP_INVALID, with the environments that there are. */
static rp_status check_env(const rp_setting *value, rp_problem *problem)
{
    const char *names[MOST_ENVS];
    size_t count = 0;
    int which;

    if (rp_env_find(value->text) != NULL) return RP_OK;
    for (; count < MOST_ENVS && rp_env_class_at(count) != NULL; count++)
        names[count] = rp_env_class_at(count)->name;
    return rp_setting_choice(value, names, count, &which, problem);
}

/* Checks a value; the option parses it again. */
static rp_status check_value(const rp_setting *value, value_kind kind, double low, double high,
                             rp_problem *problem)
{
    uint64_t positive;
    const char *text;
    int64_t whole;
    double number;
    bool on;

    switch (kind) {
    case WHOLE: return rp_setting_integer(value, (int64_t)low, (int64_t)high, &whole, problem);
    case UNSIGNED: return rp_setting_unsigned(value, &positive, problem);
    case NUMBER: return rp_setting_number(value, low, high, &number, problem);
    case SWITCH: return rp_setting_boolean(value, &on, problem);
    case ENV: return check_env(value, problem);
    case TEXT: break;
    }
    return rp_setting_text(value, &text, problem);
}

static rp_status read_key(rp_program *p, const program_key *key, const rp_yaml *node,
                          rp_problem *problem)
{
    rp_setting value = {full_key(p, key->section, node->key), node->text, node->quoted,
                        node->place};
    rp_status st;

    assert(get(p, key->option) == NULL); /* G1: a map has no key twice */
    if (value.key == NULL) return rp_problem_memory(problem);
    st = expect(node, RP_YAML_SCALAR, value.key, problem);
    if (st == RP_OK) st = check_value(&value, key->kind, key->low, key->high, problem);
    return st == RP_OK ? add(p, key->option, node->text, problem) : st;
}

static rp_status unknown_key(const char *section, const rp_yaml *node,
                             const rp_nearest *nearest, rp_problem *problem)
{
    const char *dot = section != NULL ? "." : "", *near = rp_nearest_get(nearest);

    if (section == NULL) section = "";
    if (near != NULL)
        return rp_problem_set(problem, &node->key_place,
                              "%s%s%.100s: unknown key, did you mean '%s'?", section, dot,
                              node->key, near);
    return rp_problem_set(
        problem, &node->key_place,
        "%s%s%.100s: unknown key; --print-program writes a file with all keys", section, dot,
        node->key);
}

static void replace(char *text, char from, char to)
{
    for (; *text != '\0'; text++)
        if (*text == from) *text = to;
}

/* Finds the option of a setting of the agent; the key has '_' for '-'. Returns
 * RP_TRAIN_OPTIONS if there is none. */
static size_t setting_option(const rp_settings_table *table, const char *key, size_t *index)
{
    char name[64];
    size_t option = RP_TRAIN_SETTINGS;

    (void)snprintf(name, sizeof name, "%s", key);
    replace(name, '_', '-');
    *index = strchr(key, '-') == NULL ? rp_settings_find(table, name) : table->count;
    if (*index == table->count) return RP_TRAIN_OPTIONS;
    while (strcmp(rp_train_command.options[option].name, name) != 0) option++;
    assert(option < RP_TRAIN_OPTIONS); /* every setting has an option */
    return option;
}

static rp_status read_setting(rp_program *p, const rp_settings_table *table,
                              const rp_yaml *node, rp_problem *problem)
{
    static const value_kind kinds[] = {[RP_SETTING_INTEGER] = WHOLE,
                                       [RP_SETTING_NUMBER] = NUMBER,
                                       [RP_SETTING_SWITCH] = SWITCH};
    size_t index, option = setting_option(table, node->key, &index);
    rp_nearest nearest;

    if (option < RP_TRAIN_OPTIONS) {
        const rp_setting_info *info = &table->list[index];
        const program_key key = {"settings",        NULL,      (rp_train_option)option,
                                 kinds[info->kind], info->low, info->high};

        return read_key(p, &key, node, problem);
    }
    rp_nearest_init(&nearest, node->key);
    for (size_t i = 0; i < table->count; i++) {
        char *name = rp_arena_format(&p->arena, "%s", table->list[i].name);

        if (name == NULL) return rp_problem_memory(problem);
        replace(name, '-', '_');
        rp_nearest_offer(&nearest, name);
    }
    return unknown_key("settings", node, &nearest, problem);
}

static rp_status add_address(rp_program *p, const rp_yaml *node, rp_problem *problem)
{
    rp_setting value = {"replay.addresses", node->text, node->quoted, node->place};
    rp_status st = expect(node, RP_YAML_SCALAR, value.key, problem);

    if (st == RP_OK && strchr(node->text, ',') != NULL)
        st = rp_problem_set(problem, &node->place,
                            "replay.addresses: expected a list such as [a:8000, b:8000], got "
                            "'%.100s'",
                            node->text);
    if (st == RP_OK && p->address_count == RP_PROGRAM_MAX_SHARDS)
        st = rp_problem_set(problem, &node->place, "replay.addresses: more than %d",
                            RP_PROGRAM_MAX_SHARDS);
    if (st == RP_OK) st = rp_setting_text(&value, &p->addresses[p->address_count], problem);
    if (st == RP_OK) p->address_count++;
    return st;
}

static rp_status read_addresses(rp_program *p, const rp_yaml *node, rp_problem *problem)
{
    rp_status st = RP_OK;

    if (node->kind != RP_YAML_LIST) return add_address(p, node, problem);
    for (const rp_yaml *n = node->first; n != NULL && st == RP_OK; n = n->next)
        st = add_address(p, n, problem);
    return st;
}

/* Reads a key of a section, or one at the top (`section` NULL). */
static rp_status read_entry(rp_program *p, const char *section, const rp_yaml *node,
                            rp_problem *problem)
{
    rp_nearest nearest;

    assert(node->key != NULL);
    rp_nearest_init(&nearest, node->key);
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (!is_same(keys[i].section, section)) continue;
        if (strcmp(keys[i].name, node->key) == 0) return read_key(p, &keys[i], node, problem);
        rp_nearest_offer(&nearest, keys[i].name);
    }
    if (section == NULL) {
        if (strcmp(node->key, "agent") == 0) return RP_OK; /* read before */
        if (strcmp(node->key, "dir") == 0) return take_text(p, NULL, node, &p->dir, problem);
        rp_nearest_offer(&nearest, "dir");
        rp_nearest_offer(&nearest, "agent");
        for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
            rp_nearest_offer(&nearest, sections[i]);
    } else if (strcmp(section, "replay") == 0) {
        if (strcmp(node->key, "addresses") == 0) return read_addresses(p, node, problem);
        if (strcmp(node->key, "serve") == 0)
            return take_text(p, section, node, &p->serve, problem);
        rp_nearest_offer(&nearest, "addresses");
        rp_nearest_offer(&nearest, "serve");
    }
    return unknown_key(section, node, &nearest, problem);
}

static rp_status read_section(rp_program *p, const rp_settings_table *table,
                              const rp_yaml *node, rp_problem *problem)
{
    bool is_settings = strcmp(node->key, "settings") == 0;
    rp_status st = expect(node, RP_YAML_MAP, node->key, problem);

    for (const rp_yaml *n = node->first; n != NULL && st == RP_OK; n = n->next)
        st = is_settings ? read_setting(p, table, n, problem)
                         : read_entry(p, node->key, n, problem);
    return st;
}

static bool is_section(const char *key)
{
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (strcmp(sections[i], key) == 0) return true;
    return false;
}

/* Reads the agent, whose settings the others are checked against. */
static rp_status read_agent(rp_program *p, const rp_yaml *root, const rp_settings_table **out,
                            rp_problem *problem)
{
    static const char *const agents[] = {"apex-dqn", "apex-dpg", "apex-sac"};
    const rp_yaml *node = root->first;
    rp_setting value;
    rp_status st;
    int which = 0;

    while (node != NULL && strcmp(node->key, "agent") != 0) node = node->next;
    if (node == NULL)
        return rp_problem_set(problem, &root->place,
                              "agent: is missing; expected apex-dqn, apex-dpg or apex-sac");
    value = (rp_setting){"agent", node->text, node->quoted, node->place};
    st = expect(node, RP_YAML_SCALAR, "agent", problem);
    if (st == RP_OK) st = rp_setting_choice(&value, agents, 3, &which, problem);
    if (st != RP_OK) return st;
    p->flags.words[0] = agents[which];
    p->flags.word_count = 1;
    *out = rp_agent_find(agents[which] + strlen("apex-"))->settings();
    return RP_OK;
}

/* As many addresses as shards. */
static rp_status check_shards(const rp_program *p, const rp_yaml *root, rp_problem *problem)
{
    const char *shards = get(p, RP_TRAIN_SHARDS);
    int64_t count = 0;
    const rp_setting value = {.key = "replay.shards", .text = shards};

    if (shards == NULL || p->address_count == 0) return RP_OK;
    if (rp_setting_integer(&value, 1, RP_PROGRAM_MAX_SHARDS, &count, problem) != RP_OK)
        return RP_INVALID;
    if ((size_t)count == p->address_count) return RP_OK;
    return rp_problem_set(problem, &root->place,
                          "replay: has %lld shard%s and %zu address%s; leave shards out",
                          (long long)count, rp_plural((uint64_t)count), p->address_count,
                          p->address_count == 1 ? "" : "es");
}

static rp_status read_root(rp_program *p, const char *file, const rp_yaml *root,
                           rp_problem *problem)
{
    const rp_settings_table *table = NULL;
    rp_status st;

    if (root == NULL || is_null(root))
        return rp_problem_set(problem, &(rp_place){file, 1, 1},
                              "an empty file; --print-program writes a program");
    if (root->kind != RP_YAML_MAP)
        return rp_problem_set(problem, &root->place, "expected keys with values, got %s",
                              kind_name(root->kind));
    st = read_agent(p, root, &table, problem);
    for (const rp_yaml *n = root->first; n != NULL && st == RP_OK; n = n->next)
        st = is_section(n->key) ? read_section(p, table, n, problem)
                                : read_entry(p, NULL, n, problem);
    return st == RP_OK ? check_shards(p, root, problem) : st;
}

rp_status rp_program_read_text(rp_program *p, const char *file, const char *text, size_t size,
                               rp_problem *problem)
{
    rp_yaml *root = NULL;
    rp_status st = rp_yaml_parse(&p->arena, file, text, size, &root, problem);

    return st == RP_OK ? read_root(p, file, root, problem) : st;
}

rp_status rp_program_read_file(rp_program *p, const char *file, rp_problem *problem)
{
    rp_yaml *root = NULL;
    rp_status st = rp_yaml_read(&p->arena, file, &root, problem);

    return st == RP_OK ? read_root(p, file, root, problem) : st;
}

/* The addresses of all shards, separated by commas. NULL: no memory. */
static const char *join_addresses(rp_program *p)
{
    const char *list = p->addresses[0];

    for (size_t i = 1; i < p->address_count && list != NULL; i++)
        list = rp_arena_format(&p->arena, "%s,%s", list, p->addresses[i]);
    return list;
}

/* What the role "replay" takes from the file: its own address, and a folder of its own. */
static rp_status add_shard(rp_program *p, rp_problem *problem)
{
    const char *text = get(p, RP_TRAIN_INDEX);
    const rp_setting value = {.key = "--index", .text = text};
    int64_t index = 0;
    rp_status st = RP_OK;

    if (p->address_count == 0) return RP_OK;
    if (text != NULL)
        st = rp_setting_integer(&value, 0, (int64_t)p->address_count - 1, &index, problem);
    if (st == RP_OK) st = add(p, RP_TRAIN_SERVE, p->addresses[index], problem);
    return st;
}

/* True if the command starts the servers of the shards, or prints their number. */
static bool starts_shards(const rp_flags *flags)
{
    return rp_flags_get(flags, RP_TRAIN_PROCESSES) != NULL ||
           rp_flags_get(flags, RP_TRAIN_EXPORT) != NULL ||
           rp_flags_get(flags, RP_TRAIN_PRINT_PROGRAM) != NULL;
}

/* Adds what depends on what is to be run: a role, or the whole program. */
static rp_status add_nodes(rp_program *p, rp_problem *problem)
{
    const char *role = get(p, RP_TRAIN_ROLE);
    bool is_replay = role != NULL && strcmp(role, "replay") == 0;
    bool has_folder = role == NULL || is_replay || strcmp(role, "evaluator") == 0;
    rp_status st = RP_OK;

    if (is_replay)
        st = add_shard(p, problem);
    else if (role != NULL && p->address_count > 0)
        st = add(p, RP_TRAIN_REPLAY, join_addresses(p), problem);
    else if (p->address_count > 0 && starts_shards(&p->flags))
        st = add(p, RP_TRAIN_SHARDS, rp_arena_format(&p->arena, "%zu", p->address_count),
                 problem);
    if (st == RP_OK && p->serve != NULL && (role == NULL || is_replay))
        st = add(p, RP_TRAIN_SERVE, p->serve, problem);
    if (st == RP_OK && p->dir != NULL && has_folder && get(p, RP_TRAIN_EXPORT) == NULL)
        st = add(p, RP_TRAIN_DIR, p->dir, problem);
    return st;
}

/* Removes options of the file: the number of shards, unless something is to start them, and
 * what a resumed run has in its folder. */
static void drop_unused(rp_program *p, const rp_flags *given)
{
    bool is_resumed = rp_flags_get(given, RP_TRAIN_RESUME) != NULL;
    bool has_shards = starts_shards(given);
    size_t kept = 0;

    for (size_t i = 0; i < p->flags.count; i++) {
        size_t option = p->flags.list[i].option;

        if (is_resumed && (option >= RP_TRAIN_SETTINGS || option == RP_TRAIN_SEED)) continue;
        if (!has_shards && option == RP_TRAIN_SHARDS) continue;
        p->flags.list[kept++] = p->flags.list[i];
    }
    p->flags.count = kept;
}

rp_status rp_program_merge(rp_program *p, const rp_flags *given, rp_problem *problem)
{
    bool has_file = p->flags.word_count > 0;

    drop_unused(p, given);
    for (size_t i = 0; i < given->count; i++) {
        size_t k = 0;

        while (k < p->flags.count && p->flags.list[k].option != given->list[i].option) k++;
        if (k == RP_MAX_FLAGS)
            return rp_problem_set(problem, NULL, "more than %d options", RP_MAX_FLAGS);
        p->flags.list[k] = given->list[i]; /* G1: in place of that of the file */
        if (k == p->flags.count) p->flags.count++;
    }
    if (rp_flags_get(given, RP_TRAIN_SHARDS) != NULL) p->address_count = 0; /* other shards */
    p->flags.help = given->help;
    if (given->word_count > 0) p->flags.words[0] = given->words[0];
    if (given->word_count > 0) p->flags.word_count = 1;
    if (p->flags.word_count == 0)
        return rp_problem_set(problem, NULL,
                              "AGENT is missing; usage: reprise train %s; --help explains it",
                              rp_train_command.usage);
    if (has_file && strncmp(p->flags.words[0], "apex-", 5) != 0)
        return rp_problem_set(problem, NULL,
                              "--program describes apex-dqn, apex-dpg or apex-sac, not '%.40s'",
                              p->flags.words[0]);
    return add_nodes(p, problem);
}

/* A program that is being written, as YAML or JSON. */
typedef struct printer {
    const rp_program *p;
    rp_text_buffer *out;
    bool json;
    const char *section; /* the open one; NULL: none */
} printer;

/* Writes a key of a section, NULL: at the top, and opens and closes sections. */
static void put_key(printer *w, const char *section, const char *name)
{
    bool is_other = !is_same(w->section, section);

    if (is_other && w->section != NULL && w->json) rp_json_close(w->out, '}');
    if (is_other && section != NULL) {
        if (w->json) rp_json_key(w->out, section);
        if (w->json) rp_json_open(w->out, '{');
        if (!w->json) rp_text_buffer_format(w->out, "%s:\n", section);
    }
    w->section = section;
    if (w->json)
        rp_json_key(w->out, name);
    else
        rp_text_buffer_format(w->out, "%s%s: ", section != NULL ? "  " : "", name);
}

/* A value, which is text or a number of JSON; and in YAML its explanation, NULL: none. */
static void put_value(printer *w, const char *text, bool is_text, const char *about)
{
    if (w->json && is_text)
        rp_json_put_text(w->out, text);
    else if (w->json)
        rp_json_put_raw(w->out, text);
    else if (is_text)
        rp_json_put_quote(w->out, text, strlen(text));
    else
        rp_text_buffer_put(w->out, text);
    if (w->json) return;
    rp_text_buffer_put(w->out, about != NULL ? "  # " : "");
    rp_text_buffer_put(w->out, about != NULL ? about : "");
    rp_text_buffer_put(w->out, "\n");
}

/* The value of an option, without '_' between its digits. */
static void put_option(printer *w, const program_key *key, const char *text)
{
    char number[40];
    int64_t whole = 0;
    uint64_t positive = 0;
    double value = 0;
    bool is_number = true;

    assert(is_same(w->section, key->section));
    if (key->kind == WHOLE && rp_parse_integer(text, &whole))
        (void)snprintf(number, sizeof number, "%lld", (long long)whole);
    else if (key->kind == UNSIGNED && rp_parse_unsigned(text, &positive))
        (void)snprintf(number, sizeof number, "%llu", (unsigned long long)positive);
    else if (key->kind == NUMBER && rp_parse_number(text, &value))
        (void)rp_decimal_text(value, number, sizeof number);
    else
        is_number = false;
    put_value(w, is_number ? number : text, !is_number && key->kind != SWITCH, NULL);
}

static void put_addresses(printer *w, const char *given)
{
    size_t count = w->p->address_count;

    if (given == NULL && count == 0) return;
    put_key(w, "replay", "addresses");
    if (w->json)
        rp_json_open(w->out, '[');
    else
        rp_text_buffer_put(w->out, "[");
    for (size_t i = 0; given != NULL ? *given != '\0' : i < count; i++) {
        size_t length = given != NULL ? strcspn(given, ",") : strlen(w->p->addresses[i]);

        if (!w->json && i > 0) rp_text_buffer_put(w->out, ", ");
        if (w->json)
            rp_json_put_string(w->out, given != NULL ? given : w->p->addresses[i], length);
        else
            rp_json_put_quote(w->out, given != NULL ? given : w->p->addresses[i], length);
        if (given != NULL) given += length + (given[length] == ',');
    }
    if (w->json)
        rp_json_close(w->out, ']');
    else
        rp_text_buffer_put(w->out, "]\n");
}

/* The keys of a section that have a value. */
static void put_section(printer *w, const char *section)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const program_key *key = &keys[i];
        const char *value = get(w->p, key->option);
        bool is_actors = key->option == RP_TRAIN_ACTORS;

        if (!is_same(key->section, section)) continue;
        if (is_actors && get(w->p, RP_TRAIN_OF) != NULL) value = get(w->p, RP_TRAIN_OF);
        if (is_actors && value == NULL) value = "8";
        if (key->option == RP_TRAIN_SHARDS && w->p->address_count > 0) continue;
        if (value == NULL) continue;
        put_key(w, key->section, key->name);
        put_option(w, key, value);
    }
}

static void put_settings(printer *w, const rp_run_folder *folder)
{
    const rp_settings_table *table = folder->kind->settings();
    char number[40], name[64];

    for (size_t i = 0; i < table->count; i++) {
        const rp_setting_info *info = &table->list[i];
        double value = rp_settings_get(table, &folder->settings, i);

        (void)snprintf(name, sizeof name, "%s", info->name);
        replace(name, '-', '_');
        put_key(w, "settings", name);
        if (info->kind == RP_SETTING_SWITCH)
            put_value(w, value != 0 ? "true" : "false", false, info->about);
        else
            put_value(w, rp_decimal_text(value, number, sizeof number), false, info->about);
    }
}

void rp_program_print(const rp_program *p, const rp_run_folder *folder, bool json,
                      rp_text_buffer *out)
{
    printer w = {p, out, json, NULL};
    const char *serve = get(p, RP_TRAIN_SERVE), *dir = get(p, RP_TRAIN_DIR);

    if (json)
        rp_json_open(out, '{');
    else
        rp_text_buffer_put(out, "# reprise train --program FILE\n");
    put_key(&w, NULL, "agent");
    put_value(&w, folder->agent, true, NULL);
    put_section(&w, NULL);
    if (dir != NULL) put_key(&w, NULL, "dir");
    if (dir != NULL) put_value(&w, dir, true, NULL);
    put_section(&w, "replay");
    put_addresses(&w, get(p, RP_TRAIN_REPLAY));
    if (serve != NULL) put_key(&w, "replay", "serve");
    if (serve != NULL) put_value(&w, serve, true, NULL);
    put_section(&w, "learner");
    put_section(&w, "actors");
    put_section(&w, "evaluator");
    put_settings(&w, folder);
    if (!json) return;
    rp_json_close(out, '}');
    rp_json_close(out, '}');
    rp_text_buffer_put(out, "\n");
}
