/* SPDX-License-Identifier: Apache-2.0 */
/* Writes completion scripts. The texts of commands and options are static, so the rules about
 * them are asserted:
 *   P1  names of commands and options consist of a-z, 0-9 and '-': no shell needs quotes for
 *       them;
 *   P2  lists of words and actions stand between single quotes and contain none. */
#include <assert.h>
#include <string.h>

#include "cli/help/manual.h"

#ifndef NDEBUG
/* Returns true if the name keeps P1. */
static bool is_plain(const char *name)
{
    return name[0] != '\0' &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}
#endif

/* Returns true if the value of an option is a file or a folder. */
static bool takes_file(const rp_option *o)
{
    return o->argument != NULL &&
           (strcmp(o->argument, "FILE") == 0 || strcmp(o->argument, "DIR") == 0);
}

/* Writes text that stands between single quotes of a shell. */
static void put_quoted(rp_text_buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            rp_text_buffer_put(out, "'\\''");
        else
            rp_text_buffer_add(out, text, 1);
    }
}

static void command_names(rp_text_buffer *out, const rp_program *p)
{
    for (size_t i = 0; i < p->count; i++) {
        assert(is_plain(p->commands[i]->name)); /* P1 */
        rp_text_buffer_format(out, "%s%s", i > 0 ? " " : "", p->commands[i]->name);
    }
}

/* Writes the case of the options whose values are files, or of those with any other value that
 * cannot be completed. */
static void bash_case(rp_text_buffer *out, const rp_command *c, bool files)
{
    size_t count = rp_command_option_count(c), found = 0;

    for (size_t i = 0; i < count; i++) {
        const rp_option *o = rp_command_option(c, i);

        if (o->argument == NULL || o->words != NULL || takes_file(o) != files) continue;
        rp_text_buffer_format(out, "%s--%s", found++ > 0 ? "|" : "                ", o->name);
    }
    if (found > 0) rp_text_buffer_format(out, ") words=; files=%s ;;\n", files ? "1" : "");
}

static void bash_command(rp_text_buffer *out, const rp_command *c)
{
    size_t count = rp_command_option_count(c);

    assert(c->actions == NULL || strchr(c->actions, '\'') == NULL); /* P2 */
    rp_text_buffer_format(out, "        %s)\n            words='--help", c->name);
    for (size_t i = 0; i < count; i++)
        rp_text_buffer_format(out, " --%s", rp_command_option(c, i)->name);
    rp_text_buffer_put(out, "'\n");
    if (c->actions != NULL)
        rp_text_buffer_format(out, "            [ \"$COMP_CWORD\" = 2 ] && words='%s'\n",
                              c->actions);
    if (strcmp(c->name, "help") == 0)
        rp_text_buffer_put(out, "            [ \"${cur#-}\" = \"$cur\" ] && words=$commands\n");
    else if (c->max_words > 0 && c->actions == NULL)
        rp_text_buffer_put(out, "            files=1\n");
    rp_text_buffer_put(out, "            case $prev in\n");
    for (size_t i = 0; i < count; i++) {
        const rp_option *o = rp_command_option(c, i);

        assert(is_plain(o->name));                                  /* P1 */
        assert(o->words == NULL || strchr(o->words, '\'') == NULL); /* P2 */
        if (o->words != NULL)
            rp_text_buffer_format(out, "                --%s) words='%s'; files= ;;\n", o->name,
                                  o->words);
    }
    bash_case(out, c, true);
    bash_case(out, c, false);
    rp_text_buffer_put(out, "            esac ;;\n");
}

