/* SPDX-License-Identifier: Apache-2.0 */
#include "adder/adder_inside.h"
#include "error/fail.h"

rp_status rp_sequences_new(rp_adder *a, const rp_adder_options *options, rp_error *err)
{
    (void)a;
    (void)options;
    return rp_rl_fail(err, RP_UNIMPLEMENTED, "adder: sequences and episodes are not ready");
}
rp_status rp_sequences_configure(rp_adder *a, const rp_adder_options *options, rp_error *err)
{
    return rp_sequences_new(a, options, err);
}
rp_status rp_sequences_first(rp_adder *a, const void *observations, const bool *which,
                             rp_error *err)
{
    (void)observations;
    (void)which;
    return rp_sequences_new(a, NULL, err);
}
rp_status rp_sequences_add(rp_adder *a, const rp_adder_step *step, const float *discounts,
                           rp_wait wait, rp_error *err)
{
    (void)step;
    (void)discounts;
    (void)wait;
    return rp_sequences_new(a, NULL, err);
}
void rp_sequences_forget(rp_adder *a, size_t copy)
{
    (void)a;
    (void)copy;
}
rp_status rp_sequences_check(const rp_adder *a, rp_error *err)
{
    (void)a;
    (void)err;
    return RP_OK;
}
