//! UDP source: every datagram is an element. One system call receives several, and the kernel's drops for lack of
//! socket buffer are counted exactly.
//!
//! The count of drops comes with a datagram (`SO_RXQ_OVFL`), so that its gap stands where the loss was; drops behind
//! the last datagram are found in `/proc/net/udp` when the source is idle and at its end. What a datagram says was true
//! when the kernel took it: the time from which on a drop may have been is that of an earlier look at an empty socket.

use super::error::{Fault, SourceError};
use super::stop::{StopFlag, Woken, wait};
use super::{Source, SourceEnd};
use crate::packet::af_packet::set_number;
use crate::producer::{Marks, Producer};
use holdfast_base::{ByteSize, Timestamp};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{BindToDevice, RxqOvfl};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, recvmsg, setsockopt,
};
use rustix::net::sockopt;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Seek};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Datagrams taken at once, behind the first.
const MANY: usize = 32;

/// Bytes of the largest datagram, with room to see that there is none larger.
const DATAGRAM: usize = 64 << 10;

/// Receive buffer that is asked of the kernel: a quarter of a second at a gigabit a second.
const BUFFER: ByteSize = ByteSize::mib(32);

/// How often an idle source asks for drops.
const POLL: Duration = Duration::from_millis(100);

/// Makes a socket that receives on `address`; joins the group if it is one.
pub(super) fn bind(address: SocketAddr, interface: Option<&str>) -> io::Result<UdpSocket> {
    let kind = (rustix::net::SocketType::DGRAM, rustix::net::SocketFlags::CLOEXEC);
    let family =
        if address.is_ipv4() { rustix::net::AddressFamily::INET } else { rustix::net::AddressFamily::INET6 };
    let socket = UdpSocket::from(rustix::net::socket_with(family, kind.0, kind.1, None)?);
    let index = match interface {
        Some(name) => rustix::net::netdevice::name_to_index(&socket, name)?,
        None => 0,
    };
    if address.ip().is_multicast() {
        // Several receivers of a group on one machine each get a copy.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // Nor does it get what others on this machine joined the group for, on other interfaces.
        let (level, name) = match address {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL),
        };
        set_number(&socket, level, name, 0)?;
        if let (SocketAddr::V6(_), Some(name)) = (address, interface) {
            // Of IPv6 that option tells groups apart, and not the interfaces that one was joined on.
            setsockopt(&socket, BindToDevice, &name.into())?;
        }
    }
    rustix::net::bind(&socket, &scoped(address, index)?)?;
    match address.ip() {
        IpAddr::V4(group) if group.is_multicast() => {
            let any = std::net::Ipv4Addr::UNSPECIFIED;
            sockopt::set_ip_add_membership_with_ifindex(&socket, &group, &any, index)?;
        }
        IpAddr::V6(group) if group.is_multicast() => {
            sockopt::set_ipv6_add_membership(&socket, &group, index)?;
        }
        ip if interface.is_some() && !needs_scope(ip) => {
            let why = "only a multicast group is joined on an interface";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        _ => {}
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Whether an address means something only together with an interface.
fn needs_scope(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => false,
        // Groups of an interface and of a link.
        IpAddr::V6(ip) if ip.is_multicast() => matches!(ip.segments()[0] & 0xf, 1 | 2),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// The address with its interface, for the kernel tells such addresses of several links apart by that.
fn scoped(address: SocketAddr, index: u32) -> io::Result<SocketAddr> {
    match address {
        SocketAddr::V6(mut v6) if index > 0 => {
            v6.set_scope_id(index);
            Ok(v6.into())
        }
        SocketAddr::V6(v6) if v6.scope_id() == 0 && needs_scope(address.ip()) => {
            let why = format!("a link-local address needs an interface: udp:{v6}@INTERFACE");
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
        _ => Ok(address),
    }
}

/// Asks for a large receive buffer; returns what the kernel granted.
pub(super) fn enlarge(socket: &UdpSocket) -> io::Result<ByteSize> {
    let wanted = BUFFER.0 as usize;
    if sockopt::set_socket_recv_buffer_size_force(socket, wanted).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, wanted)?;
    }
    // The kernel tells twice what it was asked for, its own book-keeping included.
    Ok(ByteSize(sockopt::socket_recv_buffer_size(socket)? as u64 / 2))
}

/// A source of datagrams.
pub(super) struct UdpSource {
    name: String,
    socket: UdpSocket,
    arena: Box<[u8]>,
    control: Vec<u8>,
    drops: Drops,
}

/// What the kernel dropped, as far as it is counted already.
struct Drops {
    seen: u32,
    /// Up to when the count is known to be complete.
    since: Timestamp,
    /// A time at which nothing waited that was not taken since.
    empty: Timestamp,
    /// When the socket was last looked at.
    looked: Timestamp,
    table: Option<File>,
    inode: u64,
    line: Box<[u8]>,
}

impl UdpSource {
    /// `since` is a time at which the socket was not there yet.
    pub(super) fn new(name: String, socket: UdpSocket, since: Timestamp) -> io::Result<Self> {
        setsockopt(&socket, RxqOvfl, &1)?;
        let v4 = socket.local_addr()?.is_ipv4();
        // The thread's own network name space: sockets belong to the one they were made in.
        let table = if v4 { "/proc/thread-self/net/udp" } else { "/proc/thread-self/net/udp6" };
        let drops = Drops {
            seen: 0,
            since,
            empty: since,
            looked: since,
            table: File::open(table).ok(),
            inode: rustix::fs::fstat(&socket)?.st_ino,
            line: vec![0; 4096].into_boxed_slice(),
        };
        let mut arena = vec![1; (MANY + 1) * DATAGRAM];
        arena.fill(0);
        Ok(Self { name, socket, arena: arena.into_boxed_slice(), control: nix::cmsg_space!(u32), drops })
    }

    fn failed(&self, error: io::Error) -> Fault {
        SourceError::Read { name: self.name.clone(), at: 0, error }.into()
    }

    fn receive_all(&mut self, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, Fault> {
        // Made here since it holds pointers, which do not go from thread to thread.
        let mut headers = MultiHeaders::preallocate(MANY, None);
        let mut left = u64::MAX;
        loop {
            if stop.is_stopped() && left == u64::MAX {
                // What the kernel has taken arrived before the stop.
                left = BUFFER.0 * 2;
            }
            let bytes = self.receive(out, &mut headers).map_err(|error| match error {
                ReceiveError::Gone => Fault::Gone,
                ReceiveError::Io(error) => self.failed(error),
            })?;
            match bytes {
                Some(bytes) if left == u64::MAX || bytes < left => {
                    left -= if left == u64::MAX { 0 } else { bytes };
                }
                _ if stop.is_stopped() => {
                    self.drops.ask(out);
                    return Ok(SourceEnd::Stopped);
                }
                _ => self.wait_for_input(out, stop)?,
            }
        }
    }

    fn wait_for_input(&mut self, out: &mut Producer, stop: &StopFlag) -> Result<(), Fault> {
        let mut at_most = Some(Duration::ZERO);
        let mut asked = false;
        loop {
            match wait(&self.socket, stop, at_most).map_err(|error| self.failed(error))? {
                Woken::Ready | Woken::Stopped => return Ok(()),
                Woken::TimedOut => {
                    // Asked once per pause, and only after a while, in which more may have come.
                    let long = at_most.is_some_and(|span| span >= POLL);
                    if long && !asked {
                        self.drops.ask(out);
                        asked = true;
                    }
                    at_most = out.idle()?.or(if asked { None } else { Some(POLL) });
                }
            }
        }
    }

    /// Takes what is there, up to some dozen datagrams. `None`: nothing was.
    fn receive(
        &mut self,
        out: &mut Producer,
        headers: &mut MultiHeaders<SockaddrStorage>,
    ) -> Result<Option<u64>, ReceiveError> {
        let fd = self.socket.as_raw_fd();
        let (first, rest) = self.arena.split_at_mut(DATAGRAM);
        let mut slices = [IoSliceMut::new(first)];
        let flags = MsgFlags::MSG_DONTWAIT;
        // The length of the buffer is what the kernel may use of it: it is never emptied.
        let (len, told) = match recvmsg::<()>(fd, &mut slices, Some(&mut self.control), flags) {
            Ok(message) => (message.bytes, message.cmsgs().map(count_in)),
            Err(Errno::EAGAIN) => {
                self.drops.empty = self.drops.looked;
                return Ok(None);
            }
            Err(Errno::EINTR) => return Ok(None),
            Err(error) => return Err(io::Error::from(error).into()),
        };
        self.drops.looked = out.stamp();
        match told {
            // It says nothing until something was dropped.
            Ok(count) => self.drops.came(count.unwrap_or(0), out),
            // What came with the datagram was cut off; the datagram is whole, and the table knows the count too.
            Err(_) => self.drops.ask(out),
        }
        out.element(&[], &first[..len], Marks::default())?;
        let mut bytes = len as u64;

        let mut places = rest.chunks_exact_mut(DATAGRAM);
        let mut slices: [[IoSliceMut<'_>; 1]; MANY] =
            std::array::from_fn(|_| [IoSliceMut::new(places.next().unwrap_or_default())]);
        let mut lens = [0; MANY];
        let taken = match recvmmsg(fd, headers, slices.iter_mut(), flags, None) {
            Ok(messages) => messages.zip(&mut lens).map(|(message, len)| *len = message.bytes).count(),
            Err(Errno::EAGAIN | Errno::EINTR) => 0,
            Err(error) => return Err(io::Error::from(error).into()),
        };
        for (len, datagram) in lens[..taken].iter().zip(self.arena[DATAGRAM..].chunks_exact(DATAGRAM)) {
            out.element(&[], &datagram[..*len], Marks::default())?;
            bytes += *len as u64;
        }
        Ok(Some(bytes))
    }
}

/// The count of drops among what came with a datagram.
fn count_in(mut controls: impl Iterator<Item = ControlMessageOwned>) -> Option<u32> {
    controls.find_map(|control| match control {
        ControlMessageOwned::RxqOvfl(count) => Some(count),
        _ => None,
    })
}

/// What may end a read.
enum ReceiveError {
    Gone,
    Io(io::Error),
}

impl From<io::Error> for ReceiveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<crate::Closed> for ReceiveError {
    fn from(_: crate::Closed) -> Self {
        Self::Gone
    }
}

impl Drops {
    /// The kernel's count so far, which wraps at 32 bits.
    fn count(&mut self, count: u32, out: &mut Producer) {
        let more = count.wrapping_sub(self.seen);
        // The table may be ahead of what the next datagrams say.
        if more > 0 && more < u32::MAX / 2 {
            self.seen = count;
            out.lost_before(u64::from(more), self.since);
        }
    }

    /// What a datagram says, which came after the socket was last empty.
    fn came(&mut self, count: u32, out: &mut Producer) {
        self.count(count, out);
        self.since = self.since.max(self.empty);
    }

    /// Asks the kernel's table.
    fn ask(&mut self, out: &mut Producer) {
        let asked = out.stamp();
        if let Some(table) = &mut self.table
            && let Ok(Some(count)) = find_drops(table, self.inode, &mut self.line)
        {
            self.count(count, out);
            self.since = asked;
        }
    }
}

/// Finds a socket's drops in a table such as `/proc/net/udp`, reading it piece by piece.
fn find_drops(table: &mut (impl Read + Seek), inode: u64, buffer: &mut [u8]) -> io::Result<Option<u32>> {
    table.rewind()?;
    let mut filled = 0;
    loop {
        let n = table.read(&mut buffer[filled..])?;
        filled += n;
        let whole = buffer[..filled].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in buffer[..whole].split(|byte| *byte == b'\n') {
            let line = std::str::from_utf8(line).unwrap_or_default();
            let mut fields = line.split_ascii_whitespace();
            if fields.nth(9).and_then(|field| field.parse().ok()) == Some(inode) {
                return Ok(fields.last().and_then(|field| field.parse().ok()));
            }
        }
        if n == 0 || (whole == 0 && filled == buffer.len()) {
            return Ok(None);
        }
        buffer.copy_within(whole..filled, 0);
        filled -= whole;
    }
}

impl Source for UdpSource {
    fn run(mut self: Box<Self>, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, SourceError> {
        Fault::settle(self.receive_all(out, stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn drops_are_found_in_the_kernels_table_in_pieces_of_any_size() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  330: 0100007F:1F40 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12345 2 0000000000000000 7
  331: 0100007F:1F41 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12346 2 0000000000000000 4294967295
";
        for size in [130, 200, 4096] {
            let mut buffer = vec![0; size];
            let mut find = |inode| find_drops(&mut Cursor::new(table), inode, &mut buffer).unwrap();
            assert_eq!((find(12345), find(12346), find(1)), (Some(7), Some(u32::MAX), None), "{size}");
        }
    }
}
