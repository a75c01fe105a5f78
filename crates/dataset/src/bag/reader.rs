//! Reader of a ROS bag: connections and messages in the order of the file, one chunk in memory.

use crate::bag::record::{Connection, Fields, op, record};
use crate::compression::{decompress, exactly};
use crate::damage::Damage;
use crate::error::DatasetError;
use crate::storage::RangeRead;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// First bytes of every bag of version 2.0.
const MAGIC: &[u8] = b"#ROSBAG V2.0\n";

/// Bytes of a record's header at most: connection headers have the name of their topic.
const MOST_HEADER: u32 = 1 << 20;

/// Bytes of a chunk at most, compressed or not: a message of 1 GiB.
const MOST_CHUNK: u64 = 1 << 30;

/// Bytes that are read for a record's header at first.
const AHEAD: u64 = 4096;

/// Returns true if a file begins as a ROS bag of any version does.
pub fn is_bag(path: &Path) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let mut magic = [0; 9];
    is_file
        && File::open(path).and_then(|file| file.read_exact_at(&mut magic, 0)).is_ok()
        && magic == *b"#ROSBAG V"
}

/// Connection or message of a bag.
pub(crate) enum BagItem<'a> {
    /// Connection that was not there before.
    Connection(&'a Connection),
    /// Message of a connection that was given before.
    Message { connection: u32, time: u64, data: &'a [u8] },
}

type Sink<'a> = dyn FnMut(BagItem<'_>) -> Result<(), DatasetError> + 'a;

/// Reads all whole records of a bag. Damage is returned: chunks that are damaged are left out, and the reading ends where
/// the borders of records are lost.
pub(crate) fn read_bag(
    file: &dyn RangeRead,
    sink: &mut Sink<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<Damage>, DatasetError> {
    let size = file.size();
    let magic = file.read(0, usize::try_from(size).unwrap_or(usize::MAX).min(MAGIC.len()))?;
    if magic != MAGIC {
        let line = magic.split(|byte| *byte == b'\n').next().unwrap_or_default();
        return Err(DatasetError::NoBag(match line.strip_prefix(b"#ROSBAG V") {
            Some(version) => {
                format!(
                    "it has version {}, and version 2.0 is read; `rosbag fix` converts it",
                    version.escape_ascii()
                )
            }
            None => "it does not begin with `#ROSBAG V2.0`".to_owned(),
        }));
    }
    let mut reader = Reader { file, size, connections: HashMap::new(), messages: 0, damage: None };
    let index = reader.index(sink)?;
    reader.records(MAGIC.len() as u64, sink, progress)?;
    let Some(index) = index else { return Ok(reader.damage) };
    if reader.damage.is_none() && index.position == 0 {
        reader.damaged(size, "it has no index: its recorder was killed, or still writes".to_owned());
    } else if reader.damage.is_none() && index.position > size {
        reader.damaged(size, format!("its index lies at byte {}, and the file ends before", index.position));
    } else if reader.damage.is_none() && reader.connections.len() as u64 != u64::from(index.connections) {
        let (found, stated) = (reader.connections.len(), index.connections);
        reader.damaged(size, format!("it has {found} connections, and its header states {stated}"));
    } else if reader.damage.is_none() && index.messages != Some(reader.messages) {
        let of = index.messages.map_or_else(|| "other".to_owned(), |messages| messages.to_string());
        reader.damaged(size, format!("it has {} messages, and its index {of}", reader.messages));
    }
    Ok(reader.damage)
}

/// Index at the end of a bag.
struct Index {
    /// Offset of the index; 0 in a bag that was not closed.
    position: u64,
    /// Number of connections, as the header of the bag states it.
    connections: u32,
    /// Number of messages; none if the index is damaged.
    messages: Option<u64>,
}

struct Reader<'f> {
    file: &'f dyn RangeRead,
    size: u64,
    connections: HashMap<u32, Connection>,
    messages: u64,
    damage: Option<Damage>,
}

/// Place of a record: its header, and where its data lies.
struct Place {
    header: bytes::Bytes,
    data: u64,
    length: u32,
}

