/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor of `reprise train apex-dqn --processes`: each part is this program with
 * --role.
 *
 *   stopped --(its time has come)--> running --(it dies)--> stopped, for 0.1, 0.2, ... 5 s
 *
 * The parts talk over Unix sockets in the folder of the run, one for each shard of the replay;
 * --serve adds an address of the first shard for people. A part that ends by itself ends the
 * program: the evaluator when the task is solved, the learner after --steps.
 *
 * Each child has a process group of its own, so that Ctrl-C reaches the supervisor only. It
 * ends the replay last: the learner saves its state there. Children get SIGTERM when the
 * supervisor dies.
 *
 * Invariant:
 *   U1  pid is 0 exactly if no process of the child is left. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/text/argument_list.h"
#include "cli/text/units.h"
#include "cli/train/train_apex.h"

enum {
    POLL_MS = 20,
    FIRST_PAUSE_MS = 100,
    LONGEST_PAUSE_MS = 5000,
    HEALTHY_MS = 5000,    /* a child that lived this long is started again at once */
    CRASH_MS = 1000,      /* a crash within this time counts as a failure */
    MOST_FAILURES = 10,   /* in a row; other deaths by a signal are not failures */
    GRACE_MS = 10000,     /* between SIGTERM and SIGKILL */
    COUNT_MS = 2000,      /* for the totals at the end */
    ADDRESS_BYTES = 1200, /* of a shard */
};

typedef enum child_kind {
    CHILD_REPLAY,
    CHILD_LEARNER,
    CHILD_EVALUATOR,
    CHILD_ACTOR
} child_kind;

typedef struct child {
    child_kind kind;
    int64_t index;
    pid_t pid; /* U1 */
    int64_t started_ns, next_ns;
    int64_t pause_ms;
    int failures;     /* in a row */
    bool was_healthy; /* it has once lived for HEALTHY_MS */
} child;

typedef struct supervisor {
    rp_training *t;
    child *children;
    size_t count;
    int64_t actors, shards;
    char *replay; /* the addresses of all shards, for the parts */
    bool is_over;
    bool is_solved; /* the evaluator has found, and printed, that the task is solved */
    double seconds; /* from the start of the first part until the last but the replay ended */
    int64_t steps, updates; /* at the end; -1: the replay did not tell them */
    int status;
} supervisor;

static const char *kind_name(child_kind kind)
{
    static const char *const names[] = {"replay", "learner", "evaluator", "actor"};

    assert(kind <= CHILD_ACTOR);
    return names[kind];
}

static char *child_name(const supervisor *s, const child *c, char out[64])
{
    bool is_one_of_many = c->kind == CHILD_ACTOR || (c->kind == CHILD_REPLAY && s->shards > 1);

    (void)snprintf(out, 64, is_one_of_many ? "%s %lld" : "%s", kind_name(c->kind),
                   (long long)c->index);
    return out;
}

/* The address of a shard. */
static char *shard_address(const supervisor *s, int64_t shard, char out[ADDRESS_BYTES])
{
    char name[64] = "replay.sock", path[RP_RUN_PATH_BYTES + 64];

    assert(shard >= 0 && shard < s->shards);
    if (shard > 0) (void)snprintf(name, sizeof name, "replay-%lld.sock", (long long)shard);
    (void)snprintf(out, ADDRESS_BYTES, "unix:%s",
                   rp_run_folder_file(&s->t->folder, name, path));
    return out;
}

/* Options that the parts get as they were given. */
static const rp_train_option passed_on[] = {RP_TRAIN_THRESHOLD,     RP_TRAIN_QUIET,
                                            RP_TRAIN_EVAL_EPISODES, RP_TRAIN_CONFIRM_EPISODES,
                                            RP_TRAIN_REPORT,        RP_TRAIN_REPORT_CA};

/* Those that a server of the replay gets. */
static const rp_train_option served_by[] = {RP_TRAIN_TOKENS, RP_TRAIN_TLS_CERT,
                                            RP_TRAIN_TLS_KEY, RP_TRAIN_INSECURE};

static void pass_on(const rp_training *t, const rp_train_option *list, size_t count,
                    rp_argument_list *a)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = rp_train_get(t, list[i]);

        if (value != NULL)
            rp_argument_list_add(a, "--%s=%s", rp_train_command.options[list[i]].name, value);
    }
}

