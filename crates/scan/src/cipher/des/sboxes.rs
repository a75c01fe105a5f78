//! Circuits of the DES substitution boxes on bit slices.
//!
//! Generated: do not edit. The command `cargo run --release --example circuit_search 70 20261128` searched the
//! circuits for 70 seconds a box, from nothing but the tables of FIPS 46-3. A search that is limited by time
//! finds other circuits on another machine; the tests of `slices` check whichever are here on all inputs.
#![allow(clippy::inline_always, reason = "the instruction set of the caller must reach every gate")]
#![allow(clippy::many_single_char_names, clippy::too_many_lines, reason = "the file is generated")]

use pulp::Simd;

/// Six input slices of a box.
type Inputs<S> = [<S as Simd>::u64s; 6];

/// Four output slices of a box.
type Outputs<S> = [<S as Simd>::u64s; 4];

/// Circuit of S1: 62 gates, the first input and output bit most significant.
#[inline(always)]
pub(super) fn s1<S: Simd>(simd: S, [a1, a2, a3, a4, a5, a6]: Inputs<S>) -> Outputs<S> {
    let g1 = simd.xor_u64s(a6, a4);
    let g2 = simd.xor_u64s(a4, a3);
    let g3 = simd.and_u64s(g2, simd.not_u64s(a6));
    let g4 = simd.xor_u64s(a1, g3);
    let g5 = simd.and_u64s(g4, a1);
    let g6 = simd.xor_u64s(g1, g5);
    let g7 = simd.and_u64s(a4, simd.not_u64s(g6));
    let g8 = simd.xor_u64s(g7, g4);
    let g9 = simd.and_u64s(g8, g2);
    let g10 = simd.xor_u64s(g1, g9);
    let g11 = simd.and_u64s(g10, simd.not_u64s(a5));
    let g12 = simd.xor_u64s(g6, g11);
    let g13 = simd.and_u64s(g6, simd.not_u64s(a6));
    let g14 = simd.not_u64s(g13);
    let g15 = simd.or_u64s(a4, g5);
    let g16 = simd.and_u64s(g15, a5);
    let g17 = simd.xor_u64s(g14, g16);
    let g18 = simd.or_u64s(g11, a6);
    let g19 = simd.and_u64s(g18, simd.not_u64s(a3));
    let g20 = simd.xor_u64s(g17, g19);
    let g21 = simd.and_u64s(g20, simd.not_u64s(a2));
    let g22 = simd.xor_u64s(g12, g21);
    let g23 = simd.xor_u64s(g2, a1);
    let g24 = simd.xor_u64s(g23, g17);
    let g25 = simd.and_u64s(g5, simd.not_u64s(g11));
    let g26 = simd.and_u64s(g25, a4);
    let g27 = simd.xor_u64s(g24, g26);
    let g28 = simd.and_u64s(a5, simd.not_u64s(g24));
    let g29 = simd.not_u64s(g28);
    let g30 = simd.xor_u64s(g21, a5);
    let g31 = simd.xor_u64s(g30, a3);
    let g32 = simd.and_u64s(g31, simd.not_u64s(a4));
    let g33 = simd.xor_u64s(g29, g32);
    let g34 = simd.and_u64s(g33, simd.not_u64s(a2));
    let g35 = simd.xor_u64s(g27, g34);
    let g36 = simd.xor_u64s(g30, a6);
    let g37 = simd.and_u64s(g36, a3);
    let g38 = simd.xor_u64s(g29, g37);
    let g39 = simd.and_u64s(g14, g12);
    let g40 = simd.not_u64s(g39);
    let g41 = simd.and_u64s(g40, simd.not_u64s(a2));
    let g42 = simd.xor_u64s(g38, g41);
    let g43 = simd.and_u64s(g20, simd.not_u64s(g36));
    let g44 = simd.xor_u64s(g43, g29);
    let g45 = simd.xor_u64s(g42, g7);
    let g46 = simd.or_u64s(g45, g36);
    let g47 = simd.and_u64s(g46, simd.not_u64s(a2));
    let g48 = simd.xor_u64s(g44, g47);
    let g49 = simd.and_u64s(g48, simd.not_u64s(a1));
    let g50 = simd.xor_u64s(g42, g49);
    let g51 = simd.xor_u64s(g12, g4);
    let g52 = simd.xor_u64s(g51, a2);
    let g53 = simd.and_u64s(g27, simd.not_u64s(a5));
    let g54 = simd.xor_u64s(g52, g53);
    let g55 = simd.or_u64s(g44, g12);
    let g56 = simd.xor_u64s(g55, g16);
    let g57 = simd.xor_u64s(g11, g56);
    let g58 = simd.xor_u64s(g57, g28);
    let g59 = simd.and_u64s(g58, simd.not_u64s(a1));
    let g60 = simd.xor_u64s(g56, g59);
    let g61 = simd.and_u64s(g60, g38);
    let g62 = simd.xor_u64s(g54, g61);
    [g62, g22, g35, g50]
}

