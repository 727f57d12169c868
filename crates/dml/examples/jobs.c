/*
 * Every operation of the job API, by the path that is named: sw, hw or auto.
 *
 *     cc jobs.c $(pkg-config --cflags --libs dray-dml)
 *     LD_LIBRARY_PATH=... ./a.out sw
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dml/dml.h"

#define BYTES 8192
#define TASKS 8

static int wrong;

static void expect(int is, const char *what)
{
    if (!is) {
        printf("wrong: %s\n", what);
        wrong = 1;
    }
}

static uint8_t source[BYTES], other[BYTES];
static uint8_t room[4 * 16384];

/* A destination whose address has zeros in its lower 12 bits. */
static uint8_t *page(int number)
{
    uintptr_t first = ((uintptr_t)room + 4095) & ~(uintptr_t)4095;
    return (uint8_t *)first + number * 12288;
}

static dml_job_t *job_of(dml_path_t path)
{
    uint32_t bytes = 0;
    dml_job_t *job;
    if (dml_get_job_size(path, &bytes) != DML_STATUS_OK || !(job = (dml_job_t *)malloc(bytes)) ||
        dml_init_job(path, job) != DML_STATUS_OK) {
        printf("no job\n");
        exit(2);
    }
    return job;
}

static dml_status_t run(dml_job_t *job)
{
    dml_status_t status = dml_submit_job(job);
    if (status != DML_STATUS_OK)
        return status;
    return dml_wait_job(job, DML_WAIT_MODE_BUSY_POLL);
}

/* A job with the fields that most operations have. */
static dml_job_t *fresh(dml_path_t path, dml_operation_t operation, uint8_t *from, uint8_t *to, uint32_t bytes)
{
    dml_job_t *job = job_of(path);
    job->operation = operation;
    job->source_first_ptr = from;
    job->destination_first_ptr = to;
    job->source_length = job->destination_length = bytes;
    return job;
}

static void moves(dml_path_t path)
{
    dml_job_t *job = fresh(path, DML_OP_MEM_MOVE, source, page(0), 4096);
    expect(run(job) == DML_STATUS_OK && !memcmp(source, page(0), 4096), "memory move");
    job->flags = DML_FLAG_COPY_ONLY;
    job->destination_first_ptr = source + 1;
    expect(run(job) == DML_STATUS_OVERLAPPING_BUFFER_ERROR, "an overlapping copy");
    free(job);

    job = fresh(path, DML_OP_FILL, NULL, page(0), 1001);
    memcpy(job->pattern, "abcdefgh", 8);
    expect(run(job) == DML_STATUS_OK && page(0)[1000] == 'a' && page(0)[999] == 'h', "fill");
    free(job);

    job = fresh(path, DML_OP_DUALCAST, source, page(0), 4096);
    job->destination_second_ptr = page(1);
    expect(run(job) == DML_STATUS_OK && !memcmp(source, page(1), 4096), "dualcast");
    job->destination_second_ptr = page(1) + 64;
    expect(run(job) == DML_STATUS_DUALCAST_ALIGN_ERROR, "a dualcast to other lines of a page");
    free(job);

    job = fresh(path, DML_OP_CACHE_FLUSH, NULL, page(0), 4096);
    expect(run(job) == DML_STATUS_OK, "cache flush");
    job->operation = DML_OP_NOP;
    expect(run(job) == DML_STATUS_OK, "no operation");
    job->operation = (dml_operation_t)0x33;
    expect(run(job) == DML_STATUS_JOB_OPERATION_ERROR, "an operation that is none");
    free(job);
}

static void comparisons(dml_path_t path)
{
    dml_job_t *job = fresh(path, DML_OP_COMPARE, source, NULL, 4096);
    memcpy(other, source, BYTES);
    job->source_second_ptr = other;
    expect(run(job) == DML_STATUS_OK && job->result == 0, "equal");
    other[100] ^= 1;
    expect(run(job) == DML_STATUS_OK && job->result == 1 && job->offset <= 100, "different");
    job->flags = DML_FLAG_CHECK_RESULT;
    job->expected_result = 0;
    expect(run(job) == DML_STATUS_FALSE_PREDICATE_OK, "different where equal was expected");
    job->expected_result = 1;
    expect(run(job) == DML_STATUS_OK, "different as expected");
    free(job);

    job = fresh(path, DML_OP_COMPARE_PATTERN, page(0), NULL, 64);
    memset(page(0), 7, 64);
    memset(job->pattern, 7, 8);
    expect(run(job) == DML_STATUS_OK && job->result == 0, "a pattern");
    free(job);
}

