/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: functions that allocate from an rp_allocator, with checks for overflow, and functions
 * that get memory from the system or return it. */
#ifndef RP_UTIL_MEM_H
#define RP_UTIL_MEM_H

#include <string.h>

#include "reprise/alloc.h"

enum { RP_CACHE_LINE = 64 };

/* RP_SANITIZED is 1 if the code is built with a sanitizer that has its own heap. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RP_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                     \
    __has_feature(memory_sanitizer)
#define RP_SANITIZED 1
#endif
#endif
#ifndef RP_SANITIZED
#define RP_SANITIZED 0
#endif

/* Write the sum or the product to `*out`. Return false if it does not fit into a size_t. */
static inline bool rp_size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool rp_size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* Return `size` bytes (>= 1): rp_alloc() uninitialised bytes, rp_alloc_zero() zeroed bytes.
 * Return NULL if there is no memory. */
void *rp_alloc(const rp_allocator *a, size_t size);
void *rp_alloc_zero(const rp_allocator *a, size_t size);

/* Returns an array of `count` zeroed elements. Returns NULL if there is no memory or count *
 * element_size overflows. */
void *rp_alloc_array(const rp_allocator *a, size_t count, size_t element_size);

/* Frees `size` bytes at `ptr`. NULL is fine. */
void rp_release(const rp_allocator *a, void *ptr, size_t size);

/* Resizes an array from `old_count` to `new_count` elements; new elements are zeroed. `array`
 * is the address of the caller's pointer to the array, which the function replaces. Returns
 * false and changes nothing if there is no memory or new_count * element_size overflows. */
bool rp_resize_array(const rp_allocator *a, void *array, size_t old_count, size_t new_count,
                     size_t element_size);
/* Like rp_resize_array(), but new elements are not initialised. Resizing a large array of the
 * default allocator is fast: its pages are remapped, not copied. */
bool rp_grow_array(const rp_allocator *a, void *array, size_t old_count, size_t new_count,
                   size_t element_size);

/* Returns zeroed memory, aligned to a cache line. Blocks of 2 MiB or more are aligned to huge
 * pages, and the system is asked to use huge pages for them. The system zeroes large blocks of
 * the default allocator page by page when they are first written to. The caller must free the
 * memory with rp_release_aligned() and the same size. */
void *rp_alloc_aligned(const rp_allocator *a, size_t size);
void rp_release_aligned(const rp_allocator *a, void *ptr, size_t size);

/* Returns `size` zeroed bytes (>= 1) from the system, not from an allocator. A page takes
 * memory when it is first written to. Returns NULL if there is no memory. */
void *rp_map_pages(size_t size);
void rp_unmap_pages(void *ptr, size_t size);

/* Returns the bytes of memory that the machine has; 0 if not known. */
uint64_t rp_machine_memory(void);

/* Returns unused pages of the default allocator to the system. The call holds locks of the
 * allocator, so other threads that allocate possibly wait. */
void rp_trim_memory(void);

/* Asks the system to provide memory now for the pages that lie wholly within these `size`
 * bytes, instead of at the first write. Changes no byte, so other threads may use the bytes
 * during the call. Does nothing if the system does not support this. */
void rp_touch(void *ptr, size_t size);

#endif
