/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that give the same bits as NumPy where the usual C expression rounds differently.
 * The environments use these functions so that their results equal those of Gymnasium's
 * environments. */
#ifndef RP_ENV_NUMPY_MATH_H
#define RP_ENV_NUMPY_MATH_H

/* Compute NumPy's x ** 2 of a float64 and a float32 scalar. NumPy calls libm's pow(), whose
 * result differs from x * x for about one value of x in 1,500. */
double rp_numpy_power_2(double x);
float rp_numpy_power_2f(float x);

/* Computes NumPy's a % b for b > 0: the floored modulo. The result is in [0, b]; it is b only
 * if rounding makes it so. */
double rp_numpy_modulo(double a, double b);

/* Compute numpy.sin and numpy.cos of a float32 with |x| < 1000. NumPy computes them with
 * polynomials of its own, not with libm. */
float rp_numpy_sinf(float x);
float rp_numpy_cosf(float x);

#endif
