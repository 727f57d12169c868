//! Random messages: a door answers or refuses, and neither panics nor stops.

use dray_vfio::{Door, HEADER_BYTES, Header, Options};
use proptest::prelude::*;
use zerocopy::FromBytes;

use crate::client::hardware;

/// Payloads near those that mean something.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just(0_u32),
        Just(1),
        Just(2),
        Just(4),
        Just(7),
        Just(8),
        Just(36),
        Just(64),
        Just(0x1000),
        Just(u32::MAX),
        any::<u32>(),
        0..0x2_0000_u32,
    ];
    let words = prop::collection::vec(word, 0..24);
    (words, 0..4_usize).prop_map(|(words, cut)| {
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.truncate(bytes.len().saturating_sub(cut));
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn random_messages_are_answered_or_refused(
        messages in prop::collection::vec((0..20_u16, 0..64_u32, payload()), 1..24)
    ) {
        let mut door = Door::new(&Options::new(hardware(0x200)), |_| ()).expect("a device");
        for (command, flags, payload) in messages {
            let header = Header {
                id: 3,
                command,
                size: (HEADER_BYTES + payload.len()) as u32,
                flags,
                error: 0,
            };
            let reply = door.handle(&header, &payload, Vec::new());
            prop_assert_eq!(reply.is_none(), flags & 16 != 0);
            if let Some(reply) = reply {
                let (header, rest) = Header::read_from_prefix(&reply).expect("a header");
                prop_assert_eq!(header.size as usize, HEADER_BYTES + rest.len());
                prop_assert_eq!((header.id, header.flags & 15), (3, 1));
            }
        }
        prop_assert!(door.counts().messages > 0);
    }
}
