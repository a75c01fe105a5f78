//! The recorder at its guaranteed rate on the emulated drive, with everything that may go on beside it, one after the
//! other: inside what was admitted no byte may be lost, beyond it every one has to be in a gap. `HOLDFAST_ONLY` keeps the
//! cases whose name contains it.

use crate::disturbers::case::{Case, cases};
use crate::disturbers::runner::{CaseOutcome, play};
use crate::disturbers::scene::Scene;
use crate::report::Report;
use crate::{BenchError, Scale, row};

const MIB: f64 = 1_048_576.0;

/// Runs each case; fails if one inside the admitted load loses a byte.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let only = std::env::var("HOLDFAST_ONLY").unwrap_or_default();
    let scene = Scene::new(scale)?;
    let mut report = Report::new("disturbers", scale);
    let mut rows = vec![row![
        "what disturbs",
        "sent MiB",
        "recorded MiB",
        "gaps",
        "lost MiB",
        "least slack (kept)",
        "read off the drive MiB/s",
        "note",
        "verdict"
    ]];
    let mut broken = Vec::new();
    for case in cases().iter().filter(|case| case.name.contains(&only)) {
        let outcome = match play(&scene, case) {
            Ok(outcome) => outcome,
            Err(BenchError::Skipped { reason }) => {
                println!("{}: skipped: {reason}", case.name);
                continue;
            }
            Err(error) => return Err(error),
        };
        let Some(outcome) = outcome else {
            println!("{}: given up, the machine is too slow for the model", case.name);
            continue;
        };
        // What a tiny run loses depends on the machine; its books balance all the same.
        if scale == Scale::Real {
            println!("{}", show(case, &outcome).join(" | "));
            if !outcome.kept {
                broken.push(case.name);
            }
        }
        rows.push(show(case, &outcome));
    }
    report.table(&rows);
    report.finish()?;
    if broken.is_empty() {
        return Ok(());
    }
    Err(BenchError::Accounting(format!("not as it has to be: {}", broken.join(", "))))
}

fn show(case: &Case, outcome: &CaseOutcome) -> Vec<String> {
    let CaseOutcome { sent, summary, margin, read, note, discarded, kept, .. } = outcome;
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / MIB);
    let slack = margin.map_or("–".to_owned(), |margin| {
        format!("{:.2} s ({:.2})", margin.least.as_secs_f64(), margin.kept.as_secs_f64())
    });
    let seconds = (*sent as f64 / outcome.rate).max(1e-3);
    let reading = format!("{:.1}", *read as f64 / MIB / seconds);
    let mut notes: Vec<String> = Some(note).filter(|note| !note.is_empty()).cloned().into_iter().collect();
    notes.extend(summary.causes.iter().map(|(cause, count)| format!("{cause} {count}")));
    notes.extend((*discarded > 0).then(|| format!("{discarded} discarded")));
    let verdict = match (case.covered, kept) {
        (true, true) => "nothing lost",
        (true, false) => "**LOST**",
        (false, true) => "exact gaps",
        (false, false) => "**no gap**",
    };
    row![
        case.name,
        mib(*sent),
        mib(summary.bytes),
        summary.gaps,
        mib(summary.lost),
        slack,
        reading,
        notes.join("; "),
        verdict
    ]
}
