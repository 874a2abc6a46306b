/* SPDX-License-Identifier: Apache-2.0 */
/* Writes man pages in roff. The texts of commands are static: lines are shorter than
 * LINE_BYTES, and summaries begin with a capital and end with a full stop. */
#include <assert.h>
#include <string.h>

#include "cli/help/manual.h"

enum { LINE_BYTES = 512, SUMMARY_BYTES = 256, INDENT = 2 };

/* Writes text with backslashes and hyphens escaped. A line that begins with '.' or '\'' gets an
 * empty character before it, as it would be a request otherwise. */
static void roff(rp_text_buffer *out, const char *text)
{
    bool begin = true;

    for (; *text != '\0'; text++) {
        if (begin && (*text == '.' || *text == '\'')) rp_text_buffer_put(out, "\\&");
        if (*text == '\\')
            rp_text_buffer_put(out, "\\e");
        else if (*text == '-')
            rp_text_buffer_put(out, "\\-");
        else
            rp_text_buffer_add(out, text, 1);
        begin = *text == '\n';
    }
}

/* Writes a text of a command: paragraphs are separated by empty lines, and lines that begin
 * with two spaces keep their layout. */
static void paragraphs(rp_text_buffer *out, const char *text)
{
    bool literal = false, fresh = true;

    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        bool indented = length > INDENT && text[0] == ' ' && text[1] == ' ';
        size_t skipped = indented ? INDENT : 0;

        assert(length < LINE_BYTES);
        if (indented != literal) {
            rp_text_buffer_put(out, indented ? ".PP\n.nf\n.RS 4\n" : ".RE\n.fi\n");
            literal = indented;
            fresh = true;
        }
        if (length == 0) {
            fresh = true;
        } else {
            char line[LINE_BYTES];

            if (fresh && !indented) rp_text_buffer_put(out, ".PP\n");
            fresh = false;
            memcpy(line, text + skipped, length - skipped);
            line[length - skipped] = '\0';
            roff(out, line);
            rp_text_buffer_put(out, "\n");
        }
        text += length;
        if (*text == '\n') text++;
    }
    if (literal) rp_text_buffer_put(out, ".RE\n.fi\n");
}

