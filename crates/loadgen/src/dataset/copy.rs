//! Rows in PostgreSQL's binary COPY format (manual, "COPY", section "Binary Format").

use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// PostgreSQL counts microseconds from here.
const POSTGRES_EPOCH: OffsetDateTime = datetime!(2000-01-01 00:00:00 UTC);

/// Encodes rows one after the other.
pub(super) struct Rows {
    bytes: Vec<u8>,
    columns: i16,
}

impl Rows {
    /// Of this many columns.
    pub(super) fn of(columns: i16) -> Self {
        let mut bytes = SIGNATURE.to_vec();
        // No flags, no extension.
        bytes.extend_from_slice(&[0; 8]);
        Self { bytes, columns }
    }

    /// Begins a row; as many values must follow as there are columns.
    pub(super) fn row(&mut self) -> &mut Self {
        self.bytes.extend_from_slice(&self.columns.to_be_bytes());
        self
    }

    pub(super) fn uuid(&mut self, value: Uuid) -> &mut Self {
        self.value(value.as_bytes())
    }

    pub(super) fn text(&mut self, value: &str) -> &mut Self {
        self.value(value.as_bytes())
    }

    pub(super) fn timestamp(&mut self, value: OffsetDateTime) -> &mut Self {
        let micros = (value - POSTGRES_EPOCH).whole_microseconds();
        // PostgreSQL's own range is narrower than an i64 of microseconds.
        self.value(&i64::try_from(micros).unwrap_or(i64::MAX).to_be_bytes())
    }

    fn value(&mut self, bytes: &[u8]) -> &mut Self {
        let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Everything, with the trailer.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&(-1_i16).to_be_bytes());
        self.bytes
    }
}
