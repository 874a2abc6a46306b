/* SPDX-License-Identifier: Apache-2.0 */
/* Initial parameters. */
#include "reprise/rl/init.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "nn/net.h"

static void fill_uniform(rp_pcg64 *rng, double bound, rp_real *x, size_t count)
{
    for (size_t i = 0; i < count; i++) x[i] = (rp_real)(bound * (2 * rp_pcg64_double(rng) - 1));
}

static void fill(rp_real value, rp_real *x, size_t count)
{
    for (size_t i = 0; i < count; i++) x[i] = value;
}

/* One normal vector after another is made orthogonal to those before it, twice, which is as
 * exact as a Householder decomposition (Giraud et al. 2005), and scaled to length 1. `vectors`
 * is count x length, count <= length. */
static void orthogonalise(rp_pcg64 *rng, double *vectors, size_t count, size_t length)
{
    assert(count <= length);
    for (size_t i = 0; i < count; i++) {
        double *v = vectors + i * length, norm = 0;

        for (size_t j = 0; j < length; j++) v[j] = rp_pcg64_normal(rng);
        for (size_t again = 0; again < 2; again++) {
            for (size_t k = 0; k < i; k++) {
                const double *u = vectors + k * length;
                double dot = 0;

                for (size_t j = 0; j < length; j++) dot += u[j] * v[j];
                for (size_t j = 0; j < length; j++) v[j] -= dot * u[j];
            }
        }
        for (size_t j = 0; j < length; j++) norm += v[j] * v[j];
        assert(norm > 0);
        for (size_t j = 0; j < length; j++) v[j] /= sqrt(norm);
    }
}

static rp_status fill_orthogonal(const rp_allocator *alloc, rp_pcg64 *rng, double gain,
                                 const rp_net_parameter *p, rp_real *x)
{
    size_t columns = p->dims[p->rank - 1], rows = p->size / columns;
    bool turned = rows < columns; /* the vectors are the longer way */
    size_t count = turned ? rows : columns, length = turned ? columns : rows;
    size_t bytes = p->size * sizeof(double);
    double *vectors = alloc->resize(alloc->ctx, NULL, 0, bytes);

    if (vectors == NULL) return RP_NO_RESOURCE;
    orthogonalise(rng, vectors, count, length);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            x[i * columns + j] =
                (rp_real)(gain * vectors[turned ? i * length + j : j * length + i]);
    alloc->resize(alloc->ctx, vectors, bytes, 0);
    return RP_OK;
}

static double gain_of(rp_activation activation)
{
    switch (activation) {
    case RP_RELU:
    case RP_ELU: return sqrt(2);
    case RP_TANH: return 5.0 / 3;
    case RP_LINEAR: break;
    }
    return 1;
}

rp_status rp_net_init(const rp_allocator *alloc, const rp_net *net, rp_init_kind kind,
                      rp_pcg64 *rng, rp_real *params)
{
    rp_status st = RP_OK;

    if (alloc == NULL) alloc = rp_allocator_default();
    for (size_t i = 0; i < net->count && st == RP_OK; i++) {
        const rp_layer *layer = &net->layers[i];

        for (size_t j = 0; j < layer->parameter_count && st == RP_OK; j++) {
            const rp_net_parameter *p = &layer->parameters[j];
            rp_real *x = params + p->offset;

            if (p->is_gain) {
                fill(1, x, p->size);
            } else if (p->fan_in == 0 || (p->is_bias && kind == RP_INIT_ORTHOGONAL)) {
                fill(0, x, p->size);
            } else if (kind == RP_INIT_ORTHOGONAL) {
                st = fill_orthogonal(alloc, rng, gain_of(layer->spec.activation), p, x);
            } else {
                fill_uniform(rng, 1 / sqrt((double)p->fan_in), x, p->size);
            }
        }
    }
    return st;
}
