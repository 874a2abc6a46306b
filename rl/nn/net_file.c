/* SPDX-License-Identifier: Apache-2.0 */
/* Networks in files: permutes each parameter between our layout and PyTorch's.
 *
 * Both calls hold the whole file in memory. A file is written under another name and renamed,
 * so `path` has the old file or the new one, never a part. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "error/fail.h"
#include "nn/net.h"
#include "reprise/rl/safetensors.h"

#ifdef RP_REAL_IS_DOUBLE
static const char real_dtype[] = "F64";
#else
static const char real_dtype[] = "F32";
#endif

/* Sets name, dtype, shape and size of the tensor that a parameter is in a file. */
static rp_safetensor tensor_of(const rp_net_parameter *p)
{
    rp_safetensor t = {.name = p->name, .name_size = strlen(p->name), .rank = p->file_merge};

    memcpy(t.dtype, real_dtype, sizeof real_dtype);
    t.size_bytes = p->size * sizeof(rp_real);
    if (p->file_merge < p->rank) t.rank++;
    for (size_t i = 0; i < t.rank; i++) t.shape[i] = 1;
    for (size_t i = 0; i < p->rank; i++)
        t.shape[i < t.rank ? i : t.rank - 1] *= p->dims[p->order[i]];
    return t;
}

/* Copies a parameter from our layout to that of files, or back. `bytes` has any alignment. */
static void permute(const rp_net_parameter *p, rp_real *ours, uint8_t *bytes, bool to_file)
{
    size_t steps[4] = {0}, at[4] = {0}, place = 0;

    for (size_t i = 0; i < p->rank;
         i++) { /* the step in our array of each dimension of the file */
        steps[i] = 1;
        for (size_t j = (size_t)p->order[i] + 1; j < p->rank; j++) steps[i] *= p->dims[j];
    }
    for (size_t n = 0; n < p->size; n++) {
        if (to_file) {
            memcpy(bytes + n * sizeof *ours, &ours[place], sizeof *ours);
        } else {
            memcpy(&ours[place], bytes + n * sizeof *ours, sizeof *ours);
        }
        for (size_t i = p->rank; i-- > 0;) { /* counts up, the last dimension first */
            place += steps[i];
            if (++at[i] < p->dims[p->order[i]]) break;
            place -= steps[i] * at[i];
            at[i] = 0;
        }
    }
    assert(place == 0);
}

rp_status rp_net_write_file(const char *path, const uint8_t *bytes, size_t size, rp_error *err)
{
    char temporary[4096];
    FILE *file;
    bool done;

    if (snprintf(temporary, sizeof temporary, "%s.new", path) >= (int)sizeof temporary)
        return rp_rl_fail(err, RP_UNAVAILABLE, "the path has more than %zu bytes",
                          sizeof temporary - 5);
    (void)remove(temporary); /* of a process that was killed */
    errno = 0;
    file = fopen(temporary, "wbx"); /* follows no link */
    if (file == NULL)
        return rp_rl_fail(err, RP_UNAVAILABLE, "'%s' cannot be written: %s", temporary,
                          strerror(errno));
    done = fwrite(bytes, 1, size, file) == size;
    done = fclose(file) == 0 && done;
    if (done && rename(temporary, path) == 0) return RP_OK;
    (void)rp_rl_fail(err, RP_UNAVAILABLE, "'%s' cannot be written: %s", path, strerror(errno));
    (void)remove(temporary);
    return RP_UNAVAILABLE;
}

/* Tensors and data of a network that is being saved: one allocation. */
typedef struct draft {
    rp_safetensor *tensors;
    uint8_t *data, *file;
    size_t bytes, file_bytes;
} draft;

static size_t draft_data_at(const rp_net *net)
{
    return net->parameter_count * sizeof(rp_safetensor);
}

static void fill_draft(const rp_net *net, const rp_real *params, draft *d)
{
    uint8_t *data = d->data;

    for (size_t i = 0; i < net->parameter_count; i++) {
        const rp_net_parameter *p = rp_net_parameter_at(net, i);

        d->tensors[i] = tensor_of(p);
        d->tensors[i].data = data;
        permute(p, (rp_real *)(uintptr_t)(params + p->offset), data, true);
        data += d->tensors[i].size_bytes;
    }
}

rp_status rp_net_save(const rp_allocator *alloc, const rp_net *net, const rp_real *params,
                      const char *path, rp_error *err)
{
    draft d = {.bytes = draft_data_at(net) + net->size * sizeof *params};
    rp_status st;

    if (alloc == NULL) alloc = rp_allocator_default();
    d.tensors = alloc->resize(alloc->ctx, NULL, 0, d.bytes);
    if (d.tensors == NULL) return rp_rl_fail_memory(err, d.bytes);
    d.data = (uint8_t *)d.tensors + draft_data_at(net);
    fill_draft(net, params, &d);
    d.file_bytes = rp_safetensors_write(d.tensors, net->parameter_count, NULL, 0);
    d.file = alloc->resize(alloc->ctx, NULL, 0, d.file_bytes);
    if (d.file == NULL) {
        st = rp_rl_fail_memory(err, d.file_bytes);
    } else {
        (void)rp_safetensors_write(d.tensors, net->parameter_count, d.file, d.file_bytes);
        st = rp_net_write_file(path, d.file, d.file_bytes, err);
        alloc->resize(alloc->ctx, d.file, d.file_bytes, 0);
    }
    alloc->resize(alloc->ctx, d.tensors, d.bytes, 0);
    return st;
}

