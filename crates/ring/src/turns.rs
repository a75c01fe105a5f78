//! Whether the places of a list of the runway tell the sequences of its slots: copies take both out of turn, and then the
//! next list says so.

use holdfast_base::Sequence;

/// Whether sequences and slots were taken in turn since the last list of the runway, so that places in it tell sequences.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    /// The last sequence that a copy has taken.
    taken: Option<Sequence>,
    /// From which sequence on the last list tells.
    listed: Sequence,
    /// A slot of that list was taken for a copy, or has come back.
    moved: bool,
    /// Lists of this extent that had to say that they do not tell.
    pub(crate) untold: u32,
}

impl Turns {
    /// Whether the next list must say so.
    pub(crate) fn are_broken(&self) -> bool {
        self.moved || self.taken.is_some_and(|taken| taken >= self.listed)
    }

    /// A list that tells from this sequence on has been made.
    pub(crate) fn list(&mut self, naming: Sequence) {
        self.untold += u32::from(self.are_broken());
        (self.listed, self.moved) = (naming, false);
    }

    pub(crate) fn take(&mut self, sequence: Sequence) {
        self.taken = Some(sequence);
    }

    pub(crate) fn moved(&mut self) {
        self.moved = true;
    }
}
