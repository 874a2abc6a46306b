/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors files: named arrays that PyTorch, JAX and NumPy users can open.
 *
 *   offset 0   u64, little-endian: the length n of the header
 *   offset 8   n bytes of JSON: {"name": {"dtype": "F32", "shape": [2, 3],
 *                                         "data_offsets": [0, 24]}, ...,
 *                                "__metadata__": {"key": "text"}}
 *   offset 8 + n   the data; offsets count from here. Tensors leave no gap and do not overlap
 *
 * Parsing is pure: it reads bytes of the caller, allocates nothing, and accepts no header that
 * breaks the rules above. */
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
    char dtype[8]; /* "F32", terminated */
    size_t rank;
    uint64_t shape[RP_SAFETENSORS_MAX_RANK];
    const uint8_t *data; /* any alignment */
    size_t size_bytes;
} rp_safetensor;

/* Parses a file of `size` bytes into at most `room` tensors, in the order of the header, and
 * writes their number. Their pointers point into `file`.
 * RP_CORRUPT (not a safetensors file; the text says what is wrong, and where), RP_NO_RESOURCE
 * (over a limit, or over `room`), RP_UNIMPLEMENTED (a name with an escape, an unknown
 * dtype). */
RP_API RP_NODISCARD rp_status rp_safetensors_parse(const uint8_t *file, size_t size,
                                                   rp_safetensor *tensors, size_t room,
                                                   size_t *count, rp_error *err);

/* The tensor of that name, or NULL. */
RP_API const rp_safetensor *rp_safetensors_find(const rp_safetensor *tensors, size_t count,
                                                const char *name);

/* Writes the file for `count` tensors, whose `data` is borrowed, to `out`, of `capacity` bytes.
 * Returns the size of the file. If it is larger than `capacity`, the contents of `out` are
 * unspecified, and `out` may be NULL. Each name must be unique, must not be "__metadata__", and
 * must need no escape in JSON. */
RP_API size_t rp_safetensors_write(const rp_safetensor *tensors, size_t count, uint8_t *out,
                                   size_t capacity);

/* Saves the parameters of a network in the layout of PyTorch: torch.nn.Sequential() of the same
 * layers can load them by name. An LSTM lacks bias_hh_l0, which is zero. The file at `path` is
 * replaced as a whole: a new file, `path` with ".new" appended, is written and renamed.
 * RP_NO_RESOURCE, RP_UNAVAILABLE (the file cannot be written; the text has the reason). */
RP_API RP_NODISCARD rp_status rp_net_save(const rp_allocator *alloc, const rp_net *net,
                                          const rp_real *params, const char *path,
                                          rp_error *err);

/* Loads the parameters of a network. Other tensors of the file are ignored. On failure `params`
 * is unchanged.
 * RP_NOT_FOUND (no file, or it lacks a parameter), RP_INVALID (a parameter of another shape or
 * dtype; the text names it), RP_CORRUPT, RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_net_load(const rp_allocator *alloc, const rp_net *net,
                                          const char *path, rp_real *params, rp_error *err);

RP_END_DECLS

#endif