/// Circuit of S2: 54 gates, the first input and output bit most significant.
#[inline(always)]
pub(super) fn s2<S: Simd>(simd: S, [a1, a2, a3, a4, a5, a6]: Inputs<S>) -> Outputs<S> {
    let g1 = simd.xor_u64s(a6, a2);
    let g2 = simd.xor_u64s(g1, a1);
    let g3 = simd.not_u64s(a5);
    let g4 = simd.xor_u64s(g2, g3);
    let g5 = simd.or_u64s(g3, a6);
    let g6 = simd.and_u64s(a1, simd.not_u64s(g5));
    let g7 = simd.and_u64s(g1, simd.not_u64s(g6));
    let g8 = simd.and_u64s(g7, a3);
    let g9 = simd.xor_u64s(g4, g8);
    let g10 = simd.xor_u64s(g5, a5);
    let g11 = simd.or_u64s(g10, a3);
    let g12 = simd.and_u64s(g7, a2);
    let g13 = simd.xor_u64s(g11, g12);
    let g14 = simd.and_u64s(g13, a4);
    let g15 = simd.xor_u64s(g9, g14);
    let g16 = simd.or_u64s(a3, g12);
    let g17 = simd.xor_u64s(g16, g4);
    let g18 = simd.or_u64s(a5, a2);
    let g19 = simd.and_u64s(g18, a4);
    let g20 = simd.xor_u64s(g17, g19);
    let g21 = simd.and_u64s(g16, simd.not_u64s(g10));
    let g22 = simd.xor_u64s(g21, g18);
    let g23 = simd.and_u64s(g9, simd.not_u64s(g14));
    let g24 = simd.and_u64s(g23, simd.not_u64s(a6));
    let g25 = simd.xor_u64s(g22, g24);
    let g26 = simd.and_u64s(g25, a1);
    let g27 = simd.xor_u64s(g20, g26);
    let g28 = simd.xor_u64s(g16, g8);
    let g29 = simd.not_u64s(g20);
    let g30 = simd.xor_u64s(g17, g15);
    let g31 = simd.and_u64s(g30, a1);
    let g32 = simd.xor_u64s(g29, g31);
    let g33 = simd.and_u64s(g32, simd.not_u64s(a5));
    let g34 = simd.xor_u64s(g28, g33);
    let g35 = simd.and_u64s(g5, simd.not_u64s(a4));
    let g36 = simd.xor_u64s(g35, g29);
    let g37 = simd.xor_u64s(g35, a6);
    let g38 = simd.and_u64s(g37, a1);
    let g39 = simd.xor_u64s(g36, g38);
    let g40 = simd.and_u64s(g39, simd.not_u64s(a2));
    let g41 = simd.xor_u64s(g34, g40);
    let g42 = simd.xor_u64s(g39, g10);
    let g43 = simd.and_u64s(g26, simd.not_u64s(g41));
    let g44 = simd.not_u64s(g43);
    let g45 = simd.and_u64s(g44, a4);
    let g46 = simd.xor_u64s(g42, g45);
    let g47 = simd.and_u64s(g13, simd.not_u64s(g25));
    let g48 = simd.xor_u64s(g47, g45);
    let g49 = simd.and_u64s(g37, simd.not_u64s(g14));
    let g50 = simd.xor_u64s(g49, g1);
    let g51 = simd.and_u64s(g50, simd.not_u64s(a3));
    let g52 = simd.xor_u64s(g48, g51);
    let g53 = simd.and_u64s(g52, simd.not_u64s(a1));
    let g54 = simd.xor_u64s(g46, g53);
    [g27, g15, g54, g41]
}

