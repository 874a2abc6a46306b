/* SPDX-License-Identifier: Apache-2.0 */
/* Tapes: run a network forward and backward over one arena.
 *
 * The arena of a tape, in numbers, each part begun on a cache line:
 *
 *   | outputs of layers | kept numbers of layers | scratch | two gradients |
 *
 * A training tape has an output and kept numbers for each layer, and two buffers for gradients
 * by outputs, of which one is read while the other is written. An inference tape has two
 * outputs that take turns, one place for kept numbers, and no gradients.
 *
 * Invariants:
 *   P1  outs[i], kept[i], scratch and grads lie within the arena and do not overlap, except
 * that an
 *       inference tape uses every second output, and its kept numbers, again;
 *   P2  rows is 0 until the first forward pass, then the rows of the last one. */
#include <assert.h>
#include <string.h>

#include "error/fail.h"
#include "nn/net.h"

enum { LINE = 64 / sizeof(rp_real) };

struct rp_tape {
    rp_allocator alloc;
    const rp_net *net;
    rp_tape_options options;
    size_t rows; /* of the last forward pass */
    const rp_real *input;
    rp_tape_sequence sequence;
    rp_real *outs[RP_NET_MAX_LAYERS], *kept[RP_NET_MAX_LAYERS];
    rp_real *scratch, *grads[2];
    void *memory; /* the arena before it was aligned */
    size_t memory_bytes;
};

/* Lays out the arena from `base`. With NULL it only measures. */
typedef struct layout {
    rp_real *base;
    size_t used; /* numbers */
    bool overflow;
} layout;

