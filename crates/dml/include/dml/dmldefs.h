/*
 * Types and values of the C job API of the Data Mover Library, as its public documentation has them.
 *
 * This file and dml.h are dray's: programs written for the library are compiled with them and linked with
 * -ldray_dml. Job structure and values are those of DML 1.1.
 */
#ifndef DML_DEFS_H__
#define DML_DEFS_H__

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DML_MAX_8U (0xFFu)
#define DML_MIN_8U (0u)
#define DML_MAX_16U (0xFFFFu)
#define DML_MIN_16U (0u)
#define DML_MAX_32U (0xFFFFFFFFu)
#define DML_MIN_32U (0u)
#define DML_MAX_64U (0xFFFFFFFFFFFFFFFFLL)
#define DML_MIN_64U (0u)
#define DML_ONE_64U (1ULL)
#define DML_BASE_DRIVER_ERROR 100u
/* Least number of tasks of a batch. */
#define DML_MIN_BATCH_SIZE (4u)
#define DML_MAX(a, b) (((a) > (b)) ? (a) : (b))
#define DML_MIN(a, b) (((a) < (b)) ? (a) : (b))

typedef uint64_t dml_operation_flags_t;
typedef uint32_t dml_meta_result_t;
typedef uint8_t dml_internal_data_t;

/* Flags of jobs and tasks. Traffic class B for an address: */
#define DML_FLAG_ADDRESS1_TCB 0x200u
#define DML_FLAG_ADDRESS2_TCB 0x400u
#define DML_FLAG_ADDRESS3_TCB 0x800u
/* The first destination is durable memory. */
#define DML_FLAG_DST1_DURABLE 0x8000u
/* Of no effect: jobs of a batch are set by index. */
#define DML_FLAG_BATCH 0x00000001u
#define DML_FLAG_BATCH_LAST 0x00000002u
/* A task begins after all before it have ended. */
#define DML_FLAG_FENCE 0x00000004u
/* The result is compared with the expected one. */
#define DML_FLAG_CHECK_RESULT 0x00000080u
/* The device resolves page faults itself. */
#define DML_FLAG_BLOCK_ON_FAULT 0x00000002u
/* Destinations are written to the cache. */
#define DML_FLAG_PREFETCH_CACHE 0x00000100u
/* A memory move is refused if its destination begins within its source. */
#define DML_FLAG_COPY_ONLY 0x00000020u
/* Deprecated. */
#define DML_FLAG_DONT_INVALIDATE_CACHE 0x00000100u
/* The seed of a CRC stands at crc_checksum_ptr; else it is 0. */
#define DML_FLAG_CRC_READ_SEED 0x10000u
#define DML_FLAG_CRC_BYPASS_REFLECTION 0x20000u
#define DML_FLAG_CRC_BYPASS_DATA_REFLECTION 0x40000u
/* The second destination of a dualcast is durable memory. */
#define DML_FLAG_DUALCAST_DST2_DURABLE 0x10000u

/* Expected results. */
#define DML_FLAG_EXPECT_EQUAL 0x00000001u
#define DML_FLAG_EXPECT_NOT_EQUAL 0x00000002u
#define DML_FLAG_EXPECT_OVERFLOW 0x00000004u

/* Flags of dml_dif_config_t: both sides, the source, the destination. */
#define DML_DIF_FLAG_INVERT_CRC_SEED 0x040000u
#define DML_DIF_FLAG_INVERT_CRC_RESULT 0x080000u
#define DML_DIF_FLAG_SRC_F_ENABLE_ERROR 0x000001u
#define DML_DIF_FLAG_SRC_F_DETECT_ALL 0x000002u
#define DML_DIF_FLAG_SRC_F_DETECT_APP_TAG 0x000004u
#define DML_DIF_FLAG_SRC_F_DETECT_TAGS 0x000008u
#define DML_DIF_FLAG_SRC_INC_APP_TAG 0x000010u
#define DML_DIF_FLAG_SRC_GUARD_CHECK_DISABLE 0x000020u
#define DML_DIF_FLAG_SRC_REF_TAG_CHECK_DISABLE 0x000040u
#define DML_DIF_FLAG_SRC_FIX_REF_TAG 0x000080u
#define DML_DIF_FLAG_DST_RESERVED1 0x000100u
#define DML_DIF_FLAG_DST_RESERVED2 0x000200u
#define DML_DIF_FLAG_DST_RESERVED3 0x000400u
#define DML_DIF_FLAG_DST_PASS_APP_TAG 0x000800u
#define DML_DIF_FLAG_DST_INC_APP_TAG 0x001000u
#define DML_DIF_FLAG_DST_PASS_GUARD 0x002000u
#define DML_DIF_FLAG_DST_PASS_REF_TAG 0x004000u
#define DML_DIF_FLAG_DST_FIX_REF_TAG 0x008000u