/// Circuit of S3: 58 gates, the first input and output bit most significant.
#[inline(always)]
pub(super) fn s3<S: Simd>(simd: S, [a1, a2, a3, a4, a5, a6]: Inputs<S>) -> Outputs<S> {
    let g1 = simd.xor_u64s(a4, a2);
    let g2 = simd.xor_u64s(g1, a1);
    let g3 = simd.or_u64s(a4, a1);
    let g4 = simd.and_u64s(g3, a2);
    let g5 = simd.and_u64s(g4, simd.not_u64s(a3));
    let g6 = simd.xor_u64s(g2, g5);
    let g7 = simd.and_u64s(a3, simd.not_u64s(g3));
    let g8 = simd.not_u64s(g7);
    let g9 = simd.and_u64s(g8, simd.not_u64s(a5));
    let g10 = simd.xor_u64s(g6, g9);
    let g11 = simd.xor_u64s(a3, a1);
    let g12 = simd.xor_u64s(g11, g3);
    let g13 = simd.and_u64s(g12, simd.not_u64s(a2));
    let g14 = simd.xor_u64s(g7, g13);
    let g15 = simd.and_u64s(g14, a5);
    let g16 = simd.xor_u64s(g3, g15);
    let g17 = simd.and_u64s(g16, simd.not_u64s(a6));
    let g18 = simd.xor_u64s(g10, g17);
    let g19 = simd.xor_u64s(a3, a2);
    let g20 = simd.xor_u64s(g19, a6);
    let g21 = simd.and_u64s(g6, a6);
    let g22 = simd.or_u64s(g21, a4);
    let g23 = simd.and_u64s(g22, a1);
    let g24 = simd.xor_u64s(g20, g23);
    let g25 = simd.and_u64s(g4, g20);
    let g26 = simd.xor_u64s(g25, g11);
    let g27 = simd.and_u64s(g26, a1);
    let g28 = simd.xor_u64s(g12, g27);
    let g29 = simd.and_u64s(g28, simd.not_u64s(a5));
    let g30 = simd.xor_u64s(g24, g29);
    let g31 = simd.xor_u64s(g28, g22);
    let g32 = simd.or_u64s(g30, g18);
    let g33 = simd.and_u64s(g32, a1);
    let g34 = simd.xor_u64s(g31, g33);
    let g35 = simd.and_u64s(g32, g28);
    let g36 = simd.xor_u64s(g35, g34);
    let g37 = simd.and_u64s(g36, a5);
    let g38 = simd.xor_u64s(g34, g37);
    let g39 = simd.or_u64s(a6, g23);
    let g40 = simd.and_u64s(g39, g18);
    let g41 = simd.and_u64s(g32, simd.not_u64s(g38));
    let g42 = simd.xor_u64s(g41, g16);
    let g43 = simd.and_u64s(g42, simd.not_u64s(a4));
    let g44 = simd.xor_u64s(g40, g43);
    let g45 = simd.and_u64s(g44, simd.not_u64s(a2));
    let g46 = simd.xor_u64s(g38, g45);
    let g47 = simd.xor_u64s(g2, a6);
    let g48 = simd.and_u64s(g41, g1);
    let g49 = simd.or_u64s(g48, a3);
    let g50 = simd.and_u64s(g49, simd.not_u64s(a5));
    let g51 = simd.xor_u64s(g47, g50);
    let g52 = simd.and_u64s(g30, simd.not_u64s(g34));
    let g53 = simd.xor_u64s(g52, g9);
    let g54 = simd.xor_u64s(g12, g51);
    let g55 = simd.and_u64s(g54, a6);
    let g56 = simd.xor_u64s(g53, g55);
    let g57 = simd.and_u64s(g56, a4);
    let g58 = simd.xor_u64s(g51, g57);
    [g18, g58, g46, g30]
}

