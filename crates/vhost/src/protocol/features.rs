//! Feature bits, as masks (virtio 1.3 section 6, 5.1.3; vhost-user, "Protocol features").

use virtio_bindings::{virtio_config as config, virtio_net as net, virtio_ring as ring};

macro_rules! bits {
    ($($(#[$doc:meta])* $name:ident = $bit:expr;)*) => {
        $($(#[$doc])* pub const $name: u64 = 1 << $bit;)*
    };
}

bits! {
    /// The device takes packets whose checksum is partial.
    CSUM = net::VIRTIO_NET_F_CSUM;
    /// The driver takes packets whose checksum is partial.
    GUEST_CSUM = net::VIRTIO_NET_F_GUEST_CSUM;
    /// The device reports its largest packet.
    MTU = net::VIRTIO_NET_F_MTU;
    /// The driver takes TCP segments over IPv4 that are too long for a packet.
    GUEST_TSO4 = net::VIRTIO_NET_F_GUEST_TSO4;
    /// The driver takes TCP segments over IPv6 that are too long for a packet.
    GUEST_TSO6 = net::VIRTIO_NET_F_GUEST_TSO6;
    /// And such segments with ECN.
    GUEST_ECN = net::VIRTIO_NET_F_GUEST_ECN;
    /// The device takes TCP segments over IPv4 that are too long for a packet.
    HOST_TSO4 = net::VIRTIO_NET_F_HOST_TSO4;
    /// The device takes TCP segments over IPv6 that are too long for a packet.
    HOST_TSO6 = net::VIRTIO_NET_F_HOST_TSO6;
    /// And such segments with ECN.
    HOST_ECN = net::VIRTIO_NET_F_HOST_ECN;
    /// A packet may be received in several buffers.
    MRG_RXBUF = net::VIRTIO_NET_F_MRG_RXBUF;
    /// There is a control queue.
    CTRL_VQ = net::VIRTIO_NET_F_CTRL_VQ;
    /// The driver can announce itself after it has moved.
    GUEST_ANNOUNCE = net::VIRTIO_NET_F_GUEST_ANNOUNCE;
    /// There may be several queue pairs.
    MQ = net::VIRTIO_NET_F_MQ;
    /// Writes to memory are logged.
    LOG_ALL = 26;
    /// Descriptors may refer to tables.
    INDIRECT_DESC = ring::VIRTIO_RING_F_INDIRECT_DESC;
    /// Both sides say from which index on they want to be notified.
    EVENT_IDX = ring::VIRTIO_RING_F_EVENT_IDX;
    /// vhost-user has protocol features, and rings begin disabled.
    PROTOCOL_FEATURES = 30;
    /// The device is of version 1 or later.
    VERSION_1 = config::VIRTIO_F_VERSION_1;
    /// Rings are packed.
    RING_PACKED = config::VIRTIO_F_RING_PACKED;
    /// Buffers are used in the order in which they were made available.
    IN_ORDER = config::VIRTIO_F_IN_ORDER;

    /// Protocol feature: several queue pairs.
    PROTOCOL_MQ = 0;
    /// Protocol feature: the log of written pages is shared memory.
    PROTOCOL_LOG_SHMFD = 1;
    /// Protocol feature: a broadcast on the guest's behalf after a migration.
    PROTOCOL_RARP = 2;
    /// Protocol feature: answers to any request.
    PROTOCOL_REPLY_ACK = 3;
    /// Protocol feature: the driver's largest packet.
    PROTOCOL_MTU = 4;
    /// Protocol feature: the device can be reset.
    PROTOCOL_RESET_DEVICE = 13;
    /// Protocol feature: memory regions are added and removed one by one.
    PROTOCOL_CONFIGURE_MEM_SLOTS = 15;
    /// Protocol feature: the front end sends the device status.
    PROTOCOL_STATUS = 16;
}

/// What passes on checksums and long segments; may be left out of an offer.
pub const OFFLOADS: u64 =
    CSUM | GUEST_CSUM | GUEST_TSO4 | GUEST_TSO6 | GUEST_ECN | HOST_TSO4 | HOST_TSO6 | HOST_ECN;

/// Every feature that this back end can handle.
pub const ALL: u64 = OFFLOADS
    | MTU
    | MRG_RXBUF
    | CTRL_VQ
    | GUEST_ANNOUNCE
    | MQ
    | LOG_ALL
    | INDIRECT_DESC
    | EVENT_IDX
    | PROTOCOL_FEATURES
    | VERSION_1
    | RING_PACKED
    | IN_ORDER;

/// Every protocol feature that this back end can handle.
pub const PROTOCOL_ALL: u64 = PROTOCOL_MQ
    | PROTOCOL_LOG_SHMFD
    | PROTOCOL_RARP
    | PROTOCOL_REPLY_ACK
    | PROTOCOL_MTU
    | PROTOCOL_RESET_DEVICE
    | PROTOCOL_CONFIGURE_MEM_SLOTS
    | PROTOCOL_STATUS;
