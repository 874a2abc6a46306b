/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a configuration from a YAML file; docs/reprise.yaml shows all keys. Unknown keys,
 * repeated keys and values of the wrong type are errors, whose texts contain the position in
 * the file. */
#ifndef RP_CLI_SERVE_CONFIG_YAML_H
#define RP_CLI_SERVE_CONFIG_YAML_H

#include "cli/serve/serve_config.h"

/* Applies all settings of a file. The string `file` must outlive the configuration. Errors:
 * RP_INVALID, RP_NOT_FOUND (the file cannot be read), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_read_file(rp_config *config, const char *file,
                                           rp_problem *problem);

/* Applies all settings in the `size` bytes of `text`. `file` is only a name for error texts. */
RP_NODISCARD rp_status rp_config_read_text(rp_config *config, const char *file,
                                           const char *text, size_t size, rp_problem *problem);

#endif
