/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of commands that call servers: options for addresses and credentials, a
 * client, timeouts and error output. */
#ifndef RP_CLI_COMMANDS_REMOTE_H
#define RP_CLI_COMMANDS_REMOTE_H

#include "cli/commands/interrupts.h"
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
    const char *addresses; /* of the servers */
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

/* Returns a wait that ends after the timeout of the options, from now. */
rp_wait rp_remote_wait(const rp_remote *remote);

/* Returns true if a switch of the command itself is on. */
bool rp_remote_switch(const rp_remote *remote, size_t option);
/* Sets `*out` to the name and the text of an option, for the functions rp_setting_...(), which
 * parse it. `option` is an index as for rp_command_option(). Returns false if the user did not
 * give the option. */
bool rp_remote_setting(rp_remote *remote, size_t option, rp_setting *out);

/* Print a line on standard error: the command, the error, and advice. Return the exit status:
 * 1; 130 after Ctrl-C; 2 for misuse. */
int rp_remote_fail(const rp_remote *remote, rp_status st, const rp_error *err);
int rp_remote_problem(const rp_remote *remote, const rp_problem *problem); /* 1 */
int rp_remote_misuse(const rp_remote *remote, const rp_problem *problem);

/* Prints the text to standard output and clears it. Returns 0; if the buffer ran out of memory,
 * prints an error and returns 1. */
int rp_remote_print(const rp_remote *remote, rp_text_buffer *buffer);

/* Returns advice for a status, or NULL. Static. */
const char *rp_status_hint(rp_status st);

#endif
