//! From the bytes of a stream to frames.

use std::os::fd::OwnedFd;

use super::request::{HEADER_BYTES, Header, MAX_PAYLOAD_BYTES};
use crate::VhostError;

/// A whole message, not yet interpreted.
#[derive(Debug)]
pub struct Frame {
    /// Its header.
    pub header: Header,
    /// Its payload, as long as the header says.
    pub payload: Vec<u8>,
    /// The file descriptors that came with it; closed when dropped.
    pub descriptors: Vec<OwnedFd>,
}

/// Cuts a stream into frames. Reads may be short; what [`Decoder::wanted`] says is never more than
/// the rest of one frame, so that descriptors belong to the frame they came with.
#[derive(Debug, Default)]
pub struct Decoder {
    header: Option<Header>,
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Decoder {
    /// At the beginning of a stream.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Bytes to read next: at least one.
    pub fn wanted(&self) -> usize {
        let whole = match self.header {
            None => HEADER_BYTES,
            Some(header) => header.size as usize,
        };
        whole - self.bytes.len()
    }

    /// Whether a frame has begun that is not whole yet.
    pub fn is_partial(&self) -> bool {
        self.header.is_some() || !self.bytes.is_empty()
    }

    /// Takes bytes, at most as many as wanted, and the descriptors that came with them.
    ///
    /// # Errors
    /// A header that is not a request of version 1, or announces too long a payload. The stream
    /// cannot be continued then.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        descriptors: Vec<OwnedFd>,
    ) -> Result<Option<Frame>, VhostError> {
        debug_assert!(bytes.len() <= self.wanted());
        self.bytes.extend_from_slice(bytes);
        self.descriptors.extend(descriptors);
        let header = match self.header {
            Some(header) => header,
            None => {
                let Ok(whole) = <[u8; HEADER_BYTES]>::try_from(self.bytes.as_slice()) else {
                    return Ok(None);
                };
                let header = Header::parse(whole);
                if !header.is_request() {
                    return Err(VhostError::Version {
                        flags: header.flags,
                    });
                }
                if header.size > MAX_PAYLOAD_BYTES {
                    return Err(VhostError::PayloadSize {
                        request: header.request,
                        size: header.size,
                        limit: MAX_PAYLOAD_BYTES,
                    });
                }
                self.bytes.clear();
                self.header = Some(header);
                header
            }
        };
        if self.bytes.len() < header.size as usize {
            return Ok(None);
        }
        self.header = None;
        Ok(Some(Frame {
            header,
            payload: std::mem::take(&mut self.bytes),
            descriptors: std::mem::take(&mut self.descriptors),
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Request;
    use super::*;

    #[test]
    fn a_message_in_pieces_is_one_frame() {
        let header = Header::request(Request::SetFeatures, false, 8).to_bytes();
        let mut decoder = Decoder::new();
        for byte in header {
            assert!(decoder.feed(&[byte], Vec::new()).expect("good").is_none());
            assert!(decoder.is_partial());
        }
        assert_eq!(decoder.wanted(), 8);
        assert!(
            decoder
                .feed(&[1, 2, 3], Vec::new())
                .expect("good")
                .is_none()
        );
        let frame = decoder.feed(&[4, 5, 6, 7, 8], Vec::new()).expect("good");
        assert_eq!(frame.expect("whole").payload, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(!decoder.is_partial());
    }

    #[test]
    fn invalid_headers_end_the_stream() {
        let bad = |flags, size| {
            let header = Header {
                request: 1,
                flags,
                size,
            };
            Decoder::new().feed(&header.to_bytes(), Vec::new()).is_err()
        };
        assert!(bad(0, 0), "version 0");
        assert!(bad(2, 0), "version 2");
        assert!(bad(5, 0), "a reply");
        assert!(bad(1, MAX_PAYLOAD_BYTES + 1), "too long");
        assert!(!bad(1, MAX_PAYLOAD_BYTES));
    }

    proptest! {
        #[test]
        fn random_bytes_are_decoded_or_refused(
            stream in proptest::collection::vec(any::<u8>(), 0..600),
            valid_version in any::<bool>(),
        ) {
            let mut decoder = Decoder::new();
            let mut rest = stream;
            if valid_version && rest.len() >= 12 {
                rest[4] = 1;
                rest[9..12].fill(0);
            }
            let mut rest = rest.as_slice();
            while !rest.is_empty() {
                let count = decoder.wanted().min(rest.len()).min(7);
                let (now, later) = rest.split_at(count);
                rest = later;
                match decoder.feed(now, Vec::new()) {
                    Ok(Some(frame)) => {
                        prop_assert_eq!(frame.payload.len(), frame.header.size as usize);
                        let _ = super::super::Message::parse(frame);
                    }
                    Ok(None) => {}
                    Err(_) => break,
                }
            }
        }
    }
}
