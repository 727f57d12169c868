//! Recordings of programs: read up to where they are wrong, or refused with an offset.

use dray_recording::Recording;

use crate::draw::Draw;

const PAGE: usize = 4096;

/// A file with a header, a few chunks and edits, cut off anywhere.
fn image(mut draw: Draw<'_>) -> Vec<u8> {
    let chunks = 1 + draw.below(3) as usize;
    let mut file = vec![0; (1 + chunks) * PAGE];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"drayrec1");
    put(8, &1_u32.to_le_bytes());
    put(12, &draw.pick(&[1_u32, 2]).to_le_bytes());
    put(16, &(chunks as u64).to_le_bytes());
    put(32, &1024_u64.to_le_bytes());
    for chunk in 1..=chunks {
        let at = chunk * PAGE;
        put(at, b"CHNK");
        put(at + 12, &[draw.below(2) as u8]);
        put(at + 16, &[draw.below(3) as u8]);
        for request in 0..draw.below(8) as usize {
            let at = at + 64 + request * 32;
            let operation = draw.pick(&[0_u8, 1, 3, 4, 5, 0x10]);
            put(at, &[1 | draw.pick(&[0, 2, 4, 8, 16]), operation, 0, 0]);
            put(at + 4, &draw.pick(&[0_u32, 1, 2, 7]).to_le_bytes());
            let mut words = [0; 16];
            draw.fill(&mut words);
            put(at + 8, &words);
        }
    }
    for _ in 0..draw.below(4) {
        let at = draw.below(file.len() as u64) as usize;
        file[at] = draw.any();
    }
    if draw.once_in(3) {
        file.truncate(draw.below(file.len() as u64) as usize);
    }
    file
}

/// Reads a recording that `bytes` make.
///
/// # Panics
///
/// If the reader violates an invariant.
pub fn recordings(bytes: &[u8]) {
    for file in [bytes.to_vec(), image(Draw::new(bytes))] {
        match Recording::read(file.as_slice()) {
            Err(error) => assert!(!error.to_string().is_empty(), "an error without words"),
            Ok(found) => {
                assert!(found.requests() as usize * 32 <= file.len());
                assert!(found.cut_at.is_none_or(|at| at == file.len() as u64));
                for thread in &found.threads {
                    for (index, request) in thread.requests.iter().enumerate() {
                        assert!(request.seen as usize <= index);
                    }
                }
            }
        }
    }
}
