/* SPDX-License-Identifier: Apache-2.0 */
/* Power cuts and kills of a store with rollouts.
 *
 * A load runs on a simulated disk. At every call of the disk that changes it, images of what a
 * power cut or a kill may leave are made and recovered. Each must open, and each of the
 * rollouts must have the state after one of the steps that may be there. Some recovered stores
 * are used further and opened once more, which must give the last state.
 *
 *   test_rollouts checkpoint|interval|sync|kill|server
 *
 * RP_TEST_SCALE multiplies the 3,000 recoveries of a mode; RP_TEST_SEED is the first seed. */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk/files.h"
#include "reprise/client.h"
#include "reprise/rollout_calls.h"
#include "support/rollout_load.h"
#include "support/sim_files.h"
#include "util/clock.h"

enum { RECOVERIES = 3000, MOST_MOMENTS = 8192, STEPS = 60, MORE_STEPS = 12, KILLS = 30 };

/* The disk as it was before a call. */
typedef struct moment {
    rp_sim *disk;
    size_t promised[2]; /* steps that must survive a kill, and a power cut */
    size_t started;
    char what[80];
} moment;

typedef struct run {
    rp_rollout_load rig;
    moment moments[MOST_MOMENTS];
    size_t count;
} run;

static rp_durability mode;

static uint64_t first_seed(void)
{
    const char *text = getenv("RP_TEST_SEED");

    return text != NULL ? strtoull(text, NULL, 0) : 1;
}

static void on_call(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                    const char *path)
{
    run *r = ctx;
    moment *m = &r->moments[r->count];
    size_t acked = atomic_load(&r->rig.acked);

    (void)number;
    if (strcmp(call, "read") == 0 || strcmp(call, "size") == 0 || strcmp(call, "list") == 0)
        return; /* such calls change nothing */
    assert_true(r->count < MOST_MOMENTS);
    r->count++;
    m->promised[0] = mode == RP_DURABLE_CHECKPOINT ? atomic_load(&r->rig.checkpointed) : acked;
    m->promised[1] = mode == RP_DURABLE_SYNC ? acked : atomic_load(&r->rig.checkpointed);
    m->started = atomic_load(&r->rig.started);
    m->disk = rp_sim_copy(disk);
    (void)snprintf(m->what, sizeof m->what, "%s %s", call, path);
    if (strncmp(path, "wal/", 4) != 0) (void)usleep(50); /* so that steps run in between */
}

static void on_done(void *ctx, rp_status status, const char *path, const char *text)
{
    (void)path;
    assert_int_equal(status, RP_OK);
    assert_string_equal(text, "");
    atomic_store((atomic_bool *)ctx, true);
}

/* Writes a checkpoint while steps continue. */
static void checkpoint_beside(rp_rollout_load *rig, rp_rng *rng)
{
    size_t before = atomic_load(&rig->started);
    atomic_bool is_done = false;
    rp_error err;

    assert_ok_err(rp_durable_start_checkpoint(rig->durable, on_done, &is_done, &err), &err);
    for (size_t i = 0; i < 400 && !atomic_load(&is_done); i++)
        if (i < 8 && rp_rng_below(rng, 3) > 0)
            rp_rollout_load_step(rig);
        else
            (void)usleep(200);
    while (!atomic_load(&is_done)) (void)usleep(200);
    atomic_store(&rig->checkpointed, before);
}

static void load(run *r, uint64_t seed)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_rng rng;

    rp_rng_init(&rng, seed + 77);
    rp_rollout_load_init(&r->rig, seed, mode);
    r->count = 0;
    rp_sim_on_call(disk, on_call, r);
    rp_rollout_load_open(&r->rig, files);
    while (atomic_load(&r->rig.started) < STEPS) {
        rp_rollout_load_step(&r->rig);
        if (rp_rng_below(&rng, 12) == 0) rp_rollout_load_checkpoint(&r->rig);
        if (rp_rng_below(&rng, 12) == 0) checkpoint_beside(&r->rig, &rng);
    }
    assert_int_equal(rp_rollout_load_close(&r->rig), RP_OK);
    rp_sim_on_call(disk, NULL, NULL);
    assert_int_equal(rp_sim_open_handles(disk), 0);
    files->ops->free(files);
    rp_sim_free(disk);
}

