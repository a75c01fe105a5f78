//! Lossless filter of uncompressed images: each sample becomes its distance from a prediction (median of left, up and
//! their gradient), and the low and high bytes of 16-bit samples lie apart, so that chunks compress better.
//!
//! ```text
//! 0      1            2    3         4        8        12     16
//! version│sample bytes│big │channels │u32 head│u32 row │u32 rows│ head │ filtered rows │ bytes behind the image
//! ```
//! Lengths are in bytes, little-endian. `big` is 1 if samples are big-endian.

use crate::compression::Compression;
use std::str::FromStr;

/// Version of the filter.
const VERSION: u8 = 1;

/// Bytes before the image's own.
const HEAD: usize = 16;

/// Bytes of an image that are compressed with and without the filter, to choose one.
const TRIAL: usize = 64 << 10;

/// Size of raw frames, as the user states it: files of exactly this size are images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFrame {
    width: usize,
    height: usize,
    sample: usize,
}

impl FromStr for RawFrame {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no frame size: give WIDTHxHEIGHTxBITS, with 8 or 16 bits");
        let mut numbers =
            text.split('x').map(|number| number.parse::<u32>().ok().filter(|number| *number > 0));
        let mut next = || numbers.next().flatten().map(|number| number as usize).ok_or_else(wrong);
        let (width, height, bits) = (next()?, next()?, next()?);
        let sample = match bits {
            8 => 1,
            16 => 2,
            _ => return Err(wrong()),
        };
        if numbers.next().is_some() { Err(wrong()) } else { Ok(Self { width, height, sample }) }
    }
}

/// Layout of an image in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// Bytes of a sample: 1 or 2.
    sample: usize,
    is_big: bool,
    /// Samples from a pixel to the next one of the row.
    channels: usize,
    /// Bytes before the first row.
    head: usize,
    /// Bytes of a row.
    row: usize,
    rows: usize,
}

impl Layout {
    /// End of the rows; `None` if the layout makes no sense.
    fn end(&self) -> Option<usize> {
        let is_right = matches!(self.sample, 1 | 2)
            && (1..=4).contains(&self.channels)
            && self.row > 0
            && self.row.is_multiple_of(self.sample);
        self.row.checked_mul(self.rows)?.checked_add(self.head).filter(|_| is_right)
    }

    /// The layout of a file's image.
    fn of(bytes: &[u8], raw: Option<RawFrame>) -> Option<Self> {
        let found = pnm(bytes).or_else(|| bmp(bytes)).or_else(|| npy(bytes)).or_else(|| {
            let RawFrame { width, height, sample } = raw?;
            let layout = Self {
                sample,
                is_big: false,
                channels: 1,
                head: 0,
                row: width.checked_mul(sample)?,
                rows: height,
            };
            layout.end().filter(|end| *end == bytes.len()).map(|_| layout)
        })?;
        found.end().filter(|end| *end <= bytes.len()).map(|_| found)
    }

    fn word(&self, bytes: &[u8]) -> u16 {
        match (self.sample, self.is_big) {
            (1, _) => bytes[0].into(),
            (_, true) => u16::from_be_bytes([bytes[0], bytes[1]]),
            (_, false) => u16::from_le_bytes([bytes[0], bytes[1]]),
        }
    }

    fn put(&self, word: u16, bytes: &mut [u8]) {
        match (self.sample, self.is_big) {
            (1, _) => bytes[0] = word as u8,
            (_, true) => bytes.copy_from_slice(&word.to_be_bytes()),
            (_, false) => bytes.copy_from_slice(&word.to_le_bytes()),
        }
    }

