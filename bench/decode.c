/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how fast chunks are decoded into batches, and how small the chunks are.
 *
 * The data is like that of an Atari learner: frames of 84 x 84 bytes, 40 in a chunk. An item is
 * any four consecutive frames, so items overlap, and some span two chunks. The frames are
 * synthetic: sprites that move over a fixed background. */
#include "chunk/chunk_api.h"
#include "reprise/trajectory.h"

#include "bench.h"
#include "chunk/trajectory.h"

enum {
    SIDE = 84,
    FRAME = SIDE * SIDE,
    CHUNK_ROWS = 40,
    CHUNK_BYTES = CHUNK_ROWS * FRAME,
    STACK = 4, /* frames in an item */
    BATCH = 256,
    BATCH_BYTES = BATCH * STACK * FRAME,
    POOL = 4096, /* items from which batches are picked */
    SPRITES = 8,
};

typedef struct sprite {
    int x, y, dx, dy, width, height;
    uint8_t texture[12 * 12];
} sprite;

typedef struct scene {
    bench_rng rng;
    uint8_t background[FRAME];
    sprite sprites[SPRITES];
    unsigned step;
} scene;

static int between(bench_rng *rng, int low, int high)
{
    return low + (int)bench_below(rng, (size_t)(high - low) + 1);
}

static void draw_block(uint8_t *frame, int x, int y, int width, int height, uint8_t grey)
{
    for (int row = y; row < y + height; row++)
        memset(frame + row * SIDE + x, grey, (size_t)width);
}

/* Draws the background: rows of bricks in shades of grey below a line of digits, and scattered
 * dots. Edges are blurred, as by scaling from 210 x 160. */
static void scene_init(scene *s, uint64_t seed)
{
    *s = (scene){.rng = {.state = seed}};
    draw_block(s->background, 0, 0, SIDE, SIDE, (uint8_t)between(&s->rng, 0, 60));
    for (int y = 14; y < 38; y += 6)
        for (int x = 0; x < SIDE; x += 7) {
            uint8_t grey = (uint8_t)between(&s->rng, 90, 200);
            draw_block(s->background, x, y, 7, 6, grey / 2);
            draw_block(s->background, x, y + 1, 6, 4, grey);
        }
    for (int i = 0; i < 60; i++)
        s->background[between(&s->rng, 40 * SIDE, FRAME - 1)] =
            (uint8_t)between(&s->rng, 60, 255);
    for (int i = 0; i < SPRITES; i++) {
        sprite *p = &s->sprites[i];
        p->width = between(&s->rng, 2, 12);
        p->height = between(&s->rng, 2, 12);
        p->x = between(&s->rng, 0, SIDE - p->width);
        p->y = between(&s->rng, 12, SIDE - p->height);
        p->dx = between(&s->rng, -3, 3);
        p->dy = between(&s->rng, -2, 2);
        for (size_t j = 0; j < sizeof p->texture; j++)
            p->texture[j] = (uint8_t)between(&s->rng, 100, 255);
    }
}

static void move_sprite(sprite *p)
{
    p->x += p->dx;
    p->y += p->dy;
    if (p->x < 0 || p->x + p->width > SIDE) p->dx = -p->dx, p->x += 2 * p->dx;
    if (p->y < 10 || p->y + p->height > SIDE) p->dy = -p->dy, p->y += 2 * p->dy;
}

static void scene_frame(scene *s, uint8_t *frame)
{
    unsigned score = s->step++ / 16; /* changes now and then */

    memcpy(frame, s->background, FRAME);
    for (int digit = 0; digit < 4; digit++, score /= 10)
        draw_block(frame, 70 - digit * 8, 2, 2 + (int)(score % 10) / 2,
                   3 + (int)(score % 10) / 3, 200);
    for (int i = 0; i < SPRITES; i++) {
        sprite *p = &s->sprites[i];
        move_sprite(p);
        for (int row = 0; row < p->height; row++)
            memcpy(frame + (p->y + row) * SIDE + p->x, p->texture + row * 12, (size_t)p->width);
    }
}

