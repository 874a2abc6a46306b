/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the configuration of `reprise serve` from its command line. */
#ifndef RP_CLI_SERVE_CONFIG_FLAGS_H
#define RP_CLI_SERVE_CONFIG_FLAGS_H

#include "cli/serve/serve_config.h"

/* Reads the file of --config, if that is given, and then applies the flags. Errors: RP_INVALID,
 * RP_NOT_FOUND (the file cannot be read), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_config_from_flags(rp_config *config, const rp_flags *flags,
                                            rp_problem *problem);

#endif