static void set_arguments(const supervisor *s, const child *c, rp_argument_list *a)
{
    const rp_training *t = s->t;
    const rp_settings_table *table = t->folder.kind->settings();
    const char *slash = strrchr(t->folder.path, '/');
    const char *serve = c->index == 0 ? rp_train_get(t, RP_TRAIN_SERVE) : NULL;
    char number[40], address[ADDRESS_BYTES];

    rp_argument_list_add(a, "reprise");
    rp_argument_list_add(a, "train");
    rp_argument_list_add(a, "%s", t->folder.agent);
    pass_on(t, passed_on, sizeof passed_on / sizeof passed_on[0], a);
    if (t->folder.steps > 0) /* the run may have them from its folder */
        rp_argument_list_add(a, "--steps=%lld", (long long)t->folder.steps);
    if (t->folder.keep_going) rp_argument_list_add(a, "--keep-going");
    if (c->kind == CHILD_REPLAY) {
        rp_argument_list_add(a, "--processes"); /* its exit status is for the supervisor */
        pass_on(t, served_by, sizeof served_by / sizeof served_by[0], a);
    }
    rp_argument_list_add(a, "--env=%s", t->folder.env_class->name);
    rp_argument_list_add(a, "--seed=%llu", (unsigned long long)t->folder.seed);
    for (size_t i = 0; i < table->count; i++) {
        double value = rp_settings_get(table, &t->folder.settings, i);
        const char *setting = table->list[i].name;

        if (table->list[i].kind == RP_SETTING_SWITCH)
            rp_argument_list_add(a, "--%s=%s", setting, value != 0 ? "true" : "false");
        else if (table->list[i].kind == RP_SETTING_INTEGER) /* 2000000, not 2e+06 */
            rp_argument_list_add(a, "--%s=%lld", setting, (long long)value);
        else
            rp_argument_list_add(a, "--%s=%s", setting,
                                 rp_decimal_text(value, number, sizeof number));
    }
    rp_argument_list_add(a, "--role=%s", kind_name(c->kind));
    rp_argument_list_add(a, "--of=%lld", (long long)s->actors);
    rp_argument_list_add(a, "--report-name=%s", slash != NULL ? slash + 1 : t->folder.path);
    if (c->kind == CHILD_REPLAY)
        rp_argument_list_add(a, "--serve=%s%s%s", serve != NULL ? serve : "",
                             serve != NULL ? "," : "", shard_address(s, c->index, address));
    else
        rp_argument_list_add(a, "--replay=%s", s->replay);
    if (c->kind == CHILD_REPLAY || c->kind == CHILD_EVALUATOR)
        rp_argument_list_add(a, "--dir=%s", t->folder.path);
    if (c->kind == CHILD_ACTOR || c->kind == CHILD_REPLAY)
        rp_argument_list_add(a, "--index=%lld", (long long)c->index);
}

/* In the child, after fork(). */
static _Noreturn void become(const rp_argument_list *a, pid_t parent)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* the supervisor blocks some */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent) (void)execv("/proc/self/exe", a->list);
    _exit(127);
}

static void start(supervisor *s, child *c)
{
    rp_argument_list a = {0};
    pid_t parent = getpid();

    assert(c->pid == 0); /* U1 */
    set_arguments(s, c, &a);
    c->pid = a.failed ? -1 : fork();
    if (c->pid == 0) become(&a, parent);
    rp_argument_list_deinit(&a);
    c->started_ns = rp_now_ns();
    if (c->pid > 0) return;
    c->pid = 0; /* no process for now: again later */
    c->next_ns = c->started_ns + c->pause_ms * 1000000;
}

/* True for a signal that others send: no process dies of it by its own fault. */
static bool is_from_outside(int number)
{
    return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP;
}

/* True if the child shall not be started again after it has ended with this exit status. A part
 * that has worked before may find its options right again, for instance a file of tokens. */
static bool is_hopeless(const child *c, int code)
{
    return (code == RP_TRAIN_MISUSE && !c->was_healthy) || c->failures >= MOST_FAILURES;
}

/* Decides what follows the end of a child. */
static void bury(supervisor *s, child *c, int status)
{
    char name[64];
    int64_t now_ns = rp_now_ns();
    bool is_healthy = now_ns - c->started_ns > HEALTHY_MS * INT64_C(1000000);
    bool is_killed =
        WIFSIGNALED(status) && (is_from_outside(WTERMSIG(status)) ||
                                now_ns - c->started_ns > CRASH_MS * INT64_C(1000000));
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

    c->pid = 0;
    c->was_healthy |= is_healthy;
    if (WIFEXITED(status) && code == 0 &&
        (c->kind == CHILD_EVALUATOR || c->kind == CHILD_LEARNER)) {
        s->is_over = true;
        s->is_solved |= c->kind == CHILD_EVALUATOR;
        return;
    }
    c->failures = is_healthy || is_killed ? 0 : c->failures + 1;
    c->pause_ms = is_healthy ? FIRST_PAUSE_MS : 2 * c->pause_ms;
    if (c->pause_ms > LONGEST_PAUSE_MS) c->pause_ms = LONGEST_PAUSE_MS;
    c->next_ns = now_ns + c->pause_ms * 1000000;
    if (is_hopeless(c, code)) {
        if (code == RP_TRAIN_MISUSE)
            (void)fprintf(stderr, "reprise train: %s cannot begin\n", child_name(s, c, name));
        else
            (void)fprintf(stderr, "reprise train: %s failed %d times in a row\n",
                          child_name(s, c, name), c->failures);
        s->is_over = true;
        s->status = EXIT_FAILURE;
        /* without a replay no part has done anything */
        s->t->is_refused =
            !c->was_healthy && (c->kind == CHILD_REPLAY || code == RP_TRAIN_MISUSE);
    } else if (!s->t->quiet) {
        (void)fprintf(stderr, "reprise train: %s has ended (%s %d); again in %.1f s\n",
                      child_name(s, c, name), WIFSIGNALED(status) ? "signal" : "status",
                      WIFSIGNALED(status) ? WTERMSIG(status) : code,
                      (double)c->pause_ms / 1000);
    }
}