    /// Prediction of a sample from its neighbours in its row, and in the row above.
    fn predict(&self, row: &[u16], above: &[u16], at: usize) -> u16 {
        let left = at.checked_sub(self.channels).map(|left| (row[left], above.get(left)));
        match (left, above.get(at)) {
            (None, up) => up.copied().unwrap_or(0),
            (Some((left, _)), None) => left,
            (Some((left, corner)), Some(&up)) => {
                let corner = corner.copied().unwrap_or(0);
                let (low, high) = (left.min(up), left.max(up));
                // The gradient lies between both where the corner does.
                if corner >= high {
                    low
                } else if corner <= low {
                    high
                } else {
                    left.wrapping_add(up).wrapping_sub(corner)
                }
            }
        }
    }

    /// Distance from a prediction, small ones first: 0, −1, 1, −2, …
    fn fold(&self, distance: u16) -> u16 {
        let half = if self.sample == 1 { 0x80 } else { 0x8000 };
        let distance = distance & (half - 1 + half);
        if distance < half { distance << 1 } else { ((half - 1 + half - distance) << 1) | 1 }
    }

    fn unfold(&self, folded: u16) -> u16 {
        let all = if self.sample == 1 { 0xFF } else { 0xFFFF };
        if folded & 1 == 0 { folded >> 1 } else { all - (folded >> 1) }
    }
}

/// Filters a file that has an image, if a trial shows that it then compresses better; `None` otherwise.
pub(crate) fn encode(bytes: &[u8], compression: Compression, raw: Option<RawFrame>) -> Option<Vec<u8>> {
    let layout = Layout::of(bytes, raw)?;
    let rows = (TRIAL / layout.row).clamp(1, layout.rows.max(1)).min(layout.rows);
    let from = layout.head + (layout.rows - rows) / 2 * layout.row;
    let part = bytes.get(from..from + rows * layout.row).filter(|part| !part.is_empty())?;
    let trial = filtered(part, &Layout { head: 0, rows, ..layout });
    let size = |bytes: &[u8]| compression.compress(bytes).map(|packed| packed.len()).ok();
    // A gain of less than a fiftieth is not worth the time.
    (size(&trial)? < size(part)? / 50 * 49).then(|| filtered(bytes, &layout))
}

fn filtered(bytes: &[u8], layout: &Layout) -> Vec<u8> {
    let end = layout.head + layout.row * layout.rows;
    let mut out = Vec::with_capacity(HEAD + bytes.len());
    out.extend_from_slice(&[VERSION, layout.sample as u8, layout.is_big.into(), layout.channels as u8]);
    for length in [layout.head, layout.row, layout.rows] {
        out.extend_from_slice(&(length as u32).to_le_bytes());
    }
    out.extend_from_slice(&bytes[..layout.head]);
    let start = out.len();
    out.resize(start + end - layout.head, 0);
    let samples = (end - layout.head) / layout.sample;
    let (low, high) = out[start..].split_at_mut(samples);
    let (mut row, mut above, mut at) = (Vec::new(), Vec::new(), 0);
    for line in bytes[layout.head..end].chunks_exact(layout.row) {
        row.clear();
        row.extend(line.chunks_exact(layout.sample).map(|sample| layout.word(sample)));
        for (place, sample) in row.iter().enumerate() {
            let folded = layout.fold(sample.wrapping_sub(layout.predict(&row, &above, place)));
            low[at] = folded as u8;
            if layout.sample == 2 {
                high[at] = (folded >> 8) as u8;
            }
            at += 1;
        }
        std::mem::swap(&mut row, &mut above);
    }
    out.extend_from_slice(&bytes[end..]);
    out
}

