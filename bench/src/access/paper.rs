//! Figures of the paper on `PetaShare`, table 6: Mbit/s of its clients without an advance buffer, the mean of its four sites.

/// Rates of the paper's clients in one direction.
#[derive(Clone, Copy, Debug)]
pub struct PaperRates {
    /// Direction and place of the client.
    pub name: &'static str,
    /// Mbit/s of `pget` or `pput`.
    pub commands: f64,
    /// Mbit/s of the traced shell.
    pub shell: f64,
    /// Mbit/s of the mount, where the paper has it.
    pub mount: Option<f64>,
}

/// Rows of table 6.
pub const TABLE: [PaperRates; 4] = [
    PaperRates { name: "read, outside", commands: 90.5, shell: 23.7, mount: Some(10.5) },
    PaperRates { name: "write, outside", commands: 24.0, shell: 11.2, mount: Some(5.0) },
    PaperRates { name: "read, inside", commands: 698.9, shell: 69.0, mount: None },
    PaperRates { name: "write, inside", commands: 604.7, shell: 88.1, mount: None },
];
