/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures are drawn on a canvas of characters.
 *
 * Invariant:
 *   V1  every write is within the canvas: put() drops what is outside. */
#include "cli/train/env_drawing.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { WIDTH = 61, HEIGHT = 13, MOST_VARIABLES = 64, MOST_CELLS = 64 };
#define PI 3.14159265358979323846

typedef struct canvas {
    char cells[HEIGHT][WIDTH];
} canvas;

static void put(canvas *c, double x, double y, char mark)
{
    long column = lround(x), row = lround(y);

    if (column < 0 || column >= WIDTH || row < 0 || row >= HEIGHT) return; /* V1 */
    c->cells[row][column] = mark;
}

/* Draws a line of marks. Characters are twice as high as wide: y is halved by the callers. */
static void line(canvas *c, double x0, double y0, double x1, double y1, char mark)
{
    enum { POINTS = 2 * WIDTH };

    for (int i = 0; i <= POINTS; i++) {
        double share = (double)i / POINTS;
        put(c, x0 + (x1 - x0) * share, y0 + (y1 - y0) * share, mark);
    }
}

static void put_canvas(rp_text_buffer *out, const canvas *c)
{
    for (int row = 0; row < HEIGHT; row++) {
        rp_text_buffer_add(out, c->cells[row], WIDTH);
        rp_text_buffer_put(out, "\n");
    }
}

static void draw_cartpole(canvas *c, const double *v)
{
    const double middle = WIDTH / 2, x = middle + v[0] / 2.4 * (WIDTH / 2 - 6);
    const double length = 20;

    line(c, 0, HEIGHT - 1, WIDTH - 1, HEIGHT - 1, '-');
    line(c, x - 4, HEIGHT - 2, x + 4, HEIGHT - 2, '=');
    line(c, x, HEIGHT - 3, x + length * sin(v[2]), HEIGHT - 3 - length / 2 * cos(v[2]), '|');
}

static double hill(double x)
{
    return HEIGHT - 2 - (sin(3 * x) + 1) / 2 * (HEIGHT - 4);
}

static void draw_mountain_car(canvas *c, const double *v)
{
    const double low = -1.2, high = 0.6;

    for (int i = 0; i < WIDTH; i++) {
        double x = low + (high - low) * i / (WIDTH - 1);
        put(c, i, hill(x) + 1, '.');
    }
    put(c, (0.5 - low) / (high - low) * (WIDTH - 1), hill(0.5), 'P'); /* the flag */
    put(c, (v[0] - low) / (high - low) * (WIDTH - 1), hill(v[0]), 'o');
}

static void draw_acrobot(canvas *c, const double *v)
{
    const double x = WIDTH / 2, y = HEIGHT / 2, length = 6;
    const double x1 = x + length * sin(v[0]), y1 = y + length / 2 * cos(v[0]);

    line(c, 0, y - length / 2, WIDTH - 1, y - length / 2, '.'); /* the tip must reach it */
    line(c, x, y, x1, y1, '#');
    line(c, x1, y1, x1 + length * sin(v[0] + v[1]), y1 + length / 2 * cos(v[0] + v[1]), '*');
    put(c, x, y, 'O');
}

static void draw_pendulum(canvas *c, const double *v)
{
    const double x = WIDTH / 2, y = HEIGHT / 2, length = 12;

    line(c, x, y, x - length * sin(v[0]), y - length / 2 * cos(v[0]), '#');
    put(c, x, y, 'O');
}

/* A grid of floats: one cell a number. */
static void draw_grid(rp_text_buffer *out, const rp_shape *shape, const float *cells)
{
    for (int64_t row = 0; row < shape->dims[0]; row++) {
        for (int64_t column = 0; column < shape->dims[1]; column++)
            rp_text_buffer_put(out, cells[row * shape->dims[1] + column] != 0 ? "[]" : " .");
        rp_text_buffer_put(out, "\n");
    }
}