/// The file of a filtered message; `None` if the message makes no sense.
pub(crate) fn decode(message: &[u8]) -> Option<Vec<u8>> {
    let (head, bytes) = message.split_at_checked(HEAD)?;
    let length = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?) as usize);
    let layout = Layout {
        sample: head[1].into(),
        is_big: head[2] == 1,
        channels: head[3].into(),
        head: length(4)?,
        row: length(8)?,
        rows: length(12)?,
    };
    let end = layout.end().filter(|end| head[0] == VERSION && *end <= bytes.len())?;
    let mut out = bytes.to_vec();
    let (low, high) = bytes[layout.head..end].split_at((end - layout.head) / layout.sample);
    let (mut row, mut above, mut at) = (Vec::new(), Vec::new(), 0);
    for line in out[layout.head..end].chunks_exact_mut(layout.row) {
        row.clear();
        for (place, sample) in line.chunks_exact_mut(layout.sample).enumerate() {
            let folded = u16::from(low[at]) | high.get(at).map_or(0, |byte| u16::from(*byte) << 8);
            let word = layout.unfold(folded).wrapping_add(layout.predict(&row, &above, place));
            let word = if layout.sample == 1 { word & 0xFF } else { word };
            layout.put(word, sample);
            row.push(word);
            at += 1;
        }
        std::mem::swap(&mut row, &mut above);
    }
    Some(out)
}

/// Layout of a binary grey or colour image (P5, P6).
fn pnm(bytes: &[u8]) -> Option<Layout> {
    let channels = match bytes.get(..2)? {
        b"P5" => 1,
        b"P6" => 3,
        _ => return None,
    };
    let (mut at, mut numbers) = (2, [0usize; 3]);
    for number in &mut numbers {
        while let Some(byte) = bytes.get(at).filter(|byte| byte.is_ascii_whitespace() || **byte == b'#') {
            at += if *byte == b'#' { bytes[at..].iter().position(|byte| *byte == b'\n')? } else { 1 };
        }
        let digits = bytes[at..].iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
        *number = std::str::from_utf8(&bytes[at..at + digits]).ok()?.parse().ok()?;
        at += digits;
    }
    let [width, rows, most] = numbers;
    let sample = if most < 256 { 1 } else { 2 };
    Some(Layout {
        sample,
        is_big: true,
        channels,
        head: at + 1,
        row: width.checked_mul(sample * channels)?,
        rows,
    })
}

/// Layout of an uncompressed bitmap (BMP) with 8, 24 or 32 bits a pixel.
fn bmp(bytes: &[u8]) -> Option<Layout> {
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let bits = half(28)?;
    let is_plain = matches!(word(30)?, 0 | 3) && matches!(bits, 8 | 24 | 32) && bytes.starts_with(b"BM");
    let width = usize::try_from(word(18)?.cast_signed()).ok().filter(|_| is_plain)?;
    let row = width.checked_mul(bits.into())?.div_ceil(32) * 4;
    let rows = word(22)?.cast_signed().unsigned_abs() as usize;
    Some(Layout {
        sample: 1,
        is_big: false,
        channels: usize::from(bits) / 8,
        head: word(10)? as usize,
        row,
        rows,
    })
}