static void sums(dml_path_t path)
{
    uint32_t crc = 0;
    dml_job_t *job = fresh(path, DML_OP_CRC, (uint8_t *)"123456789", NULL, 9);
    expect(run(job) == DML_STATUS_NULL_POINTER_ERROR, "a CRC without a place");
    job->crc_checksum_ptr = &crc;
    expect(run(job) == DML_STATUS_OK && crc == 0xe3069283u, "the CRC of 123456789");
    job->source_length = 4;
    run(job);
    job->source_first_ptr += 4;
    job->source_length = 5;
    job->flags = DML_FLAG_CRC_READ_SEED;
    expect(run(job) == DML_STATUS_OK && crc == 0xe3069283u, "the same in two parts");
    free(job);

    job = fresh(path, DML_OP_COPY_CRC, (uint8_t *)"123456789", page(0), 9);
    job->crc_checksum_ptr = &crc;
    crc = 1;
    expect(run(job) == DML_STATUS_OK && crc == 0xe3069283u && !memcmp(page(0), "123456789", 9), "of a copy");
    free(job);
}

static void deltas(dml_path_t path)
{
    uint8_t *first = page(0), *second = page(1), *record = page(2);
    dml_job_t *job = fresh(path, DML_OP_DELTA_CREATE, first, record, 4096);
    memcpy(first, source, 4096);
    memcpy(second, source, 4096);
    second[8 * 50] ^= 1;
    second[8 * 60] ^= 1;
    job->source_second_ptr = second;
    job->destination_length = 800;
    expect(run(job) == DML_STATUS_OK && job->result == 1, "a delta");
    expect(job->destination_length == 20 && job->offset == 50, "of two words, the first at 50");
    job->source_first_ptr = record;
    job->source_length = job->destination_length;
    job->destination_first_ptr = first;
    job->destination_length = 4096;
    job->operation = DML_OP_DELTA_APPLY;
    expect(run(job) == DML_STATUS_OK && !memcmp(first, second, 4096), "applied");
    job->source_length = 21;
    expect(run(job) == DML_STATUS_DELTA_RECORD_SIZE_ERROR, "half an entry");
    free(job);
}

static void fields(dml_path_t path)
{
    uint8_t *with = page(0), *again = page(1);
    dml_job_t *job = fresh(path, DML_OP_DIF_INSERT, source, with, 4 * 512);
    job->dif_config.block_size = DML_DIF_BLOCK_SIZE_512;
    job->dif_config.destination_application_tag_seed = 0x1234;
    job->dif_config.destination_reference_tag_seed = 9;
    job->dif_config.source_application_tag_seed = 0x1234;
    job->dif_config.source_reference_tag_seed = 9;
    expect(run(job) == DML_STATUS_OK && with[514] == 0x12 && with[519] == 9, "fields inserted");
    job->operation = DML_OP_DIF_CHECK;
    job->source_first_ptr = with;
    job->source_length = 4 * 520;
    expect(run(job) == DML_STATUS_OK, "checked");
    job->operation = DML_OP_DIF_UPDATE;
    job->destination_first_ptr = again;
    expect(run(job) == DML_STATUS_OK && !memcmp(with, again, 4 * 520), "updated to the same");
    job->operation = DML_OP_DIF_STRIP;
    expect(run(job) == DML_STATUS_OK && !memcmp(source, again, 4 * 512), "stripped");
    with[3] ^= 1;
    job->operation = DML_OP_DIF_CHECK;
    expect(run(job) == DML_STATUS_DIF_CHECK_ERROR, "a block that has changed");
    expect(job->result == DML_DIF_CHECK_GUARD_MISMATCH, "is found by its guard");
    free(job);
}