/* The latest frame of a stack of images, four rows and two columns a character. */
static void draw_frame(rp_text_buffer *out, const rp_shape *shape, const uint8_t *bytes)
{
    static const char shades[] = " .:-=+*#%@";
    const int64_t height = shape->dims[1], width = shape->dims[2];
    const uint8_t *frame = bytes + (shape->dims[0] - 1) * height * width;

    for (int64_t row = 0; row + 4 <= height; row += 4) {
        for (int64_t column = 0; column + 2 <= width; column += 2) {
            unsigned sum = 0;
            for (int64_t k = 0; k < 8; k++)
                sum += frame[(row + k / 2) * width + column + k % 2];
            rp_text_buffer_add(out, &shades[sum * (sizeof shades - 2) / (8 * 255)], 1);
        }
        rp_text_buffer_put(out, "\n");
    }
}

static void put_variables(rp_text_buffer *out, const rp_env_spec *spec, const double *values)
{
    for (size_t i = 0; i < spec->variable_count && i < 6; i++)
        rp_text_buffer_format(out, "%s%s %.3f", i > 0 ? "  " : "", spec->variable_names[i],
                              values[i]);
    rp_text_buffer_put(out, "\n");
}

/* From the observation: x, y, speeds, angle, spin, legs. */
static void draw_lunarlander(canvas *c, const double *v)
{
    const double x = WIDTH / 2 * (1 + v[0]), y = HEIGHT - 3 - v[1] / 1.5 * (HEIGHT - 3);
    const double sine = sin(v[4]), cosine = cos(v[4]);

    line(c, 0, HEIGHT - 1, WIDTH - 1, HEIGHT - 1, '-');
    line(c, WIDTH / 2 - 6, HEIGHT - 1, WIDTH / 2 + 6, HEIGHT - 1, '=');
    line(c, x - 3 * cosine, y + 1.5 * sine, x + 3 * cosine, y - 1.5 * sine, '#');
    put(c, x - 4 * cosine - 2 * sine, y + 1 * cosine + 2 * sine, v[6] > 0 ? '_' : '/');
    put(c, x + 4 * cosine - 2 * sine, y + 1 * cosine - 2 * sine, v[7] > 0 ? '_' : '\\');
}

void rp_env_draw(rp_text_buffer *out, const rp_env *env, const void *observation)
{
    static const struct {
        const char *name;
        void (*draw)(canvas *c, const double *variables);
    } pictures[] = {{"cartpole", draw_cartpole},
                    {"mountain_car", draw_mountain_car},
                    {"mountain_car_continuous", draw_mountain_car},
                    {"acrobot", draw_acrobot},
                    {"lunarlander", draw_lunarlander},
                    {"pendulum", draw_pendulum}};
    const rp_env_spec *spec = rp_env_get_spec(env);
    const rp_shape *shape = &spec->observation_shape;
    double variables[MOST_VARIABLES] = {0};
    canvas c;

    if (spec->variable_count > 0 && spec->variable_count <= MOST_VARIABLES)
        rp_env_get_variables(env, 0, variables);
    else if (shape->rank == 1 && spec->observation_dtype == RP_FLOAT32)
        for (int64_t i = 0; i < shape->dims[0] && i < MOST_VARIABLES; i++)
            variables[i] = (double)((const float *)observation)[i];
    for (size_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++) {
        if (strcmp(rp_env_get_class(env)->name, pictures[i].name) != 0) continue;
        memset(&c, ' ', sizeof c);
        pictures[i].draw(&c, variables);
        put_canvas(out, &c);
        put_variables(out, spec, variables);
        return;
    }
    if (shape->rank == 2 && spec->observation_dtype == RP_FLOAT32 &&
        shape->dims[1] <= MOST_CELLS)
        draw_grid(out, shape, observation);
    else if (shape->rank == 3 && spec->observation_dtype == RP_UINT8)
        draw_frame(out, shape, observation);
    put_variables(out, spec, variables);
}
