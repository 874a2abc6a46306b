/* SPDX-License-Identifier: Apache-2.0 */
#include "error/unfit.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "error/fail.h"

enum { SHAPE_BYTES = 32, SPEC_BYTES = 80 };

/* Writes a column as "float32 [4]"; with its name, "'reward' float32 []". */
static const char *spec_text(const rp_spec *spec, bool named, char *text, size_t size)
{
    const char *dtype = rp_dtype_name(spec->dtype);
    char shape[SHAPE_BYTES];

    if (spec->dtype == RP_FLOAT32) dtype = "float32"; /* as NumPy has it */
    if (spec->dtype == RP_FLOAT64) dtype = "float64";
    (void)snprintf(text, size, "%s%.20s%s%s %s", named ? "'" : "",
                   named && spec->name != NULL ? spec->name : "", named ? "' " : "",
                   dtype != NULL ? dtype : "<unknown>",
                   rp_shape_text(&spec->shape, shape, sizeof shape));
    return text;
}

static bool has_name(const rp_spec *a, const rp_spec *b)
{
    return strcmp(a->name != NULL ? a->name : "", b->name != NULL ? b->name : "") == 0;
}

static void write_difference(size_t column, const rp_spec *is, const rp_spec *wanted,
                             char *text, size_t size)
{
    bool named = is->dtype == wanted->dtype && rp_shape_equal(&is->shape, &wanted->shape);
    char a[SPEC_BYTES], b[SPEC_BYTES];

    (void)snprintf(text, size, "column %zu is %s, expected %s", column,
                   spec_text(is, named, a, sizeof a), spec_text(wanted, named, b, sizeof b));
}

static void write_counts(size_t is, size_t wanted, char *text, size_t size)
{
    (void)snprintf(text, size, "they have %zu column%s, expected %zu", is, is == 1 ? "" : "s",
                   wanted);
}

/* Writes how a signature differs from `wanted`. Returns false if it does not. */
static bool differs(const rp_signature *is, const rp_signature *wanted, char *text, size_t size)
{
    size_t count = rp_signature_column_count(is), most = rp_signature_column_count(wanted);

    for (size_t i = 0; i < count && i < most; i++) {
        const rp_spec *a = rp_signature_column(is, i), *b = rp_signature_column(wanted, i);

        if (a->dtype == b->dtype && rp_shape_equal(&a->shape, &b->shape) && has_name(a, b))
            continue;
        write_difference(i, a, b, text, size);
        return true;
    }
    if (count == most) return false;
    write_counts(count, most, text, size);
    return true;
}

bool rp_item_differs(const rp_trajectory *item, const rp_signature *wanted, char *text,
                     size_t size)
{
    size_t count = rp_trajectory_column_count(item), most = rp_signature_column_count(wanted);

    assert(size > 0);
    for (size_t i = 0; i < count && i < most; i++) {
        const rp_trajectory_column c = rp_trajectory_get_column(item, i);
        const rp_spec is = {NULL, c.dtype, c.shape}, *w = rp_signature_column(wanted, i);

        if (c.dtype == w->dtype && rp_shape_equal(&c.shape, &w->shape)) continue;
        write_difference(i, &is, w, text, size);
        return true;
    }
    if (count == most) return false;
    write_counts(count, most, text, size);
    return true;
}

rp_status rp_check_tables(rp_client *client, const char *table, const rp_signature *wanted,
                          const char *agent, rp_wait wait, bool *is_own, rp_error *err)
{
    rp_client_tables *list = NULL;
    rp_status st = rp_client_get_tables(client, wait, &list, err);
    bool all = true;
    size_t found = 0;
    char why[120];

    *is_own = false;
    if (st != RP_OK) return st;
    for (size_t i = 0; i < list->count && st == RP_OK; i++) {
        const rp_client_table *t = &list->tables[i];
        const char *address = rp_client_shard_address(client, t->shard);

        if (strcmp(t->info.name, table) != 0) continue;
        found++;
        if (t->info.signature == NULL) {
            all = false;
            if (t->info.max_times_sampled > 0)
                st = rp_rl_fail(err, RP_PRECONDITION,
                                "table '%s' of %.80s has no signature, so its items may not "
                                "be of %.40s, and sampling would remove them; name another "
                                "server",
                                table, address, agent);
        } else if (differs(t->info.signature, wanted, why, sizeof why)) {
            st = rp_rl_fail(err, RP_PRECONDITION,
                            "table '%s' of %.80s is not of %.40s: %s; name another server",
                            table, address, agent, why);
        }
    }
    rp_client_tables_free(list);
    *is_own = st == RP_OK && found > 0 && all;
    return st;
}

const char *rp_envs_text(rp_action_kind kind, char *text, size_t size)
{
    const rp_env_class *class;
    size_t used = 0;

    assert(size > 0);
    text[0] = '\0';
    for (size_t i = 0; (class = rp_env_class_at(i)) != NULL; i++) {
        rp_env *env = NULL;

        if (rp_env_new(NULL, class, &(rp_env_options){.copies = 1}, &env, NULL) != RP_OK)
            continue;
        if (rp_env_get_spec(env)->action_kind == kind && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s",
                                     used > 0 ? ", " : "; these have: ", class->name);
        rp_env_free(env);
    }
    return text;
}