static void reap(supervisor *s)
{
    for (size_t i = 0; i < s->count; i++) {
        child *c = &s->children[i];
        int status = 0;

        if (c->pid > 0 && waitpid(c->pid, &status, WNOHANG) == c->pid) bury(s, c, status);
    }
}

static void start_due(supervisor *s)
{
    int64_t now_ns = rp_now_ns();

    for (size_t i = 0; i < s->count; i++)
        if (s->children[i].pid == 0 && now_ns >= s->children[i].next_ns)
            start(s, &s->children[i]);
}

/* Ends the children that are, or are not, of the replay: asks them, waits, and kills those that
 * are left. */
static void stop(supervisor *s, bool is_replay)
{
    int64_t until_ns = rp_now_ns() + GRACE_MS * INT64_C(1000000);
    size_t left = 1;

    for (size_t i = 0; i < s->count; i++)
        if (s->children[i].pid > 0 && (s->children[i].kind == CHILD_REPLAY) == is_replay)
            (void)kill(s->children[i].pid, SIGTERM);
    while (left > 0) {
        bool is_late = rp_now_ns() > until_ns;

        left = 0;
        for (size_t i = 0; i < s->count; i++) {
            child *c = &s->children[i];
            int status = 0;

            if ((c->kind == CHILD_REPLAY) != is_replay || c->pid == 0) continue;
            if (is_late) (void)kill(c->pid, SIGKILL);
            if (waitpid(c->pid, &status, is_late ? 0 : WNOHANG) == c->pid) c->pid = 0; /* U1 */
            left += c->pid > 0;
            if (c->kind == CHILD_EVALUATOR && status == EXIT_FAILURE << 8)
                s->status = EXIT_FAILURE; /* it could not write the policy, and said so */
        }
        if (left > 0) (void)poll(NULL, 0, POLL_MS);
    }
}

/* Asks the replay how far the run has come. The actors alone know of episodes. */
static void count(supervisor *s)
{
    const rp_settings_table *table = s->t->folder.kind->settings();
    size_t batch = rp_settings_find(table, "batch");
    const rp_client_options options = {.token = rp_environment_token(),
                                       .ca_file = rp_train_get(s->t, RP_TRAIN_REPORT_CA)};
    int64_t samples = 0;
    rp_client *client = NULL;
    rp_client_tables *shards = NULL;

    s->steps = s->updates = -1;
    if (rp_client_new(s->replay, &options, &client, NULL) == RP_OK &&
        rp_client_get_table(client, "replay", rp_wait_ms(COUNT_MS), &shards, NULL) == RP_OK) {
        s->steps = 0;
        for (size_t i = 0; i < shards->count; i++) {
            s->steps += shards->tables[i].info.inserts;
            samples += shards->tables[i].info.samples;
        }
        s->updates = samples / (int64_t)rp_settings_get(table, &s->t->folder.settings, batch);
    }
    rp_client_tables_free(shards);
    rp_client_free(client);
}

/* Prints what came of a run, as a run in one process does. */
static void print_summary(const supervisor *s)
{
    const rp_training *t = s->t;
    char shards[40] = "", all[40] = "";

    if (s->status == EXIT_FAILURE) return; /* the reason has been printed */
    if (s->shards > 1)
        (void)snprintf(shards, sizeof shards, " --shards %lld", (long long)s->shards);
    if (s->steps >= 0)
        (void)snprintf(all, sizeof all, " in %lld step%s", (long long)s->steps,
                       rp_plural((uint64_t)s->steps));
    if (s->status != 0) /* a signal */
        (void)printf("stopped and saved; reprise train %s --dir %s --resume --processes%s "
                     "continues\n",
                     t->folder.agent, t->folder.path, shards);
    else if (!s->is_solved)
        (void)printf("not solved%s\n", all);
    if (s->steps < 0) return;
    (void)printf("%lld step%s%s %lld update%s", (long long)s->steps,
                 rp_plural((uint64_t)s->steps), t->resume ? " and" : ",", (long long)s->updates,
                 rp_plural((uint64_t)s->updates));
    if (t->resume)
        (void)printf(" in all; it was resumed %.1f s ago\n", s->seconds);
    else
        (void)printf(" in %.1f s (%.0f steps/s)\n", s->seconds, (double)s->steps / s->seconds);
}