/// Circuit of S4: 43 gates, the first input and output bit most significant.
#[inline(always)]
pub(super) fn s4<S: Simd>(simd: S, [a1, a2, a3, a4, a5, a6]: Inputs<S>) -> Outputs<S> {
    let g1 = simd.xor_u64s(a5, a4);
    let g2 = simd.not_u64s(g1);
    let g3 = simd.and_u64s(a5, simd.not_u64s(g2));
    let g4 = simd.xor_u64s(g3, a3);
    let g5 = simd.and_u64s(g4, simd.not_u64s(a2));
    let g6 = simd.xor_u64s(g2, g5);
    let g7 = simd.and_u64s(a3, simd.not_u64s(a5));
    let g8 = simd.not_u64s(g7);
    let g9 = simd.and_u64s(a2, simd.not_u64s(g4));
    let g10 = simd.and_u64s(g9, simd.not_u64s(a4));
    let g11 = simd.xor_u64s(g8, g10);
    let g12 = simd.and_u64s(g11, a1);
    let g13 = simd.xor_u64s(g6, g12);
    let g14 = simd.xor_u64s(a2, a4);
    let g15 = simd.xor_u64s(g4, g2);
    let g16 = simd.and_u64s(g15, g6);
    let g17 = simd.xor_u64s(g14, g16);
    let g18 = simd.and_u64s(a3, simd.not_u64s(a4));
    let g19 = simd.xor_u64s(g18, g13);
    let g20 = simd.and_u64s(g19, simd.not_u64s(a5));
    let g21 = simd.xor_u64s(g18, g20);
    let g22 = simd.and_u64s(g21, simd.not_u64s(a1));
    let g23 = simd.xor_u64s(g17, g22);
    let g24 = simd.and_u64s(g23, a6);
    let g25 = simd.xor_u64s(g13, g24);
    let g26 = simd.or_u64s(a1, g11);
    let g27 = simd.xor_u64s(g26, g1);
    let g28 = simd.or_u64s(a5, a4);
    let g29 = simd.xor_u64s(g28, g15);
    let g30 = simd.and_u64s(g29, a1);
    let g31 = simd.xor_u64s(g28, g30);
    let g32 = simd.and_u64s(g31, simd.not_u64s(a2));
    let g33 = simd.xor_u64s(g27, g32);
    let g34 = simd.xor_u64s(g17, g1);
    let g35 = simd.or_u64s(g33, g20);
    let g36 = simd.and_u64s(g35, g12);
    let g37 = simd.xor_u64s(g34, g36);
    let g38 = simd.and_u64s(g37, simd.not_u64s(a6));
    let g39 = simd.xor_u64s(g33, g38);
    let g40 = simd.and_u64s(a6, simd.not_u64s(g37));
    let g41 = simd.xor_u64s(g40, g33);
    let g42 = simd.xor_u64s(g25, g23);
    let g43 = simd.xor_u64s(g42, a6);
    [g39, g41, g43, g25]
}

