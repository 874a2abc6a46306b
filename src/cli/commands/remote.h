/* SPDX-License-Identifier: Apache-2.0 */
/* What every command has that speaks to servers: the options that say which, and as whom; a
 * client; how long to wait; and what to say when it fails. */
#ifndef RP_CLI_COMMANDS_REMOTE_H
#define RP_CLI_COMMANDS_REMOTE_H

#include "cli/commands/interrupts.h"
#include "cli/help/flags.h"
#include "cli/text/arena.h"
#include "cli/text/text_buffer.h"
#include "reprise/client.h"

enum {
    RP_EXIT_MISUSE = 2,
    RP_EXIT_SIGNAL = 128, /* and the number of the signal */
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
    size_t own; /* how many options the command has of its own */
    rp_arena arena;
    rp_interrupts interrupts;
    rp_client *client; /* NULL until rp_remote_connect() */
    const char *addresses;
    bool given; /* they were, and are not the default */
    rp_client_options options;
    int64_t timeout_ms; /* 0: for ever */
    bool json;
} rp_remote;

/* Reads the shared options. Returns 0, or the exit status after a line about what is wrong. */
int rp_remote_open(rp_remote *remote, const rp_command *command, const rp_flags *flags);
/* Begins to heed signals and makes the client. Returns 0 or the exit status. */
int rp_remote_connect(rp_remote *remote);
void rp_remote_close(rp_remote *remote);

/* From now on for as long as the options say. */
rp_wait rp_remote_wait(const rp_remote *remote);

/* Whether a switch of the command's own is on. */
bool rp_remote_switch(const rp_remote *remote, size_t option);
/* The value of an option as a setting with its name, for rp_setting_...(). False if it was not
 * given. */
bool rp_remote_setting(rp_remote *remote, size_t option, rp_setting *out);

/* One line on standard error: the command, the sentence, and what to do next. Return the exit
 * status: 1; 130 after Ctrl-C; 2 for misuse. */
int rp_remote_fail(const rp_remote *remote, rp_status st, const rp_error *err);
int rp_remote_problem(const rp_remote *remote, const rp_problem *problem); /* 1 */
int rp_remote_misuse(const rp_remote *remote, const rp_problem *problem);

/* Writes the text to standard output and clears it. Returns 0, or 1 after a line if there was
 * no memory for it. */
int rp_remote_print(const rp_remote *remote, rp_text_buffer *buffer);

/* What to do about a status; NULL: nothing can be said. Static. */
const char *rp_status_hint(rp_status st);

#endif
