/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/config_flags.h"

#include <assert.h>

#include "cli/serve/config_yaml.h"

rp_status rp_config_from_flags(rp_config *c, const rp_flags *flags, rp_problem *problem)
{
    rp_status st = RP_OK;

    for (size_t i = 0; i < flags->count; i++)
        if (flags->list[i].option == RP_SERVE_CONFIG)
            st = rp_config_read_file(c, flags->list[i].value, problem);
    c->from_flags = true;
    for (size_t i = 0; i < flags->count && st == RP_OK; i++) {
        rp_serve_option option = (rp_serve_option)flags->list[i].option;
        rp_setting value = {.text = flags->list[i].value};

        assert(option < RP_SERVE_OPTIONS); /* the parser knows no others */
        value.key = rp_arena_format(&c->arena, "--%s", rp_serve_options[option].name);
        if (value.key == NULL) return rp_problem_memory(problem);
        st = rp_config_set(c, option, &value, problem);
    }
    return st;
}
