/* SPDX-License-Identifier: Apache-2.0 */
/* Writes completion scripts. The texts of commands and options are static, so the rules about
 * them are asserted:
 *   P1  names of commands and options consist of a-z, 0-9 and '-': no shell needs quotes for
 *       them;
 *   P2  lists of words and actions stand between single quotes and contain none. */
#include <assert.h>
#include <string.h>

#include "cli/help/manual.h"
#include "cli/help/word_kinds.h"

#ifndef NDEBUG
/* Returns true if the name keeps P1. */
static bool is_plain(const char *name)
{
    return name[0] != '\0' &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}
#endif

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

        if (o->argument == NULL || o->words != NULL || rp_option_takes_file(o) != files)
            continue;
        rp_text_buffer_format(out, "%s--%s", found++ > 0 ? "|" : "                ", o->name);
    }
    if (found > 0) rp_text_buffer_format(out, ") words=; files=%s ;;\n", files ? "1" : "");
}

/* The options that say which server is meant, and those of them that take no value. */
#define REMOTE_VALUES "--server|--token|--token-file|--ca|--cert|--key"
#define REMOTE_WORDS "--server=*|--token=*|--token-file=*|--ca=*|--cert=*|--key=*|--tls"

/* Writes the range of the words that are tables, and the options without a value, which are
 * needed to find the place of a word. */
static void bash_tables(rp_text_buffer *out, const rp_command *c)
{
    if (c->first_table == 0) return;
    rp_text_buffer_format(out, "            tables='%zu %zu' switches='--help", c->first_table,
                          c->last_table);
    for (size_t i = 0; i < rp_command_option_count(c); i++)
        if (rp_command_option(c, i)->argument == NULL)
            rp_text_buffer_format(out, " --%s", rp_command_option(c, i)->name);
    rp_text_buffer_put(out, "'\n");
}