/// Circuit of S5: 61 gates, the first input and output bit most significant.
#[inline(always)]
pub(super) fn s5<S: Simd>(simd: S, [a1, a2, a3, a4, a5, a6]: Inputs<S>) -> Outputs<S> {
    let g1 = simd.xor_u64s(a4, a6);
    let g2 = simd.and_u64s(a1, simd.not_u64s(a4));
    let g3 = simd.and_u64s(g1, simd.not_u64s(g2));
    let g4 = simd.or_u64s(a1, a6);
    let g5 = simd.and_u64s(g4, simd.not_u64s(a3));
    let g6 = simd.xor_u64s(g3, g5);
    let g7 = simd.and_u64s(g6, g1);
    let g8 = simd.not_u64s(g7);
    let g9 = simd.or_u64s(g6, a4);
    let g10 = simd.and_u64s(g9, simd.not_u64s(a1));
    let g11 = simd.xor_u64s(g8, g10);
    let g12 = simd.and_u64s(g11, simd.not_u64s(a2));
    let g13 = simd.xor_u64s(g6, g12);
    let g14 = simd.xor_u64s(a6, a1);
    let g15 = simd.xor_u64s(g14, g11);
    let g16 = simd.and_u64s(a4, simd.not_u64s(a6));
    let g17 = simd.and_u64s(g16, simd.not_u64s(a3));
    let g18 = simd.xor_u64s(g15, g17);
    let g19 = simd.xor_u64s(g11, g5);
    let g20 = simd.and_u64s(g19, g9);
    let g21 = simd.and_u64s(g20, a2);
    let g22 = simd.xor_u64s(g18, g21);
    let g23 = simd.and_u64s(g22, simd.not_u64s(a5));
    let g24 = simd.xor_u64s(g13, g23);
    let g25 = simd.xor_u64s(g5, a5);
    let g26 = simd.and_u64s(g25, simd.not_u64s(g20));
    let g27 = simd.and_u64s(a3, simd.not_u64s(a1));
    let g28 = simd.xor_u64s(g26, g27);
    let g29 = simd.xor_u64s(g19, g15);
    let g30 = simd.and_u64s(g29, a2);
    let g31 = simd.xor_u64s(g28, g30);
    let g32 = simd.and_u64s(a5, simd.not_u64s(g26));
    let g33 = simd.xor_u64s(g32, g1);
    let g34 = simd.not_u64s(g29);
    let g35 = simd.and_u64s(g34, a2);
    let g36 = simd.xor_u64s(g33, g35);
    let g37 = simd.and_u64s(g36, a4);
    let g38 = simd.xor_u64s(g31, g37);
    let g39 = simd.and_u64s(g36, simd.not_u64s(g30));
    let g40 = simd.and_u64s(g19, a2);
    let g41 = simd.xor_u64s(g40, g38);
    let g42 = simd.and_u64s(g41, simd.not_u64s(a1));
    let g43 = simd.xor_u64s(g39, g42);
    let g44 = simd.or_u64s(g35, g28);
    let g45 = simd.xor_u64s(g44, g22);
    let g46 = simd.and_u64s(g12, simd.not_u64s(a1));
    let g47 = simd.xor_u64s(g46, g36);
    let g48 = simd.and_u64s(g47, simd.not_u64s(a2));
    let g49 = simd.xor_u64s(g45, g48);
    let g50 = simd.and_u64s(g49, a5);
    let g51 = simd.xor_u64s(g43, g50);
    let g52 = simd.xor_u64s(g8, a2);
    let g53 = simd.xor_u64s(g52, g42);
    let g54 = simd.or_u64s(g51, g44);
    let g55 = simd.xor_u64s(g54, g1);
    let g56 = simd.and_u64s(g55, a3);
    let g57 = simd.xor_u64s(g53, g56);
    let g58 = simd.xor_u64s(g19, g57);
    let g59 = simd.or_u64s(g58, g39);
    let g60 = simd.and_u64s(g59, simd.not_u64s(a5));
    let g61 = simd.xor_u64s(g57, g60);
    [g24, g38, g61, g51]
}

