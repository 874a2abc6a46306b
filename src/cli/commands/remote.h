/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of commands that call servers: options for addresses and credentials, a
 * client, timeouts and error output. */
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
    RP_EXIT_SIGNAL = 128, /* plus the number of the signal */
};

/* The options, in the order in which help lists them. */
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

typedef struct rp_remote {
    const rp_command *command;
    const rp_flags *flags;
    size_t own; /* number of options of the command itself */
    rp_arena arena;
    rp_interrupts interrupts;
    rp_client *client;     /* NULL until rp_remote_connect() */
    rp_patience *patience; /* says what waits wait for; NULL: nothing is said */
    const char *addresses; /* of the servers */
    bool *told;            /* of each server: the user knows that it is left out; may be NULL */
    rp_left_out change;    /* servers that the latest change has not reached */
    bool given;            /* the user gave `addresses`; false: it is the default address */
    rp_client_options options;
    int64_t timeout_ms; /* 0: no limit */
    bool json;
} rp_remote;

/* Reads the shared options. Returns 0, or prints an error and returns the exit status. */
int rp_remote_open(rp_remote *remote, const rp_command *command, const rp_flags *flags);
/* Starts handling signals and creates the client. Returns 0 or the exit status. */
int rp_remote_connect(rp_remote *remote);
void rp_remote_close(rp_remote *remote);

/* Returns a wait that ends after the timeout of the options, from now. From then on the user is
 * told what the command waits for, until the next wait, output, error, or rp_remote_rest(). */
rp_wait rp_remote_wait(const rp_remote *remote);
/* The wait has ended, and the command has something else to do. */
void rp_remote_rest(const rp_remote *remote);

/* A wait for a call that can be repeated after RP_DEADLINE and whose error then says what it
 * waits for. It is cut into slices, after each of which the user is told:
 *
 *   rp_slices slices = rp_slices_begin(remote);
 *   do st = call(rp_slices_wait(&slices), &err);
 *   while (rp_slices_again(&slices, st, &err)); */
typedef struct rp_slices {
    const rp_remote *remote;
    int64_t since_ns, until_ns, next_ns;
} rp_slices;

rp_slices rp_slices_begin(const rp_remote *remote);
rp_wait rp_slices_wait(const rp_slices *slices);
bool rp_slices_again(rp_slices *slices, rp_status st, const rp_error *err);

/* Returns true if a switch of the command itself is on. */
bool rp_remote_switch(const rp_remote *remote, size_t option);
/* Sets `*out` to the name and the text of an option, for the functions rp_setting_...(), which
 * parse it. `option` is an index as for rp_command_option(). Returns false if the user did not
 * give the option. */
bool rp_remote_setting(rp_remote *remote, size_t option, rp_setting *out);

/* Print a line on standard error: the command, the error, and advice. Return the exit status:
 * 1; 130 after Ctrl-C; 2 for misuse. */
int rp_remote_fail(const rp_remote *remote, rp_status st, const rp_error *err);
/* The same, with `done`, the part that was done before the failure, in front of the error. */
int rp_remote_fail_after(const rp_remote *remote, const char *done, rp_status st,
                         const rp_error *err);
int rp_remote_problem(const rp_remote *remote, const rp_problem *problem); /* 1 */
int rp_remote_misuse(const rp_remote *remote, const rp_problem *problem);

/* Enclose a call that changes all servers. Afterwards `change` has those that it has not
 * reached: the command reports them itself. */
void rp_remote_begin_change(rp_remote *remote);
void rp_remote_end_change(rp_remote *remote);

/* Prints which servers a change has reached and which it has not: `done` is what it did, as in
 * "t is reset". Returns 1. */
int rp_remote_fail_partly(const rp_remote *remote, const char *done);

/* Prints a warning for each server that calls have left out, once. Printing output or an error
 * does it as well. */
void rp_remote_tell_left_out(const rp_remote *remote);

/* Prints the text to standard output and clears it. Returns 0; if the buffer ran out of memory,
 * prints an error and returns 1. */
int rp_remote_print(const rp_remote *remote, rp_text_buffer *buffer);

/* Returns advice for a status and the text of its error, or NULL. Static. */
const char *rp_status_hint(rp_status st, const char *text);

#endif
