//! Ciphers beside published vectors, other implementations, and every alteration (promise 5).

mod chunk_alterations;
mod known_answers;
mod openssl_program;
mod reference_modes;
