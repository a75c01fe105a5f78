//! Metadata of many objects in the catalog and in iRODS's schema: loading them, changing triples, and questions about one, two
//! and three attributes; the figures 8a to 8d of the paper on `PetaShare`.

use crate::metadata::database::{CatalogDatabase, MetadataDatabase, TripleChange};
use crate::metadata::irods::IrodsDatabase;
use crate::metadata::objects::{self, IN_COLLECTION};
use crate::metadata::postgres_server::PostgresServer;
use crate::metadata::questions::questions;
use crate::plot::{Line, Plot, Style};
use crate::report::{Goal, Report};
use crate::rounds::Spread;
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, row};
use holdfast_catalog::{PostgresStore, SqliteStore};
use std::time::{Duration, Instant};

/// Triples of an object.
const TRIPLES: u64 = 10;

/// Space of an object in a file of `SQLite`, with its operation.
const OBJECT_BYTES: u64 = 8 << 10;

/// Longest time to load 10⁶ objects, in seconds.
const LOAD_SECONDS: f64 = 600.0;

/// Longest time of a question, in milliseconds.
const QUESTION_MS: f64 = 50.0;

/// Time for the questions of one database about one number of conditions: a slow one answers fewer.
const QUESTIONS_TIME: Duration = Duration::from_mins(1);

const SQLITE: &str = "SQLite";
const POSTGRES: &str = "PostgreSQL";
const IRODS: &str = "iRODS's schema, PostgreSQL";

/// Database with its name in the tables.
struct Contestant {
    name: &'static str,
    database: Box<dyn MetadataDatabase>,
}

impl Contestant {
    fn new(name: &'static str, database: impl MetadataDatabase + 'static) -> Self {
        Self { name, database: Box::new(database) }
    }
}

/// Kind of a change of triples.
#[derive(Clone, Copy)]
enum Change {
    Insert,
    Modify,
    Delete,
}

/// Changes in the order of a round, with their names, the paper's time for 100 000 triples, and its figure.
const CHANGES: [(Change, &str, &str, &str); 3] = [
    (Change::Insert, "insert", "days", "figure-8a"),
    (Change::Modify, "modify", "days", "figure-8c"),
    (Change::Delete, "delete", "hours", "figure-8b"),
];

/// Lines of a figure, one for each database.
fn lines<'a>(contestants: impl Iterator<Item = &'a Contestant>) -> Vec<Line> {
    let line = |(colour, contestant): (usize, &Contestant)| Line {
        name: contestant.name.to_owned(),
        colour,
        style: Style::Ours,
        points: Vec::new(),
    };
    contestants.enumerate().map(line).collect()
}

/// Number of objects of a run: `HOLDFAST_CATALOG_OBJECTS`, by default a million.
fn number(scale: Scale) -> Result<u64, BenchError> {
    let Some(text) = std::env::var("HOLDFAST_CATALOG_OBJECTS").ok().filter(|_| scale == Scale::Real) else {
        return Ok(scale.pick(2 * IN_COLLECTION, 1_000_000));
    };
    let number = text.parse().ok().filter(|number| *number > 0 && number % IN_COLLECTION == 0);
    number.ok_or_else(|| {
        BenchError::skipped(format!(
            "HOLDFAST_CATALOG_OBJECTS is `{text}`: give a multiple of {IN_COLLECTION}"
        ))
    })
}

fn contestants(place: &WorkFolder, server: Option<&PostgresServer>) -> Result<Vec<Contestant>, BenchError> {
    let file = place.file("catalog");
    let mut all = vec![Contestant::new(SQLITE, CatalogDatabase::new(move || SqliteStore::open(&file))?)];
    if let Some(server) = server {
        let connection = server.connection();
        let catalog = CatalogDatabase::new(move || PostgresStore::connect(&connection, "catalog"))?;
        all.push(Contestant::new(POSTGRES, catalog));
        all.push(Contestant::new(IRODS, IrodsDatabase::new(server.connect("irods")?)?));
    }
    Ok(all)
}

