/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration from a YAML file: docs/reprise.yaml shows every key. Unknown keys, keys given
 * twice and values of another type are errors, which name the place. */
#ifndef RP_CLI_SERVE_CONFIG_YAML_H
#define RP_CLI_SERVE_CONFIG_YAML_H

#include "cli/serve/serve_config.h"

/* Applies all settings of the file. `file` must outlive the configuration.
 * RP_INVALID, RP_NOT_FOUND (it cannot be read), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_read_file(rp_config *config, const char *file,
                                           rp_problem *problem);

/* As rp_config_read_file(), but parses `text`; `file` is only a name for error texts. */
RP_NODISCARD rp_status rp_config_read_text(rp_config *config, const char *file,
                                           const char *text, size_t size, rp_problem *problem);

#endif
