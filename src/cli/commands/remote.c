/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/remote.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reprise/printable.h"

enum {
    DEFAULT_TIMEOUT_MS = 10 * 1000,
    MAX_TIMEOUT_MS = 7 * 24 * 60 * 60 * 1000,
    TOKEN_BYTES = 4096,
};

static const char default_server[] = "localhost:8000";

/* The shared options. `server` is the help of --server. */
#define REMOTE_LIST(server)                                                                    \
    {                                                                                          \
        [RP_REMOTE_SERVER] = {"server", "ADDR[,ADDR...]", server, false, "Server", NULL},      \
        [RP_REMOTE_TOKEN] = {"token",                                                          \
                             "TEXT",                                                           \
                             "bearer token; other users can see it in the process list",       \
                             false,                                                            \
                             NULL,                                                             \
                             NULL},                                                            \
        [RP_REMOTE_TOKEN_FILE] = {"token-file", "FILE", "read the token from a file",          \
                                  false,        NULL,   NULL},                                 \
        [RP_REMOTE_TLS] = {"tls", NULL, "use TLS, trust the system's certificates",            \
                           false, NULL, NULL},                                                 \
        [RP_REMOTE_CA] = {"ca",  "FILE", "use TLS, trust these certificates, PEM",             \
                          false, NULL,   NULL},                                                \
        [RP_REMOTE_CERT] = {"cert", "FILE", "client certificate, PEM", false, NULL, NULL},     \
        [RP_REMOTE_KEY] = {"key", "FILE", "its private key, PEM", false, NULL, NULL},          \
        [RP_REMOTE_TIMEOUT] = {"timeout",                                                      \
                               "SECONDS",                                                      \
                               "how long to wait for a response (10; 0: no limit)",            \
                               false,                                                          \
                               NULL,                                                           \
                               NULL},                                                          \
        [RP_REMOTE_JSON] = {"json", NULL, "print JSON, for programs", false, NULL, NULL},      \
    }

static const rp_option remote_list[RP_REMOTE_OPTIONS] =
    REMOTE_LIST("host:port or unix:/path; several are shards (localhost:8000)");
static const rp_option bench_list[RP_REMOTE_OPTIONS] =
    REMOTE_LIST("measure this server; without it, bench starts one of its own");

const rp_options rp_remote_options = {remote_list, RP_REMOTE_OPTIONS};
const rp_options rp_remote_bench_options = {bench_list, RP_REMOTE_OPTIONS};

/* Returns the value of a shared option, or NULL. */
static const char *shared(const rp_remote *r, rp_remote_option option)
{
    assert(option < RP_REMOTE_OPTIONS);
    return rp_flags_get(r->flags, r->own + option);
}

bool rp_remote_setting(rp_remote *r, size_t option, rp_setting *out)
{
    const char *name = rp_command_option(r->command, option)->name;
    const char *text = rp_flags_get(r->flags, option), *key;

    if (text == NULL) return false;
    key = rp_arena_format(&r->arena, "--%s", name);
    *out = (rp_setting){.key = key != NULL ? key : name, .text = text};
    return true;
}

bool rp_remote_switch(const rp_remote *r, size_t option)
{
    const char *text = rp_flags_get(r->flags, option);

    assert(rp_command_option(r->command, option)->argument == NULL);
    return text != NULL && strcmp(text, "false") != 0;
}

/* Reads the token from the first line of a file. */
static rp_status read_token(rp_remote *r, const char *path, rp_problem *problem)
{
    char text[TOKEN_BYTES + 1];
    ssize_t size;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return rp_problem_set(problem, NULL, "--token-file %.200s: %s", path, strerror(errno));
    size = read(fd, text, TOKEN_BYTES);
    (void)close(fd);
    if (size < 0)
        return rp_problem_set(problem, NULL, "--token-file %.200s: %s", path, strerror(errno));
    assert(size <= TOKEN_BYTES);
    text[size] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (text[0] == '\0')
        return rp_problem_set(problem, NULL, "--token-file %.200s: its first line is empty",
                              path);
    r->options.token = rp_arena_text(&r->arena, text, strlen(text));
    return r->options.token != NULL ? RP_OK : rp_problem_memory(problem);
}

static rp_status read_timeout(rp_remote *r, rp_problem *problem)
{
    rp_setting value = {.key = "--timeout", .text = shared(r, RP_REMOTE_TIMEOUT)};

    r->timeout_ms = DEFAULT_TIMEOUT_MS;
    if (value.text != NULL &&
        rp_setting_duration(&value, 1000, MAX_TIMEOUT_MS, &r->timeout_ms, problem) != RP_OK)
        return RP_INVALID;
    /* An attempt to connect may take the whole wait; a shorter wait ends it anyway. Without a
     * limit, a shard that accepts connections and says nothing must not hold up the others. */
    if (r->timeout_ms == 0 && strchr(r->addresses, ',') == NULL &&
        strncmp(r->addresses, "dns:", 4) != 0)
        r->options.connect_timeout_ms = MAX_TIMEOUT_MS;
    else if (r->timeout_ms > DEFAULT_TIMEOUT_MS)
        r->options.connect_timeout_ms = r->timeout_ms;
    return RP_OK;
}

