/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/help/manual.h"

/* Text as roff wants it: backslashes and hyphens escaped, and no line that begins with a
 * request. */
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

/* A text of ours: paragraphs between empty lines, and lines with two spaces before them as they
 * are. */
static void paragraphs(rp_text_buffer *out, const char *text)
{
    bool literal = false, fresh = true;

    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        bool indented = length > 2 && text[0] == ' ' && text[1] == ' ';

        if (indented != literal) {
            rp_text_buffer_put(out, indented ? ".PP\n.nf\n.RS 4\n" : ".RE\n.fi\n");
            literal = indented;
            fresh = true;
        }
        if (length == 0) {
            fresh = true;
        } else {
            char line[512];

            if (fresh && !indented) rp_text_buffer_put(out, ".PP\n");
            fresh = false;
            if (length >= sizeof line) length = sizeof line - 1;
            memcpy(line, text + (indented ? 2 : 0), length - (indented ? 2 : 0));
            line[length - (indented ? 2 : 0)] = '\0';
            roff(out, line);
            rp_text_buffer_put(out, "\n");
        }
        text += strcspn(text, "\n");
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

/* A summary without its capital and its full stop, as the section NAME has it. */
static void lower(rp_text_buffer *out, const char *summary)
{
    char text[256];
    size_t length = strlen(summary);

    if (length >= sizeof text) length = sizeof text - 1;
    memcpy(text, summary, length);
    text[length] = '\0';
    if (length > 0 && text[length - 1] == '.') text[length - 1] = '\0';
    if (text[0] >= 'A' && text[0] <= 'Z') text[0] = (char)(text[0] - 'A' + 'a');
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
        out, ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nfailed: one line on standard error "
             "says what, and what to do next\n.TP\n2\nmisuse of the command line\n"
             ".TP\n130\nended by Ctrl\\-C\n");
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
             "use, and what looks into one.\n.SH COMMANDS\n");
    for (size_t i = 0; i < p->count; i++) {
        rp_text_buffer_format(out, ".TP\n.BR reprise\\-%s (1)\n", p->commands[i]->name);
        roff(out, p->commands[i]->summary);
        rp_text_buffer_put(out, "\n");
    }
    rp_text_buffer_put(
        out, ".SH ENVIRONMENT\n.TP\nREPRISE_SERVER\nwhat \\-\\-server is where it is "
             "not given\n.TP\nREPRISE_TOKEN\nwhat \\-\\-token is where it is not given\n");
    status(out);
    see_also(out, p, NULL);
}

void rp_man_page(rp_text_buffer *out, const rp_program *p, const rp_command *c)
{
    if (c != NULL)
        command_page(out, p, c);
    else
        program_page(out, p);
}