/// Measures the load of all objects, in batches of a collection.
fn load(contestants: &mut [Contestant], objects: u64, report: &mut Report) -> Result<(), BenchError> {
    report.say(&format!(
        "Load of {objects} objects with {TRIPLES} triples each, {IN_COLLECTION} objects in a transaction. The catalog also \
         writes an operation for each object into its log."
    ));
    let mut rows = vec![row!["database", "s", "objects/s", "triples/s", "verdict"]];
    for Contestant { name, database } in contestants {
        let began = Instant::now();
        for first in (0..objects).step_by(IN_COLLECTION as usize) {
            database.load(first..first + IN_COLLECTION, objects::triples)?;
        }
        let seconds = began.elapsed().as_secs_f64();
        let rate = objects as f64 / seconds;
        let goal = Goal::AtMost((LOAD_SECONDS * objects as f64 / 1e6).round());
        let verdict = if *name == IRODS { String::new() } else { goal.verdict(&Spread::of([seconds])) };
        rows.push(row![
            name,
            format!("{seconds:.1}"),
            format!("{rate:.0}"),
            format!("{:.0}", rate * TRIPLES as f64),
            verdict
        ]);
        database.settle()?;
    }
    report.table(&rows);
    Ok(())
}

/// Time of a change of all triples of the objects behind the loaded ones.
fn change(
    database: &mut dyn MetadataDatabase,
    kind: Change,
    first: u64,
    count: u64,
) -> Result<f64, BenchError> {
    let made = |number| {
        let (old, new) = (objects::triples(number), objects::triples(number + first));
        let (removed, added) = match kind {
            Change::Insert => (Vec::new(), old),
            Change::Modify => (old, new),
            Change::Delete => (new, Vec::new()),
        };
        TripleChange { number, removed, added }
    };
    let changes: Vec<_> = (first..first + count).map(made).collect();
    let began = Instant::now();
    changes.chunks(IN_COLLECTION as usize).try_for_each(|part| database.change(part))?;
    Ok(began.elapsed().as_secs_f64())
}

/// Measures rounds of inserting, modifying and deleting the triples of objects that have none.
fn changes(
    contestants: &mut [Contestant],
    objects: u64,
    scale: Scale,
    report: &mut Report,
) -> Result<(), BenchError> {
    let most = scale.pick(IN_COLLECTION, 10_000);
    for Contestant { database, .. } in contestants.iter_mut() {
        for first in (objects..objects + most).step_by(IN_COLLECTION as usize) {
            database.load(first..first + IN_COLLECTION, |_| Vec::new())?;
        }
    }
    report.say(&format!(
        "Changes of triples (figures 8a to 8c), {TRIPLES} of each object, up to {IN_COLLECTION} objects in a transaction: \
         seconds, and triples a second. The paper's times are for 100000 triples in iRODS."
    ));
    let names = contestants.iter().map(|contestant| contestant.name.to_owned());
    let with_irods = contestants.len() == 3;
    let ratio = with_irods.then(|| "iRODS's schema to PostgreSQL".to_owned());
    let head = ["change".to_owned(), "triples".to_owned()].into_iter().chain(names).chain(ratio);
    let mut rows = vec![head.chain(["paper".to_owned()]).collect::<Vec<_>>()];
    let mut figures = CHANGES.map(|_| lines(contestants.iter()));
    for count in scale.pick(&[1, 10][..], &[1, 10, 100, 1000, 10_000]) {
        let rounds = scale.pick(1, 3);
        let mut times = vec![[const { Vec::new() }; CHANGES.len()]; contestants.len()];
        for round in 0..rounds {
            for turn in 0..contestants.len() {
                let at = (round + turn) % contestants.len();
                for (place, (kind, ..)) in CHANGES.iter().enumerate() {
                    let database = &mut *contestants[at].database;
                    times[at][place].push(change(database, *kind, objects, *count)?);
                }
            }
        }
        for (place, (_, name, paper, _)) in CHANGES.iter().enumerate() {
            let triples = count * TRIPLES;
            let mut row = row![name, triples];
            for (line, of) in figures[place].iter_mut().zip(&times) {
                line.points.push((triples as f64, Spread::of(of[place].iter().copied()).median));
            }
            row.extend(times.iter().map(|of| {
                let spread = Spread::of(of[place].iter().copied());
                format!("{} s, {:.0}/s", spread.show(3), triples as f64 / spread.median)
            }));
            if with_irods {
                let pairs = times[2][place].iter().zip(&times[1][place]);
                row.push(Spread::of(pairs.map(|(irods, ours)| irods / ours)).show(1));
            }
            row.push(if triples == 100_000 { (*paper).to_owned() } else { String::new() });
            rows.push(row);
        }
    }
    report.table(&rows);
    for ((_, name, _, figure), lines) in CHANGES.iter().zip(figures) {
        let title = format!("{name} triples of {objects} objects, as figure 8 of the paper");
        let (across, up) = ("triples".to_owned(), "seconds".to_owned());
        report.figure(figure, &Plot { title, across, up, lines })?;
    }
    Ok(())
}

