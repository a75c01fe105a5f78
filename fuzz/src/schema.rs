//! Schemas, as typed and as kept, and counters as typed.

use holdfast_attributes::{Counter, Schema};

/// What is read is written as something that is read as the same.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<Counter>() {
        Ok(counter) => assert_eq!(counter.to_string().parse(), Ok(counter)),
        Err(error) => assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}"),
    }
    for schema in [Schema::parse(text), Schema::typed(text.split('\n')), Schema::typed([text])] {
        match schema {
            Ok(schema) => assert_eq!(Schema::parse(&schema.text()), Ok(schema)),
            Err(error) => assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}"),
        }
    }
}

/// Attributes of every kind, and ready-made lists.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "temp:float=json:sensors[0].temp,unit=K,comment=mixer\nbeam:uint=at:4:u16be\n",
        "event_time:time=json:\"odd.key\"[3].\"\\\"\\\\\",unit=ms",
        "frame:uint=at:4:u32le:bits0..24\nsnr:float=at:8:f32le\nsite:text=at:65528:text8\nx:binary=at:0:bytes1024",
        "a:ip=packet:src\nb:time=vdif:event_time\nc:uint=spead:heap,comment=a, b",
        "packets",
        "packets:src,dst\nvdif:frame\nspead",
        "none",
        "at:2:u16be,flow=at:8:u32be:bits0..9",
        "rtp",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
