//! One byte range of a download: RFC 9110 §14.

/// What a `Range` header asks of a representation of a known length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selected {
    /// Everything: there is no range, or one that is to be ignored.
    Whole,
    /// A non-empty part: 206.
    Part(ByteRange),
    /// A well-formed range that no byte lies in: 416.
    Unsatisfiable,
}

/// First and last position, both inclusive and inside the representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl ByteRange {
    /// Number of bytes, at least one.
    pub(crate) fn length(self) -> u64 {
        self.last - self.first + 1
    }
}

/// Reads a `Range` value against a length. What is malformed, in another unit, or asks for several parts is ignored, as
/// §14.2 allows: one answer of several parts costs more than the whole file, and is how ranges are abused.
///
/// An empty file has no byte for `0-` (416); its last n bytes are all of it, for which there is no `Content-Range`, so a
/// suffix is answered with the whole, empty file.
pub(crate) fn select(header: &str, length: u64) -> Selected {
    parse(header, length).unwrap_or(Selected::Whole)
}

/// `None` for what is to be ignored.
fn parse(header: &str, length: u64) -> Option<Selected> {
    let (unit, set) = header.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    // Empty elements of a list are to be skipped (§5.6.1.2).
    let mut specs = set.split(',').map(|spec| spec.trim_matches([' ', '\t'])).filter(|spec| !spec.is_empty());
    let (spec, None) = (specs.next()?, specs.next()) else { return None };
    let (first, last) = spec.split_once('-')?;
    if first.is_empty() {
        let count = position(last)?;
        return Some(match (count, length) {
            (0, _) => Selected::Unsatisfiable,
            (_, 0) => Selected::Whole,
            _ => Selected::Part(ByteRange { first: length.saturating_sub(count), last: length - 1 }),
        });
    }
    let first = position(first)?;
    let last = if last.is_empty() { u64::MAX } else { position(last)? };
    if last < first {
        return None;
    }
    Some(match length {
        _ if first >= length => Selected::Unsatisfiable,
        _ => Selected::Part(ByteRange { first, last: last.min(length - 1) }),
    })
}

/// Digits only: `parse` alone would take a plus sign. A number beyond 64 bits is beyond every file.
fn position(digits: &str) -> Option<u64> {
    let only_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    only_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first: u64, last: u64) -> Selected {
        Selected::Part(ByteRange { first, last })
    }

    #[test]
    fn satisfiable_ranges_are_cut_to_the_file() {
        for (header, expected) in [
            ("bytes=0-0", part(0, 0)),
            ("bytes=0-9", part(0, 9)),
            ("bytes=0-10", part(0, 9)),
            ("bytes=3-", part(3, 9)),
            ("bytes=9-", part(9, 9)),
            ("bytes=-1", part(9, 9)),
            ("bytes=-10", part(0, 9)),
            ("bytes=-11", part(0, 9)),
            ("bytes=0-99999999999999999999999", part(0, 9)),
            ("bytes=-99999999999999999999999", part(0, 9)),
            ("Bytes= 2-3 ", part(2, 3)),
            ("bytes=,2-3,", part(2, 3)),
        ] {
            assert_eq!(select(header, 10), expected, "{header}");
        }
        assert_eq!(ByteRange { first: 2, last: 3 }.length(), 2);
    }

    #[test]
    fn ranges_without_a_byte_in_them_are_unsatisfiable() {
        for header in ["bytes=10-", "bytes=999999-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(select(header, 10), Selected::Unsatisfiable, "{header}");
        }
    }

    #[test]
    fn malformed_foreign_and_multiple_ranges_are_ignored() {
        for header in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-2",
            "bytes=a-b",
            "bytes=1",
            "bytes=+1-2",
            "bytes=1-+2",
            "bytes=--1",
            "bytes=1-2-3",
            "bytes=0-0,2-2",
            "bytes=-1,-2",
            "items=0-1",
            "bytes =0-1",
            "bytes=0x1-2",
            "bytes=1 - 2",
            "bytes=٣-٤",
        ] {
            assert_eq!(select(header, 10), Selected::Whole, "{header:?}");
        }
    }

    #[test]
    fn an_empty_file_has_no_first_byte_but_an_end() {
        assert_eq!(select("bytes=0-", 0), Selected::Unsatisfiable);
        assert_eq!(select("bytes=0-0", 0), Selected::Unsatisfiable);
        assert_eq!(select("bytes=-0", 0), Selected::Unsatisfiable);
        assert_eq!(select("bytes=-5", 0), Selected::Whole);
    }
}
