//! System calls on packet sockets that no safe crate offers.

use crate::packet::bpf::Instruction;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use std::ffi::{c_int, c_ulong};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// What the kernel knows of a network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Device {
    pub(in super::super) index: u32,
    /// Its `ARPHRD_` type.
    pub(in super::super) hardware: u16,
    pub(in super::super) address: [u8; 6],
    pub(in super::super) up: bool,
    pub(in super::super) loopback: bool,
}

impl Device {
    /// Looks an interface up by its name, in the network name space of this thread.
    pub(in super::super) fn find(name: &str) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        let index = netdevice::name_to_index(&socket, name)?;
        let mut request = request(name)?;
        ioctl(&socket, libc::SIOCGIFHWADDR, &mut request)?;
        // SAFETY: SIOCGIFHWADDR has filled this member of the union.
        let hardware = unsafe { request.ifr_ifru.ifru_hwaddr };
        let mut address = [0; 6];
        for (to, from) in address.iter_mut().zip(hardware.sa_data) {
            [*to] = from.to_ne_bytes();
        }
        ioctl(&socket, libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: SIOCGIFFLAGS has filled this member of the union.
        let flags = c_int::from(unsafe { request.ifr_ifru.ifru_flags });
        Ok(Self {
            index,
            hardware: hardware.sa_family,
            address,
            up: flags & libc::IFF_UP != 0,
            loopback: flags & libc::IFF_LOOPBACK != 0,
        })
    }
}

/// A request about the interface of this name.
pub(super) fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zeros is a valid value of this plain C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Ok(request)
}

pub(super) fn ioctl(socket: &impl AsFd, what: c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: all requests used here take an `ifreq`, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), what, std::ptr::from_mut(request)) })
}

fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Values that the kernel reads or writes as plain memory.
///
/// # Safety
/// The type has no padding and no invalid bit patterns.
unsafe trait Plain: Copy {}
// SAFETY: a plain integer.
unsafe impl Plain for c_int {}
// SAFETY: a plain integer.
unsafe impl Plain for u32 {}
// SAFETY: seven plain integers of the same size.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: an integer, two half as long, and bytes that fill two more.
unsafe impl Plain for libc::packet_mreq {}

/// Sets an integer option of any socket.
pub(crate) fn set_number(socket: &impl AsFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    set(socket, level, name, &value)
}

fn set<T: Plain>(socket: &impl AsFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value outlives the call, and its length is told.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
}

/// A packet socket that receives nothing before it is bound.
#[derive(Debug)]
pub(in super::super) struct PacketSocket(OwnedFd);

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl PacketSocket {
    /// With the link header (`raw`) or without.
    pub(in super::super) fn open(raw: bool) -> io::Result<Self> {
        let kind = if raw { SocketType::RAW } else { SocketType::DGRAM };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(Self(socket_with(AddressFamily::PACKET, kind, flags, None)?))
    }

    fn set<T: Plain>(&self, level: c_int, name: c_int, value: &T) -> io::Result<()> {
        set(self, level, name, value)
    }

    /// Sets an integer option of packet sockets.
    pub(in super::super) fn set_option(&self, name: c_int, value: c_int) -> io::Result<()> {
        self.set(libc::SOL_PACKET, name, &value)
    }

    /// Makes the receive ring, version 3.
    pub(in super::super) fn make_ring(&self, block: usize, blocks: usize, retire_ms: u32) -> io::Result<()> {
        /// Version 3 packs frames; the size only has to divide the block.
        const FRAME: usize = 2048;
        let wrong = |_| io::Error::from(io::ErrorKind::InvalidInput);
        self.set_option(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V3 as c_int)?;
        let request = libc::tpacket_req3 {
            tp_block_size: u32::try_from(block).map_err(wrong)?,
            tp_block_nr: u32::try_from(blocks).map_err(wrong)?,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: u32::try_from(block / FRAME * blocks).map_err(wrong)?,
            tp_retire_blk_tov: retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        self.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)
    }

    /// Takes all frames of the interface from now on.
    pub(in super::super) fn bind(&self, index: u32) -> io::Result<()> {
        // SAFETY: all zeros is a valid value of this plain C structure.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index.cast_signed();
        // SAFETY: the address outlives the call, and its length is told.
        check(unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                std::ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })
    }

    /// Puts the interface into promiscuous mode for as long as the socket is open.
    pub(in super::super) fn promiscuous(&self, index: u32) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: index.cast_signed(),
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Joins a fanout group, `None` for a new one; gives the group's number.
    pub(in super::super) fn fan_out(&self, group: Option<u16>, kind: u32) -> io::Result<u16> {
        let new = if group.is_none() { libc::PACKET_FANOUT_FLAG_UNIQUEID } else { 0 };
        let value = u32::from(group.unwrap_or(0)) | (kind | new) << 16;
        self.set(libc::SOL_PACKET, libc::PACKET_FANOUT, &value)?;
        Ok(self.get::<u32>(libc::PACKET_FANOUT)? as u16)
    }

    fn get<T: Plain>(&self, name: c_int) -> io::Result<T> {
        // SAFETY: all zeros is a valid value of plain types.
        let mut value: T = unsafe { std::mem::zeroed() };
        let mut len = size_of::<T>() as libc::socklen_t;
        // SAFETY: value and length outlive the call, and the kernel writes no more than the length.
        check(unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_PACKET,
                name,
                std::ptr::from_mut(&mut value).cast(),
                &raw mut len,
            )
        })?;
        Ok(value)
    }

    /// Lets the kernel take only what the program accepts, and only as many bytes of it as the program says.
    pub(in super::super) fn attach_filter(&self, program: &[Instruction]) -> io::Result<()> {
        let mut code: Vec<libc::sock_filter> = program
            .iter()
            .map(|one| libc::sock_filter { code: one.code, jt: one.if_true, jf: one.if_false, k: one.k })
            .collect();
        let len = u16::try_from(code.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let program = libc::sock_fprog { len, filter: code.as_mut_ptr() };
        // SAFETY: the kernel copies the program during the call, and `code` outlives that.
        check(unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const program).cast(),
                size_of::<libc::sock_fprog>() as libc::socklen_t,
            )
        })
    }

    /// What the kernel counted since the last call: frames that passed the filter, those of them that found no
    /// room, and how often the ring was full.
    pub(in super::super) fn take_statistics(&self) -> io::Result<(u32, u32, u32)> {
        let counts: [u32; 3] = self.get(libc::PACKET_STATISTICS)?;
        Ok(counts.into())
    }
}

// SAFETY: plain integers without padding.
unsafe impl Plain for [u32; 3] {}
