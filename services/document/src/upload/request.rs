//! What an upload request says before its first file byte.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use bytes::Bytes;
use mime::Mime;
use service_kit::Result;
use service_kit::extract::{Query, content_length};
use service_kit::fields::{Fields, FromFields};
use service_kit::problem::{FieldError, Problem};

use super::FRAMING_MAX_BYTES;
use super::multipart::MultipartReader;
use super::source::Source;
use crate::content_type::ContentType;
use crate::name::DocumentName;

/// A file whose bytes are about to arrive.
#[derive(Debug)]
pub(crate) struct IncomingFile {
    pub(super) head: FileHead,
    content: Content,
}

/// What a client says about its file.
#[derive(Debug)]
pub(super) struct FileHead {
    pub(super) name: DocumentName,
    pub(super) content_type: ContentType,
}

#[derive(Debug)]
enum Content {
    Raw(Source),
    Form(Box<MultipartReader>),
}

/// The query of a raw upload; a form names its file itself.
struct RawName(Option<DocumentName>);

impl FromFields for RawName {
    fn from_fields(fields: &mut Fields) -> Option<Self> {
        fields.optional("name", |text| DocumentName::parse(&text)).map(Self)
    }
}

impl IncomingFile {
    /// Checks everything that can be known without the file, in the order 415, 413, 400 and 422, and reads a form up to its
    /// file. Nothing of the body is read before the first checks are through, so that a client that waits for `100 Continue`
    /// learns of a refusal without sending it.
    pub(crate) async fn open(mut parts: Parts, body: Body, max_bytes: u64) -> Result<Self> {
        let declared = Declared::read(&parts)?;
        let around = if matches!(declared, Declared::Form(_)) { FRAMING_MAX_BYTES as u64 } else { 0 };
        if content_length(&parts.headers).is_some_and(|length| length > max_bytes.saturating_add(around)) {
            return Err(Problem::too_large(max_bytes));
        }
        let Query(RawName(name)) = Query::<RawName>::from_request_parts(&mut parts, &()).await?;
        let source = Source::new(body);
        match declared {
            Declared::Raw(content_type) => {
                let name = name.ok_or_else(|| {
                    let detail = "A raw body needs its file's name in the query.";
                    Problem::unprocessable(vec![FieldError::new("/name", "missing", detail)])
                })?;
                Ok(Self { head: FileHead { name, content_type }, content: Content::Raw(source) })
            }
            Declared::Form(_) if name.is_some() => {
                let detail = "A form names its file in the part; a second name could only contradict it.";
                Err(Problem::unprocessable(vec![FieldError::new("/name", "ambiguous", detail)]))
            }
            Declared::Form(content_type) => {
                let mut reader = MultipartReader::new(source, &content_type)?;
                let head = reader.head().await?;
                Ok(Self { head, content: Content::Form(Box::new(reader)) })
            }
        }
    }

    /// The file's next bytes, never empty; `None` at its proper end.
    ///
    /// # Errors
    /// 400 and 422 as the form is broken or wrong, 408 where the client fell silent.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        match &mut self.content {
            Content::Raw(source) => source.next().await,
            Content::Form(reader) => reader.next().await,
        }
    }
}

const FORM: &str = "multipart/form-data";

/// The request's content type.
enum Declared {
    Raw(ContentType),
    Form(Mime),
}

