//! Notes on a profile: what a person should know before relying on it.

use holdfast_client::times;
use holdfast_media::Profile;

/// Notes on a profile, in sentences.
pub fn profile_notes(profile: &Profile) -> Vec<String> {
    let mut notes = Vec::new();
    if let holdfast_media::ReadError::Assumed(limit) = profile.read_error {
        notes.push(format!(
            "how long it tries to read a bad place is not known: {} are assumed",
            times::spoken(limit)
        ));
    }
    let turns = profile.device.rotational;
    if turns != Some(false) {
        notes.push(
            "a shingled drive (overlapping tracks, SMR) that hides it looks like any other, and can be promised nothing: \
             the maker's data sheet tells"
                .to_owned(),
        );
    }
    // Where there is a head, a place takes as long before it was written.
    if !profile.preconditioned && turns != Some(true) {
        notes.push(
            "not every place had been written before it was measured: a flash device looks too fast then"
                .to_owned(),
        );
    }
    if profile.write_cache == Some(true) {
        let what = "it has a volatile write cache: every slot waits until that is flushed, which was measured with it";
        notes.push(what.to_owned());
    }
    notes.extend(profile.remarks.iter().cloned());
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile_file::tests::paper;

    #[test]
    fn what_turns_need_not_have_been_written_and_may_hide_its_zones() {
        let say = |rotational| {
            let mut found = Profile { preconditioned: false, ..paper() };
            found.device.rotational = rotational;
            profile_notes(&found).join("\n")
        };
        let turns = say(Some(true));
        assert!(turns.contains("shingled") && !turns.contains("flash device"), "{turns}");
        let flash = say(Some(false));
        assert!(!flash.contains("shingled") && flash.contains("flash device"), "{flash}");
        let unknown = say(None);
        assert!(unknown.contains("shingled") && unknown.contains("flash device"), "{unknown}");
    }
}