/* Uses a recovered store further, and opens it once more. Returns what is wrong, or NULL. */
static const char *use_further(rp_rollout_load *rig, rp_sim *image, rp_rng *rng)
{
    uint64_t last[RP_RIG_ROLLOUTS], again[RP_RIG_ROLLOUTS];
    rp_files *files = rp_sim_mount(image);
    const char *wrong = NULL;
    rp_error err = {0};
    rp_status st;

    rp_rollout_load_open(rig, files);
    assert_true(rp_rollout_load_digest(rig->store, rig->digests[0]));
    for (int i = 0; i < MORE_STEPS; i++) rp_rollout_load_step(rig);
    if (mode == RP_DURABLE_CHECKPOINT || rp_rng_below(rng, 3) == 0)
        rp_rollout_load_checkpoint(rig);
    assert_true(rp_rollout_load_digest(rig->store, last));
    (void)rp_rollout_load_close(rig);
    files->ops->free(files);
    files = rp_sim_mount(image);
    st = rp_rollout_load_try_open(rig, files, &err);
    if (st == RP_OK) {
        if (!rp_rollout_load_digest(rig->store, again) || memcmp(last, again, sizeof last) != 0)
            wrong = "the second opening gives another state";
        (void)rp_rollout_load_close(rig);
    } else {
        print_error("%s\n", err.text);
        wrong = "it does not open again";
    }
    files->ops->free(files);
    return wrong;
}

static void recover(run *r, const moment *m, int variant, uint64_t seed)
{
    rp_sim *image = variant < 0 ? rp_sim_copy(m->disk)
                                : rp_sim_after(m->disk, (rp_sim_variant)variant, seed);
    rp_files *files = rp_sim_mount(image);
    uint64_t found[RP_RIG_ROLLOUTS] = {0};
    rp_rollout_load *rig = calloc(1, sizeof *rig);
    const char *wrong = NULL;
    rp_error err = {0};
    rp_rng rng;

    assert_non_null(rig);
    rp_rng_init(&rng, seed);
    rp_rollout_load_init(rig, r->rig.seed + seed % 3, mode);
    if (rp_rollout_load_try_open(rig, files, &err) != RP_OK) {
        wrong = "it does not open";
    } else {
        if (!rp_rollout_load_digest(rig->store, found))
            wrong = "rollouts break an invariant";
        else if (!rp_rollout_load_knows(&r->rig, found, m->promised[variant >= 0], m->started))
            wrong = "not a state that may be there";
        (void)rp_rollout_load_close(rig);
    }
    files->ops->free(files);
    if (wrong == NULL && rp_rng_below(&rng, 4) == 0) {
        rig->now_ns = r->rig.now_ns;
        wrong = use_further(rig, image, &rng);
    }
    if (wrong != NULL)
        fail_msg("seed %llu, before '%s', variant %d of seed %llu: %s; promised %zu, started "
                 "%zu; %s %s",
                 (unsigned long long)r->rig.seed, m->what, variant, (unsigned long long)seed,
                 wrong, m->promised[variant >= 0], m->started, err.text, rig->events);
    free(rig);
    rp_sim_free(image);
}

static void power_cuts_lose_no_acknowledged_operation(void **state)
{
    run *r = calloc(1, sizeof *r);
    size_t recovered = 0, room = rp_test_scaled(RECOVERIES, 150), loads = 0, changed = 0;
    rp_rng rng;

    (void)state;
    assert_non_null(r);
    rp_rng_init(&rng, first_seed());
    for (uint64_t seed = first_seed(); recovered < room; seed++, loads++) {
        load(r, seed);
        changed += atomic_load(&r->rig.changed);
        for (size_t i = 0; i < r->count; i++) {
            /* Loads have hundreds of calls: each load tries a tenth of them. */
            if (recovered < room && rp_rng_below(&rng, 10) == 0)
                for (int v = -1; v < RP_SIM_VARIANTS; v++, recovered++)
                    recover(r, &r->moments[i], v, rp_rng_next(&rng));
            rp_sim_free(r->moments[i].disk);
        }
    }
    print_message("# %zu recoveries of %zu loads, with %zu changes\n", recovered, loads,
                  changed);
    assert_true(changed > loads * STEPS / 4);
    free(r);
}

/* What a child that is killed has told before. */
typedef struct ledger {
    atomic_size_t acked; /* groups 0 .. acked - 1 are acknowledged by the store */
    atomic_bool is_open;
} ledger;

static void fill_values(uint32_t values[32], size_t group)
{
    for (uint32_t i = 0; i < 32; i++) values[i] = (uint32_t)group * 1000 + i;
}

static rp_status put(rp_store *store, size_t group)
{
    char name[32];
    uint32_t values[32];
    rp_rollout_column column = {{"tokens", 6}, {RP_UINT32, {.rank = 1, .dims = {32}}, values}};
    rp_rollout_op op = {.kind = RP_ROLLOUT_PUT, .columns = &column, .column_count = 1};
    rp_rollout_result result;

    fill_values(values, group);
    (void)snprintf(name, sizeof name, "group %zu", group);
    op.group = (rp_string){name, strlen(name)};
    return rp_rollout_load_apply(store, "kill", &op, &result);
}

