/* SPDX-License-Identifier: Apache-2.0 */
/* What all commands that call servers share: the options for addresses and credentials, the
 * client, timeouts, and the output of errors.
 *
 * Calls to all servers leave out a server that cannot be reached (left_out.h). */
#ifndef RP_CLI_COMMANDS_REMOTE_H
#define RP_CLI_COMMANDS_REMOTE_H

#include "cli/commands/interrupts.h"
#include "cli/commands/left_out.h"
#include "cli/commands/patience.h"
#include "cli/help/flags.h"
#include "cli/text/arena.h"
#include "cli/text/text_buffer.h"
#include "reprise/client.h"

enum {
    RP_EXIT_MISUSE = 2,
    RP_EXIT_SIGNAL = 128, /* the number of the signal is added */
};

/* The shared options, in the order of --help. */
typedef enum rp_remote_option {
    RP_REMOTE_SERVER,
    RP_REMOTE_TOKEN,
    RP_REMOTE_TOKEN_FILE,
    RP_REMOTE_TLS,
    RP_REMOTE_CA,
    RP_REMOTE_CERT,
    RP_REMOTE_KEY,
    RP_REMOTE_TIMEOUT,
    RP_REMOTE_JSON,
    RP_REMOTE_OPTIONS,
} rp_remote_option;

extern const rp_options rp_remote_options;
extern const rp_options rp_remote_bench_options; /* for `reprise bench`, which starts a server
                                                    if --server is not given */

/* A run of a command that calls servers. */
typedef struct rp_remote {
    const rp_command *command;
    const rp_flags *flags;
    size_t own; /* number of the command's own options, which precede the shared ones */
    rp_arena arena;
    rp_interrupts interrupts;
    rp_client *client;     /* NULL until rp_remote_connect() */
    rp_patience *patience; /* prints what the command waits for; NULL: prints nothing */
    const char *addresses; /* of the servers */
    bool *told;            /* for each server, whether a text for the user has said that calls
                              left it out; NULL: no memory */
    rp_left_out change;    /* servers that the latest change has not reached
                              (rp_remote_begin_change()) */
    bool given;            /* --server was given; if false, `addresses` is the default */
    rp_client_options options;
    int64_t timeout_ms; /* of each wait; 0: no limit */
    bool json;
} rp_remote;

/* Reads the shared options. Returns 0, or prints an error and returns the exit status. */
int rp_remote_open(rp_remote *remote, const rp_command *command, const rp_flags *flags);
/* Starts handling signals and creates the client. Returns 0, or prints an error and returns the
 * exit status. */
int rp_remote_connect(rp_remote *remote);
void rp_remote_close(rp_remote *remote);

/* Returns a wait that begins now and has the timeout of the options. From now on, lines for the
 * user say what the command waits for (patience.h). These lines stop at the next
 * rp_remote_wait(), at the next output or error of the command, or at rp_remote_rest(). */
rp_wait rp_remote_wait(const rp_remote *remote);
/* Records that the wait has ended, so no more lines are printed about it. */
void rp_remote_rest(const rp_remote *remote);

/* A long wait in slices of time, for calls that can be repeated after RP_DEADLINE and whose
 * error text says what they wait for. After each slice, this text is printed for the user:
 *
 *   rp_wait_slices slices = rp_wait_slices_begin(remote);
 *   do st = call(rp_wait_slices_next(&slices), &err);
 *   while (rp_wait_slices_again(&slices, st, &err)); */
typedef struct rp_wait_slices {
    const rp_remote *remote;
    int64_t since_ns, until_ns, next_ns; /* begin and end of the wait; end of the slice */
} rp_wait_slices;

rp_wait_slices rp_wait_slices_begin(const rp_remote *remote);
rp_wait rp_wait_slices_next(const rp_wait_slices *slices);
bool rp_wait_slices_again(rp_wait_slices *slices, rp_status st, const rp_error *err);

/* Returns true if a switch is on. `option` is an index for rp_command_option(). */
bool rp_remote_switch(const rp_remote *remote, size_t option);
/* Sets `*out` to the name and the value of an option. The functions rp_setting_...() then parse
 * the value. `option` is an index for rp_command_option(). Returns false if the option was not
 * given. */
bool rp_remote_setting(rp_remote *remote, size_t option, rp_setting *out);

/* Prints a line on standard error with the command, the error and advice. Returns 1. After a
 * signal such as Ctrl-C, prints nothing and returns RP_EXIT_SIGNAL + the signal's number. */
int rp_remote_fail(const rp_remote *remote, rp_status st, const rp_error *err);
/* Like rp_remote_fail(), with the text `done` before the error. `done` says what the command
 * has done before the failure; NULL: nothing. */
int rp_remote_fail_after(const rp_remote *remote, const char *done, rp_status st,
                         const rp_error *err);
/* Print a problem on standard error. rp_remote_problem() returns 1. rp_remote_misuse(), for a
 * wrong command line, returns RP_EXIT_MISUSE. */
int rp_remote_problem(const rp_remote *remote, const rp_problem *problem);
int rp_remote_misuse(const rp_remote *remote, const rp_problem *problem);

/* Must be called before and after an RPC that changes all servers. Afterwards, remote->change
 * lists the servers that the RPC has not reached. The command itself must report them. */
void rp_remote_begin_change(rp_remote *remote);
void rp_remote_end_change(rp_remote *remote);

/* Prints which servers the change has reached and which it has not. `done` describes the
 * change, as in "t is reset". Returns 1. */
int rp_remote_fail_partly(const rp_remote *remote, const char *done);

/* Prints a warning for each server that calls have left out, unless the user has already seen
 * one about this server (`told`). The other functions of this file that print output or an
 * error call this function. */
void rp_remote_tell_left_out(const rp_remote *remote);

/* Prints the buffer to standard output, clears it, and returns 0. If the buffer ran out of
 * memory, prints an error and returns 1. */
int rp_remote_print(const rp_remote *remote, rp_text_buffer *buffer);

/* Returns the token in the environment variable REPRISE_TOKEN, or NULL if the variable is empty
 * or not set. */
const char *rp_environment_token(void);

/* Returns advice on an error with this status and text, as a static string, or NULL if there is
 * none. */
const char *rp_status_hint(rp_status st, const char *text);

#endif