const char *rp_environment_token(void)
{
    const char *token = getenv("REPRISE_TOKEN");

    return token != NULL && token[0] != '\0' ? token : NULL;
}

static rp_status read_options(rp_remote *r, rp_problem *problem)
{
    const char *server = shared(r, RP_REMOTE_SERVER), *file = shared(r, RP_REMOTE_TOKEN_FILE);
    const char *environment = getenv("REPRISE_SERVER");
    rp_status st;

    if (server == NULL && environment != NULL && environment[0] != '\0') server = environment;
    r->given = server != NULL;
    r->addresses = server != NULL ? server : default_server;
    if (shared(r, RP_REMOTE_TOKEN) != NULL && file != NULL)
        return rp_problem_set(problem, NULL, "--token and --token-file: give only one of them");
    r->options.token = shared(r, RP_REMOTE_TOKEN);
    if (r->options.token != NULL && r->options.token[0] == '\0')
        return rp_problem_set(problem, NULL,
                              "--token is empty: write a token after it, or leave --token out");
    if (r->options.token == NULL && file == NULL) r->options.token = rp_environment_token();
    st = file != NULL ? read_token(r, file, problem) : RP_OK;
    if (st == RP_OK) st = read_timeout(r, problem);
    if (st != RP_OK) return st;
    r->options.tls = rp_remote_switch(r, r->own + RP_REMOTE_TLS);
    r->options.ca_file = shared(r, RP_REMOTE_CA);
    r->options.certificate_file = shared(r, RP_REMOTE_CERT);
    r->options.key_file = shared(r, RP_REMOTE_KEY);
    if ((r->options.certificate_file == NULL) != (r->options.key_file == NULL))
        return rp_problem_set(problem, NULL, "--cert and --key: give both or none");
    if (r->options.ca_file != NULL || r->options.certificate_file != NULL)
        r->options.tls = true;
    r->json = rp_remote_switch(r, r->own + RP_REMOTE_JSON);
    return RP_OK;
}

int rp_remote_open(rp_remote *r, const rp_command *command, const rp_flags *flags)
{
    rp_problem problem;

    assert(command->shared == &rp_remote_options ||
           command->shared == &rp_remote_bench_options);
    *r = (rp_remote){.command = command, .flags = flags, .own = command->option_count};
    rp_arena_init(&r->arena, NULL);
    return read_options(r, &problem) == RP_OK ? 0 : rp_remote_misuse(r, &problem);
}

int rp_remote_connect(rp_remote *r)
{
    rp_error err = {0};
    rp_status st = rp_interrupts_start(&r->interrupts);

    assert(r->client == NULL && r->addresses != NULL);
    if (st == RP_OK) st = rp_client_new(r->addresses, &r->options, &r->client, &err);
    if (st == RP_OK) {
        r->patience = rp_patience_new(r->command->name, r->addresses, r->client);
        r->told = calloc(rp_client_shard_count(r->client), sizeof *r->told);
        return 0;
    }
    (void)rp_remote_fail(r, st, &err);
    return st == RP_INVALID ? RP_EXIT_MISUSE : EXIT_FAILURE;
}

void rp_remote_close(rp_remote *r)
{
    rp_patience_free(r->patience);
    rp_client_free(r->client);
    rp_left_out_deinit(&r->change);
    free(r->told);
    rp_interrupts_stop(&r->interrupts);
    rp_arena_deinit(&r->arena);
}

rp_wait rp_remote_wait(const rp_remote *r)
{
    rp_wait wait = r->timeout_ms > 0 ? rp_wait_ms(r->timeout_ms) : rp_wait_forever();

    assert(r->timeout_ms >= 0);
    wait.cancel = r->interrupts.cancel;
    rp_patience_begin(r->patience, wait.until_ns);
    return wait;
}

void rp_remote_rest(const rp_remote *r)
{
    rp_patience_end(r->patience);
}

rp_wait_slices rp_wait_slices_begin(const rp_remote *r)
{
    int64_t now_ns = rp_now_ns(), first_ns = RP_PATIENCE_MS * INT64_C(1000000);
    rp_wait_slices slices = {r, now_ns, RP_FOREVER, now_ns + first_ns};

    rp_remote_rest(r);
    if (r->timeout_ms > 0) slices.until_ns = rp_wait_ms(r->timeout_ms).until_ns;
    return slices;
}

