/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise shell`: reads command lines and runs each as a process of its own, so that a command
 * has its own signals, memory and connection, as it has in another shell. The shell itself has
 * a connection for the names of tables.
 *
 * Commands inherit address and token through the environment, and the other options of the
 * shell as options. */
#include <assert.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/commands/table_list.h"
#include "cli/shell/terminal_line.h"
#include "cli/text/lines.h"
#include "reprise/version.h"

enum {
    TABLES_MS = 300, /* how long a completion waits for the names of tables */
    FIRST_LOOK_MS = 3000,
    FRESH_MS = 2000, /* how long these names are used again */
    PROMPT_BYTES = 128,
};

extern char **environ;

static const char text[] =
    "Commands are those of reprise, without the word reprise, and: connect ADDR[,ADDR...] to "
    "use\n"
    "other servers, clear, exit. They use the server and the credentials of the shell. Tab\n"
    "completes commands, options, tables and files; arrows and Ctrl-R find earlier lines, "
    "which\n"
    "are kept in ~/.reprise_history (REPRISE_HISTORY names another file, or none if it is "
    "empty).\n"
    "Ctrl-C ends a command, Ctrl-D the shell. If standard input is no terminal, its lines are "
    "run\n"
    "as they are, lines with # in front are skipped, and the exit status is the last "
    "command's.\n"
    "reprise without arguments, on a terminal, starts the shell.\n";

static const char *const examples[] = {
    "reprise shell --server localhost:8000",
    "echo info | reprise shell",
    NULL,
};

static const char *const builtins[] = {"clear", "connect", "exit", "quit", NULL};

typedef struct shell {
    rp_remote r;
    rp_completer completer;
    rp_line_history history;
    rp_terminal_line line;
    rp_table_list tables; /* for completions */
    int64_t tables_ns;    /* when they were fetched; 0: never */
    bool interactive;
    int status; /* of the last command */
} shell;

static volatile sig_atomic_t stop_number; /* of the signal that ends the shell */

static void on_stop(int number)
{
    stop_number = number;
}

static void on_child(int number)
{
    (void)number; /* its arrival ends sigsuspend() */
}

static void say(const char *problem)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "reprise shell: %s\n", problem);
}

static rp_status fetch_tables(shell *s, rp_wait wait, rp_error *err)
{
    rp_table_list list = {0};
    rp_status st = rp_table_list_fetch(&list, s->r.client, wait, err);

    if (st != RP_OK) return st;
    rp_table_list_deinit(&s->tables);
    s->tables = list;
    s->tables_ns = rp_now_ns();
    return RP_OK;
}

/* Fetches the tables of other servers; Ctrl-C ends it with RP_CANCELLED. */
static rp_status fetch_first_tables(shell *s, rp_error *err)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, interrupt, pipe;
    rp_wait wait = rp_wait_ms(FIRST_LOOK_MS);
    rp_interrupts in;
    sigset_t mask;
    rp_status st;
    int number;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    (void)sigaction(SIGPIPE, NULL, &pipe);
    if (rp_interrupts_start(&in) == RP_OK) wait.cancel = in.cancel;
    (void)sigaction(SIGINT, &usual, &interrupt); /* blocked, and awaited by another thread */
    st = fetch_tables(s, wait, err);
    number = atomic_load(&in.number);
    if (number != 0 && number != SIGINT) stop_number = number;
    rp_interrupts_stop(&in);
    (void)sigaction(SIGINT, &interrupt, NULL); /* ignored again, also if it is pending */
    (void)sigaction(SIGPIPE, &pipe, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return st;
}

static void add_tables(void *ctx, const char *prefix, rp_candidates *out)
{
    shell *s = ctx;
    rp_error err;

    /* Old names are better than none. */
    if (s->tables_ns == 0 || rp_now_ns() - s->tables_ns > (int64_t)FRESH_MS * 1000000)
        (void)!fetch_tables(s, rp_wait_ms(TABLES_MS), &err);
    for (size_t i = 0; i < s->tables.view.count; i++)
        rp_candidates_add_name(out, s->tables.view.tables[i].info.name, prefix);
}

static const rp_command *find_command(const char *name)
{
    for (size_t i = 0; i < rp_command_count; i++)
        if (strcmp(rp_commands[i]->name, name) == 0) return rp_commands[i];
    return NULL;
}

/* Returns true if an option is among the words, up to "--". */
static bool is_given(const rp_shell_words *w, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 1; i < w->count && strcmp(w->words[i], "--") != 0; i++) {
        const char *word = w->words[i];

        if (strncmp(word, "--", 2) == 0 && strncmp(word + 2, name, length) == 0 &&
            (word[2 + length] == '\0' || word[2 + length] == '='))
            return true;
    }
    return false;
}

/* Adds the options of the shell that the environment does not pass on. They follow the
 * command's name: behind "--" they would be arguments, and behind an option without its value
 * that value. */
static void add_options(shell *s, rp_shell_words *w, rp_arena *arena)
{
    const rp_command *c = find_command(w->words[0]);

    if (c == NULL || (c->shared != &rp_remote_options && c->shared != &rp_remote_bench_options))
        return;
    for (size_t i = 0; i < s->r.flags->count && w->count < RP_SHELL_WORDS; i++) {
        const rp_flag *flag = &s->r.flags->list[i];
        size_t shared = flag->option - s->r.own;
        const rp_option *o = rp_command_option(s->r.command, flag->option);
        char *word;

        if (shared == RP_REMOTE_SERVER || shared == RP_REMOTE_TOKEN ||
            shared == RP_REMOTE_TOKEN_FILE || is_given(w, o->name))
            continue;
        word = rp_arena_format(arena, "--%s=%s", o->name, flag->value);
        if (word == NULL) continue;
        memmove(w->words + 2, w->words + 1, w->count * sizeof w->words[0]); /* with the NULL */
        w->words[1] = word;
        w->count++;
    }
}

/* Waits for a process, to which the signals that end the shell are passed on. They and SIGCHLD
 * are blocked except in sigsuspend(), so none of them arrives unseen before the wait. Returns
 * the exit status. */
static int await_process(pid_t pid, const sigset_t *usual)
{
    sigset_t waiting = *usual;
    int status = 0;

    (void)sigdelset(&waiting, SIGTERM);
    (void)sigdelset(&waiting, SIGHUP);
    (void)sigdelset(&waiting, SIGCHLD);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (stop_number != 0) (void)kill(pid, stop_number);
        (void)sigsuspend(&waiting);
    }
    if (WIFSIGNALED(status)) return RP_EXIT_SIGNAL + WTERMSIG(status);
    return WEXITSTATUS(status);
}

/* Runs a command line as a process and waits for it. Returns its exit status. */
static int spawn(shell *s, rp_shell_words *w, rp_arena *arena)
{
    static char *arguments[RP_SHELL_WORDS + 2];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t defaults, usual, blocked;
    int status = EXIT_FAILURE, failed;
    pid_t pid;

    add_options(s, w, arena);
    arguments[0] = "reprise";
    memcpy(arguments + 1, w->words, (w->count + 1) * sizeof w->words[0]);
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGINT);
    (void)sigaddset(&defaults, SIGQUIT);
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGTERM);
    (void)sigaddset(&blocked, SIGHUP);
    (void)sigaddset(&blocked, SIGCHLD);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &usual);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setsigdefault(&attributes, &defaults);
    (void)posix_spawnattr_setsigmask(&attributes, &usual);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawn_file_actions_init(&files);
    /* The lines of a script are the shell's input, not that of its commands. */
    if (!s->interactive)
        (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", 0, 0);
    (void)fflush(stdout);
    failed = posix_spawn(&pid, "/proc/self/exe", &files, &attributes, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    if (failed != 0)
        say(strerror(failed));
    else
        status = await_process(pid, &usual);
    (void)pthread_sigmask(SIG_SETMASK, &usual, NULL);
    return status;
}

/* Uses other servers from now on. */
static int connect_to(shell *s, const char *addresses)
{
    rp_client *client = NULL;
    rp_error err = {0};
    rp_status st = rp_client_new(addresses, &s->r.options, &client, &err);
    const char *copy;

    if (st != RP_OK) {
        say(err.text);
        return EXIT_FAILURE;
    }
    copy = rp_arena_text(&s->r.arena, addresses, strlen(addresses));
    rp_table_list_deinit(&s->tables);
    s->tables_ns = 0;
    rp_client_free(s->r.client);
    s->r.client = client;
    if (copy != NULL) s->r.addresses = copy;
    (void)setenv("REPRISE_SERVER", addresses, 1);
    if (!s->interactive) return 0;
    st = fetch_first_tables(s, &err);
    if (st == RP_OK)
        (void)printf("%s has %zu table%s; help lists commands, exit leaves\n", addresses,
                     s->tables.view.count, s->tables.view.count == 1 ? "" : "s");
    else if (st == RP_CANCELLED)
        (void)printf("%s: interrupted before an answer; connect ADDR uses another server\n",
                     addresses);
    else
        (void)printf("%s; serve starts a server, connect ADDR uses another\n", err.text);
    return 0;
}

static void misuse(shell *s, const char *problem)
{
    say(problem);
    s->status = RP_EXIT_MISUSE;
}

/* Runs the words of a line, of which there is one at least. Returns false if the shell shall
 * end. */
static bool run_words(shell *s, rp_shell_words *w, rp_arena *arena)
{
    const char *first = w->words[0];

    if (strcmp(first, "exit") == 0 || strcmp(first, "quit") == 0) return false;
    if (strcmp(first, "clear") == 0) {
        (void)fputs("\033[H\033[2J", stdout);
    } else if (strcmp(first, "shell") == 0 && w->count == 1) {
        misuse(s, "a shell is running already");
    } else if (strcmp(first, "connect") == 0 && w->count == 2) {
        s->status = connect_to(s, w->words[1]);
    } else if (strcmp(first, "connect") == 0) {
        misuse(s, "usage: connect ADDR[,ADDR...]");
    } else {
        s->status = spawn(s, w, arena);
        s->tables_ns = 0; /* it may have made tables */
    }
    if (s->interactive && strcmp(first, "help") == 0 && w->count == 1)
        (void)puts(
            "\nHere the word reprise is not needed; also: connect ADDR[,ADDR...], clear, exit");
    return true;
}

/* Runs a line. Returns false if the shell shall end. */
static bool run_line(shell *s, const char *line, size_t size)
{
    static rp_shell_words w; /* too large for a stack */
    rp_problem problem;
    rp_arena arena;
    bool going = true;

    rp_arena_init(&arena, NULL);
    if (memchr(line, '\0', size) != NULL) {
        misuse(s, "the line has a NUL byte, which no argument can have; remove it");
    } else if (rp_shell_split(&arena, line, size, &w, &problem) != RP_OK) {
        misuse(s, problem.text);
    } else if (w.count > 0 && w.words[0][0] != '#') {
        if (strcmp(w.words[0], "reprise") == 0 && w.count > 1) { /* typed out of habit */
            memmove(w.words, w.words + 1, w.count * sizeof w.words[0]);
            memmove(w.starts, w.starts + 1, (w.count - 1) * sizeof w.starts[0]);
            w.count--;
        }
        if (rp_shell_check(&w, line, &problem) != RP_OK)
            misuse(s, problem.text);
        else
            going = run_words(s, &w, &arena);
    }
    rp_arena_deinit(&arena);
    return going;
}

static void run_terminal(shell *s)
{
    struct termios usual;
    bool has_usual = tcgetattr(STDIN_FILENO, &usual) == 0, going = true;

    while (going && stop_number == 0 && !ferror(stdout)) {
        rp_line_editor *e = &s->line.editor;
        char prompt[PROMPT_BYTES];
        rp_edit edit;

        (void)snprintf(prompt, sizeof prompt, "%.100s> ", s->r.addresses);
        edit = rp_terminal_line_read(&s->line, prompt, &s->history);
        if (edit == RP_EDIT_END) break;
        if (edit == RP_EDIT_CANCEL) continue;
        rp_line_history_add(&s->history, e->text);
        going = run_line(s, e->text, e->size);
        /* A command that was killed may have left the terminal in another mode. */
        if (has_usual) (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &usual);
    }
}

static int run_script(shell *s)
{
    rp_lines_result result;
    rp_lines lines;
    const char *line;
    size_t size;
    bool going = true;

    rp_lines_init(&lines, STDIN_FILENO, -1);
    while (going && stop_number == 0 &&
           (result = rp_lines_next(&lines, &line, &size)) == RP_LINES_ONE)
        going = run_line(s, line, size);
    rp_lines_deinit(&lines);
    return s->status;
}

/* Returns the path of the history; NULL: none. */
static const char *history_path(rp_arena *arena)
{
    const char *path = getenv("REPRISE_HISTORY"), *home = getenv("HOME");

    if (path != NULL) return path[0] != '\0' ? path : NULL;
    return home != NULL && home[0] != '\0' ? rp_arena_format(arena, "%s/.reprise_history", home)
                                           : NULL;
}

static void catch_signals(void)
{
    struct sigaction stop = {.sa_handler = on_stop}, ignore = {.sa_handler = SIG_IGN};
    struct sigaction child = {.sa_handler = on_child, .sa_flags = SA_RESTART | SA_NOCLDSTOP};

    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGHUP, &stop, NULL);
    (void)sigaction(SIGCHLD, &child, NULL);
    /* They are for the command that runs in the foreground. */
    (void)sigaction(SIGINT, &ignore, NULL);
    (void)sigaction(SIGQUIT, &ignore, NULL);
}

static int run(const rp_flags *flags)
{
    static shell s; /* too large for a stack */
    int status = rp_remote_open(&s.r, &rp_shell_command, flags);

    if (status != 0) goto out;
    s.interactive = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    s.completer = (rp_completer){.commands = rp_commands,
                                 .command_count = rp_command_count,
                                 .builtins = builtins,
                                 .add_tables = add_tables,
                                 .ctx = &s};
    s.line.completer = &s.completer;
    s.line.stop = &stop_number;
    catch_signals();
    if (s.r.options.token != NULL) (void)setenv("REPRISE_TOKEN", s.r.options.token, 1);
    if (s.interactive) (void)printf("reprise %s\n", RP_VERSION);
    status = connect_to(&s, s.r.addresses);
    if (status != 0) {
        status = RP_EXIT_MISUSE;
    } else if (s.interactive) {
        rp_line_history_load(&s.history, history_path(&s.r.arena));
        run_terminal(&s);
    } else {
        status = run_script(&s);
    }
    if (stop_number != 0) status = RP_EXIT_SIGNAL + stop_number;
out:
    rp_line_history_deinit(&s.history);
    rp_table_list_deinit(&s.tables);
    rp_remote_close(&s.r);
    return status;
}

const rp_command rp_shell_command = {
    .name = "shell",
    .summary = "Reads commands from a terminal, with completion and history.",
    .usage = "[OPTION...]",
    .text = text,
    .examples = examples,
    .shared = &rp_remote_options,
    .run = run,
};