/// Layout of an array file (NPY) of 8- or 16-bit integers in C order: its last axis is a row.
fn npy(bytes: &[u8]) -> Option<Layout> {
    let rest = bytes.strip_prefix(b"\x93NUMPY")?;
    let length = usize::from(u16::from_le_bytes(rest.get(2..4)?.try_into().ok()?));
    let text = std::str::from_utf8(rest.get(4..4 + length).filter(|_| rest[0] == 1)?).ok()?;
    let behind = |key: &str| Some(text.split_once(key)?.1.trim_start_matches([' ', ':', '\'', '(']));
    let kind = behind("'descr'")?.get(..3)?;
    let (sample, is_big) = match kind {
        "|u1" | "|i1" => (1, false),
        "<u2" | "<i2" => (2, false),
        ">u2" | ">i2" => (2, true),
        _ => return None,
    };
    let shape = behind("'shape'")?.split_once(')')?.0;
    let axes: Vec<usize> = shape.split(',').filter_map(|axis| axis.trim().parse().ok()).collect();
    let (width, others) =
        axes.split_last().filter(|_| behind("'fortran_order'").is_some_and(|f| f.starts_with("False")))?;
    let rows = others.iter().try_fold(1usize, |rows, axis| rows.checked_mul(*axis))?;
    Some(Layout { sample, is_big, channels: 1, head: 10 + length, row: width.checked_mul(sample)?, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(head: &[u8], bytes: usize, step: usize) -> Vec<u8> {
        let rows = (0..bytes).map(|at| ((at / step) * 3 + (at % step) / 2 + at * at % 5) as u8);
        head.iter().copied().chain(rows).chain(*b"end").collect()
    }

    fn npy_head(kind: &str, shape: &str) -> Vec<u8> {
        let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
    }

    fn bmp_head(width: u32, height: i32, bits: u16) -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        let size = [&words(&[40, width, height.cast_unsigned()])[..], &[1, 0], &bits.to_le_bytes()].concat();
        [b"BM", &words(&[0, 0, 54])[..], &size, &words(&[0; 6])].concat()
    }

    #[test]
    fn images_come_back_and_are_smaller() {
        let raw: RawFrame = "100x80x16".parse().unwrap();
        for (name, file, raw) in [
            ("P5", image(b"P5\n# made\n100 80\n255\n", 8000, 100), None),
            ("P5, 16 bits", image(b"P5 100 80 65535 ", 16_000, 200), None),
            ("P6", image(b"P6\n100 80 255\n", 24_000, 300), None),
            ("BMP", image(&bmp_head(99, -80, 24), 300 * 80, 300), None),
            ("NPY", image(&npy_head("<u2", "(2, 40, 100)"), 16_000, 200), None),
            ("NPY, big", image(&npy_head(">u2", "(80, 100)"), 16_000, 200), None),
            ("raw", image(b"", 15_997, 200), Some(raw)),
        ] {
            let layout = Layout::of(&file, raw).unwrap_or_else(|| panic!("{name} is no image"));
            assert_eq!((layout.rows, layout.end().unwrap() - layout.head), (80, layout.row * 80), "{name}");
            let encoded = filtered(&file, &layout);
            assert!(decode(&encoded).unwrap() == file, "{name}");
            let Some(chosen) = encode(&file, Compression::Zstd(3), raw) else {
                panic!("{name} is not filtered")
            };
            let size = |bytes: &[u8]| Compression::Zstd(3).compress(bytes).unwrap().len();
            assert!(size(&chosen) < size(&file), "{name}");
            assert_eq!(encode(&file, Compression::None, raw), None, "{name}");
            for cut in 0..encoded.len().min(200) {
                let _ = decode(&encoded[..cut]);
            }
        }
    }

    #[test]
    fn every_sample_comes_back_and_other_files_are_no_images() {
        let noise: Vec<u8> =
            (0..65_536u32).flat_map(|at| (at.wrapping_mul(40_503) as u16).to_le_bytes()).collect();
        let layout = Layout { sample: 2, is_big: false, channels: 1, head: 0, row: 512, rows: 256 };
        assert_eq!(decode(&filtered(&noise, &layout)).unwrap(), noise);
        let bytes = Layout { sample: 1, channels: 3, row: 333, rows: 300, head: 7, ..layout };
        assert_eq!(decode(&filtered(&noise, &bytes)).unwrap(), noise);
        for wrong in [
            "",
            "P5",
            "P5 10 10 255 short",
            "P4\n1 1\n0",
            "BM",
            "BM but no bitmap at all, and long enough for one",
        ] {
            assert_eq!(encode(wrong.as_bytes(), Compression::default(), None), None, "{wrong}");
        }
        assert_eq!(
            encode(&image(&npy_head("<f8", "(80, 100)"), 64_000, 800), Compression::default(), None),
            None
        );
        for wrong in ["", "1x1", "0x1x8", "1x1x9", "1x1x8x1", "axbx8"] {
            assert!(wrong.parse::<RawFrame>().is_err(), "{wrong}");
        }
    }
}
