//! Where a list goes on: an opaque token around the id of the last item of a page.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// First byte: a later format can tell its own cursors from today's.
const VERSION: u8 = 1;
const TAG_BYTES: usize = 8;
const LENGTH: usize = 1 + 16 + TAG_BYTES;

/// The position after one document in one owner's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The last document that the reader has seen.
    pub(crate) after: Uuid,
}

impl Cursor {
    /// The token for `owner`. The tag ties it to the list that it came from and catches a mangled one; it is no secret,
    /// because a forged cursor opens nothing: the list is the caller's own whatever the cursor says.
    pub(crate) fn encode(self, owner: Uuid) -> String {
        let mut token = [0; LENGTH];
        token[0] = VERSION;
        token[1..17].copy_from_slice(self.after.as_bytes());
        token[17..].copy_from_slice(&tag(owner, self.after));
        URL_SAFE_NO_PAD.encode(token)
    }

    /// Reads a token that [`Cursor::encode`] made for `owner`; `None` for everything else.
    pub(crate) fn decode(token: &str, owner: Uuid) -> Option<Self> {
        let bytes: [u8; LENGTH] = URL_SAFE_NO_PAD.decode(token).ok()?.try_into().ok()?;
        let after = Uuid::from_slice(&bytes[1..17]).ok()?;
        (bytes[0] == VERSION && bytes[17..] == tag(owner, after)).then_some(Self { after })
    }
}

fn tag(owner: Uuid, after: Uuid) -> [u8; TAG_BYTES] {
    let hash = Sha256::new().chain_update([VERSION]).chain_update(owner).chain_update(after).finalize();
    std::array::from_fn(|i| hash[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Uuid = Uuid::from_u128(7);
    const AFTER: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);

    #[test]
    fn a_cursor_survives_the_round_trip_and_fits_a_url() {
        let token = Cursor { after: AFTER }.encode(OWNER);
        assert_eq!(Cursor::decode(&token, OWNER), Some(Cursor { after: AFTER }));
        assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{token}");
    }

    #[test]
    fn a_cursor_of_another_owner_is_not_ours() {
        let token = Cursor { after: AFTER }.encode(OWNER);
        assert_eq!(Cursor::decode(&token, Uuid::from_u128(8)), None);
    }

    #[test]
    fn a_mangled_cursor_is_not_ours() {
        let token = Cursor { after: AFTER }.encode(OWNER);
        let mut changed = token.clone().into_bytes();
        for position in 0..changed.len() {
            changed[position] ^= 1;
            let text = String::from_utf8_lossy(&changed).into_owned();
            assert_eq!(Cursor::decode(&text, OWNER), None, "{text}");
            changed[position] ^= 1;
        }
        for text in [
            "",
            "x",
            "AAAA",
            &token[1..],
            &format!("{token}="),
            &format!("{token}A"),
            &"A".repeat(10_000),
            "' OR 1=1 --",
        ] {
            assert_eq!(Cursor::decode(text, OWNER), None, "{text}");
        }
    }
}
