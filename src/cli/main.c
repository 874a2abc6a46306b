/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/commands.h"

int main(int argc, char **argv)
{
    return rp_commands_main(argc, argv);
}
