//! Arguments of a module, as the user of the scan gave them.

/// Iterator over the arguments of a module.
#[derive(Clone, Debug)]
pub struct Arguments<'a> {
    rest: &'a [u8],
}

impl<'a> Arguments<'a> {
    /// Reads arguments that are each ended by a NUL.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let end = self.rest.iter().position(|byte| *byte == 0)?;
        let (argument, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        // The host passes UTF-8 alone.
        core::str::from_utf8(argument).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn arguments_are_divided_by_nul() {
        let all = |text| Arguments::new(text).collect::<Vec<_>>();
        assert_eq!(all(b"a\0\0bc\0"), ["a", "", "bc"]);
        assert!(all(b"").is_empty());
    }
}