/// Circuit of S6: 56 gates, the first input and output bit most significant.
#[inline(always)]
pub(super) fn s6<S: Simd>(simd: S, [a1, a2, a3, a4, a5, a6]: Inputs<S>) -> Outputs<S> {
    let g1 = simd.and_u64s(a5, a1);
    let g2 = simd.xor_u64s(a1, a5);
    let g3 = simd.and_u64s(g2, simd.not_u64s(a3));
    let g4 = simd.xor_u64s(g1, g3);
    let g5 = simd.xor_u64s(g4, a2);
    let g6 = simd.or_u64s(a3, g5);
    let g7 = simd.xor_u64s(g6, g2);
    let g8 = simd.and_u64s(g7, simd.not_u64s(a4));
    let g9 = simd.xor_u64s(g5, g8);
    let g10 = simd.and_u64s(g5, simd.not_u64s(g8));
    let g11 = simd.and_u64s(g10, simd.not_u64s(a5));
    let g12 = simd.xor_u64s(a4, g11);
    let g13 = simd.or_u64s(g12, a1);
    let g14 = simd.xor_u64s(a1, g12);
    let g15 = simd.and_u64s(g14, simd.not_u64s(g6));
    let g16 = simd.xor_u64s(g13, g15);
    let g17 = simd.and_u64s(g16, a6);
    let g18 = simd.xor_u64s(g9, g17);
    let g19 = simd.xor_u64s(g7, a4);
    let g20 = simd.or_u64s(a4, a3);
    let g21 = simd.not_u64s(g20);
    let g22 = simd.and_u64s(g21, simd.not_u64s(a5));
    let g23 = simd.xor_u64s(g19, g22);
    let g24 = simd.or_u64s(a5, g14);
    let g25 = simd.or_u64s(g24, g9);
    let g26 = simd.xor_u64s(g13, g7);
    let g27 = simd.and_u64s(g26, a3);
    let g28 = simd.and_u64s(g27, a2);
    let g29 = simd.xor_u64s(g25, g28);
    let g30 = simd.and_u64s(g29, a6);
    let g31 = simd.xor_u64s(g23, g30);
    let g32 = simd.xor_u64s(g7, g5);
    let g33 = simd.xor_u64s(g32, g27);
    let g34 = simd.xor_u64s(a3, g26);
    let g35 = simd.xor_u64s(g34, g24);
    let g36 = simd.or_u64s(g35, g21);
    let g37 = simd.and_u64s(g36, simd.not_u64s(a2));
    let g38 = simd.xor_u64s(g33, g37);
    let g39 = simd.and_u64s(g12, g31);
    let g40 = simd.not_u64s(g39);
    let g41 = simd.and_u64s(a3, g24);
    let g42 = simd.and_u64s(g41, simd.not_u64s(a5));
    let g43 = simd.xor_u64s(g40, g42);
    let g44 = simd.and_u64s(g43, a6);
    let g45 = simd.xor_u64s(g38, g44);
    let g46 = simd.xor_u64s(a3, g19);
    let g47 = simd.and_u64s(g26, simd.not_u64s(g1));
    let g48 = simd.and_u64s(g47, a2);
    let g49 = simd.xor_u64s(g46, g48);
    let g50 = simd.and_u64s(g44, simd.not_u64s(g32));
    let g51 = simd.xor_u64s(g50, g18);
    let g52 = simd.or_u64s(g10, g2);
    let g53 = simd.and_u64s(g52, a2);
    let g54 = simd.xor_u64s(g51, g53);
    let g55 = simd.and_u64s(g54, a6);
    let g56 = simd.xor_u64s(g49, g55);
    [g31, g45, g56, g18]
}

