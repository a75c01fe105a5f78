//! Dictionary encoding of a block with few distinct values: the values, and the number of each cell's value.

/// A code is one byte.
pub(super) const MAX_VALUES: usize = 256;

/// Places of the table that finds values: far more than there are values, so that it finds them at once.
const PLACES_LOG2: u32 = 10;

/// Lists values. All its memory is allocated when it is made.
#[derive(Debug)]
pub(super) struct Dictionary {
    /// By hash: one more than the number of a value; 0: none.
    places: Box<[u16]>,
    /// The first cell that has each value.
    pub(super) firsts: Vec<u16>,
    /// The value of each cell.
    pub(super) codes: Vec<u8>,
}

impl Dictionary {
    /// For blocks of at most `cells`.
    pub(super) fn new(cells: usize) -> Self {
        Self {
            places: vec![0; 1 << PLACES_LOG2].into_boxed_slice(),
            firsts: Vec::with_capacity(MAX_VALUES),
            codes: Vec::with_capacity(cells),
        }
    }

    /// Forgets the values.
    pub(super) fn clear(&mut self) {
        self.firsts.clear();
        self.codes.clear();
    }

    /// Lists the values of cells that are told apart by a byte, without codes.
    #[inline]
    pub(super) fn note(&mut self, valid: &[bool], byte: impl Fn(usize) -> u8) {
        let mut seen = [false; MAX_VALUES];
        for (at, _) in valid.iter().enumerate().filter(|(_, valid)| **valid) {
            let seen = &mut seen[usize::from(byte(at))];
            if !*seen {
                *seen = true;
                self.firsts.push(at as u16);
            }
        }
    }

    /// Lists the values of the cells that are `valid`; a null gets the first one's code. False where they are more than
    /// [`MAX_VALUES`], which is soon seen where nearly all differ.
    #[inline]
    pub(super) fn list(
        &mut self,
        valid: &[bool],
        hash: impl Fn(usize) -> u64,
        same: impl Fn(usize, usize) -> bool,
    ) -> bool {
        self.clear();
        self.places.fill(0);
        for (at, valid) in valid.iter().enumerate() {
            if !valid {
                self.codes.push(0);
                continue;
            }
            let mut place = (hash(at) >> (64 - PLACES_LOG2)) as usize;
            let code = loop {
                match self.places[place] {
                    0 if self.firsts.len() == MAX_VALUES => {
                        self.clear();
                        return false;
                    }
                    0 => {
                        self.firsts.push(at as u16);
                        self.places[place] = self.firsts.len() as u16;
                        break self.firsts.len() - 1;
                    }
                    known => {
                        let code = usize::from(known - 1);
                        if same(usize::from(self.firsts[code]), at) {
                            break code;
                        }
                        place = (place + 1) % (1 << PLACES_LOG2);
                    }
                }
            };
            self.codes.push(code as u8);
        }
        !self.firsts.is_empty()
    }
}
