/* SPDX-License-Identifier: Apache-2.0 */
/* The files in proto/ and their imports as serialised FileDescriptorProtos, for the reflection
 * service. tools/embed.py generates these constant tables when the library is built. */
#ifndef RP_WIRE_DESCRIPTORS_H
#define RP_WIRE_DESCRIPTORS_H

#include "reprise/tensor.h"

typedef struct rp_wire_file {
    const char *name; /* the path that an import names: "reverb/schema.proto" */
    const uint8_t *data;
    size_t size;
    const uint8_t *needs; /* indexes of the files that it imports, directly or indirectly */
    size_t need_count;
} rp_wire_file;

/* A full name ("deepmind.reverb.ChunkData") and the index of the file that declares it. */
typedef struct rp_wire_symbol {
    const char *name;
    uint8_t file;
} rp_wire_symbol;

/* The generated tables: the files, the symbols sorted by name, and the full names of the
 * services. */
extern const rp_wire_file rp_wire_files[];
extern const size_t rp_wire_file_count;
extern const rp_wire_symbol rp_wire_symbols[];
extern const size_t rp_wire_symbol_count;
extern const char *const rp_wire_services[];
extern const size_t rp_wire_service_count;

/* rp_wire_find_file() finds a file by its name. rp_wire_find_symbol() finds the file that
 * declares a service, method, message, enum, value, field or oneof, by its full name. Returns
 * NULL if there is none. */
const rp_wire_file *rp_wire_find_file(rp_string name);
const rp_wire_file *rp_wire_find_symbol(rp_string name);

#endif
