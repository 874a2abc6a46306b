/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/static_files.h"

#include <string.h>

const rp_static_file *rp_static_file_find(rp_string path)
{
    for (size_t i = 0; i < rp_static_file_count; i++)
        if (strlen(rp_static_files[i].path) == path.size &&
            memcmp(rp_static_files[i].path, path.data, path.size) == 0)
            return &rp_static_files[i];
    return NULL;
}