/* Files of others may have more tensors than the network, and this much more. */
static const size_t SPARE_BYTES = (size_t)64 << 20;

/* A file in memory, and its tensors. */
typedef struct opened {
    size_t most; /* bytes that the file may have */
    uint8_t *bytes;
    size_t size;
    rp_safetensor *tensors;
    size_t count;
} opened;

enum { TENSORS_BYTES = RP_SAFETENSORS_MAX_TENSORS * sizeof(rp_safetensor) };

static rp_status read_all(const rp_allocator *alloc, FILE *file, const char *path, opened *o,
                          rp_error *err)
{
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;

    if (size <= 0 || fseek(file, 0, SEEK_SET) != 0)
        return rp_rl_fail(err, RP_CORRUPT, "'%s' is empty, or no file", path);
    if ((size_t)size > o->most)
        return rp_rl_fail(err, RP_CORRUPT,
                          "'%.100s' has %ld bytes, and a file of this network has at most %zu",
                          path, size, o->most);
    o->bytes = alloc->resize(alloc->ctx, NULL, 0, (size_t)size);
    if (o->bytes == NULL) return rp_rl_fail_memory(err, (size_t)size);
    o->size = (size_t)size;
    if (fread(o->bytes, 1, o->size, file) == o->size) return RP_OK;
    return rp_rl_fail(err, RP_UNAVAILABLE, "'%s' cannot be read: %s", path, strerror(errno));
}

static rp_status open_file(const rp_allocator *alloc, const char *path, opened *o,
                           rp_error *err)
{
    FILE *file;
    rp_error cause = {RP_OK, ""};
    rp_status st;

    errno = 0;
    file = fopen(path, "rb");
    if (file == NULL)
        return rp_rl_fail(err, errno == ENOENT ? RP_NOT_FOUND : RP_UNAVAILABLE,
                          "'%s' cannot be read: %s", path, strerror(errno));
    st = read_all(alloc, file, path, o, err);
    (void)fclose(file);
    if (st != RP_OK) return st;
    o->tensors = alloc->resize(alloc->ctx, NULL, 0, TENSORS_BYTES);
    if (o->tensors == NULL) return rp_rl_fail_memory(err, TENSORS_BYTES);
    st = rp_safetensors_parse(o->bytes, o->size, o->tensors, RP_SAFETENSORS_MAX_TENSORS,
                              &o->count, &cause);
    if (st == RP_OK) return RP_OK;
    return rp_rl_fail(err, st, "'%.100s': %.200s", path, cause.text);
}

static void close_file(const rp_allocator *alloc, opened *o)
{
    if (o->bytes != NULL) alloc->resize(alloc->ctx, o->bytes, o->size, 0);
    if (o->tensors != NULL) alloc->resize(alloc->ctx, o->tensors, TENSORS_BYTES, 0);
}

static void shape_text(const rp_safetensor *t, char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < t->rank && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%llu", i > 0 ? " x " : "",
                                 (unsigned long long)t->shape[i]);
}

static rp_status check_tensor(const opened *o, const rp_net_parameter *p, const char *path,
                              rp_error *err)
{
    const rp_safetensor *t = rp_safetensors_find(o->tensors, o->count, p->name);
    rp_safetensor wanted = tensor_of(p);
    char has[96], needs[96];

    if (t == NULL)
        return rp_rl_fail(err, RP_NOT_FOUND, "'%.100s': has no tensor '%s'", path, p->name);
    if (strcmp(t->dtype, wanted.dtype) == 0 && t->rank == wanted.rank &&
        memcmp(t->shape, wanted.shape, t->rank * sizeof t->shape[0]) == 0)
        return RP_OK;
    shape_text(t, has, sizeof has);
    shape_text(&wanted, needs, sizeof needs);
    return rp_rl_fail(err, RP_INVALID, "'%.60s': tensor '%s' is %s %s, the network needs %s %s",
                      path, p->name, t->dtype, has, wanted.dtype, needs);
}

rp_status rp_net_load(const rp_allocator *alloc, const rp_net *net, const char *path,
                      rp_real *params, rp_error *err)
{
    opened o = {.most = 4 * net->size * sizeof *params + SPARE_BYTES};
    rp_status st;

    if (alloc == NULL) alloc = rp_allocator_default();
    st = open_file(alloc, path, &o, err);
    for (size_t i = 0; i < net->parameter_count && st == RP_OK; i++)
        st = check_tensor(&o, rp_net_parameter_at(net, i), path, err);
    for (size_t i = 0; i < net->parameter_count && st == RP_OK; i++) {
        const rp_net_parameter *p = rp_net_parameter_at(net, i);
        const rp_safetensor *t = rp_safetensors_find(o.tensors, o.count, p->name);

        assert(t != NULL && t->size_bytes == p->size * sizeof *params);
        permute(p, params + p->offset, (uint8_t *)(uintptr_t)t->data, false);
    }
    close_file(alloc, &o);
    return st;
}
