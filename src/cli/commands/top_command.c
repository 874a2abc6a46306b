/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise top`. A thread fetches snapshots ("looks") of the tables, so that the main thread
 * can handle keys at once.
 *
 * Invariants, whenever `lock` is free:
 *   W1  newest < LOOKS; looks[newest] and the one before it are complete and not written to;
 *   W2  the fetching thread writes only to the look after `newest`;
 *   W3  waiting_count <= RP_MOST_WAITING and waiting_count <= waiting_total in each look. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/commands/table_list.h"
#include "cli/commands/top_print.h"

enum {
    DEFAULT_INTERVAL_MS = 1000,
    MIN_INTERVAL_MS = 50,
    MAX_INTERVAL_MS = 3600 * 1000,
    PLAIN_WIDTH = 120, /* of output that is not a terminal */
    LOOKS = 3,         /* two that are shown and one that is being fetched (W1, W2) */
};

typedef enum option { INTERVAL, COUNT, OPTIONS } option;

static const rp_option options[OPTIONS] = {
    [INTERVAL] = {"interval", "SECONDS", "time between two refreshes (1)", false, NULL, NULL},
    [COUNT] = {"count", "N", "number of refreshes (0: no limit)", false, NULL, NULL},
};

static const char text[] =
    "IN/S, OUT/S and UPD/S are inserts, samples and priority updates a second, RATIO samples\n"
    "per insert. LIMITER shows the rate limiter: at the left end samples wait, at the right\n"
    "end inserts do; ### is a table that has not reached its min_size. WAIT is the number of\n"
    "inserts (i) and samples (s) that wait. The reasons are below the tables, each with the\n"
    "clients that wait for it, their calls, and how long the first has waited. Keys: q quits,\n"
    "space refreshes, up and down scroll, ? lists them. If the output is not a terminal,\n"
    "refreshes are printed one after the other. A refresh has the rates since the one before;\n"
    "--count 1 prints one after --interval, with the rates of that time.\n";

static const char *const examples[] = {
    "reprise top",
    "reprise top --interval 0.5 --count 4",
    "reprise top --count 1 --json",
    NULL,
};

typedef struct look {
    rp_table_list list;
    rp_client_waiting waiting[RP_MOST_WAITING];
    rp_top_look look;
} look;

typedef struct top {
    rp_remote r;
    int64_t interval_ms, count;
    bool terminal; /* standard input and output are terminals */
    struct termios before;
    size_t scroll;
    bool help; /* the page about the keys is shown */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    look looks[LOOKS];
    size_t newest; /* index of the newest look; the previous one is at the index before it */
    uint64_t taken, shown;
    char trouble[RP_ERROR_TEXT_BYTES + 64];
    rp_status last;
    rp_error err;
    bool stop, hurry, over;
} top;

static rp_status take_look(top *t, look *l, rp_error *err)
{
    rp_wait wait = rp_remote_wait(&t->r);
    rp_client_blocked blocked = {.calls = l->waiting, .capacity = RP_MOST_WAITING};
    rp_status st;

    rp_table_list_deinit(&l->list);
    st = rp_table_list_fetch(&l->list, t->r.client, wait, err);
    l->look.at_ns = rp_now_ns();
    if (st == RP_OK) {
        st = rp_client_why_blocked(t->r.client, NULL, &blocked, wait, err);
        /* Reverb's servers do not report blocked calls. */
        if (st == RP_UNIMPLEMENTED || st == RP_DENIED) st = RP_OK;
    }
    rp_remote_rest(&t->r);
    if (st != RP_OK) return st;
    l->look.view = l->list.view;
    l->look.waiting = l->waiting;
    l->look.waiting_count = blocked.count;
    l->look.waiting_total = blocked.total > blocked.count ? blocked.total : blocked.count;
    return st;
}

/* Stores the result of the last fetch. */
static void store_result(top *t, rp_status st, const rp_error *err)
{
    const char *hint = rp_status_hint(st, err->text);

    t->last = st;
    t->trouble[0] = '\0';
    if (st == RP_OK) return;
    t->err = *err;
    (void)snprintf(t->trouble, sizeof t->trouble, "%s%s%s",
                   err->text[0] != '\0' ? err->text : rp_status_name(st),
                   hint != NULL ? "; " : "", hint != NULL ? hint : "");
}

/* Waits on `changed` until the time, a key or the end. With the lock held. */
static void sleep_until(top *t, int64_t until_ns)
{
    while (!t->stop && !t->hurry && rp_now_ns() < until_ns) {
        struct timespec at = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};

        (void)pthread_cond_timedwait(&t->changed, &t->lock, &at);
    }
    t->hurry = false;
}

/* Wakes the main thread. The write fails if the pipe is full; then it is readable already. */
static void wake(const top *t)
{
    (void)!write(t->r.interrupts.write_fd, "", 1);
}

/* One refresh is printed after two looks, since rates need an earlier one. */
static bool is_single(const top *t)
{
    return t->count == 1;
}

static void *look_main(void *ctx)
{
    top *t = ctx;
    int64_t next_ns = rp_now_ns();
    rp_error err = {0};

    (void)pthread_mutex_lock(&t->lock);
    for (int64_t made = is_single(t) ? -1 : 0; !t->stop && (t->count == 0 || made < t->count);
         made++) {
        size_t slot = (t->newest + 1) % LOOKS;
        rp_status st;

        assert(t->newest < LOOKS && slot != t->newest); /* W1, W2 */
        (void)pthread_mutex_unlock(&t->lock);
        err.text[0] = '\0';
        st = take_look(t, &t->looks[slot], &err);
        (void)pthread_mutex_lock(&t->lock);
        store_result(t, st, &err);
        if (st == RP_OK) {
            t->newest = slot;
            t->taken++;
        }
        t->shown = made < 0 ? 1 : 0;
        if (made >= 0) wake(t);
        if ((t->count > 0 && made + 1 == t->count) || (st != RP_OK && !t->terminal)) break;
        next_ns += t->interval_ms * 1000000;
        if (next_ns < rp_now_ns()) next_ns = rp_now_ns() + t->interval_ms * 1000000;
        sleep_until(t, next_ns);
    }
    t->over = true;
    (void)pthread_mutex_unlock(&t->lock);
    wake(t);
    return NULL;
}

/* Switches the terminal to raw mode and the alternate screen. */
static bool enter(top *t)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &t->before) != 0) return false;
    raw = t->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = 0; /* no Ctrl-Z: a stopped process would leave the terminal raw */
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) return false;
    (void)fputs("\033[?1049h\033[?25l", stdout); /* alternate screen, hide the cursor */
    return true;
}

static void leave(top *t)
{
    (void)fputs("\033[?25h\033[?1049l", stdout);
    (void)fflush(stdout);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

static void get_size(rp_top_screen *s)
{
    struct winsize size;

    s->width = 80;
    s->height = 24;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return;
    if (size.ws_col >= 20) s->width = size.ws_col;
    if (size.ws_row >= 4) s->height = size.ws_row;
}

/* Overwrites the screen line by line and clears the rest of each line: this does not flicker.
 */
static void paint(rp_text_buffer *buffer)
{
    const char *at = rp_text_buffer_text(buffer);

    (void)fputs("\033[H", stdout);
    while (*at != '\0') {
        size_t length = strcspn(at, "\n");

        (void)fwrite(at, 1, length, stdout);
        (void)fputs(at[length] == '\n' && at[length + 1] != '\0' ? "\033[K\r\n" : "\033[K",
                    stdout);
        at += length + (at[length] == '\n' ? 1 : 0);
    }
    (void)fputs("\033[J", stdout);
    (void)fflush(stdout);
}

static void show_locked(top *t, rp_text_buffer *buffer)
{
    look *now = &t->looks[t->newest], *before = &t->looks[(t->newest + LOOKS - 1) % LOOKS];
    const rp_top_look *old = t->taken > 1 ? &before->look : NULL;
    rp_top_screen screen = {.width = PLAIN_WIDTH, .scroll = t->scroll, .help = t->help};
    char title[300], clock[16];
    time_t seconds = time(NULL);
    struct tm local;

    assert(t->newest < LOOKS && now != before); /* W1 */
    rp_text_buffer_clear(buffer);
    if (t->r.json) {
        if (t->last == RP_OK) rp_top_json(buffer, &now->look, old);
        return;
    }
    (void)localtime_r(&seconds, &local);
    (void)strftime(clock, sizeof clock, "%H:%M:%S", &local);
    (void)snprintf(title, sizeof title, "%.200s  %s  every %g s", t->r.addresses, clock,
                   (double)t->interval_ms / 1000);
    if (t->terminal) get_size(&screen);
    screen.title = title;
    screen.trouble = t->trouble[0] != '\0' ? t->trouble : NULL;
    if (now->look.view.count > 0 && t->scroll >= now->look.view.count)
        t->scroll = now->look.view.count - 1;
    rp_top_print(buffer, &screen, &now->look, old);
    if (!t->terminal) rp_text_buffer_put(buffer, "\n");
}

/* Handles the keys that were typed. Returns false to quit. */
static bool read_keys(top *t)
{
    char keys[64];
    ssize_t count = read(STDIN_FILENO, keys, sizeof keys);

    if (count <= 0) return count < 0 && (errno == EINTR || errno == EAGAIN);
    for (ssize_t i = 0; i < count; i++) {
        bool arrow = keys[i] == '\033' && i + 2 < count && keys[i + 1] == '[';
        char key = arrow ? keys[i + 2] : keys[i];

        if (arrow) i += 2;
        if (!arrow && (key == 'q' || key == 'Q')) return false;
        (void)pthread_mutex_lock(&t->lock);
        if (!arrow) t->help = key == '?' && !t->help;
        if (!arrow && key == ' ') {
            t->hurry = true;
            (void)pthread_cond_signal(&t->changed);
        }
        if (key == (arrow ? 'B' : 'j')) t->scroll++;
        if (key == (arrow ? 'A' : 'k') && t->scroll > 0) t->scroll--;
        (void)pthread_mutex_unlock(&t->lock);
    }
    return true;
}

/* Shows looks until the last one, a key or a signal. Returns the exit status. */
static int watch(top *t)
{
    struct pollfd fds[2] = {{t->r.interrupts.wake_fd, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    rp_text_buffer buffer = {0};
    bool going = true;
    int status = EXIT_SUCCESS;

    while (going && status == EXIT_SUCCESS) {
        bool fresh, over;

        (void)poll(fds, t->terminal ? 2 : 1, -1);
        if ((fds[0].revents & POLLIN) != 0) rp_interrupts_drain(&t->r.interrupts);
        if (t->terminal && fds[1].revents != 0) going = read_keys(t);
        if (atomic_load(&t->r.interrupts.number) != 0)
            status = RP_EXIT_SIGNAL + atomic_load(&t->r.interrupts.number);
        (void)pthread_mutex_lock(&t->lock);
        fresh = t->shown == 0 && t->taken > 0 && t->last == RP_OK;
        over = t->over;
        if (fresh || t->terminal) show_locked(t, &buffer);
        t->shown = 1;
        (void)pthread_mutex_unlock(&t->lock);
        if (status != EXIT_SUCCESS) break;
        if (t->terminal)
            paint(&buffer);
        else if (fresh)
            status = rp_remote_print(&t->r, &buffer);
        (void)fflush(stdout);
        if (ferror(stdout)) going = false;
        if (over) going = false;
    }
    rp_text_buffer_deinit(&buffer);
    return status;
}

static rp_status read_options(top *t, rp_problem *problem)
{
    rp_setting value;
    rp_status st = RP_OK;

    t->interval_ms = DEFAULT_INTERVAL_MS;
    if (rp_remote_setting(&t->r, INTERVAL, &value))
        st = rp_setting_duration(&value, 1000, MAX_INTERVAL_MS, &t->interval_ms, problem);
    if (st == RP_OK && t->interval_ms < MIN_INTERVAL_MS)
        return rp_problem_set(problem, NULL,
                              "--interval: expected at least 0.05 seconds, got '%.40s'",
                              value.text);
    if (st == RP_OK && rp_remote_setting(&t->r, COUNT, &value))
        st = rp_setting_integer(&value, 0, INT64_MAX, &t->count, problem);
    return st;
}

static int watch_all(top *t)
{
    pthread_condattr_t attributes;
    pthread_t thread;
    int status;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&t->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&t->lock, NULL);
    /* A single refresh is to stay on the screen. */
    t->terminal = !t->r.json && !is_single(t) && isatty(STDIN_FILENO) &&
                  isatty(STDOUT_FILENO) && enter(t);
    if (t->terminal) { /* the screen shows why there is no response */
        rp_patience_free(t->r.patience);
        t->r.patience = NULL;
    }
    if (pthread_create(&thread, NULL, look_main, t) != 0) {
        if (t->terminal) leave(t);
        return rp_remote_fail(&t->r, RP_NO_RESOURCE, &(rp_error){.text = "no more threads"});
    }
    status = watch(t);
    if (t->terminal) leave(t);
    (void)pthread_mutex_lock(&t->lock);
    t->stop = true;
    (void)pthread_cond_signal(&t->changed);
    (void)pthread_mutex_unlock(&t->lock);
    rp_cancel_fire(t->r.interrupts.cancel);
    (void)pthread_join(thread, NULL);
    assert(t->over);
    if (status == EXIT_SUCCESS && !t->terminal && t->last != RP_OK && !ferror(stdout))
        status = rp_remote_fail(&t->r, t->last, &t->err);
    (void)pthread_mutex_destroy(&t->lock);
    (void)pthread_cond_destroy(&t->changed);
    return status;
}

static int run(const rp_flags *flags)
{
    static top t; /* too large for a stack */
    rp_problem problem;
    int status = rp_remote_open(&t.r, &rp_top_command, flags);

    if (status == 0 && read_options(&t, &problem) != RP_OK)
        status = rp_remote_misuse(&t.r, &problem);
    if (status == 0) status = rp_remote_connect(&t.r);
    if (status == 0) status = watch_all(&t);
    for (size_t i = 0; i < LOOKS; i++) rp_table_list_deinit(&t.looks[i].list);
    rp_remote_close(&t.r);
    return status;
}

const rp_command rp_top_command = {
    .name = "top",
    .summary = "Shows the activity of the tables, live.",
    .usage = "[OPTION...]",
    .text = text,
    .examples = examples,
    .options = options,
    .option_count = OPTIONS,
    .shared = &rp_remote_options,
    .run = run,
};