rp_wait rp_wait_slices_next(const rp_wait_slices *s)
{
    return (rp_wait){s->next_ns < s->until_ns ? s->next_ns : s->until_ns,
                     s->remote->interrupts.cancel};
}

bool rp_wait_slices_again(rp_wait_slices *s, rp_status st, const rp_error *err)
{
    static const char *const starts[] = {"came in time: ", "the deadline passed: "};
    const char *what = err->text;
    int64_t now_ns = rp_now_ns();

    /* Before its end, a slice ends with RP_DEADLINE only if a server or a proxy says so. */
    if (st != RP_DEADLINE || now_ns < s->next_ns || now_ns >= s->until_ns) return false;
    /* The deadline of a slice is not the user's. */
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        const char *at = strstr(err->text, starts[i]);

        if (at != NULL) what = at + strlen(starts[i]);
    }
    rp_patience_say(s->remote->command->name, what, s->since_ns, s->until_ns);
    s->next_ns = rp_patience_next(s->since_ns, s->next_ns, now_ns);
    return true;
}

/* Returns advice for a server that cannot be reached, by a part of the reason. */
static const char *unavailable_hint(const char *text)
{
    static const struct {
        const char *part, *hint;
    } hints[] = {
        {"wrong version number",
         "the server does not use TLS: leave out --tls, --ca and --cert"},
        {"unexpected eof", "if the server does not use TLS, leave out --tls, --ca and --cert"},
        {"certificate required", "--cert FILE and --key FILE give the client's certificate"},
        {"wants TLS", "--tls connects with TLS, --ca FILE trusts the authority in FILE"},
        {"does it want TLS", "--tls connects with TLS, --ca FILE trusts the authority in FILE"},
        {"is not signed by what",
         "--ca FILE has to be the file of that certificate, or of its authority"},
        {"self-signed", "--ca FILE trusts the certificate in FILE"},
        {"unable to get local issuer", "--ca FILE trusts the authority in FILE"},
        {"mismatch", "--server has to be a name or address for which the certificate was made"},
        {"has expired", "the server needs a new certificate"},
        {"is loading its data", "repeat the command when it has loaded its data"},
        {"Connection refused", "reprise serve starts a server, --server names another"},
        {"No such file",
         "reprise serve --listen starts a server there, --server names another"},
    };

    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (strstr(text, hints[i].part) != NULL) return hints[i].hint;
    return strstr(text, "TLS: ") != NULL || strstr(text, "certificate") != NULL
               ? NULL
               : "--server names another server";
}

/* Returns advice for a call whose token was refused or is missing. */
static const char *token_hint(const char *text)
{
    if (strstr(text, "too many wrong tokens") != NULL)
        return "check the token, and stop programs at this address that send a wrong one";
    if (strstr(text, "the token is not known") != NULL)
        return "check --token, --token-file or REPRISE_TOKEN";
    return "give a token with --token-file FILE";
}

/* Returns advice for a call that a bound has refused, or NULL if the text has it. */
static const char *no_resource_hint(const char *text)
{
    if (strstr(text, "of the whole table") != NULL)
        return "insert smaller items, or raise it: reprise tables alter TABLE --max-bytes SIZE";
    if (strstr(text, "of all tables together") != NULL)
        return "insert smaller items, or start the server with a larger --max-bytes";
    if (strstr(text, "all tables together take") != NULL) return NULL;
    return "request less, or raise the limits of the server";
}

const char *rp_status_hint(rp_status st, const char *text)
{
    switch (st) {
    case RP_UNAVAILABLE: return unavailable_hint(text);
    case RP_DEADLINE:
        return strstr(text, "it will wait for ever") != NULL
                   ? "reprise tables alter changes --max-size or --min-size"
                   : "--timeout SECONDS waits longer";
    case RP_EXISTS:
        return strstr(text, "there is a table") != NULL
                   ? "reprise tables alter changes it, reprise tables drop removes it"
                   : NULL;
    case RP_NOT_FOUND:
        return strstr(text, " was not found") != NULL && strstr(text, "tables") == NULL
                   ? "reprise tables list names the tables"
                   : NULL;
    case RP_UNAUTHENTICATED: return token_hint(text);
    case RP_DENIED:
        return strstr(text, "the tokens file needs") != NULL
                   ? NULL
                   : "the call needs a token with another role";
    case RP_UNIMPLEMENTED: return "only a reprise server can do that, not Reverb's";
    case RP_NO_RESOURCE: return no_resource_hint(text);
    default: return NULL;
    }
}

void rp_remote_begin_change(rp_remote *r)
{
    rp_left_out_begin(&r->change, r->client);
}

void rp_remote_end_change(rp_remote *r)
{
    rp_left_out_end(&r->change, r->client);
    for (size_t i = 0; r->told != NULL && i < rp_client_shard_count(r->client); i++)
        for (size_t k = 0; k < r->change.count; k++)
            if (r->change.list[k].address == rp_client_shard_address(r->client, i))
                r->told[i] = true;
}