static void supervise(supervisor *s, int64_t seconds)
{
    int64_t began_ns = rp_now_ns();

    while (!s->is_over) {
        struct pollfd wake = {.fd = s->t->interrupts.wake_fd, .events = POLLIN};
        int number = atomic_load(&s->t->interrupts.number);

        if (number != 0) s->status = RP_TRAIN_SIGNAL + number;
        if (number != 0 ||
            (seconds > 0 && rp_now_ns() - began_ns > seconds * INT64_C(1000000000)))
            break;
        start_due(s);
        (void)poll(&wake, 1, POLL_MS);
        rp_interrupts_drain(&s->t->interrupts);
        reap(s);
    }
    stop(s, false);
    s->seconds = (double)(rp_now_ns() - began_ns) / 1e9;
    if (!s->t->quiet && s->status != EXIT_FAILURE) count(s);
    stop(s, true);
}

/* Makes the list of children, and the addresses of the shards. Returns false if there is no
 * memory. */
static bool set_children(supervisor *s)
{
    size_t i = 0, bytes = (size_t)s->shards * ADDRESS_BYTES;
    char address[ADDRESS_BYTES];

    s->count = (size_t)s->actors + (size_t)s->shards + 2;
    s->children = calloc(s->count, sizeof *s->children);
    s->replay = calloc(bytes, 1);
    if (s->children == NULL || s->replay == NULL) return false;
    for (int64_t k = 0; k < s->shards; k++) {
        size_t used = strlen(s->replay);

        (void)snprintf(s->replay + used, bytes - used, "%s%s", k > 0 ? "," : "",
                       shard_address(s, k, address));
        s->children[i++] = (child){.kind = CHILD_REPLAY, .index = k};
    }
    s->children[i++] = (child){.kind = CHILD_LEARNER};
    s->children[i++] = (child){.kind = CHILD_EVALUATOR};
    for (int64_t k = 0; k < s->actors; k++)
        s->children[i++] = (child){.kind = CHILD_ACTOR, .index = k};
    assert(i == s->count);
    for (i = 0; i < s->count; i++) s->children[i].pause_ms = FIRST_PAUSE_MS;
    return true;
}

/* Locks the folder, so that no second supervisor starts parts on the same sockets. The lock
 * ends with the process. Returns the descriptor, or -1: another process has it, or there is
 * none. */
static int lock_folder(const rp_training *t)
{
    char path[RP_RUN_PATH_BYTES + 64], reason[RP_RUN_PATH_BYTES + 160];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(rp_run_folder_file(&t->folder, "supervisor", path),
                  O_RDWR | O_CREAT | O_CLOEXEC, 0644);

    if (fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0) return fd;
    (void)snprintf(reason, sizeof reason, "%s: %s", path, strerror(errno));
    if (fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
        (void)snprintf(reason, sizeof reason,
                       "%s: process %lld trains in this folder: end it, or give another --dir",
                       t->folder.path, (long long)lock.l_pid);
    if (fd >= 0) (void)close(fd);
    (void)rp_train_failed(reason);
    return -1;
}

int rp_train_processes(rp_training *t, int64_t actors, int64_t shards, int64_t seconds)
{
    supervisor s = {.t = t, .actors = actors, .shards = shards, .steps = -1};
    char path[RP_RUN_PATH_BYTES + 64];
    int lock = lock_folder(t);

    if (lock < 0) return EXIT_FAILURE;
    /* The role replay says so itself if it has data. */
    if (t->resume && access(rp_run_folder_file(&t->folder, "replay", path), F_OK) != 0)
        (void)fprintf(stderr, "reprise train: %s: no snapshot: starts again\n", t->folder.path);
    if (set_children(&s))
        supervise(&s, seconds);
    else
        s.status = rp_train_failed("no memory for the processes");
    (void)close(lock);
    free(s.children);
    free(s.replay);
    if (t->is_refused) {
        if (!t->resume) (void)remove(rp_run_folder_file(&t->folder, "supervisor", path));
        rp_train_forget(t);
        return s.status;
    }
    if (!t->quiet &&
        access(rp_run_folder_file(&t->folder, "policy.safetensors", path), R_OK) != 0)
        (void)printf("there is no policy: no parameters were evaluated\n");
    if (!t->quiet) print_summary(&s);
    if (!t->quiet) (void)printf("%s\n", t->folder.path);
    return s.status;
}