/// Circuit of S7: 60 gates, the first input and output bit most significant.
#[inline(always)]
pub(super) fn s7<S: Simd>(simd: S, [a1, a2, a3, a4, a5, a6]: Inputs<S>) -> Outputs<S> {
    let g1 = simd.and_u64s(a5, simd.not_u64s(a4));
    let g2 = simd.xor_u64s(g1, a1);
    let g3 = simd.and_u64s(a4, simd.not_u64s(a5));
    let g4 = simd.not_u64s(g3);
    let g5 = simd.and_u64s(g4, a3);
    let g6 = simd.xor_u64s(g2, g5);
    let g7 = simd.xor_u64s(g6, a6);
    let g8 = simd.and_u64s(g3, simd.not_u64s(a3));
    let g9 = simd.and_u64s(g8, a1);
    let g10 = simd.or_u64s(g7, g9);
    let g11 = simd.not_u64s(a3);
    let g12 = simd.and_u64s(a1, g10);
    let g13 = simd.xor_u64s(g12, g3);
    let g14 = simd.and_u64s(g13, a6);
    let g15 = simd.xor_u64s(g11, g14);
    let g16 = simd.and_u64s(g15, a2);
    let g17 = simd.xor_u64s(g10, g16);
    let g18 = simd.and_u64s(g10, simd.not_u64s(a6));
    let g19 = simd.xor_u64s(g18, a2);
    let g20 = simd.and_u64s(a5, simd.not_u64s(a2));
    let g21 = simd.xor_u64s(g20, g8);
    let g22 = simd.and_u64s(g16, a6);
    let g23 = simd.xor_u64s(g21, g22);
    let g24 = simd.and_u64s(g23, a4);
    let g25 = simd.xor_u64s(g19, g24);
    let g26 = simd.and_u64s(a6, simd.not_u64s(a3));
    let g27 = simd.xor_u64s(g19, g16);
    let g28 = simd.xor_u64s(a6, g25);
    let g29 = simd.and_u64s(g28, a4);
    let g30 = simd.xor_u64s(g27, g29);
    let g31 = simd.and_u64s(g30, simd.not_u64s(a5));
    let g32 = simd.xor_u64s(g26, g31);
    let g33 = simd.and_u64s(g32, a1);
    let g34 = simd.xor_u64s(g25, g33);
    let g35 = simd.xor_u64s(g8, g27);
    let g36 = simd.xor_u64s(g35, g11);
    let g37 = simd.and_u64s(a2, g34);
    let g38 = simd.xor_u64s(g37, g23);
    let g39 = simd.and_u64s(g38, a1);
    let g40 = simd.xor_u64s(g36, g39);
    let g41 = simd.xor_u64s(a1, g28);
    let g42 = simd.and_u64s(g41, simd.not_u64s(g7));
    let g43 = simd.or_u64s(g6, a1);
    let g44 = simd.and_u64s(g43, a2);
    let g45 = simd.xor_u64s(g42, g44);
    let g46 = simd.and_u64s(g45, simd.not_u64s(a4));
    let g47 = simd.xor_u64s(g40, g46);
    let g48 = simd.xor_u64s(g15, g3);
    let g49 = simd.and_u64s(a5, g6);
    let g50 = simd.not_u64s(g49);
    let g51 = simd.and_u64s(g50, simd.not_u64s(a2));
    let g52 = simd.xor_u64s(g48, g51);
    let g53 = simd.or_u64s(g35, a3);
    let g54 = simd.xor_u64s(g53, g44);
    let g55 = simd.and_u64s(g40, g17);
    let g56 = simd.xor_u64s(g55, g20);
    let g57 = simd.and_u64s(g56, g28);
    let g58 = simd.xor_u64s(g54, g57);
    let g59 = simd.and_u64s(g58, simd.not_u64s(a1));
    let g60 = simd.xor_u64s(g52, g59);
    [g60, g47, g34, g17]
}