static void open_directory(const char *directory, rp_store **store, rp_durable **durable)
{
    const rp_durable_options options = {
        .directory = directory, .mode = RP_DURABLE_INTERVAL, .period_ns = 3 * 1000 * 1000};
    rp_error err = {0};

    assert_ok_err(rp_store_new(NULL, store, &err), &err);
    assert_ok_err(rp_durable_open(&options, *store, durable, &err), &err);
}

static void run_child(const char *directory, ledger *l)
{
    rp_store *store = NULL;
    rp_durable *durable = NULL;
    rp_rollout_options o;

    open_directory(directory, &store, &durable);
    rp_rollout_options_init(&o);
    o.max_bytes = UINT64_C(1) << 32;
    (void)!rp_rollout_set_create(rp_store_rollouts(store), (rp_string){"kill", 4}, &o, NULL,
                                 NULL, NULL);
    atomic_store(&l->is_open, true);
    for (size_t n = atomic_load(&l->acked);; n++)
        if (put(store, n) == RP_OK)
            atomic_store(&l->acked, n + 1);
        else
            abort();
}

static void check_groups(const char *directory, size_t acked)
{
    rp_store *store = NULL;
    rp_durable *durable = NULL;
    rp_rollouts *rollouts;

    open_directory(directory, &store, &durable);
    rollouts = rp_rollout_set_find(rp_store_rollouts(store), (rp_string){"kill", 4});
    assert_true(rollouts != NULL || acked == 0);
    for (size_t n = 0; n < acked; n++) {
        rp_rollout_fate fate;
        rp_rollout_batch *batch = NULL;
        uint32_t values[32];
        char name[32];

        (void)snprintf(name, sizeof name, "group %zu", n);
        assert_int_equal(
            rp_rollouts_peek(rollouts, (rp_string){name, strlen(name)}, &fate, &batch), RP_OK);
        if (fate != RP_ROLLOUT_COMPLETE) fail_msg("group %zu of %zu is lost", n, acked);
        fill_values(values, n);
        assert_memory_equal(batch->groups[0].items[0]->columns[0].tensor.data, values,
                            sizeof values);
        rp_rollout_batch_free(batch);
    }
    rp_rollouts_unref(rollouts);
    assert_int_equal(rp_durable_close(durable, NULL), RP_OK);
    rp_store_free(store);
}