impl Place {
    fn end(&self) -> u64 {
        self.data + u64::from(self.length)
    }
}

impl Reader<'_> {
    fn damaged(&mut self, at: u64, cause: String) {
        Damage::note(&mut self.damage, at, cause);
    }

    /// The record at an offset; its data lies in the file.
    fn place(&self, at: u64) -> Result<Result<Place, String>, DatasetError> {
        let cut = || Ok(Err("it is cut off: the file ends in it".to_owned()));
        let left = self.size.saturating_sub(at);
        let mut bytes = self.file.read(at, left.min(AHEAD) as usize)?;
        let Some(length) = bytes.first_chunk().map(|length| u32::from_le_bytes(*length)) else {
            return cut();
        };
        if length > MOST_HEADER {
            return Ok(Err(format!("its header has {length} bytes, and {MOST_HEADER} at most are read")));
        }
        let whole = 8 + length as usize;
        if whole as u64 > left {
            return cut();
        }
        if bytes.len() < whole {
            bytes = self.file.read(at, whole)?;
        }
        let header = bytes.slice(4..whole - 4);
        let Some(length) = bytes[whole - 4..].first_chunk().map(|length| u32::from_le_bytes(*length)) else {
            return cut();
        };
        let place = Place { header, data: at + whole as u64, length };
        if place.end() > self.size { cut() } else { Ok(Ok(place)) }
    }

    /// Data of a record.
    fn data(&self, place: &Place) -> Result<Result<bytes::Bytes, String>, DatasetError> {
        if u64::from(place.length) > MOST_CHUNK {
            return Ok(Err(format!("it has {} bytes, and {MOST_CHUNK} at most are read", place.length)));
        }
        Ok(Ok(self.file.read(place.data, place.length as usize)?))
    }

    /// Reads the index: connections, so that they are known though their first record may be damaged, and the number of
    /// messages. `None`: the header of the bag is damaged.
    fn index(&mut self, sink: &mut Sink<'_>) -> Result<Option<Index>, DatasetError> {
        let header = self.place(MAGIC.len() as u64)?.and_then(|place| {
            let fields = Fields::parse(&place.header)?;
            if fields.op()? != op::BAG_HEADER {
                return Err("it is no bag header".to_owned());
            }
            Ok((fields.u64("index_pos")?, fields.u32("conn_count")?))
        });
        let (position, connections) = match header {
            Ok(header) => header,
            Err(cause) => {
                self.damaged(MAGIC.len() as u64, cause);
                return Ok(None);
            }
        };
        let mut index = Index { position, connections, messages: Some(0) };
        let mut at = position;
        if at < MAGIC.len() as u64 {
            return Ok(Some(index));
        }
        while at < self.size {
            let Ok(place) = self.place(at)? else {
                index.messages = None;
                break;
            };
            let counted = self.indexed(&place, sink)?;
            index.messages = index.messages.and_then(|sum| sum.checked_add(counted.ok()?));
            at = place.end();
        }
        Ok(Some(index))
    }

    /// Record of the index; the messages of the chunk that it is of.
    fn indexed(&mut self, place: &Place, sink: &mut Sink<'_>) -> Result<Result<u64, String>, DatasetError> {
        let fields = match Fields::parse(&place.header) {
            Ok(fields) => fields,
            Err(cause) => return Ok(Err(cause)),
        };
        match fields.op() {
            Ok(op::CONNECTION) => {
                let connection = self.data(place)?.and_then(|data| Connection::parse(&fields, &data));
                let given = connection.map(|connection| self.connection(connection, sink));
                Ok(match given {
                    Ok(given) => given?.map(|()| 0),
                    Err(cause) => Err(cause),
                })
            }
            Ok(op::CHUNK_INFO) => Ok(self.data(place)?.map(|data| {
                // Pairs of connection and count.
                data.as_chunks::<8>()
                    .0
                    .iter()
                    .map(|[.., a, b, c, d]| u64::from(u32::from_le_bytes([*a, *b, *c, *d])))
                    .sum()
            })),
            Ok(_) => Ok(Ok(0)),
            Err(cause) => Ok(Err(cause)),
        }
    }

    /// Gives a connection, unless it was given before.
    fn connection(
        &mut self,
        connection: Connection,
        sink: &mut Sink<'_>,
    ) -> Result<Result<(), String>, DatasetError> {
        match self.connections.get(&connection.id) {
            Some(known) if *known == connection => {}
            Some(_) => return Ok(Err(format!("connection {} was another before", connection.id))),
            None => {
                sink(BagItem::Connection(&connection))?;
                self.connections.insert(connection.id, connection);
            }
        }
        Ok(Ok(()))
    }

    /// Reads all records from an offset on.
    fn records(
        &mut self,
        mut at: u64,
        sink: &mut Sink<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), DatasetError> {
        while at < self.size {
            let place = match self.place(at)? {
                Ok(place) => place,
                Err(cause) => {
                    self.damaged(at, cause);
                    return Ok(());
                }
            };
            let end = place.end();
            let read = match Fields::parse(&place.header).and_then(|fields| Ok((fields.op()?, fields))) {
                Ok((op::CHUNK, fields)) => {
                    let read = self.data(&place)?.and_then(|data| chunk(&fields, &data));
                    let read = match read {
                        Ok(records) => self.messages(&records, sink)?,
                        Err(cause) => Err(cause),
                    };
                    if let Err(cause) = &read {
                        self.damaged(at, cause.clone());
                        if let Some(damage) = &mut self.damage {
                            damage.lost_chunks += 1;
                        }
                    }
                    read
                }
                Ok((op::CONNECTION | op::MESSAGE, _)) => {
                    let bytes = self.file.read(at, usize::try_from(end - at).unwrap_or(usize::MAX))?;
                    self.messages(&bytes, sink)?
                }
                Ok(_) => Ok(()),
                Err(cause) => Err(cause),
            };
            if let Err(cause) = read {
                self.damaged(at, cause);
            }
            at = end;
            progress(at);
        }
        Ok(())
    }

    /// Gives the connections and messages of a chunk's records; either all of them or none.
    fn messages(&mut self, records: &[u8], sink: &mut Sink<'_>) -> Result<Result<(), String>, DatasetError> {
        let mut connections = Vec::new();
        let mut messages = Vec::new();
        let mut rest = records;
        let mut parse = || -> Result<(), String> {
            while !rest.is_empty() {
                let (header, data, behind) = record(rest).ok_or("a record in it is cut off")?;
                let fields = Fields::parse(header)?;
                match fields.op()? {
                    op::CONNECTION => connections.push(Connection::parse(&fields, data)?),
                    op::MESSAGE => {
                        let connection = fields.u32("conn")?;
                        let is_known = self.connections.contains_key(&connection)
                            || connections.iter().any(|known: &Connection| known.id == connection);
                        if !is_known {
                            return Err(format!(
                                "a message in it is of connection {connection}, which is unknown"
                            ));
                        }
                        messages.push((connection, fields.time("time")?, data));
                    }
                    other => return Err(format!("a record in it has the unknown kind {other}")),
                }
                rest = behind;
            }
            Ok(())
        };
        if let Err(cause) = parse() {
            return Ok(Err(cause));
        }
        for connection in connections {
            if let Err(cause) = self.connection(connection, sink)? {
                return Ok(Err(cause));
            }
        }
        self.messages += messages.len() as u64;
        for (connection, time, data) in messages {
            sink(BagItem::Message { connection, time, data })?;
        }
        Ok(Ok(()))
    }
}

/// Decompressed records of a chunk.
fn chunk(fields: &Fields<'_>, data: &[u8]) -> Result<Vec<u8>, String> {
    let size = fields.u32("size")?;
    if u64::from(size) > MOST_CHUNK {
        return Err(format!("it states {size} bytes, and {MOST_CHUNK} at most are read"));
    }
    let size = size as usize;
    let records = match &*fields.text("compression")? {
        "none" => decompress("", data, size),
        "lz4" => decompress("lz4", data, size),
        "bz2" => exactly(&mut bzip2::read::MultiBzDecoder::new(data), size),
        other => return Err(format!("it has the unknown compression `{other}`")),
    };
    records.map_err(|error| error.to_string())
}