/* Makes the frames of `chunk_count` chunks, 40 each. An episode has 20 chunks. */
static uint8_t **make_frames(size_t chunk_count)
{
    uint8_t **frames = bench_array(chunk_count, sizeof *frames);
    scene s;

    for (size_t i = 0; i < chunk_count; i++) {
        if (i % 20 == 0) scene_init(&s, i + 1);
        frames[i] = bench_memory(malloc(CHUNK_BYTES));
        for (size_t row = 0; row < CHUNK_ROWS; row++) scene_frame(&s, frames[i] + row * FRAME);
    }
    return frames;
}

static rp_shape frame_shape(void)
{
    return (rp_shape){.rank = 2, .dims = {SIDE, SIDE}};
}

static rp_chunk_builder *make_builder(rp_chunk_options options)
{
    rp_spec spec = {.name = "frame", .dtype = RP_UINT8, .shape = frame_shape()};
    rp_chunk_builder *builder;
    rp_error error;

    bench_check(
        rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &options, &builder, &error),
        &error);
    return builder;
}

static rp_chunk *build_chunk(rp_chunk_builder *builder, const uint8_t *frames, uint64_t key)
{
    rp_tensor row = {.dtype = RP_UINT8, .shape = frame_shape()};
    rp_chunk_origin origin = {.key = key, .episode = 1, .last_step = CHUNK_ROWS - 1};
    rp_chunk *chunk;
    rp_error error;

    for (size_t i = 0; i < CHUNK_ROWS; i++) {
        row.data = frames + i * FRAME;
        bench_check(rp_chunk_builder_append(builder, &row, &error), &error);
    }
    bench_check(rp_chunk_builder_finish(builder, &origin, &chunk, &error), &error);
    return chunk;
}

/* The same frames twice: as chunks, and as plain memory for memcpy(). */
typedef struct dataset {
    size_t chunk_count;
    uint8_t **frames; /* borrowed */
    rp_chunk **chunks;
    size_t starts[POOL]; /* the first frame of each item, counted over all chunks */
    rp_trajectory *items[POOL];
} dataset;

static rp_trajectory *make_item(const dataset *d, size_t start)
{
    size_t chunk = start / CHUNK_ROWS, offset = start % CHUNK_ROWS;
    size_t here = offset + STACK <= CHUNK_ROWS ? STACK : CHUNK_ROWS - offset;
    rp_chunk_slice slices[2] = {
        {.chunk = d->chunks[chunk], .offset = (uint32_t)offset, .length = (uint32_t)here},
        {.length = (uint32_t)(STACK - here)},
    };
    rp_slices column = {.slices = slices, .slice_count = here < STACK ? 2 : 1};
    rp_trajectory *item;
    rp_error error;

    if (here < STACK) slices[1].chunk = d->chunks[chunk + 1];
    bench_check(rp_trajectory_new(rp_allocator_default(), &column, 1, &item, &error), &error);
    return item;
}

static void dataset_init(dataset *d, uint8_t **frames, size_t chunk_count,
                         rp_chunk_options options)
{
    rp_chunk_builder *builder = make_builder(options);
    bench_rng rng = {.state = 3};

    d->chunk_count = chunk_count;
    d->frames = frames;
    d->chunks = bench_array(chunk_count, sizeof(rp_chunk *));
    for (size_t i = 0; i < chunk_count; i++)
        d->chunks[i] = build_chunk(builder, frames[i], i + 1);
    for (size_t i = 0; i < POOL; i++) {
        d->starts[i] = bench_below(&rng, chunk_count * CHUNK_ROWS - STACK + 1);
        d->items[i] = make_item(d, d->starts[i]);
    }
    rp_chunk_builder_free(builder);
}

static void dataset_deinit(dataset *d)
{
    for (size_t i = 0; i < POOL; i++) rp_trajectory_unref(d->items[i]);
    for (size_t i = 0; i < d->chunk_count; i++) rp_chunk_unref(d->chunks[i]);
    free(d->chunks);
}

static void stack_ours(const dataset *d, rp_decoder *decoder, const size_t *picks, uint8_t *dst)
{
    const rp_trajectory *batch[BATCH];
    rp_error error;

    for (size_t i = 0; i < BATCH; i++) batch[i] = d->items[picks[i]];
    bench_check(rp_decoder_stack(decoder, batch, BATCH, 0, dst, BATCH_BYTES, &error), &error);
}

