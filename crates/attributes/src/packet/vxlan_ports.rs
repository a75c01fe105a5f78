//! UDP ports on which VXLAN is expected beside its own, as a schema names them: `vxlan=8472+4790`.

use crate::cursor::Cursor;
use crate::{Problem, SchemaError};
use std::fmt;

/// Port that is VXLAN's own.
const OWN: u16 = 4789;

/// Ports that a schema may name at most: each is compared with every datagram's.
const MOST: usize = 4;

/// Begin of the option's text.
pub(crate) const VXLAN: &str = ",vxlan=";

/// Ports of VXLAN that a schema names; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VxlanPorts([u16; MOST]);

impl VxlanPorts {
    /// Reads the option `,vxlan=PORT+PORT…`, if it is next.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, SchemaError> {
        const WANTED: &str = "1 to 4 port numbers, separated by `+`";
        let mut ports = Self::default();
        if !cursor.eat(VXLAN) {
            return Ok(ports);
        }
        for port in &mut ports.0 {
            let at = cursor.at();
            *port = cursor.number(WANTED)?;
            if *port == 0 {
                return Err(cursor.wrong_at(at, Problem::Wanted(WANTED)));
            }
            if !cursor.eat("+") {
                return Ok(ports);
            }
        }
        Err(cursor.wrong(Problem::Wanted(WANTED)))
    }

    /// True for a port of VXLAN.
    pub(super) fn contains(self, port: u16) -> bool {
        port == OWN || port != 0 && self.0.contains(&port)
    }
}

impl fmt::Display for VxlanPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, port) in self.0.iter().take_while(|port| **port != 0).enumerate() {
            write!(f, "{}{port}", if number == 0 { VXLAN } else { "+" })?;
        }
        Ok(())
    }
}
