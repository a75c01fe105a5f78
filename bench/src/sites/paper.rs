//! Figures of the paper on `PetaShare`, tables 1 to 4: seconds without replication, with synchronous and with asynchronous one.

/// Sizes of the files in bytes, by the rows of the paper's tables.
pub const SIZES: [(&str, u64); 3] = [("10K", 10_000), ("100K", 100_000), ("1M", 1_000_000)];

/// Number of files in the paper, and of these files' sizes in the single file.
pub const FILES: u64 = 1000;

/// One of the tables.
#[derive(Clone, Copy, Debug)]
pub struct PaperTable {
    /// Caption of the table.
    pub title: &'static str,
    /// Seconds for 1000 files and for one file of their size, by size, in the three scenarios.
    pub seconds: [[[f64; 3]; 2]; 3],
}

/// Tables in the order of the paper.
pub const TABLES: [PaperTable; 4] = [
    PaperTable {
        title: "Writing to a remote resource (table 1)",
        seconds: [
            [[75.94, 240.32, 38.81], [1.38, 1.48, 1.34]],
            [[83.53, 247.43, 47.76], [2.51, 2.96, 2.83]],
            [[156.61, 320.96, 144.53], [9.91, 11.68, 10.31]],
        ],
    },
    PaperTable {
        title: "Writing to a local resource (table 2)",
        seconds: [
            [[63.51, 221.33, 19.92], [0.25, 0.46, 0.15]],
            [[64.42, 223.06, 21.38], [0.58, 1.02, 0.47]],
            [[75.02, 232.48, 36.75], [5.16, 9.18, 8.37]],
        ],
    },
    PaperTable {
        title: "Reading from a remote resource (table 3)",
        seconds: [
            [[46.0, 40.75, 26.51], [1.58, 1.74, 1.47]],
            [[55.0, 48.92, 34.13], [3.44, 3.54, 3.29]],
            [[166.98, 157.43, 144.98], [14.47, 11.55, 9.57]],
        ],
    },
    PaperTable {
        title: "Reading from a local resource (table 4)",
        seconds: [
            [[24.33, 23.63, 17.8], [0.2, 0.36, 0.14]],
            [[25.57, 25.23, 19.43], [0.42, 1.4, 0.43]],
            [[31.94, 38.08, 25.43], [7.34, 14.06, 3.25]],
        ],
    },
];