static void stack_memcpy(const dataset *d, const size_t *picks, uint8_t *dst)
{
    for (size_t i = 0; i < BATCH; i++) {
        size_t start = d->starts[picks[i]], chunk = start / CHUNK_ROWS,
               offset = start % CHUNK_ROWS;
        size_t here = offset + STACK <= CHUNK_ROWS ? STACK : CHUNK_ROWS - offset;

        memcpy(dst, d->frames[chunk] + offset * FRAME, here * FRAME);
        if (here < STACK)
            memcpy(dst + here * FRAME, d->frames[chunk + 1], (STACK - here) * FRAME);
        dst += (size_t)STACK * FRAME;
    }
}

static void check_equal(const uint8_t *a, const uint8_t *b, const char *what)
{
    if (memcmp(a, b, BATCH_BYTES) == 0) return;
    fprintf(stderr, "%s: the batch is not what went in\n", what);
    exit(1);
}

typedef struct stacking {
    bench_best warm, cold, plain;
} stacking;

/* Measures decoding and memcpy() in turns. Both read the same items and write to their own
 * memory. */
static stacking measure_stacking(const dataset *d, int rounds)
{
    uint8_t *ours = bench_array(BATCH_BYTES, 1), *theirs = bench_array(BATCH_BYTES, 1);
    stacking best = {{0}, {0}, {0}};
    rp_decoder *warm, *cold;
    bench_rng rng = {.state = 9};
    size_t picks[BATCH];
    double start;

    bench_check(rp_decoder_new(rp_allocator_default(), (size_t)1 << 32, &warm), NULL);
    bench_check(rp_decoder_new(rp_allocator_default(), (size_t)1 << 32, &cold), NULL);
    for (size_t i = 0; i < d->chunk_count; i++) /* decodes up to the last row */
        bench_check(rp_decoder_rows(warm, d->chunks[i], (rp_row_range){0, CHUNK_ROWS - 1, 1},
                                    ours, FRAME, NULL),
                    NULL);
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < BATCH; i++) picks[i] = bench_below(&rng, POOL);
        start = bench_seconds();
        stack_ours(d, warm, picks, ours);
        bench_keep(&best.warm, start);
        start = bench_seconds();
        stack_memcpy(d, picks, theirs);
        bench_keep(&best.plain, start);
        check_equal(ours, theirs, "warm");
        if (round % 4 != 0) continue;
        rp_decoder_clear(cold);
        start = bench_seconds();
        stack_ours(d, cold, picks, ours);
        bench_keep(&best.cold, start);
        check_equal(ours, theirs, "cold");
    }
    rp_decoder_free(warm);
    rp_decoder_free(cold);
    free(ours);
    free(theirs);
    return best;
}

typedef struct packing {
    size_t stored;
    bench_best pack, unpack;
} packing;

/* Builds and decodes the same 20 chunks several times. */
static packing measure_packing(uint8_t **frames, size_t chunk_count, rp_chunk_options options,
                               int rounds)
{
    rp_chunk_builder *builder = make_builder(options);
    uint8_t *dst = bench_array(CHUNK_BYTES, 1);
    rp_chunk **chunks = bench_array(chunk_count, sizeof(rp_chunk *));
    packing best = {0};
    rp_decoder *decoder;

    bench_check(rp_decoder_new(rp_allocator_default(), 0, &decoder), NULL);
    for (int round = 0; round < rounds; round++) {
        double start = bench_seconds();

        for (size_t i = 0; i < chunk_count; i++)
            chunks[i] = build_chunk(builder, frames[i], i + 1);
        bench_keep(&best.pack, start);
        start = bench_seconds();
        for (size_t i = 0; i < chunk_count; i++)
            bench_check(rp_decoder_rows(decoder, chunks[i], (rp_row_range){0, 0, CHUNK_ROWS},
                                        dst, CHUNK_BYTES, NULL),
                        NULL);
        bench_keep(&best.unpack, start);
        rp_decoder_clear(decoder);
        best.stored = 0;
        for (size_t i = 0; i < chunk_count; i++) {
            size_t size;
            (void)rp_chunk_wire(chunks[i], &size);
            best.stored += size;
            rp_chunk_unref(chunks[i]);
        }
    }
    rp_decoder_free(decoder);
    rp_chunk_builder_free(builder);
    free(chunks);
    free(dst);
    return best;
}

