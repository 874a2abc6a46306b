/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help/word_kinds.h"

#include <assert.h>
#include <string.h>

rp_word_kind rp_word_kind_of(const rp_command *c, size_t place, const char *first)
{
    assert(place >= 1 && (place == 1) == (first == NULL));
    if (place > c->max_words) return RP_WORD_NONE;
    if (c->actions != NULL && place == 1) return RP_WORD_ACTION;
    if (strcmp(c->name, "help") == 0) return RP_WORD_COMMAND;
    if (place < c->first_table || place > c->last_table) return RP_WORD_FILE;
    /* `create` makes a table that does not exist, `list` takes none. */
    if (first != NULL && (strcmp(first, "create") == 0 || strcmp(first, "list") == 0))
        return RP_WORD_NONE;
    return RP_WORD_TABLE;
}

bool rp_option_takes_file(const rp_option *o)
{
    return o->argument != NULL &&
           (strcmp(o->argument, "FILE") == 0 || strcmp(o->argument, "DIR") == 0);
}