static void bash(rp_text_buffer *out, const rp_program *p)
{
    rp_text_buffer_put(
        out, "# bash completion of reprise: made by `reprise help --completion bash`\n"
             "_reprise()\n{\n"
             "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
             "    local commands='");
    command_names(out, p);
    rp_text_buffer_put(out, "' words= files=\n"
                            "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
                            "        COMPREPLY=($(compgen -W \"$commands --help --version\" -- "
                            "\"$cur\"))\n        return\n    fi\n"
                            "    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < p->count; i++) bash_command(out, p->commands[i]);
    rp_text_buffer_put(out, "    esac\n"
                            "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                            "    if [ -n \"$files\" ] && [ \"${cur#-}\" = \"$cur\" ]; then\n"
                            "        COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
                            "        compopt -o filenames 2>/dev/null\n    fi\n}\n"
                            "complete -F _reprise reprise\n");
}

/* Writes a help text within the brackets of _arguments, where '[', ']' and ':' are escaped. */
static void zsh_help(rp_text_buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            rp_text_buffer_put(out, "'\\''");
        else if (strchr("[]:\\", *text) != NULL)
            rp_text_buffer_format(out, "\\%c", *text);
        else
            rp_text_buffer_add(out, text, 1);
    }
}

static void zsh_option(rp_text_buffer *out, const rp_option *o)
{
    rp_text_buffer_format(out, "                '%s--%s[", o->repeatable ? "*" : "", o->name);
    zsh_help(out, o->help);
    rp_text_buffer_put(out, "]");
    if (o->argument != NULL) {
        rp_text_buffer_put(out, ":");
        zsh_help(out, o->argument);
        rp_text_buffer_put(out, ":");
        if (o->words != NULL)
            rp_text_buffer_format(out, "(%s)", o->words);
        else if (takes_file(o))
            rp_text_buffer_put(out, "_files");
    }
    rp_text_buffer_put(out, "' \\\n");
}

static void zsh_command(rp_text_buffer *out, const rp_command *c)
{
    size_t count = rp_command_option_count(c);

    rp_text_buffer_format(out, "        %s)\n            _arguments '--help[show help]' \\\n",
                          c->name);
    for (size_t i = 0; i < count; i++) zsh_option(out, rp_command_option(c, i));
    if (c->actions != NULL)
        rp_text_buffer_format(out, "                '1:action:(%s)' '*:: :_files' ;;\n",
                              c->actions);
    else if (strcmp(c->name, "help") == 0)
        rp_text_buffer_put(out, "                '1:command:(${commands%%:*})' ;;\n");
    else
        rp_text_buffer_put(out, c->max_words > 0 ? "                '*: :_files' ;;\n"
                                                 : "                && return ;;\n");
}

static void zsh(rp_text_buffer *out, const rp_program *p)
{
    rp_text_buffer_put(out,
                       "#compdef reprise\n"
                       "# zsh completion of reprise: made by `reprise help --completion zsh`\n"
                       "_reprise() {\n    local -a commands=(\n");
    for (size_t i = 0; i < p->count; i++) {
        rp_text_buffer_format(out, "        '%s:", p->commands[i]->name);
        zsh_help(out, p->commands[i]->summary);
        rp_text_buffer_put(out, "'\n");
    }
    rp_text_buffer_put(out, "    )\n    if (( CURRENT == 2 )); then\n"
                            "        _describe command commands\n        return\n    fi\n"
                            "    local command=$words[2]\n"
                            "    words=(\"${(@)words[2,-1]}\")\n    (( CURRENT-- ))\n"
                            "    case $command in\n");
    for (size_t i = 0; i < p->count; i++) zsh_command(out, p->commands[i]);
    rp_text_buffer_put(out, "    esac\n}\n"
                            "[ \"$funcstack[1]\" = _reprise ] && _reprise \"$@\" || "
                            "compdef _reprise reprise\n");
}

static void fish_option(rp_text_buffer *out, const rp_command *c, const rp_option *o)
{
    rp_text_buffer_format(out, "complete -c reprise -n '__fish_seen_subcommand_from %s' -l %s",
                          c->name, o->name);
    if (o->words != NULL)
        rp_text_buffer_format(out, " -x -a '%s'", o->words);
    else if (o->argument != NULL)
        rp_text_buffer_put(out, takes_file(o) ? " -r -F" : " -x");
    rp_text_buffer_put(out, " -d '");
    put_quoted(out, o->help);
    rp_text_buffer_put(out, "'\n");
}

static void fish(rp_text_buffer *out, const rp_program *p)
{
    rp_text_buffer_put(
        out, "# fish completion of reprise: made by `reprise help --completion fish`\n"
             "complete -c reprise -f\n");
    for (size_t i = 0; i < p->count; i++) {
        const rp_command *c = p->commands[i];
        size_t count = rp_command_option_count(c);

        rp_text_buffer_format(out, "complete -c reprise -n __fish_use_subcommand -a %s -d '",
                              c->name);
        put_quoted(out, c->summary);
        rp_text_buffer_put(out, "'\n");
        for (size_t k = 0; k < count; k++) fish_option(out, c, rp_command_option(c, k));
        if (c->actions != NULL)
            rp_text_buffer_format(
                out,
                "complete -c reprise -n '__fish_seen_subcommand_from %s; and not "
                "__fish_seen_subcommand_from %s' -a '%s'\n",
                c->name, c->actions, c->actions);
        else if (c->max_words > 0)
            rp_text_buffer_format(
                out, "complete -c reprise -n '__fish_seen_subcommand_from %s' -F\n", c->name);
    }
}

bool rp_completion(rp_text_buffer *out, const rp_program *p, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        bash(out, p);
    else if (strcmp(shell, "zsh") == 0)
        zsh(out, p);
    else if (strcmp(shell, "fish") == 0)
        fish(out, p);
    else
        return false;
    return true;
}