impl Declared {
    /// A raw body without a type is bytes. Other forms and other multipart types than `multipart/form-data` would be stored as
    /// what they wrap the file in, which nobody wants.
    fn read(parts: &Parts) -> Result<Self> {
        let mut values = parts.headers.get_all(CONTENT_TYPE).iter();
        let Some(value) = values.next() else { return Ok(Self::Raw(ContentType::unknown())) };
        if values.next().is_some() {
            return Err(Problem::bad_request("ambiguous_content_type", "There is more than one content type."));
        }
        let text = value.to_str().map_err(|_| Problem::unsupported_media_type("A content type is printable ASCII."))?;
        let is_form = text.get(..FORM.len()).is_some_and(|start| start.eq_ignore_ascii_case(FORM));
        let content_type = ContentType::parse(text).map_err(|invalid| {
            if is_form {
                Problem::bad_request("malformed_multipart", "The content type's parameters are malformed.")
            } else {
                Problem::unsupported_media_type(invalid.detail)
            }
        })?;
        let parsed = content_type.parsed();
        match (parsed.type_(), parsed.subtype()) {
            (mime::MULTIPART, mime::FORM_DATA) => Ok(Self::Form(parsed.clone())),
            (mime::MULTIPART, _) => {
                Err(Problem::unsupported_media_type("Of multipart bodies only multipart/form-data is understood."))
            }
            _ => Ok(Self::Raw(content_type)),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    async fn open(uri: &str, headers: &[(&str, &str)]) -> Result<(String, String), (u16, &'static str)> {
        let request = headers.iter().fold(Request::post(uri), |builder, (name, value)| builder.header(*name, *value));
        let (parts, body) = request.body(Body::from("content")).unwrap().into_parts();
        IncomingFile::open(parts, body, 100)
            .await
            .map(|file| (file.head.name.to_string(), file.head.content_type.as_str().to_owned()))
            .map_err(|problem| (problem.status().as_u16(), problem.code()))
    }

    #[tokio::test]
    async fn a_raw_body_needs_a_name_and_nothing_else() {
        let expected = |kind: &str| Ok(("a b.txt".to_owned(), kind.to_owned()));
        assert_eq!(open("/?name=a%20b.txt", &[]).await, expected("application/octet-stream"));
        assert_eq!(open("/?name=x/a+b.txt", &[("content-type", "text/plain")]).await, expected("text/plain"));
        assert_eq!(open("/", &[]).await, Err((422, "invalid_request")));
        assert_eq!(open("/?name=", &[]).await, Err((422, "invalid_request")));
        assert_eq!(open("/?name=a&name=b", &[]).await, Err((422, "invalid_request")));
        assert_eq!(open("/?name=%ff", &[]).await, Err((400, "malformed_query")));
    }

    #[tokio::test]
    async fn the_announced_length_is_judged_before_the_name() {
        assert_eq!(open("/", &[("content-length", "101")]).await, Err((413, "body_too_large")));
        assert_eq!(open("/?name=a", &[("content-length", "100")]).await.map(|_| ()), Ok(()));
        let form = ("content-type", "multipart/form-data; boundary=x");
        let fits = (100 + FRAMING_MAX_BYTES).to_string();
        let exceeds = (101 + FRAMING_MAX_BYTES).to_string();
        assert_eq!(open("/", &[form, ("content-length", &fits)]).await, Err((400, "malformed_multipart")));
        assert_eq!(open("/", &[form, ("content-length", &exceeds)]).await, Err((413, "body_too_large")));
    }

    #[tokio::test]
    async fn the_media_type_is_judged_first() {
        let long = ("content-length", "101");
        for kind in ["nonsense", "multipart/mixed; boundary=x", "text/plàin", "*/*"] {
            assert_eq!(
                open("/", &[("content-type", kind), long]).await,
                Err((415, "unsupported_media_type")),
                "{kind}"
            );
        }
        let twice = [("content-type", "text/plain"), ("content-type", "text/html")];
        assert_eq!(open("/?name=a", &twice).await, Err((400, "ambiguous_content_type")));
        let form = ("content-type", "multipart/form-data; boundary=x");
        assert_eq!(open("/?name=a", &[form]).await, Err((422, "invalid_request")));
        for form in ["multipart/form-data; boundary=\"\"", "Multipart/Form-Data; boundary=a:b", "multipart/form-data"] {
            assert_eq!(open("/", &[("content-type", form)]).await, Err((400, "malformed_multipart")), "{form}");
        }
    }
}
