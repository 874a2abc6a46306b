/* SPDX-License-Identifier: Apache-2.0 */
#include "env/numpy_math.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

/* Hides the exponent from the compiler, which turns pow(x, 2.0) into x * x. */
static const volatile double TWO = 2.0;
static const volatile float TWO_F = 2.0f;

double rp_numpy_power_2(double x)
{
    return pow(x, TWO);
}

float rp_numpy_power_2f(float x)
{
    return powf(x, TWO_F);
}

double rp_numpy_modulo(double a, double b)
{
    double rest = fmod(a, b);

    assert(b > 0);
    if (rest == 0) return 0;
    return rest < 0 ? rest + b : rest;
}

/* The polynomials around 0, in the square of `r`; each step is one fused multiply-add. */
static float sine_near_0(float r)
{
    float square = r * r;
    float sum = fmaf(0x1.7d3bbcp-19f, square, -0x1.a06bbap-13f);

    sum = fmaf(sum, square, 0x1.11119ap-07f);
    sum = fmaf(sum, square, -0x1.555556p-03f);
    sum = fmaf(sum, square, 0.0f);
    return fmaf(sum, r, r);
}

static float cosine_near_0(float r)
{
    float square = r * r;
    float sum = fmaf(0x1.98e616p-16f, square, -0x1.6c06dcp-10f);

    sum = fmaf(sum, square, 0x1.55553cp-05f);
    sum = fmaf(sum, square, -0x1.000000p-01f);
    return fmaf(sum, square, 1.0f);
}

/* Takes multiples of pi / 2, which is given in three parts (Cody and Waite), off x. */
static float sine_or_cosine(float x, bool cosine)
{
    float turns = nearbyintf(x * 0x1.45f306p-1f);
    float r = fmaf(turns, -0x1.921fb0p+00f, x);
    int quarter = (int)turns + cosine;
    float value;

    assert(fabsf(x) < 1000);
    r = fmaf(turns, -0x1.5110b4p-22f, r);
    r = fmaf(turns, -0x1.846988p-48f, r);
    value = (quarter & 1) == 0 ? sine_near_0(r) : cosine_near_0(r);
    return (quarter & 2) == 0 ? value : -value;
}

float rp_numpy_sinf(float x)
{
    return sine_or_cosine(x, false);
}

float rp_numpy_cosf(float x)
{
    return sine_or_cosine(x, true);
}