static void killed_processes_lose_no_acknowledged_group(void **state)
{
    char directory[] = "./reprise-rollouts-XXXXXX", command[64];
    ledger *l =
        mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    size_t kills = rp_test_scaled(KILLS, 4);
    rp_rng rng;

    (void)state;
    assert_true(l != MAP_FAILED);
    assert_non_null(mkdtemp(directory));
    rp_rng_init(&rng, first_seed());
    for (size_t i = 0; i < kills; i++) {
        int status = 0;
        pid_t pid;

        atomic_store(&l->is_open, false);
        pid = fork();
        if (pid == 0) run_child(directory, l);
        assert_true(pid > 0);
        for (int ms = 0; ms < 30000 && !atomic_load(&l->is_open); ms++) (void)usleep(1000);
        (void)usleep((useconds_t)rp_rng_below(&rng, 40000));
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        /* In a process of its own: this one must have no threads when it forks. */
        pid = fork();
        if (pid == 0) {
            check_groups(directory, atomic_load(&l->acked));
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    print_message("# %zu groups survived %zu kills\n", atomic_load(&l->acked), kills);
    assert_true(atomic_load(&l->acked) > kills);
    (void)munmap(l, sizeof *l);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

extern char **environ;

/* Starts a server on the directory, and returns its process. `port` is 0 at the first time. */
static pid_t start_server(const char *directory, const char *log, int *port)
{
    char listen[64], data[96], text[8192];
    const char *arguments[] = {
        RP_TEST_REPRISE,        "serve", listen, data, "--durability=interval", "--loops=1",
        "--checkpoint-every=0", NULL};
    posix_spawn_file_actions_t actions;
    const char *found = NULL;
    pid_t pid = 0;

    (void)snprintf(listen, sizeof listen, "--listen=127.0.0.1:%d", *port);
    (void)snprintf(data, sizeof data, "--data=%s", directory);
    (void)unlink(log);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(
        posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600),
        0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, 2, 1), 0);
    assert_int_equal(posix_spawn(&pid, RP_TEST_REPRISE, &actions, NULL,
                                 (char *const *)(uintptr_t)arguments, environ),
                     0);
    (void)posix_spawn_file_actions_destroy(&actions);
    for (int ms = 0; ms < 30000 && found == NULL; ms++) {
        int fd = open(log, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

        if (fd >= 0) (void)close(fd);
        text[n > 0 ? n : 0] = '\0';
        found = strstr(text, "event=serving");
        if (found == NULL) (void)usleep(1000);
    }
    if (found == NULL) fail_msg("the server does not come back: %s", text);
    found = strstr(found, "127.0.0.1:");
    assert_non_null(found);
    *port = (int)strtol(found + 10, NULL, 10);
    return pid;
}

static rp_status call_group(rp_client *client, rp_rollouts_action action, size_t group,
                            rp_rollouts_call *call)
{
    static uint32_t values[32];
    static char name[32];
    static rp_rollout_column column;
    rp_error err;

    fill_values(values, group);
    (void)snprintf(name, sizeof name, "group %zu", group);
    column = (rp_rollout_column){{"tokens", 6}, {RP_UINT32, {.rank = 1, .dims = {32}}, values}};
    *call = (rp_rollouts_call){.action = action,
                               .rollouts = {"kill", 4},
                               .group = {name, strlen(name)},
                               .columns = &column,
                               .column_count = action == RP_ROLLOUTS_PUT};
    return rp_client_rollouts(client, call, rp_wait_ms(2000), &err);
}

/* Puts groups, and kills the server when `until` of them are there. Returns how many were put.
 */
static size_t use_server(rp_client *client, size_t first, pid_t pid, size_t until)
{
    rp_rollouts_call call;

    for (size_t n = first;; n++) {
        if (n == until) assert_int_equal(kill(pid, SIGKILL), 0);
        if (call_group(client, RP_ROLLOUTS_PUT, n, &call) != RP_OK) return n;
    }
}

static void a_killed_server_loses_no_acknowledged_group(void **state)
{
    char directory[] = "./reprise-rollouts-XXXXXX", log[64], command[64], address[64];
    size_t kills = rp_test_scaled(KILLS / 3, 2), acked = 0;
    rp_rollout_options o;
    int port = 0;
    rp_rng rng;

    (void)state;
    assert_non_null(mkdtemp(directory));
    (void)snprintf(log, sizeof log, "%s/log", directory);
    rp_rng_init(&rng, first_seed());
    rp_rollout_options_init(&o);
    for (size_t i = 0; i < kills; i++) {
        rp_rollouts_call call = {
            .action = RP_ROLLOUTS_CREATE, .rollouts = {"kill", 4}, .options = &o};
        rp_client *client = NULL;
        rp_error err = {0};
        char data[64];
        int status;
        pid_t pid;

        (void)snprintf(data, sizeof data, "%s/data", directory);
        pid = start_server(data, log, &port);
        (void)snprintf(address, sizeof address, "127.0.0.1:%d", port);
        assert_ok_err(rp_client_new(address, NULL, &client, &err), &err);
        if (i == 0)
            assert_ok_err(rp_client_rollouts(client, &call, rp_wait_ms(20000), &err), &err);
        for (size_t n = 0; n < acked; n++) {
            assert_int_equal(call_group(client, RP_ROLLOUTS_PEEK, n, &call), RP_OK);
            if (call.fate != RP_ROLLOUT_COMPLETE)
                fail_msg("group %zu of %zu is lost", n, acked);
            assert_memory_equal(call.draw->groups[0].items[0]->columns[0].tensor.data,
                                (uint32_t[]){(uint32_t)n * 1000}, sizeof(uint32_t));
            rp_rollouts_draw_free(call.draw);
        }
        acked = use_server(client, acked, pid, acked + 20 + rp_rng_below(&rng, 80));
        rp_client_free(client);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    print_message("# %zu groups survived %zu kills of a server\n", acked, kills);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cuts[] = {
        cmocka_unit_test(power_cuts_lose_no_acknowledged_operation)};
    const struct CMUnitTest kills[] = {
        cmocka_unit_test(killed_processes_lose_no_acknowledged_group)};
    const struct CMUnitTest server[] = {
        cmocka_unit_test(a_killed_server_loses_no_acknowledged_group)};
    const char *what = argc == 2 ? argv[1] : "";

    if (strcmp(what, "server") == 0) return cmocka_run_group_tests(server, NULL, NULL);
    if (strcmp(what, "kill") == 0) return cmocka_run_group_tests(kills, NULL, NULL);
    mode = strcmp(what, "sync") == 0       ? RP_DURABLE_SYNC
           : strcmp(what, "interval") == 0 ? RP_DURABLE_INTERVAL
                                           : RP_DURABLE_CHECKPOINT;
    return cmocka_run_group_tests_name(what, cuts, NULL, NULL);
}
