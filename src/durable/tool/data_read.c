/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/tool/data_read.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "durable/format/rollouts_file.h"
#include "util/error.h"

void rp_data_reader_init(rp_data_reader *r, const rp_allocator *alloc, rp_files *files)
{
    *r = (rp_data_reader){.alloc = alloc, .files = files};
    rp_buf_init(&r->buf, alloc);
}

void rp_data_reader_deinit(rp_data_reader *r)
{
    if (r->file != NULL) r->files->ops->close(r->file);
    rp_buf_deinit(&r->buf);
}

static rp_status open_segment(rp_data_reader *r, uint64_t number, rp_error *err)
{
    char path[RP_SEGMENT_PATH_BYTES];

    if (r->file != NULL && r->segment == number) return RP_OK;
    if (r->file != NULL) r->files->ops->close(r->file);
    r->file = NULL;
    r->segment = number;
    return r->files->ops->open(r->files, rp_segment_path(path, number), RP_OPEN_READ, &r->file,
                               err);
}

rp_status rp_data_reader_get(rp_data_reader *r, const rp_disk_location *location,
                             rp_record_kind kind, rp_record *out, rp_error *err)
{
    size_t size = RP_RECORD_HEADER_BYTES + (size_t)location->size, got = 0;
    rp_error why = {0};
    char path[RP_SEGMENT_PATH_BYTES];
    rp_status st = open_segment(r, location->segment, err);

    if (st != RP_OK) return st;
    assert(r->file != NULL && r->segment == location->segment); /* Y1 */
    (void)rp_segment_path(path, location->segment);
    if (location->size > RP_MAX_RECORD_BYTES)
        return rp_fail(err, RP_CORRUPT, "%s: offset %" PRIu64 ": no record is that large", path,
                       location->offset);
    rp_buf_clear(&r->buf);
    if (rp_buf_reserve(&r->buf, size) == NULL) return rp_fail_memory(err, size);
    st = r->files->ops->read(r->file, location->offset, r->buf.data, size, &got, err);
    if (st != RP_OK) return st;
    assert(got <= size);
    st = rp_record_read(r->buf.data, got, NULL, out, &why);
    if (st != RP_OK)
        return rp_fail(err, st, "%s: offset %" PRIu64 ": %.160s", path, location->offset,
                       why.text);
    if (!rp_record_is(out->kind, kind) || out->size != location->size)
        return rp_fail(err, RP_CORRUPT, "%s: offset %" PRIu64 ": another record is there", path,
                       location->offset);
    return RP_OK;
}

rp_status rp_data_list_numbers(const rp_allocator *alloc, rp_files *files, const char *folder,
                               rp_number_list *out, rp_error *err)
{
    rp_status st = rp_number_list_read(out, alloc, files, folder, err);

    if (st == RP_NOT_FOUND) return RP_OK;
    if (st != RP_OK) rp_number_list_free(out);
    return st;
}

static rp_status load(const rp_allocator *alloc, rp_files *files, uint64_t number,
                      rp_manifest **out, rp_error *err)
{
    char path[RP_MANIFEST_PATH_BYTES];

    return rp_manifest_load(alloc, files, rp_manifest_path(path, number), number, NULL, out,
                            err);
}

/* Sets an error that lists the checkpoints that are there. */
static rp_status fail_number(const rp_allocator *alloc, rp_files *files, uint64_t number,
                             rp_error *err)
{
    char list[120] = "";
    rp_number_list numbers;
    rp_status st = rp_data_list_numbers(alloc, files, "manifest", &numbers, err);

    if (st != RP_OK) return st;
    for (size_t i = 0; i < numbers.count; i++) {
        size_t used = strlen(list);

        if (used + 32 > sizeof list) {
            (void)snprintf(list + used, sizeof list - used, " and more");
            break;
        }
        (void)snprintf(list + used, sizeof list - used, "%s%" PRIu64, i > 0 ? ", " : "",
                       numbers.at[i]);
    }
    st = numbers.count == 0
             ? rp_fail(err, RP_NOT_FOUND, "there is no checkpoint in this directory")
             : rp_fail(err, RP_NOT_FOUND, "there is no checkpoint %" PRIu64 ", but %s", number,
                       list);
    rp_number_list_free(&numbers);
    return st;
}

rp_status rp_data_find_manifest(const rp_allocator *alloc, rp_files *files, uint64_t number,
                                rp_manifest **out, rp_error *err)
{
    rp_number_list numbers;
    rp_current current;
    rp_error first = {0}, why = {0};
    rp_status st;

    if (number != 0) {
        st = load(alloc, files, number, out, err);
        return st == RP_NOT_FOUND ? fail_number(alloc, files, number, err) : st;
    }
    if (rp_current_load(files, &current, NULL) == RP_OK) {
        st = load(alloc, files, current.checkpoint, out, &first);
        if (st == RP_OK || st == RP_NO_RESOURCE) {
            if (st != RP_OK && err != NULL) *err = first;
            return st;
        }
    }
    st = rp_data_list_numbers(alloc, files, "manifest", &numbers, err);
    if (st != RP_OK) return st;
    st = RP_NOT_FOUND;
    for (size_t i = numbers.count; st != RP_OK && i-- > 0;) {
        st = load(alloc, files, numbers.at[i], out, &why);
        if (first.code == RP_OK) first = why;
    }
    rp_number_list_free(&numbers);
    if (st == RP_OK) return RP_OK;
    if (first.code == RP_OK)
        return rp_fail(err, RP_NOT_FOUND, "there is no checkpoint in this directory");
    if (err != NULL) *err = first;
    return first.code;
}

rp_status rp_data_check_rollouts(const rp_allocator *alloc, rp_files *files, bool thorough,
                                 rp_data_file *file, rp_error *err)
{
    rp_manifest *m = NULL;
    rp_rollouts_found found = {0};
    rp_error why = {.text = ""};
    rp_status st = load(alloc, files, file->number, &m, &why);

    if (st == RP_NOT_FOUND || (st == RP_OK && m->store.rollouts.count == 0))
        file->state = RP_DATA_UNUSED; /* left over, or of a checkpoint in quarantine */
    else if (st == RP_OK && !thorough)
        st = rp_rollouts_file_check(files, file->number, &m->store.rollouts, &why);
    else if (st == RP_OK)
        st = rp_rollouts_file_read(&(rp_rollouts_read_options){.alloc = alloc,
                                                               .files = files,
                                                               .store = &m->store_id,
                                                               .checkpoint = file->number,
                                                               .wanted = &m->store.rollouts},
                                   &found, &why);
    if (m != NULL) file->rollouts = m->store.rollouts.count;
    if (m != NULL && st != RP_OK && st != RP_NO_RESOURCE) {
        file->state = RP_DATA_DAMAGED;
        (void)snprintf(file->problem, sizeof file->problem, "%s", why.text);
    }
    file->records = found.records;
    file->good_bytes = found.end;
    rp_rollouts_found_free(&found);
    rp_manifest_free(m);
    if (st == RP_NO_RESOURCE && err != NULL) *err = why;
    return st == RP_NO_RESOURCE ? st : RP_OK;
}