/// Circuit of S8: 59 gates, the first input and output bit most significant.
#[inline(always)]
pub(super) fn s8<S: Simd>(simd: S, [a1, a2, a3, a4, a5, a6]: Inputs<S>) -> Outputs<S> {
    let g1 = simd.and_u64s(a2, simd.not_u64s(a4));
    let g2 = simd.xor_u64s(g1, a3);
    let g3 = simd.xor_u64s(g2, a1);
    let g4 = simd.and_u64s(a1, simd.not_u64s(g2));
    let g5 = simd.or_u64s(g4, a2);
    let g6 = simd.and_u64s(a2, simd.not_u64s(a1));
    let g7 = simd.not_u64s(g6);
    let g8 = simd.and_u64s(g7, simd.not_u64s(a4));
    let g9 = simd.xor_u64s(g5, g8);
    let g10 = simd.and_u64s(g9, simd.not_u64s(a5));
    let g11 = simd.xor_u64s(g3, g10);
    let g12 = simd.and_u64s(a4, simd.not_u64s(g11));
    let g13 = simd.xor_u64s(g12, a1);
    let g14 = simd.not_u64s(g2);
    let g15 = simd.and_u64s(g14, a2);
    let g16 = simd.xor_u64s(g13, g15);
    let g17 = simd.or_u64s(g16, a4);
    let g18 = simd.and_u64s(g7, simd.not_u64s(a3));
    let g19 = simd.or_u64s(g17, g18);
    let g20 = simd.and_u64s(g19, a5);
    let g21 = simd.xor_u64s(g16, g20);
    let g22 = simd.and_u64s(g21, a6);
    let g23 = simd.xor_u64s(g11, g22);
    let g24 = simd.and_u64s(g11, simd.not_u64s(a5));
    let g25 = simd.xor_u64s(g24, g1);
    let g26 = simd.and_u64s(g20, g18);
    let g27 = simd.xor_u64s(g26, a4);
    let g28 = simd.and_u64s(g27, a1);
    let g29 = simd.xor_u64s(a2, g28);
    let g30 = simd.and_u64s(g29, simd.not_u64s(a6));
    let g31 = simd.xor_u64s(g25, g30);
    let g32 = simd.xor_u64s(a6, g2);
    let g33 = simd.and_u64s(g32, simd.not_u64s(g30));
    let g34 = simd.not_u64s(g9);
    let g35 = simd.and_u64s(g34, a5);
    let g36 = simd.xor_u64s(g33, g35);
    let g37 = simd.and_u64s(g36, simd.not_u64s(a2));
    let g38 = simd.xor_u64s(g31, g37);
    let g39 = simd.not_u64s(g11);
    let g40 = simd.xor_u64s(a2, g9);
    let g41 = simd.or_u64s(g40, g37);
    let g42 = simd.or_u64s(g25, a1);
    let g43 = simd.and_u64s(g42, simd.not_u64s(g27));
    let g44 = simd.and_u64s(g43, a5);
    let g45 = simd.xor_u64s(g41, g44);
    let g46 = simd.and_u64s(g45, simd.not_u64s(a6));
    let g47 = simd.xor_u64s(g39, g46);
    let g48 = simd.or_u64s(a5, g31);
    let g49 = simd.xor_u64s(g48, g9);
    let g50 = simd.and_u64s(a5, simd.not_u64s(g25));
    let g51 = simd.and_u64s(g50, simd.not_u64s(a1));
    let g52 = simd.xor_u64s(g49, g51);
    let g53 = simd.and_u64s(a1, g20);
    let g54 = simd.xor_u64s(g53, g15);
    let g55 = simd.and_u64s(g13, simd.not_u64s(g18));
    let g56 = simd.and_u64s(g55, a4);
    let g57 = simd.xor_u64s(g54, g56);
    let g58 = simd.and_u64s(g57, a6);
    let g59 = simd.xor_u64s(g52, g58);
    [g47, g38, g59, g23]
}