/// Measures many different questions with small results.
fn ask(
    contestants: &mut [Contestant],
    objects: u64,
    scale: Scale,
    report: &mut Report,
) -> Result<(), BenchError> {
    let count = scale.pick(8, 200);
    report.say(&format!(
        "Questions with small results (figure 8d): up to {count} different ones for each number of conditions, each asked \
         once. A quarter of those with three conditions has none that is selective by itself. The paper needs several minutes."
    ));
    let mut rows = vec![row![
        "conditions",
        "database",
        "questions",
        "median ms",
        "95 % ms",
        "slowest ms",
        "matches",
        "verdict"
    ]];
    let mut figure = lines(contestants.iter());
    for conditions in 1..=3 {
        let all = questions(conditions, count, objects);
        let mut expected: Vec<usize> = Vec::new();
        for (place, Contestant { name, database }) in contestants.iter_mut().enumerate() {
            let (mut times, mut matches) = (Vec::new(), Vec::new());
            let began = Instant::now();
            for question in &all {
                if began.elapsed() > QUESTIONS_TIME {
                    break;
                }
                let asked = Instant::now();
                let found = database.ask(question)?;
                times.push(asked.elapsed().as_secs_f64() * 1000.0);
                if let Some(wanted) = expected.get(matches.len()).filter(|wanted| **wanted != found) {
                    let reason = format!("`{question}` has {wanted} matches, and {found} in {name}");
                    return Err(BenchError::accounting(reason));
                }
                matches.push(found);
            }
            times.sort_unstable_by(f64::total_cmp);
            let spread = Spread::of(times.iter().copied());
            let late = times[(times.len() * 95 / 100).min(times.len() - 1)];
            figure[place].points.push((conditions as f64, spread.median));
            let found = Spread::of(matches.iter().map(|found| *found as f64)).show(0);
            let goal = Goal::AtMost(QUESTION_MS);
            let verdict = if *name == IRODS { String::new() } else { goal.verdict(&spread) };
            rows.push(row![
                conditions,
                name,
                times.len(),
                format!("{:.2}", spread.median),
                format!("{late:.2}"),
                format!("{:.2}", spread.most),
                found,
                verdict
            ]);
            if matches.len() > expected.len() {
                expected = matches;
            }
        }
    }
    report.table(&rows);
    // The time does not depend on the number of triples, so it stands over the number of conditions.
    let title = format!("questions about {objects} objects, the median time, as figure 8 d of the paper");
    let (across, up) = ("conditions".to_owned(), "milliseconds".to_owned());
    report.figure("figure-8d", &Plot { title, across, up, lines: figure })
}

/// Measures metadata of many objects beside iRODS's schema.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let objects = number(scale)?;
    let place = WorkFolder::with_room(objects * OBJECT_BYTES)?;
    let server = PostgresServer::start(scale)?;
    let mut report = Report::new("catalog", scale);
    report.say(
        "The catalog in SQLite and in PostgreSQL beside iRODS's tables in the same PostgreSQL. All commits are durable, and \
         PostgreSQL has its default settings.",
    );
    if server.is_none() {
        report.say("Skipped: PostgreSQL, which is not installed.");
    }
    let mut contestants = contestants(&place, server.as_ref())?;
    load(&mut contestants, objects, &mut report)?;
    changes(&mut contestants, objects, scale, &mut report)?;
    ask(&mut contestants, objects, scale, &mut report)?;
    report.finish()
}