static rp_real *take(layout *l, size_t per_row, size_t rows, size_t fixed)
{
    size_t at = l->used, count;

    if (__builtin_mul_overflow(per_row, rows, &count) ||
        __builtin_add_overflow(count, fixed, &count) ||
        __builtin_add_overflow(count, (size_t)LINE - 1, &count) ||
        __builtin_add_overflow(l->used, count / LINE * LINE, &l->used))
        l->overflow = true;
    return l->base == NULL ? NULL : l->base + at;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void place(rp_tape *tape, layout *l)
{
    const rp_net *net = tape->net;
    size_t rows = tape->options.rows, out = 0, kept = 0, per_row = 0, fixed = 0;
    bool train = tape->options.train;

    for (size_t i = 0; i < net->count; i++) {
        const rp_layer *layer = &net->layers[i];

        out = larger(out, layer->out_size);
        kept = larger(kept, layer->kept);
        per_row = larger(per_row, layer->scratch_per_row);
        fixed = larger(fixed, layer->scratch_fixed);
    }
    for (size_t i = 0; i < net->count; i++) { /* P1 */
        const rp_layer *layer = &net->layers[i];

        tape->outs[i] = !train && i >= 2 ? tape->outs[i - 2]
                                         : take(l, train ? layer->out_size : out, rows, 0);
        tape->kept[i] =
            !train && i >= 1 ? tape->kept[0] : take(l, train ? layer->kept : kept, rows, 0);
    }
    tape->scratch = take(l, per_row, rows, fixed);
    if (!train) return;
    tape->grads[0] = take(l, out, rows, 0);
    tape->grads[1] = take(l, out, rows, 0);
}

static rp_status allocate(rp_tape *tape, rp_error *err)
{
    layout l = {.base = NULL};
    size_t bytes;
    uintptr_t address;

    place(tape, &l);
    if (l.overflow || l.used > (SIZE_MAX - 64) / sizeof(rp_real))
        return rp_rl_fail(err, RP_NO_RESOURCE, "a tape of %zu rows is larger than memory",
                          tape->options.rows);
    bytes = l.used * sizeof(rp_real) + 64;
    tape->memory = tape->alloc.resize(tape->alloc.ctx, NULL, 0, bytes);
    if (tape->memory == NULL) return rp_rl_fail_memory(err, bytes);
    tape->memory_bytes = bytes;
    address = (uintptr_t)tape->memory;
    l = (layout){.base = (rp_real *)((char *)tape->memory + (64 - address % 64))};
    memset(l.base, 0, bytes - 64);
    place(tape, &l);
    assert(l.used * sizeof(rp_real) + 64 == bytes);
    return RP_OK;
}

rp_status rp_tape_new(const rp_allocator *alloc, const rp_net *net, rp_tape_options options,
                      rp_tape **out, rp_error *err)
{
    rp_tape *tape;
    rp_status st;

    if (options.rows == 0) return rp_rl_fail(err, RP_INVALID, "tape: rows must be >= 1, got 0");
    if (alloc == NULL) alloc = rp_allocator_default();
    tape = alloc->resize(alloc->ctx, NULL, 0, sizeof *tape);
    if (tape == NULL) return rp_rl_fail_memory(err, sizeof *tape);
    memset(tape, 0, sizeof *tape);
    tape->alloc = *alloc;
    tape->net = net;
    tape->options = options;
    st = allocate(tape, err);
    if (st != RP_OK) {
        rp_tape_free(tape);
        return st;
    }
    *out = tape;
    return RP_OK;
}

void rp_tape_free(rp_tape *tape)
{
    rp_allocator alloc;

    if (tape == NULL) return;
    alloc = tape->alloc;
    if (tape->memory != NULL) alloc.resize(alloc.ctx, tape->memory, tape->memory_bytes, 0);
    alloc.resize(alloc.ctx, tape, sizeof *tape, 0);
}

/* The pass over layer i, with what both directions need. */
static rp_pass pass_of(rp_tape *tape, const rp_real *params, size_t i)
{
    return (rp_pass){
        .gemm = tape->net->gemm,
        .loops = tape->net->loops,
        .rows = tape->rows,
        .params = params,
        .in = i == 0 ? tape->input : tape->outs[i - 1],
        .out = tape->outs[i],
        .kept = tape->kept[i],
        .scratch = tape->scratch,
        .sequence = &tape->sequence,
        .state_size = tape->net->state_size,
    };
}

const rp_real *rp_tape_forward_sequence(rp_tape *tape, const rp_real *params,
                                        const rp_real *input, size_t rows,
                                        const rp_tape_sequence *sequence)
{
    const rp_net *net = tape->net;

    assert(rows >= 1 && rows <= tape->options.rows);
    assert(sequence->steps >= 1 && rows % sequence->steps == 0);
    tape->rows = rows; /* P2 */
    tape->input = input;
    tape->sequence = *sequence;
    for (size_t i = 0; i < net->count; i++) {
        rp_pass pass = pass_of(tape, params, i);

        net->layers[i].kind->forward(&net->layers[i], &pass);
    }
    return tape->outs[net->count - 1];
}

const rp_real *rp_tape_forward(rp_tape *tape, const rp_real *params, const rp_real *input,
                               size_t rows)
{
    const rp_tape_sequence one_step = {.steps = 1};

    return rp_tape_forward_sequence(tape, params, input, rows, &one_step);
}

void rp_tape_backward(rp_tape *tape, const rp_real *params, const rp_real *grad_out,
                      rp_real *grads, rp_real *grad_in)
{
    const rp_net *net = tape->net;
    size_t last = net->count - 1;

    assert(tape->options.train && tape->rows >= 1); /* P2 */
    memcpy(tape->grads[last % 2], grad_out,
           tape->rows * net->layers[last].out_size * sizeof *grad_out);
    for (size_t i = net->count; i-- > 0;) {
        rp_pass pass = pass_of(tape, params, i);

        pass.grads = grads;
        pass.grad_out = tape->grads[i % 2];
        pass.grad_in = i == 0 ? grad_in : tape->grads[(i - 1) % 2];
        net->layers[i].kind->backward(&net->layers[i], &pass);
    }
}