static double gb_per_second(bench_best best, size_t bytes)
{
    return (double)bytes / best.seconds * 1e-9;
}

static void report_saved(const char *name, size_t stored, size_t chunk_count)
{
    double per_frame = (double)stored / (double)(chunk_count * CHUNK_ROWS);

    printf("ratio decode.saved.%s %.3f (ours %s a frame vs raw %s a frame)\n", name,
           1 - per_frame / FRAME, bench_scaled(per_frame, "B").text,
           bench_scaled(FRAME, "B").text);
}

static void compare_codecs(uint8_t **frames, bool quick)
{
    enum { CHUNKS = 60 };
    static const rp_codec codecs[] = {RP_CODEC_NONE, RP_CODEC_SNAPPY, RP_CODEC_LZ4,
                                      RP_CODEC_ZSTD};
    size_t bytes = (size_t)CHUNKS * CHUNK_BYTES;
    size_t snappy_delta = 0, zstd = 0;

    printf("\n# %d chunks of %d frames; GB/s of frames\n"
           "codec    delta     saved  compress  decompress\n",
           CHUNKS, CHUNK_ROWS);
    for (size_t i = 0; i < 2 * sizeof codecs / sizeof codecs[0]; i++) {
        rp_chunk_options options = {.codec = codecs[i / 2], .delta = i % 2 != 0};
        packing p = measure_packing(frames, CHUNKS, options, quick ? 3 : 10);

        printf("%-8s %-8s %5.1f %%  %8.2f  %10.2f\n", rp_codec_name(options.codec),
               options.delta ? "yes" : "no", 100 * (1 - (double)p.stored / (double)bytes),
               gb_per_second(p.pack, bytes), gb_per_second(p.unpack, bytes));
        if (options.codec == RP_CODEC_SNAPPY && options.delta) snappy_delta = p.stored;
        if (options.codec == RP_CODEC_ZSTD && !options.delta) zstd = p.stored;
    }
    report_saved("snappy_delta", snappy_delta, CHUNKS);
    report_saved("zstd", zstd, CHUNKS);
}

static void compare_stacking(uint8_t **frames, size_t chunk_count, bool quick)
{
    static const struct {
        const char *name;
        rp_chunk_options options;
    } kinds[] = {
        {"none", {.codec = RP_CODEC_NONE}},
        {"snappy", {.codec = RP_CODEC_SNAPPY}},
        {"snappy + delta", {.codec = RP_CODEC_SNAPPY, .delta = true}},
        {"lz4 + delta", {.codec = RP_CODEC_LZ4, .delta = true}},
        {"zstd", {.codec = RP_CODEC_ZSTD}},
    };
    bench_best warm = {0}, plain = {0};

    printf("\n# batches of %d items of (%d, %d, %d) bytes out of %zu chunks; GB/s of batches\n"
           "codec              warm     cold   memcpy\n",
           BATCH, STACK, SIDE, SIDE, chunk_count);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        static dataset d;
        stacking s;

        dataset_init(&d, frames, chunk_count, kinds[i].options);
        s = measure_stacking(&d, quick ? 40 : 200);
        printf("%-15s  %6.2f   %6.2f   %6.2f\n", kinds[i].name,
               gb_per_second(s.warm, BATCH_BYTES), gb_per_second(s.cold, BATCH_BYTES),
               gb_per_second(s.plain, BATCH_BYTES));
        if (strcmp(kinds[i].name, "snappy + delta") == 0) {
            warm = s.warm;
            plain = s.plain;
        }
        dataset_deinit(&d);
    }
    bench_ratio("decode.stack", BATCH_BYTES / warm.seconds, "memcpy",
                BATCH_BYTES / plain.seconds, "B/s");
}

int main(int argc, char **argv)
{
    enum { CHUNKS = 256 };
    bench_options options = bench_parse(argc, argv, "chunks into batches, against memcpy");
    uint8_t **frames = make_frames(CHUNKS);

    compare_stacking(frames, CHUNKS, options.quick);
    compare_codecs(frames, options.quick);
    for (size_t i = 0; i < CHUNKS; i++) free(frames[i]);
    free(frames);
    return 0;
}
