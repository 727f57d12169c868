//! ISA-L, if it is installed: opened while running, so that no build needs it.

use std::ffi::c_int;

use libloading::{Library, Symbol};

type Crc32 = unsafe extern "C" fn(*const u8, c_int, u32) -> u32;
type Crc16 = unsafe extern "C" fn(u16, *const u8, u64) -> u16;
type Crc16Copy = unsafe extern "C" fn(u16, *mut u8, *const u8, u64) -> u16;
type ZeroDetect = unsafe extern "C" fn(*const u8, usize) -> c_int;

/// The functions that have a counterpart here.
pub(crate) struct Isal {
    crc32_iscsi: Crc32,
    crc16_t10dif: Crc16,
    crc16_t10dif_copy: Crc16Copy,
    zero_detect: ZeroDetect,
    /// Stays open as long as its functions are used.
    _library: Library,
}

impl Isal {
    /// `without_vpclmulqdq`: the functions that it takes on processors with PCLMULQDQ and AVX alone.
    pub(crate) fn open(without_vpclmulqdq: bool) -> Result<Isal, libloading::Error> {
        let [crc32_iscsi, crc16_t10dif, copy]: [&[u8]; 3] = match without_vpclmulqdq {
            false => [b"crc32_iscsi\0", b"crc16_t10dif\0", b"crc16_t10dif_copy\0"],
            true => [
                b"crc32_iscsi_01\0",
                b"crc16_t10dif_02\0",
                b"crc16_t10dif_copy_by4_02\0",
            ],
        };
        // SAFETY: its initialisers set up function pointers and nothing else.
        let library = unsafe { Library::new("libisal.so.2") }?;
        // SAFETY: the type is that of crc.h of ISA-L 2.
        let crc32_iscsi: Symbol<'_, Crc32> = unsafe { library.get(crc32_iscsi) }?;
        // SAFETY: as above.
        let crc16_t10dif: Symbol<'_, Crc16> = unsafe { library.get(crc16_t10dif) }?;
        // SAFETY: as above.
        let copy: Symbol<'_, Crc16Copy> = unsafe { library.get(copy) }?;
        // SAFETY: the type is that of mem_routines.h of ISA-L 2.
        let zero_detect: Symbol<'_, ZeroDetect> = unsafe { library.get(b"isal_zero_detect\0") }?;
        Ok(Isal {
            crc32_iscsi: *crc32_iscsi,
            crc16_t10dif: *crc16_t10dif,
            crc16_t10dif_copy: *copy,
            zero_detect: *zero_detect,
            _library: library,
        })
    }

    /// The CRC-32C, inverted before and after as everyone does.
    pub(crate) fn crc32c(&self, data: &[u8]) -> u32 {
        // SAFETY: the function reads so many bytes.
        !unsafe { (self.crc32_iscsi)(data.as_ptr(), data.len() as c_int, !0) }
    }

    pub(crate) fn t10dif(&self, data: &[u8]) -> u16 {
        // SAFETY: the function reads so many bytes.
        unsafe { (self.crc16_t10dif)(0, data.as_ptr(), data.len() as u64) }
    }

    /// Copies, and returns the CRC.
    pub(crate) fn t10dif_copy(&self, data: &[u8], dst: &mut [u8]) -> u16 {
        assert_eq!(data.len(), dst.len());
        // SAFETY: the function reads and writes so many bytes.
        unsafe { (self.crc16_t10dif_copy)(0, dst.as_mut_ptr(), data.as_ptr(), data.len() as u64) }
    }

    pub(crate) fn is_zero(&self, data: &[u8]) -> bool {
        // SAFETY: the function reads so many bytes.
        unsafe { (self.zero_detect)(data.as_ptr(), data.len()) == 0 }
    }
}