/* Bits of the result of DML_OP_DIF_CHECK. */
#define DML_DIF_CHECK_GUARD_MISMATCH 0x01u
#define DML_DIF_CHECK_APPLICATION_TAG_MISMATCH 0x02u
#define DML_DIF_CHECK_REFERENCE_TAG_MISMATCH 0x04u
#define DML_DIF_CHECK_ALL_BITS_SET_DETECT_ERROR 0x08u

/* Who executes: a device and else the core, the core, a device. */
typedef enum {
    DML_PATH_AUTO = 0x00000000u,
    DML_PATH_SW = 0x00000001u,
    DML_PATH_HW = 0x00000002u
} dml_path_t;

typedef enum {
    DML_WAIT_MODE_BUSY_POLL = 0x0u,
    DML_WAIT_MODE_UMWAIT = 0x1u,
} dml_wait_mode_t;

typedef enum {
    DML_DIF_BLOCK_SIZE_512,
    DML_DIF_BLOCK_SIZE_520,
    DML_DIF_BLOCK_SIZE_4096,
    DML_DIF_BLOCK_SIZE_4104
} dml_dif_block_size_t;

typedef enum {
    DML_OP_NOP = 0x00u,
    DML_OP_BATCH = 0x01u,
    DML_OP_DRAIN = 0x02u,
    DML_OP_MEM_MOVE = 0x03u,
    DML_OP_FILL = 0x04u,
    DML_OP_COMPARE = 0x05u,
    DML_OP_COMPARE_PATTERN = 0x06u,
    DML_OP_DELTA_CREATE = 0x07u,
    DML_OP_DELTA_APPLY = 0x08u,
    DML_OP_DUALCAST = 0x09u,
    DML_OP_CRC = 0x10u,
    DML_OP_COPY_CRC = 0x11u,
    DML_OP_DIF_CHECK = 0x12u,
    DML_OP_DIF_INSERT = 0x13u,
    DML_OP_DIF_STRIP = 0x14u,
    DML_OP_DIF_UPDATE = 0x15u,
    DML_OP_CACHE_FLUSH = 0x20u
} dml_operation_t;