/* Names of tables come from a server: bash must not expand them, so compgen is not used. */
static const char bash_tables_function[] =
    "# Adds the tables of the server that begin with the current word. Waits half a second at "
    "most.\n"
    "# A name such as --server=... would be read as an option: names with - in front are left "
    "out.\n"
    "_reprise_tables()\n{\n"
    "    local line=${COMP_LINE:0:${COMP_POINT:-${#COMP_LINE}}} place=1 value= word name\n"
    "    local -a all=() remote=()\n"
    "    read -ra all <<< \"$line\"\n"
    "    [ \"${line% }\" = \"$line\" ] && unset \"all[${#all[@]}-1]\"\n"
    "    for word in \"${all[@]:2}\"; do\n"
    "        if [ -n \"$value\" ]; then\n"
    "            case $value in " REMOTE_VALUES ") remote+=(\"$value\" \"$word\") ;; esac\n"
    "            value=\n"
    "            continue\n"
    "        fi\n"
    "        case $word in\n"
    "            " REMOTE_WORDS ") remote+=(\"$word\") ;;\n"
    "            --*=*) ;;\n"
    "            --*) [[ \" $3 \" == *\" $word \"* ]] || value=$word ;;\n"
    "            *) [ \"$1$place\" = 21 ] && [[ $word == create || $word == list ]] && return\n"
    "               place=$((place + 1)) ;;\n"
    "        esac\n"
    "    done\n"
    "    [ -n \"$value\" ] || [ $place -lt $1 ] || [ $place -gt $2 ] && return\n"
    "    files= COMPREPLY=()\n"
    "    while IFS= read -r name; do\n"
    "        [[ $name != -* && $name == \"$cur\"* ]] && COMPREPLY+=(\"$(printf %q "
    "\"$name\")\")\n"
    "    done < <(\"${all[0]}\" tables list --timeout 0.5 \"${remote[@]}\" 2>/dev/null)\n"
    "}\n";

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
    else if (c->max_words > c->last_table && c->actions == NULL)
        rp_text_buffer_put(out, "            files=1\n");
    bash_tables(out, c);
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
             "    local tables= switches=\n"
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
                            "    [ -n \"$tables\" ] && [ \"${cur#-}\" = \"$cur\" ] && "
                            "_reprise_tables $tables \"$switches\"\n"
                            "    if [ -n \"$files\" ] && [ \"${cur#-}\" = \"$cur\" ]; then\n"
                            "        COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
                            "        compopt -o filenames 2>/dev/null\n    fi\n}\n"
                            "complete -F _reprise reprise\n");
    rp_text_buffer_put(out, bash_tables_function);
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
    rp_text_buffer_format(out, "                '%s--%s%s[", o->repeatable ? "*" : "", o->name,
                          o->argument != NULL ? "=" : ""); /* --name VALUE or --name=VALUE */
    zsh_help(out, o->help);
    rp_text_buffer_put(out, "]");
    if (o->argument != NULL) {
        rp_text_buffer_put(out, ":");
        zsh_help(out, o->argument);
        rp_text_buffer_put(out, ":");
        if (o->words != NULL)
            rp_text_buffer_format(out, "(%s)", o->words);
        else if (rp_option_takes_file(o))
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
        rp_text_buffer_format(out, "                '1:action:(%s)' '*:%s' ;;\n", c->actions,
                              c->first_table > 0 ? "table:_reprise_tables" : ": :_files");
    else if (c->first_table > 0)
        rp_text_buffer_format(out, "                '1:table:_reprise_tables'%s ;;\n",
                              c->max_words > c->last_table ? " '*: :_files'" : "");
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
                            "    local program=$words[1] command=$words[2]\n"
                            "    words=(\"${(@)words[2,-1]}\")\n    (( CURRENT-- ))\n"
                            "    case $command in\n");
    for (size_t i = 0; i < p->count; i++) zsh_command(out, p->commands[i]);
    rp_text_buffer_put(out,
                       "    esac\n}\n"
                       "_reprise_tables() {\n"
                       "    local -a names remote\n    local option\n"
                       "    [[ $command == tables && $line[1] == (create|list) ]] && return\n"
                       "    for option in --server --token --token-file --ca --cert --key; do\n"
                       "        (( ${+opt_args[$option]} )) && "
                       "remote+=($option ${opt_args[$option]//\\\\:/:})\n    done\n"
                       "    (( ${+opt_args[--tls]} )) && remote+=(--tls)\n"
                       "    names=(${(f)\"$($program tables list --timeout 0.5 $remote "
                       "2>/dev/null)\"})\n"
                       "    names=(${names:#-*}) # they would be read as options\n"
                       "    compadd -a names\n}\n"
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
        rp_text_buffer_put(out, rp_option_takes_file(o) ? " -r -F" : " -x");
    rp_text_buffer_put(out, " -d '");
    put_quoted(out, o->help);
    rp_text_buffer_put(out, "'\n");
}

static void fish(rp_text_buffer *out, const rp_program *p)
{
    rp_text_buffer_put(
        out, "# fish completion of reprise: made by `reprise help --completion fish`\n"
             "complete -c reprise -f\n"
             "function __reprise_tables\n"
             "    set -l remote\n    set -l value\n    set -l words (commandline -opc)\n"
             "    for word in $words[2..-1]\n"
             "        if test -n \"$value\"\n"
             "            set remote $remote $value $word\n            set value\n"
             "        else if string match -qr -- '^(" REMOTE_VALUES ")$' $word\n"
             "            set value $word\n"
             "        else if string match -qr -- '^(--tls|(" REMOTE_VALUES ")=.*)$' $word\n"
             "            set remote $remote $word\n"
             "        end\n"
             "    end\n"
             "    # Names with - in front would be read as options.\n"
             "    $words[1] tables list --timeout 0.5 $remote 2>/dev/null | string match -v -- "
             "'-*'\n"
             "end\n");
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
        if (c->actions != NULL && c->first_table > 0)
            rp_text_buffer_format(
                out,
                "complete -c reprise -n '__fish_seen_subcommand_from %s; and "
                "__fish_seen_subcommand_from drop alter reset pause resume' -a "
                "'(__reprise_tables)'\n",
                c->name);
        else if (c->first_table > 0)
            rp_text_buffer_format(out,
                                  "complete -c reprise -n '__fish_seen_subcommand_from %s' -a "
                                  "'(__reprise_tables)'\n",
                                  c->name);
        if (c->actions == NULL && c->max_words > c->last_table)
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
