/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that compute bit by bit what NumPy computes, where the usual C expression rounds
 * differently. The environments use them to match Gymnasium's. */
#ifndef RP_ENV_NUMPY_MATH_H
#define RP_ENV_NUMPY_MATH_H

/* NumPy's x ** 2 of a float64 or float32 scalar. NumPy calls libm's pow, whose result differs
 * from x * x for about one value of x in 1,500. */
double rp_numpy_power_2(double x);
float rp_numpy_power_2f(float x);

/* NumPy's a % b for b > 0: the floored modulo, in [0, b]; rounding can make it b. */
double rp_numpy_modulo(double a, double b);

/* numpy.sin and numpy.cos of a float32 with |x| < 1000. NumPy computes them with polynomials of
 * its own instead of libm. */
float rp_numpy_sinf(float x);
float rp_numpy_cosf(float x);

#endif
