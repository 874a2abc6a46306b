/* SPDX-License-Identifier: Apache-2.0 */
/* Appends steps of many environments at once: each row of the tensors goes to the writer of its
 * environment.
 *
 * An append first waits for room in all writers. The end of an episode does not wait: its items
 * are sent in the background.
 *
 * Invariant: added <= environments; it is equal once the batch writer is returned to the user.
 */
#include "client/writer/batch_writer.h"

#include <assert.h>

#include "client/writer/step_writer.h"
#include "util/error.h"
#include "util/mem.h"

struct rp_batch_writer {
    rp_allocator alloc;
    size_t size_bytes;
    size_t environments, added;
    rp_value *values;
    size_t value_capacity;
    rp_structured_writer *writers[];
};

rp_status rp_batch_writer_open(const rp_allocator *alloc, size_t environments,
                               rp_batch_writer **out, rp_error *err)
{
    rp_batch_writer *b = NULL;
    size_t size = 0;

    if (environments < 1)
        return rp_fail(err, RP_INVALID, "a batch writer needs at least one environment");
    if (rp_size_mul(environments, sizeof b->writers[0], &size) &&
        rp_size_add(size, sizeof *b, &size))
        b = rp_alloc_zero(alloc, size);
    if (b == NULL) return rp_fail_memory(err, size);
    b->alloc = *alloc;
    b->size_bytes = size;
    b->environments = environments;
    *out = b;
    return RP_OK;
}

void rp_batch_writer_add(rp_batch_writer *batch, rp_structured_writer *writer)
{
    assert(batch->added < batch->environments);
    batch->writers[batch->added++] = writer;
}

void rp_batch_writer_free(rp_batch_writer *writer)
{
    rp_allocator alloc;

    if (writer == NULL) return;
    alloc = writer->alloc;
    /* Stop all before any is freed: the shared sink has items of all writers, which refer to
     * the names of their tables. */
    for (size_t i = 0; i < writer->added; i++)
        rp_writer_stop(rp_structured_writer_inner(writer->writers[i]));
    for (size_t i = 0; i < writer->added; i++) rp_structured_writer_free(writer->writers[i]);
    rp_release(&alloc, writer->values, writer->value_capacity * sizeof *writer->values);
    rp_release(&alloc, writer, writer->size_bytes);
}

static rp_status check_values(const rp_batch_writer *b, const rp_value *values, size_t count,
                              rp_error *err)
{
    char label[RP_LABEL_BYTES], shape[64];

    if (values == NULL && count > 0)
        return rp_fail(err, RP_INVALID, "append: `values` is NULL, count %zu", count);
    for (size_t i = 0; i < count; i++) {
        const rp_shape *s = &values[i].tensor.shape;
        if (s->rank >= 1 && s->rank <= RP_MAX_RANK && s->dims[0] == (int64_t)b->environments)
            continue;
        return rp_fail(err, RP_INVALID,
                       "%s: got shape %s but expected a row for each of %zu "
                       "environments",
                       rp_writer_label(values[i].column, values[i].name, label),
                       rp_shape_text(s, shape, sizeof shape), b->environments);
    }
    return RP_OK;
}

static rp_status make_room(rp_batch_writer *b, size_t count, rp_wait wait, rp_error *err)
{
    rp_status st = RP_OK;

    assert(b->added == b->environments);
    if (count > b->value_capacity) {
        if (!rp_resize_array(&b->alloc, &b->values, b->value_capacity, count,
                             sizeof *b->values))
            return rp_fail_memory(err, count * sizeof *b->values);
        b->value_capacity = count;
    }
    for (size_t e = 0; st == RP_OK && e < b->environments; e++)
        st = rp_structured_writer_compare_names(b->writers[e], wait, err);
    for (size_t e = 0; st == RP_OK && e < b->environments; e++)
        st = rp_writer_make_room(rp_structured_writer_inner(b->writers[e]), wait, err);
    return st;
}

/* Prefixes an error with the number of the environment. Returns `st`. */
static rp_status name_environment(rp_status st, size_t e, const rp_error *why, rp_error *err)
{
    return st == RP_OK ? st : rp_fail(err, st, "environment %zu: %s", e, why->text);
}

rp_status rp_batch_writer_append(rp_batch_writer *writer, const rp_value *values, size_t count,
                                 const bool *ends, rp_wait wait, rp_error *err)
{
    rp_error why;
    rp_status st = rp_writer_check_alive(rp_structured_writer_inner(writer->writers[0]), err);

    if (st == RP_OK) st = check_values(writer, values, count, err);
    if (st == RP_OK) st = make_room(writer, count, wait, err);
    if (st != RP_OK) return st;
    for (size_t e = 0; e < writer->environments; e++) {
        for (size_t i = 0; i < count; i++)
            writer->values[i] = (rp_value){values[i].column, values[i].name,
                                           rp_tensor_row(&values[i].tensor, (int64_t)e)};
        st =
            rp_structured_writer_append_now(writer->writers[e], writer->values, count, 0, &why);
        if (st == RP_OK && ends != NULL && ends[e])
            st = rp_structured_writer_end_now(writer->writers[e], true, &why);
        if (st != RP_OK) return name_environment(st, e, &why, err);
    }
    return RP_OK;
}

rp_status rp_batch_writer_flush(rp_batch_writer *writer, rp_wait wait, rp_error *err)
{
    rp_status first =
        rp_writer_check_alive(rp_structured_writer_inner(writer->writers[0]), err);

    if (first != RP_OK) return first;
    for (size_t e = 0; e < writer->environments;
         e++) { /* start all flushes before the first wait */
        rp_trajectory_writer *w = rp_structured_writer_inner(writer->writers[e]);
        rp_writer_close_wanted(w, w->created);
        rp_writer_kick(w);
    }
    for (size_t e = 0; e < writer->environments; e++) {
        rp_error why;
        rp_status st = rp_structured_writer_flush(writer->writers[e], 0, wait, &why);
        if (first == RP_OK) first = name_environment(st, e, &why, err);
    }
    return first;
}

size_t rp_batch_writer_pending(const rp_batch_writer *writer)
{
    size_t pending = 0;

    for (size_t e = 0; e < writer->environments; e++)
        pending += rp_structured_writer_pending(writer->writers[e]);
    return pending;
}
