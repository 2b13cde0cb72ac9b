//! The members of a JSON object (or the parameters of a query), checked one by one, so that *all* failing fields are
//! named at once and none is silently accepted.
//!
//! Serde's derive stops at the first error, takes an array for an object, and lets the last of two equal keys win;
//! hence this reader.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::problem::{FieldError, Problem};

/// A request that can be read from named fields.
pub trait FromFields: Sized {
    /// Takes the fields it knows; `None` after an error, which [`Fields`] remembers.
    fn from_fields(fields: &mut Fields) -> Option<Self>;
}

/// Why a value is not acceptable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Stable, `snake_case`.
    pub code: &'static str,
    /// For people; never repeats the value.
    pub detail: Cow<'static, str>,
}

impl Invalid {
    /// A reason.
    pub fn new(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// The fields of one request.
#[derive(Debug)]
pub struct Fields {
    members: Vec<(String, Value)>,
    errors: Vec<FieldError>,
}

impl Fields {
    /// Parses a JSON object.
    ///
    /// # Errors
    /// 400 for broken syntax, 422 for well-formed JSON that is no object.
    pub(crate) fn from_json(bytes: &[u8]) -> Result<Self, Problem> {
        match serde_json::from_slice::<Document>(bytes) {
            Ok(Document::Object(members)) => Ok(Self::of(members)),
            Ok(Document::Other) => {
                Err(Problem::unprocessable(vec![FieldError::new("", "not_an_object", "A JSON object is expected.")]))
            }
            // Well-formed by the grammar of RFC 8259, but no value of this API is such a number.
            Err(error) if error.to_string().starts_with("number out of range") => {
                Err(Problem::unprocessable(vec![FieldError::new("", "number_out_of_range", "A number is too large.")]))
            }
            Err(error) => Err(Problem::bad_request(
                "malformed_json",
                format!("The body is not JSON (line {}, column {}).", error.line(), error.column()),
            )),
        }
    }

    /// The parameters of a query string, all of them text.
    pub(crate) fn from_pairs(pairs: Vec<(String, String)>) -> Self {
        Self::of(pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect())
    }

    fn of(mut members: Vec<(String, Value)>) -> Self {
        let mut errors = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        members.retain(|(name, _)| {
            if seen.contains(name) {
                errors.push(FieldError::new(pointer(name), "duplicate_field", "This field occurs more than once."));
                return false;
            }
            seen.push(name.clone());
            true
        });
        Self { members, errors }
    }

    /// A text that must be there.
    pub fn required<T>(&mut self, name: &'static str, parse: impl FnOnce(String) -> Result<T, Invalid>) -> Option<T> {
        match self.take(name) {
            Some(value) => self.parse(name, value, parse),
            None => self.missing(name),
        }
    }

    /// A text that may be absent or null: `Some(None)`.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(String) -> Result<T, Invalid>,
    ) -> Option<Option<T>> {
        match self.take(name) {
            None | Some(Value::Null) => Some(None),
            Some(value) => self.parse(name, value, parse).map(Some),
        }
    }

    /// A text that must be there, or an explicit null: `Some(None)`.
    pub fn required_or_null<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(String) -> Result<T, Invalid>,
    ) -> Option<Option<T>> {
        match self.take(name) {
            None => self.missing(name),
            Some(Value::Null) => Some(None),
            Some(value) => self.parse(name, value, parse).map(Some),
        }
    }

    /// Records an error about a field, for rules between several of them.
    pub fn error(&mut self, name: &str, invalid: Invalid) {
        self.errors.push(FieldError::new(pointer(name), invalid.code, invalid.detail));
    }

    /// Reads `T` and demands that nothing is left over.
    ///
    /// # Errors
    /// 422 with every failing field.
    pub(crate) fn read_all<T: FromFields>(mut self) -> Result<T, Problem> {
        let value = T::from_fields(&mut self);
        for (name, _) in std::mem::take(&mut self.members) {
            self.errors.push(FieldError::new(pointer(&name), "unknown_field", "This field is not known."));
        }
        self.finish(value)
    }

    /// Reads `T` and lets unknown fields be, as query strings are extended by proxies and trackers.
    ///
    /// # Errors
    /// 422 with every failing field.
    pub(crate) fn read_known<T: FromFields>(mut self) -> Result<T, Problem> {
        let value = T::from_fields(&mut self);
        self.finish(value)
    }