static void batch(dml_path_t path)
{
    uint32_t bytes = 0, index;
    uint8_t *tasks;
    dml_job_t *job = job_of(path);
    dml_status_t status;
    dml_meta_result_t result = 9;
    expect(dml_get_batch_size(job, 2, &bytes) == DML_STATUS_BATCH_SIZE_ERROR, "a batch of two");
    expect(dml_get_batch_size(job, TASKS, &bytes) == DML_STATUS_OK, "the size of a batch");
    tasks = (uint8_t *)malloc(bytes);
    job->operation = DML_OP_BATCH;
    job->destination_first_ptr = tasks;
    job->destination_length = bytes;
    memset(page(0), 0, 4096);
    for (index = 0; index < TASKS - 2; ++index) {
        /* Each copies what the one before it has copied. */
        uint8_t *from = index ? page(0) + (index - 1) * 512 : source;
        status = dml_batch_set_mem_move_by_index(job, index, from, page(0) + index * 512, 512,
                                                 index ? DML_FLAG_FENCE : 0);
        expect(status == DML_STATUS_OK, "a task");
    }
    other[0] = source[0] ^ 1;
    dml_batch_set_compare_by_index(job, TASKS - 2, source, other, 64, 0, 0);
    dml_batch_set_nop_by_index(job, TASKS - 1, 0);
    status = dml_batch_set_nop_by_index(job, TASKS, 0);
    expect(status == DML_STATUS_BATCH_TASK_INDEX_OVERFLOW, "a task behind the last");
    expect(run(job) == DML_STATUS_OK, "a batch");
    expect(!memcmp(page(0) + (TASKS - 3) * 512, source, 512), "its last copy, behind fences");
    dml_batch_get_result(job, TASKS - 2, &result);
    expect(result == 1, "the result of a task");
    dml_batch_set_delta_apply_by_index(job, TASKS - 1, page(2), 20, page(1), 16, 0);
    memset(page(2), 0xff, 20);
    expect(run(job) == DML_STATUS_BATCH_ERROR, "a batch with a task that fails");
    dml_batch_get_status(job, TASKS - 1, &status);
    expect(status == DML_STATUS_DELTA_OFFSET_ERROR, "and how that ended");
    dml_batch_get_status(job, 0, &status);
    expect(status == DML_STATUS_OK, "and the others");
    free(tasks);
    free(job);
}

/* A batch whose destinations' pages are not there. */
static void faults(dml_path_t path)
{
    uint32_t bytes = 0, index;
    uint8_t *tasks, *to = (uint8_t *)malloc(1 << 20);
    dml_job_t *job = job_of(path);
    dml_get_batch_size(job, TASKS, &bytes);
    tasks = (uint8_t *)malloc(bytes);
    job->operation = DML_OP_BATCH;
    job->destination_first_ptr = tasks;
    job->destination_length = bytes;
    for (index = 0; index < TASKS; ++index)
        dml_batch_set_mem_move_by_index(job, index, source, to + index * (1 << 17), BYTES,
                                        index == 4 ? DML_FLAG_FENCE : 0);
    expect(run(job) == (path == DML_PATH_HW ? DML_STATUS_BATCH_ERROR : DML_STATUS_OK), "a batch to new pages");
    for (index = 0; path != DML_PATH_HW && index < TASKS; ++index)
        expect(!memcmp(to + index * (1 << 17), source, BYTES), "a task to new pages");
    job->destination_length = 0;
    expect(run(job) == DML_STATUS_BATCH_SIZE_ERROR, "a batch of nothing");
    expect(dml_check_job(job) == DML_STATUS_BATCH_SIZE_ERROR, "and how it ended");
    free(tasks);
    free(to);
    free(job);
}

int main(int count, char **words)
{
    dml_path_t path = DML_PATH_AUTO;
    uint32_t n;
    if (count > 1)
        path = !strcmp(words[1], "sw") ? DML_PATH_SW : !strcmp(words[1], "hw") ? DML_PATH_HW : DML_PATH_AUTO;
    /* DML_PATH_HW ends at the first page that is not there; DML_PATH_AUTO finishes on the core. */
    if (path == DML_PATH_HW)
        memset(room, 0, sizeof(room));
    memset(other, 0, BYTES);
    for (n = 0; n < BYTES; ++n)
        source[n] = (uint8_t)(n * n >> 3);
    if (path == DML_PATH_HW) {
        dml_job_t *job = job_of(path);
        if (run(job) == DML_STATUS_LIBACCEL_NOT_FOUND) {
            printf("no shared work queue\n");
            return 3;
        }
        free(job);
    }
    moves(path);
    comparisons(path);
    sums(path);
    deltas(path);
    fields(path);
    batch(path);
    faults(path);
    printf(wrong ? "some are wrong\n" : "all right\n");
    return wrong;
}
