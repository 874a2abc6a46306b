/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors files: named arrays that PyTorch, JAX and NumPy users can open.
 *
 *   offset 0   u64, little-endian: the length n of the header
 *   offset 8   n bytes of JSON: {"name": {"dtype": "F32", "shape": [2, 3],
 *                                         "data_offsets": [0, 24]}, ...,
 *                                "__metadata__": {"key": "text"}}
 *   offset 8 + n   the data, from which data_offsets are counted. There are no gaps between
 *                  tensors, and they do not overlap
 *
 * rp_safetensors_parse() only reads bytes of the caller. It allocates nothing. It returns an
 * error if the header breaks a rule above. */
#ifndef REPRISE_RL_SAFETENSORS_H
#define REPRISE_RL_SAFETENSORS_H

#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

enum {
    RP_SAFETENSORS_MAX_HEADER = 1 << 24, /* bytes */
    RP_SAFETENSORS_MAX_TENSORS = 4096,
    RP_SAFETENSORS_MAX_NAME = 256, /* bytes */
    RP_SAFETENSORS_MAX_RANK = 8,
};

/* One tensor of a file. */
typedef struct rp_safetensor {
    const char *name; /* name_size bytes of UTF-8, not terminated */
    size_t name_size;
    char dtype[8]; /* for example "F32"; null-terminated */
    size_t rank;   /* number of dimensions */
    uint64_t shape[RP_SAFETENSORS_MAX_RANK];
    const uint8_t *data; /* size_bytes bytes, in any alignment */
    size_t size_bytes;
} rp_safetensor;

/* Parses a file of `size` bytes. Writes the tensors of the file to `tensors`, which has space
 * for `room` tensors, in the order of the header. Sets `*count` to the number of tensors. The
 * pointers in the tensors point into `file`.
 * Errors: RP_CORRUPT (not a safetensors file; the text of the error says what is wrong, and
 * where), RP_NO_RESOURCE (the file has more than `room` tensors, or exceeds one of the limits
 * above), RP_UNIMPLEMENTED (a name with a JSON escape, or an unknown dtype). */
RP_API RP_NODISCARD rp_status rp_safetensors_parse(const uint8_t *file, size_t size,
                                                   rp_safetensor *tensors, size_t room,
                                                   size_t *count, rp_error *err);

/* Returns the tensor named `name`, or NULL if there is none. */
RP_API const rp_safetensor *rp_safetensors_find(const rp_safetensor *tensors, size_t count,
                                                const char *name);

/* Writes a file of `count` tensors to `out`, which has `capacity` bytes. Returns the size of
 * the file. If the size is larger than `capacity`, the contents of `out` are unspecified. `out`
 * may be NULL if `capacity` is 0. Each name must be unique, must not be "__metadata__", and
 * must need no escape in JSON. */
RP_API size_t rp_safetensors_write(const rp_safetensor *tensors, size_t count, uint8_t *out,
                                   size_t capacity);

/* Saves the parameters of a network in the layout of PyTorch, so that a torch.nn.Sequential()
 * of the same layers can load them by name. An LSTM has no bias_hh_l0 in the file; a program
 * that loads it into PyTorch must set that bias to zero. Replaces the file at `path`
 * atomically: writes a file named `path` with ".new" appended, then renames it to `path`.
 * Errors: RP_NO_RESOURCE, RP_UNAVAILABLE (the file cannot be written; the text of the error
 * gives the reason). */
RP_API RP_NODISCARD rp_status rp_net_save(const rp_allocator *alloc, const rp_net *net,
                                          const rp_real *params, const char *path,
                                          rp_error *err);

/* Loads the parameters of a network. Other tensors in the file are ignored. On failure `params`
 * is unchanged.
 * Errors: RP_NOT_FOUND (there is no file, or a parameter is missing in it), RP_INVALID (a
 * parameter has another shape or dtype; the text of the error names the parameter), RP_CORRUPT,
 * RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_net_load(const rp_allocator *alloc, const rp_net *net,
                                          const char *path, rp_real *params, rp_error *err);

RP_END_DECLS

#endif
