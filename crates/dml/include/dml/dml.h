/*
 * The C job API of the Data Mover Library, by dray: see dmldefs.h.
 *
 * A job lies in the caller's memory, of dml_get_job_size bytes at any address that malloc(3) gives, and belongs to one
 * thread at a time. Between dml_submit_job and the end of the job nothing of it, and nothing that it names, may be
 * changed or freed.
 */
#ifndef DML_H__
#define DML_H__

#include "dmldefs.h"

#ifdef __cplusplus
extern "C" {
#endif

const dml_library_version_t *dml_get_library_version(void);

/* Bytes of a job. DML_STATUS_NULL_POINTER_ERROR, DML_STATUS_PATH_ERROR. */
dml_status_t dml_get_job_size(dml_path_t dml_path, uint32_t *job_size_ptr);

/* Makes a job of so many bytes of memory. It opens nothing: the first submission looks for work queues. */
dml_status_t dml_init_job(dml_path_t path, dml_job_t *dml_job_ptr);

/* The end of a job, of which nothing is in flight. */
dml_status_t dml_finalize_job(dml_job_t *dml_job_ptr);

/* Submits a job and waits for its end: how it ended. */
dml_status_t dml_execute_job(dml_job_t *dml_job_ptr, dml_wait_mode_t wait_mode);

/* Submits a job. DML_PATH_SW, and DML_PATH_AUTO without a device: it has ended on return. */
dml_status_t dml_submit_job(dml_job_t *dml_job_ptr);

/* Waits for the end of a job that was submitted, spinning; the mode is a hint. */
dml_status_t dml_wait_job(dml_job_t *dml_job_ptr, dml_wait_mode_t wait_mode);

/* How a job has ended, or DML_STATUS_BEING_PROCESSED. */
dml_status_t dml_check_job(dml_job_t *dml_job_ptr);

/* Bytes of destination_first_ptr of a batch of task_count tasks, at any address. */
dml_status_t dml_get_batch_size(const dml_job_t *dml_job_ptr, uint32_t task_count, uint32_t *byte_size_ptr);

/* Each sets one task of a batch, whose job has its destination and its length already. */
dml_status_t dml_batch_set_nop_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, dml_operation_flags_t flags);
dml_status_t dml_batch_set_mem_move_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *source_ptr,
                                             uint8_t *destination_ptr, uint32_t byte_length,
                                             dml_operation_flags_t flags);
dml_status_t dml_batch_set_dualcast_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *source_ptr,
                                             uint8_t *destination_first_ptr, uint8_t *destination_second_ptr,
                                             uint32_t byte_length, dml_operation_flags_t flags);
dml_status_t dml_batch_set_compare_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *source_first_ptr,
                                            uint8_t *source_second_ptr, uint32_t byte_length,
                                            dml_meta_result_t expected_result, dml_operation_flags_t flags);
dml_status_t dml_batch_set_compare_pattern_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *source_ptr,
                                                    uint8_t *pattern_ptr, uint32_t byte_length,
                                                    dml_meta_result_t expected_result, dml_operation_flags_t flags);
dml_status_t dml_batch_set_crc_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *source_ptr,
                                        uint32_t byte_length, uint32_t *crc_seed_ptr, dml_operation_flags_t flags);
dml_status_t dml_batch_set_copy_crc_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *source_ptr,
                                             uint32_t byte_length, uint32_t *crc_seed_ptr, uint8_t *destination_ptr,
                                             dml_operation_flags_t flags);
dml_status_t dml_batch_set_fill_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, const uint8_t *pattern_ptr,
                                         uint8_t *destination_ptr, uint32_t byte_length, dml_operation_flags_t flags);
dml_status_t dml_batch_set_cache_flush_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *destination_ptr,
                                                uint32_t byte_length, dml_operation_flags_t flags);
dml_status_t dml_batch_set_delta_create_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *source_ptr,
                                                 uint8_t *reference_ptr, uint32_t compare_length,
                                                 uint8_t *delta_record_ptr, uint32_t delta_record_length,
                                                 dml_meta_result_t expected_result, dml_operation_flags_t flags);
dml_status_t dml_batch_set_delta_apply_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *delta_record_ptr,
                                                uint32_t delta_record_length, uint8_t *destination_ptr,
                                                uint32_t destination_length, dml_operation_flags_t flags);
dml_status_t dml_batch_set_dif_check_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *source_ptr,
                                              uint32_t source_length, const dml_dif_config_t *dif_config_ptr,
                                              dml_operation_flags_t flags);
dml_status_t dml_batch_set_dif_update_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *source_ptr,
                                               uint32_t source_length, const dml_dif_config_t *dif_config_ptr,
                                               uint8_t *destination_ptr, uint32_t destination_length,
                                               dml_operation_flags_t flags);
dml_status_t dml_batch_set_dif_insert_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *source_ptr,
                                               uint32_t source_length, const dml_dif_config_t *dif_config_ptr,
                                               uint8_t *destination_ptr, uint32_t destination_length,
                                               dml_operation_flags_t flags);
dml_status_t dml_batch_set_dif_strip_by_index(dml_job_t *dml_job_ptr, uint32_t task_index, uint8_t *source_ptr,
                                              uint32_t source_length, const dml_dif_config_t *dif_config_ptr,
                                              uint8_t *destination_ptr, uint32_t destination_length,
                                              dml_operation_flags_t flags);

/* Of a task of a batch that has ended: its result, and how it ended. */
dml_status_t dml_batch_get_result(const dml_job_t *dml_job_ptr, uint32_t task_index, dml_meta_result_t *result_ptr);
dml_status_t dml_batch_get_status(const dml_job_t *dml_job_ptr, uint32_t task_index, dml_status_t *status_ptr);

#ifdef __cplusplus
}
#endif

#endif /* DML_H__ */