    fn finish<T>(self, value: Option<T>) -> Result<T, Problem> {
        match value {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ => Err(Problem::unprocessable(self.errors)),
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let position = self.members.iter().position(|(member, _)| member == name)?;
        Some(self.members.swap_remove(position).1)
    }

    fn missing<T>(&mut self, name: &str) -> Option<T> {
        self.error(name, Invalid::new("missing", "This field is required."));
        None
    }

    fn parse<T>(&mut self, name: &str, value: Value, parse: impl FnOnce(String) -> Result<T, Invalid>) -> Option<T> {
        let result = match value {
            Value::String(text) => parse(text),
            _ => Err(Invalid::new("wrong_type", "This field must be a string.")),
        };
        result.map_err(|invalid| self.error(name, invalid)).ok()
    }
}

/// A JSON pointer (RFC 6901) to a member of the top-level object. Names that clients made up are cut: the answer must
/// not echo kilobytes.
fn pointer(name: &str) -> String {
    let end = name.char_indices().nth(64).map_or(name.len(), |(index, _)| index);
    format!("/{}", name[..end].replace('~', "~0").replace('/', "~1"))
}

enum Document {
    Object(Vec<(String, Value)>),
    Other,
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Document::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Document, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Document::Other)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Document, E> {
        Ok(Document::Other)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Document, E> {
        Ok(Document::Other)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Document, E> {
        Ok(Document::Other)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Document, E> {
        Ok(Document::Other)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Document, E> {
        Ok(Document::Other)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Document, E> {
        Ok(Document::Other)
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use http::StatusCode;
    use http_body_util::BodyExt;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Example {
        email: String,
        name: Option<String>,
    }

    impl FromFields for Example {
        fn from_fields(fields: &mut Fields) -> Option<Self> {
            let email = fields.required("email", |text| {
                if text.contains('@') { Ok(text) } else { Err(Invalid::new("invalid_email", "No address.")) }
            });
            let name = fields.optional("name", Ok);
            Some(Self { email: email?, name: name? })
        }
    }

    async fn read(json: &[u8]) -> Result<Example, (u16, Vec<String>)> {
        match Fields::from_json(json).and_then(Fields::read_all) {
            Ok(example) => Ok(example),
            Err(problem) => {
                let response = problem.into_response();
                let status = response.status().as_u16();
                let bytes = response.into_body().collect().await.expect("body").to_bytes();
                let body: Value = serde_json::from_slice(&bytes).expect("json");
                let errors = body["errors"].as_array().cloned().unwrap_or_default();
                let text = |error: &Value, key: &str| error[key].as_str().unwrap_or_default().to_owned();
                Err((status, errors.iter().map(|e| text(e, "pointer") + " " + &text(e, "code")).collect()))
            }
        }
    }

    #[tokio::test]
    async fn a_fitting_object_is_read() {
        let example = read(br#"{"name":null,"email":"a@b"}"#).await.expect("valid");
        assert_eq!(example, Example { email: "a@b".into(), name: None });
    }

    #[tokio::test]
    async fn broken_syntax_is_400() {
        let deep = [b"{\"a\":".repeat(10_000), b"[".repeat(10_000)].concat();
        for json in [
            &b""[..],
            b"{",
            b"{\"email\":\"a@b\"} x",
            b"{'email':1}",
            b"\xff\xfe",
            b"{\"email\":\"\xff\"}",
            br#"{"email":"\ud800"}"#,
            b"nul",
            b"[1,2",
            &deep,
        ] {
            let (status, _) = read(json).await.expect_err("broken");
            assert_eq!(status, StatusCode::BAD_REQUEST, "{}", String::from_utf8_lossy(&json[..json.len().min(40)]));
        }
    }

    #[tokio::test]
    async fn well_formed_but_not_an_object_is_422() {
        for json in [&b"[]"[..], b"[\"a@b\"]", b"1", b"-1", b"1.5", b"\"x\"", b"null", b"true", br#"{"email":1e999}"#] {
            let (status, _) = read(json).await.expect_err("unfit");
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{}", String::from_utf8_lossy(json));
        }
    }

    #[tokio::test]
    async fn all_failing_fields_are_named_at_once() {
        let (status, errors) = read(br#"{"role":"admin","email":5,"name":[],"a/b~":1,"role":2}"#).await.expect_err("x");
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        for expected in [
            "/email wrong_type",
            "/name wrong_type",
            "/role unknown_field",
            "/role duplicate_field",
            "/a~1b~0 unknown_field",
        ] {
            assert!(errors.contains(&expected.to_owned()), "{expected} missing in {errors:?}");
        }
        assert_eq!(read(b"{}").await.expect_err("x").1, ["/email missing"]);
    }

    #[tokio::test]
    async fn the_second_of_two_equal_keys_never_wins() {
        let (_, errors) = read(br#"{"email":"a@b","email":"c@d"}"#).await.expect_err("duplicate");
        assert_eq!(errors, ["/email duplicate_field"]);
    }

    #[tokio::test]
    async fn made_up_names_are_not_echoed_at_length() {
        let json = format!(r#"{{"email":"a@b","{}":1}}"#, "x".repeat(10_000));
        let (_, errors) = read(json.as_bytes()).await.expect_err("unknown");
        assert!(errors[0].len() < 100);
    }
}