static void title(rp_text_buffer *out, const rp_program *p, const char *name)
{
    rp_text_buffer_put(out, ".TH REPRISE");
    if (name != NULL) {
        rp_text_buffer_put(out, "\\-");
        for (const char *c = name; *c != '\0'; c++)
            rp_text_buffer_format(out, "%c", *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    }
    rp_text_buffer_format(out, " 1 \"\" \"reprise %s\" \"reprise\"\n", p->version);
}

/* Writes a summary without its capital and its full stop, for the section NAME. */
static void lower(rp_text_buffer *out, const char *summary)
{
    char text[SUMMARY_BYTES];
    size_t length = strlen(summary);

    assert(length > 1 && length < sizeof text && summary[length - 1] == '.');
    assert(summary[0] >= 'A' && summary[0] <= 'Z');
    memcpy(text, summary, length);
    text[length - 1] = '\0';
    text[0] = (char)(text[0] - 'A' + 'a');
    roff(out, text);
}

static void options(rp_text_buffer *out, const rp_command *c)
{
    size_t count = rp_command_option_count(c);

    if (count > 0) rp_text_buffer_put(out, ".SH OPTIONS\n");
    for (size_t i = 0; i < count; i++) {
        const rp_option *o = rp_command_option(c, i);

        if (o->group != NULL) {
            rp_text_buffer_put(out, ".SS ");
            roff(out, o->group);
            rp_text_buffer_put(out, "\n");
        }
        rp_text_buffer_put(out, ".TP\n\\fB\\-\\-");
        roff(out, o->name);
        rp_text_buffer_put(out, "\\fR");
        if (o->argument != NULL) {
            rp_text_buffer_put(out, " \\fI");
            roff(out, o->argument);
            rp_text_buffer_put(out, "\\fR");
        }
        rp_text_buffer_put(out, "\n");
        roff(out, o->help);
        rp_text_buffer_put(out, o->repeatable ? "; may be given more than once\n" : "\n");
    }
}

static void examples(rp_text_buffer *out, const rp_command *c)
{
    if (c->examples == NULL) return;
    rp_text_buffer_put(out, ".SH EXAMPLES\n.nf\n");
    for (size_t i = 0; c->examples[i] != NULL; i++) {
        roff(out, c->examples[i]);
        rp_text_buffer_put(out, "\n");
    }
    rp_text_buffer_put(out, ".fi\n");
}

static void see_also(rp_text_buffer *out, const rp_program *p, const rp_command *self)
{
    const char *comma = "";

    rp_text_buffer_put(
        out,
        ".SH FILES\nThe documents are in share/doc/reprise of the installation, for example\n"
        "in /usr/local/share/doc/reprise. A Python wheel has no documents: they are in\n"
        "the folder docs of the sources.\n");
    rp_text_buffer_put(out, ".SH SEE ALSO\n");
    if (self != NULL) {
        rp_text_buffer_put(out, ".BR reprise (1)");
        comma = ",\n";
    }
    for (size_t i = 0; i < p->count; i++) {
        if (p->commands[i] == self) continue;
        rp_text_buffer_format(out, "%s.BR reprise\\-%s (1)", comma, p->commands[i]->name);
        comma = ",\n";
    }
    rp_text_buffer_put(out, "\n");
}

static void status(rp_text_buffer *out)
{
    rp_text_buffer_put(
        out, ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nfailed: a line on standard error "
             "names the failure and the next step\n.TP\n2\nmisuse of the command line\n"
             ".TP\n130\nended by Ctrl\\-C\n.TP\n143\nended by SIGTERM\n");
}

static void command_page(rp_text_buffer *out, const rp_program *p, const rp_command *c)
{
    title(out, p, c->name);
    rp_text_buffer_format(out, ".SH NAME\nreprise\\-%s \\- ", c->name);
    lower(out, c->summary);
    rp_text_buffer_format(out, "\n.SH SYNOPSIS\n.B reprise %s\n", c->name);
    if (c->usage[0] != '\0') {
        roff(out, c->usage);
        rp_text_buffer_put(out, "\n");
    }
    rp_text_buffer_put(out, ".SH DESCRIPTION\n");
    roff(out, c->summary);
    rp_text_buffer_put(out, "\n");
    if (c->text != NULL) paragraphs(out, c->text);
    if (c->notes != NULL) paragraphs(out, c->notes);
    options(out, c);
    examples(out, c);
    status(out);
    see_also(out, p, c);
}

static void program_page(rp_text_buffer *out, const rp_program *p)
{
    title(out, p, NULL);
    rp_text_buffer_put(
        out, ".SH NAME\nreprise \\- experience replay for reinforcement learning\n"
             ".SH SYNOPSIS\n.B reprise\n\\fICOMMAND\\fR [\\fIOPTION\\fR...]\n"
             ".SH DESCRIPTION\nAn experience replay server that Reverb\\(cqs clients can "
             "use, and tools to inspect it.\n.SH COMMANDS\n");
    for (size_t i = 0; i < p->count; i++) {
        rp_text_buffer_format(out, ".TP\n.BR reprise\\-%s (1)\n", p->commands[i]->name);
        roff(out, p->commands[i]->summary);
        rp_text_buffer_put(out, "\n");
    }
    rp_text_buffer_put(out,
                       ".SH ENVIRONMENT\n.TP\nREPRISE_SERVER\nthe default of \\-\\-server\n"
                       ".TP\nREPRISE_TOKEN\nthe default of \\-\\-token\n"
                       ".TP\nREPRISE_HISTORY\nthe file of the lines that were typed into "
                       "reprise shell\n");
    status(out);
    see_also(out, p, NULL);
}

void rp_man_page(rp_text_buffer *out, const rp_program *p, const rp_command *c)
{
    assert(p->version != NULL && p->count > 0);
    if (c != NULL)
        command_page(out, p, c);
    else
        program_page(out, p);
}
