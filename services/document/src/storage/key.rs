//! Names of objects. They are made of two ids; nothing that a client sends gets into one.

use std::fmt;

use uuid::Uuid;

/// Everything under this prefix belongs to the service; the sweeper looks nowhere else.
pub(crate) const PREFIX: &str = "documents/";

/// Whose document it is and which: what identifies a row and its object alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentKey {
    /// The `sub` of the token that uploaded it.
    pub owner_id: Uuid,
    /// `UUIDv7`.
    pub id: Uuid,
}

impl DocumentKey {
    /// Reads the name of an object; `None` where it is none of ours.
    pub(crate) fn parse(object: &str) -> Option<Self> {
        let (owner, id) = object.strip_prefix(PREFIX)?.split_once('/')?;
        let key = Self { owner_id: owner.parse().ok()?, id: id.parse().ok()? };
        // Uuid's parser takes several spellings; only one of them is an object of ours.
        (key.to_string() == object).then_some(key)
    }
}

/// The name of the object: `documents/<owner>/<document>`.
impl fmt::Display for DocumentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}/{}", self.owner_id, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_from_its_object() {
        let key = DocumentKey { owner_id: Uuid::from_u128(1), id: Uuid::from_u128(2) };
        let object = "documents/00000000-0000-0000-0000-000000000001/00000000-0000-0000-0000-000000000002";
        assert_eq!(key.to_string(), object);
        assert_eq!(DocumentKey::parse(object), Some(key));
    }

    #[test]
    fn objects_of_others_are_not_ours() {
        let id = Uuid::from_u128(1);
        for object in [
            String::new(),
            "documents/".to_owned(),
            format!("documents/{id}"),
            format!("documents/{id}/"),
            format!("documents/{id}/{id}/x"),
            format!("documents/{id}/{}", id.simple()),
            format!("documents/{{{id}}}/{id}"),
            format!("other/{id}/{id}"),
            format!("/documents/{id}/{id}"),
            "documents/../x".to_owned(),
        ] {
            assert_eq!(DocumentKey::parse(&object), None, "{object}");
        }
    }
}
