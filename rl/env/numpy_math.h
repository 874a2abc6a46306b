/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic as NumPy does it, where C's usual way gives other bits. */
#ifndef RP_ENV_NUMPY_MATH_H
#define RP_ENV_NUMPY_MATH_H

/* x ** 2 of a float64 or float32 scalar: libm's pow, which rounds otherwise than x * x in one
 * case of some 1,500. */
double rp_numpy_power_2(double x);
float rp_numpy_power_2f(float x);

/* a % b for b > 0: the floored modulo, in [0, b]. */
double rp_numpy_modulo(double a, double b);

/* numpy.sin and numpy.cos of a float32, |x| < 1000: polynomials of NumPy's own, not libm's. */
float rp_numpy_sinf(float x);
float rp_numpy_cosf(float x);

#endif