typedef enum {
    DML_STATUS_OK = 0u,
    /* Success, but the result is not the expected one. */
    DML_STATUS_FALSE_PREDICATE_OK = 1u,
    DML_STATUS_BEING_PROCESSED = 2u,
    DML_STATUS_INTERNAL_ERROR = 3u,
    DML_STATUS_NULL_POINTER_ERROR = 4u,
    DML_STATUS_LIMITS_ERROR = 5u,
    DML_STATUS_PATH_ERROR = 6u,
    DML_STATUS_HINT_ERROR = 7u,
    DML_STATUS_CRC_ALIGN_ERROR = 8u,
    /* A task of the batch did not end with DML_STATUS_OK. */
    DML_STATUS_BATCH_ERROR = 9u,
    DML_STATUS_DELTA_ASCENDT_ERROR = 10u,
    DML_STATUS_DELTA_OFFSET_ERROR = 11u,
    DML_STATUS_DIF_CHECK_ERROR = 12u,
    DML_STATUS_JOB_OPERATION_ERROR = 13u,
    DML_STATUS_JOB_FLAGS_ERROR = 14u,
    DML_STATUS_JOB_LENGTH_ERROR = 15u,
    DML_STATUS_BATCH_LIMITS_ERROR = 16u,
    DML_STATUS_DELTA_RECORD_SIZE_ERROR = 17u,
    DML_STATUS_OVERLAPPING_BUFFER_ERROR = 18u,
    DML_STATUS_DUALCAST_ALIGN_ERROR = 19u,
    DML_STATUS_DELTA_ALIGN_ERROR = 20u,
    DML_STATUS_DELTA_INPUT_SIZE_ERROR = 21u,
    DML_STATUS_MEMORY_OVERFLOW_ERROR = 22u,
    DML_STATUS_JOB_CORRUPTED = 23u,
    DML_STATUS_WORK_QUEUE_OVERFLOW_ERROR = 24u,
    DML_STATUS_PAGE_FAULT_ERROR = 25u,
    DML_STATUS_TC_A_NOT_AVAILABLE = 26u,
    DML_STATUS_TC_B_NOT_AVAILABLE = 27u,
    DML_STATUS_BATCH_TASK_INDEX_OVERFLOW = 28u,
    DML_STATUS_BATCH_SIZE_ERROR = 29u,
    DML_STATUS_DRAIN_PAGE_FAULT_ERROR = 30u,
    DML_STATUS_UNKNOWN_CACHE_SIZE_ERROR = 31u,
    DML_STATUS_DIF_STRIP_ADJACENT_ERROR = 32u,
    DML_STATUS_INTL_INVALID_PAGE_REQUEST = 33u,
    DML_STATUS_INTL_INVALID_RESERVED_FIELD = 34u,
    DML_STATUS_INTL_MISALIGNED_DESC_LA = 35u,
    DML_STATUS_INTL_INVALID_COMPLETION_HANDLE = 36u,
    DML_STATUS_INTL_PAGE_FAULT_ON_TRANSLATION = 37u,
    DML_STATUS_INTL_MISALIGNED_CR_ADDRESS = 38u,
    DML_STATUS_INTL_MISALIGNED_ADDRESS = 39u,
    DML_STATUS_INTL_PRIVILEGE_ERROR = 40u,
    DML_STATUS_INTL_TRAFFIC_CLASS_ERROR = 41u,
    DML_STATUS_INTL_READBACK_ADDRESS_PAGE_ERROR = 42u,
    DML_STATUS_INTL_HARDWARE_READBACK_TIMEOUT = 43u,
    DML_STATUS_INTL_HARDWARE_TIMEOUT = 44u,
    DML_STATUS_INTL_ADDRESS_TRANSLATION_ERROR = 45u,
    /* There is no shared work queue that this process can open. */
    DML_STATUS_LIBACCEL_NOT_FOUND = (DML_BASE_DRIVER_ERROR + 0u),
    DML_STATUS_LIBACCEL_ERROR = (DML_BASE_DRIVER_ERROR + 1u),
    /* No work queue of the node has room. */
    DML_STATUS_WORK_QUEUES_NOT_AVAILABLE = (DML_BASE_DRIVER_ERROR + 2u),
} dml_status_t;

typedef struct {
    uint8_t name[30];
    uint8_t minimal_cpu_isa[16];
    uint8_t date[15];
    uint8_t version[20];
    uint8_t hw_minimal_version[30];
    uint8_t commit[12];
    uint32_t major;
    uint32_t minor;
    uint32_t patch;
} dml_library_version_t;

typedef struct {
    uint32_t flags;
    uint32_t source_reference_tag_seed;
    uint16_t source_application_tag_seed;
    uint16_t source_application_tag_mask;
    uint32_t destination_reference_tag_seed;
    uint16_t destination_application_tag_seed;
    uint16_t destination_application_tag_mask;
    dml_dif_block_size_t block_size;
} dml_dif_config_t;

typedef struct {
    uint8_t *source_first_ptr;
    uint8_t *source_second_ptr;
    /* The tasks of DML_OP_BATCH. */
    uint8_t *destination_first_ptr;
    uint8_t *destination_second_ptr;
    uint32_t *crc_checksum_ptr;
    uint32_t source_length;
    uint32_t destination_length;
    /* Bytes done, by operations that may end early. */
    uint32_t offset;
    uint8_t pattern[8];
    dml_operation_t operation;
    dml_meta_result_t result;
    dml_meta_result_t expected_result;
    dml_operation_flags_t flags;
    dml_dif_config_t dif_config;
    /* NUMA node of the device; DML_MAX_32U, as dml_init_job leaves it: any. */
    uint32_t numa_id;
    dml_internal_data_t *internal_data_ptr;
} dml_job_t;

#ifdef __cplusplus
}
#endif

#endif /* DML_DEFS_H__ */