static bool is_unchanged(const rp_remote *r, const char *address)
{
    for (size_t i = 0; i < r->change.count; i++)
        if (r->change.list[i].address == address) return true;
    return false;
}

int rp_remote_fail_partly(const rp_remote *r, const char *done)
{
    rp_text_buffer line = {0};
    const char *comma = "";

    rp_text_buffer_format(&line, "%s on ", done);
    for (size_t i = 0; i < rp_client_shard_count(r->client); i++) {
        const char *address = rp_client_shard_address(r->client, i);

        if (is_unchanged(r, address)) continue;
        rp_text_buffer_format(&line, "%s%s", comma, address);
        comma = ", ";
    }
    rp_text_buffer_put(&line, ", but not on ");
    for (size_t i = 0; i < r->change.count; i++) {
        const rp_unreachable *u = &r->change.list[i];

        rp_text_buffer_format(&line, "%s%s (", i > 0 ? ", " : "", u->address);
        rp_text_buffer_put_safe(&line, u->error, strlen(u->error));
        rp_text_buffer_put(&line, ")");
    }
    (void)fflush(stdout);
    (void)fprintf(stderr, "reprise %s: %s; repeat it with --server %s when it can be reached\n",
                  r->command->name, rp_text_buffer_text(&line),
                  r->change.count == 1 ? r->change.list[0].address : "for each of these");
    rp_text_buffer_deinit(&line);
    return EXIT_FAILURE;
}

void rp_remote_tell_left_out(const rp_remote *r)
{
    size_t shards = r->client != NULL ? rp_client_shard_count(r->client) : 0;
    char safe[2 * RP_ERROR_TEXT_BYTES];
    rp_unreachable u;

    for (size_t i = 0; r->told != NULL && i < shards; i++) {
        if (r->told[i] || rp_unreachable_set(&u, r->client, i) == 0) continue;
        r->told[i] = true;
        (void)fflush(stdout);
        (void)rp_printable(u.error, strlen(u.error), safe, sizeof safe);
        (void)fprintf(stderr, "reprise %s: warning: %s: %s; the command goes on without it\n",
                      r->command->name, u.address, safe);
    }
}

int rp_remote_fail(const rp_remote *r, rp_status st, const rp_error *err)
{
    return rp_remote_fail_after(r, NULL, st, err);
}

/* Writes how to resume the table that the command is about. */
static const char *paused_hint(const rp_remote *r, char *text, size_t size)
{
    const rp_command *c = r->command;
    bool is_known = c->first_table == 1 && r->flags->word_count > 0;
    char name[100];

    (void)rp_printable(is_known ? r->flags->words[0] : "TABLE",
                       is_known ? strlen(r->flags->words[0]) : 5, name, sizeof name);
    (void)snprintf(text, size, "reprise tables resume %s lets them continue", name);
    return text;
}

int rp_remote_fail_after(const rp_remote *r, const char *done, rp_status st,
                         const rp_error *err)
{
    const char *hint = rp_status_hint(st, err->text);
    int number = atomic_load(&r->interrupts.number);
    char resume[160];

    rp_remote_rest(r);
    if (st == RP_DEADLINE && strstr(err->text, "paused by an administrator") != NULL)
        hint = paused_hint(r, resume, sizeof resume);
    if (number != 0) return RP_EXIT_SIGNAL + number;
    assert(st != RP_OK);
    rp_remote_tell_left_out(r);
    (void)fflush(stdout);
    (void)fprintf(stderr, "reprise %s: %s%s%s%s%s\n", r->command->name,
                  done != NULL ? done : "", done != NULL ? ": " : "",
                  err->text[0] != '\0' ? err->text : rp_status_name(st),
                  hint != NULL ? "; " : "", hint != NULL ? hint : "");
    return EXIT_FAILURE;
}

int rp_remote_problem(const rp_remote *r, const rp_problem *problem)
{
    rp_remote_rest(r);
    (void)fflush(stdout);
    (void)fprintf(stderr, "reprise %s: %s\n", r->command->name, problem->text);
    return EXIT_FAILURE;
}

int rp_remote_misuse(const rp_remote *r, const rp_problem *problem)
{
    (void)rp_remote_problem(r, problem);
    return RP_EXIT_MISUSE;
}

int rp_remote_print(const rp_remote *r, rp_text_buffer *buffer)
{
    rp_problem problem;

    rp_remote_rest(r);
    rp_remote_tell_left_out(r);
    if (buffer->failed) {
        (void)rp_problem_memory(&problem);
        return rp_remote_problem(r, &problem);
    }
    (void)fwrite(rp_text_buffer_text(buffer), 1, buffer->size, stdout);
    rp_text_buffer_clear(buffer);
    return EXIT_SUCCESS;
}
