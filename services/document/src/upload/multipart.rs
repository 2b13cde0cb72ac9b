//! `multipart/form-data` (RFC 7578) that holds exactly one file.
//!
//! Own code, because the reader must be strict where the usual crates are lenient: `multer` takes whatever the socket
//! holds into memory before it looks at it, takes the first of two equal parameters, and bounds no header.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memmem::Finder;
use mime::Mime;
use service_kit::Result;
use service_kit::problem::{FieldError, Problem};

use super::disposition::Disposition;
use super::request::FileHead;
use super::source::Source;
use crate::content_type::ContentType;
use crate::name::DocumentName;

/// Everything in a body that is not the file: preamble, headers, boundaries and epilogue together.
pub(crate) const FRAMING_MAX_BYTES: usize = 16 * 1024;

/// The one part's name.
const PART_NAME: &str = "file";

/// Reads the body of one form.
#[derive(Debug)]
pub(super) struct MultipartReader {
    source: Source,
    /// Finds CRLF, two hyphens and the boundary: what ends the preamble and every part.
    delimiter: Finder<'static>,
    buffer: BytesMut,
    framing_left: usize,
    part_ended: bool,
}

impl MultipartReader {
    /// A reader of `source` for the boundary that the request's content type names.
    ///
    /// # Errors
    /// 400 for a missing, malformed or repeated boundary.
    pub(super) fn new(source: Source, content_type: &Mime) -> Result<Self> {
        let boundary = boundary(content_type)?;
        Ok(Self {
            source,
            delimiter: Finder::new(&format!("\r\n--{boundary}")).into_owned(),
            // The first boundary stands at the start of a line, be it the body's first.
            buffer: BytesMut::from(&b"\r\n"[..]),
            framing_left: FRAMING_MAX_BYTES,
            part_ended: false,
        })
    }

    /// Reads up to the file's first byte.
    ///
    /// # Errors
    /// 400 for broken framing, 422 for a part that is no file or has no acceptable name or type.
    pub(super) async fn head(&mut self) -> Result<FileHead> {
        self.skip_preamble().await?;
        if self.at_last_boundary().await? {
            return Err(malformed("The form has no part."));
        }
        let part = self.part_headers().await?;
        if part.disposition.name != PART_NAME {
            return Err(refused(&part.disposition.name, "unknown_field", "The one part of the form is `file`."));
        }
        let mut errors = Vec::new();
        let name = match part.disposition.filename.as_deref() {
            None => Err(FieldError::new("/file", "missing", "The part `file` needs a `filename`.")),
            Some(raw) => {
                DocumentName::parse(raw).map_err(|invalid| FieldError::new("/file", invalid.code, invalid.detail))
            }
        };
        let name = name.map_err(|error| errors.push(error)).ok();
        let content_type = part
            .content_type
            .as_deref()
            .map_or_else(|| Ok(ContentType::unknown()), ContentType::parse)
            .map_err(|invalid| errors.push(FieldError::new("/file", invalid.code, invalid.detail)))
            .ok();
        if part.is_encoded {
            let detail = "A part's content must not be encoded (RFC 7578 §4.7).";
            errors.push(FieldError::new("/file", "content_transfer_encoding", detail));
        }
        match (name, content_type) {
            (Some(name), Some(content_type)) if errors.is_empty() => Ok(FileHead { name, content_type }),
            _ => Err(Problem::unprocessable(errors)),
        }
    }

    /// The file's next bytes, never empty; `None` once the form has ended as it must.
    ///
    /// # Errors
    /// 400 for broken framing or a missing last boundary, 422 for another part.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>> {
        while !self.part_ended {
            if let Some(end) = self.delimiter.find(&self.buffer) {
                self.part_ended = true;
                let data = self.buffer.split_to(end).freeze();
                self.discard_framing(self.delimiter.needle().len())?;
                if !data.is_empty() {
                    return Ok(Some(data));
                }
                break;
            }
            let safe = self.length_without_delimiter();
            if safe > 0 {
                return Ok(Some(self.buffer.split_to(safe).freeze()));
            }
            self.fill().await?;
        }
        self.expect_end().await?;
        Ok(None)
    }

    async fn skip_preamble(&mut self) -> Result<()> {
        loop {
            if let Some(start) = self.delimiter.find(&self.buffer) {
                return self.discard_framing(start + self.delimiter.needle().len());
            }
            self.discard_framing(self.length_without_delimiter())?;
            self.fill().await?;
        }
    }

    /// Bytes at the buffer's start that cannot belong to a delimiter whose rest has not arrived.
    fn length_without_delimiter(&self) -> usize {
        self.buffer.len().saturating_sub(self.delimiter.needle().len() - 1)
    }

    /// Reads the rest of a boundary's line: whether it was the last one.
    async fn at_last_boundary(&mut self) -> Result<bool> {
        self.fill_to(2).await?;
        if self.buffer.starts_with(b"--") {
            self.discard_framing(2)?;
            return Ok(true);
        }
        loop {
            self.fill_to(1).await?;
            match self.buffer[0] {
                // Transport padding (RFC 2046 §5.1.1).
                b' ' | b'\t' => self.discard_framing(1)?,
                _ => break,
            }
        }
        self.fill_to(2).await?;
        if !self.buffer.starts_with(b"\r\n") {
            return Err(malformed("A boundary is not alone on its line."));
        }
        // The line break stays: it begins the blank line of a part without headers.
        Ok(false)
    }

    /// After the file: only the last boundary and an epilogue, which is ignored, may follow.
    async fn expect_end(&mut self) -> Result<()> {
        if !self.at_last_boundary().await? {
            let part = self.part_headers().await?;
            let code = if part.disposition.name == PART_NAME { "duplicate_field" } else { "unknown_field" };
            return Err(refused(&part.disposition.name, code, "A form has one part, `file`, and nothing else."));
        }
        let mut line_ended = false;
        loop {
            if !line_ended {
                self.discard_framing(self.buffer.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count())?;
                line_ended = self.buffer.starts_with(b"\r\n");
                if !line_ended && !b"\r\n".starts_with(&self.buffer) {
                    return Err(malformed("Something follows the last boundary on its line."));
                }
            }
            if line_ended {
                self.discard_framing(self.buffer.len())?;
            }
            let Some(data) = self.source.next().await? else { return Ok(()) };
            self.buffer.extend_from_slice(&data);
        }
    }

    /// The headers of a part, blank line included.
    async fn part_headers(&mut self) -> Result<PartHeaders> {
        let end = loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            if self.buffer.len() > self.framing_left {
                return Err(too_much_framing());
            }
            self.fill().await?;
        };
        let block = self.buffer.split_to(end).freeze();
        self.discard_framing(4)?;
        self.framing_left = self.framing_left.checked_sub(block.len()).ok_or_else(too_much_framing)?;
        let text = std::str::from_utf8(&block).map_err(|_| malformed("The headers of a part are not UTF-8."))?;
        PartHeaders::parse(text.strip_prefix("\r\n").unwrap_or(text))
    }

    fn discard_framing(&mut self, length: usize) -> Result<()> {
        self.framing_left = self.framing_left.checked_sub(length).ok_or_else(too_much_framing)?;
        self.buffer.advance(length);
        Ok(())
    }

    async fn fill_to(&mut self, length: usize) -> Result<()> {
        while self.buffer.len() < length {
            self.fill().await?;
        }
        Ok(())
    }

    /// Appends what arrives next; its end is always too early here.
    async fn fill(&mut self) -> Result<()> {
        let data = self.source.next().await?.ok_or_else(|| malformed("The form ends before its last boundary."))?;
        self.buffer.extend_from_slice(&data);
        Ok(())
    }
}

/// The headers that count.
struct PartHeaders {
    disposition: Disposition,
    content_type: Option<String>,
    is_encoded: bool,
}

impl PartHeaders {
    fn parse(block: &str) -> Result<Self> {
        let (mut disposition, mut content_type, mut encoding) = (None, None, None);
        for line in block.split("\r\n").filter(|_| !block.is_empty()) {
            // A folded line has no name, and a bare CR or LF is how headers are smuggled.
            let (name, value) = line.split_once(':').ok_or_else(|| malformed("A part has a malformed header."))?;
            let is_token =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
            if !is_token || value.contains(['\r', '\n']) {
                return Err(malformed("A part has a malformed header."));
            }
            let slot = match name.to_ascii_lowercase().as_str() {
                "content-disposition" => &mut disposition,
                "content-type" => &mut content_type,
                "content-transfer-encoding" => &mut encoding,
                _ => continue,
            };
            if slot.replace(value.trim()).is_some() {
                return Err(malformed("A part has a header twice."));
            }
        }
        let is_identity =
            |value: &str| ["7bit", "8bit", "binary"].iter().any(|known| value.eq_ignore_ascii_case(known));
        Ok(Self {
            disposition: disposition
                .and_then(Disposition::parse)
                .ok_or_else(|| malformed("A part has no proper `Content-Disposition: form-data` with one name."))?,
            content_type: content_type.map(str::to_owned),
            is_encoded: !encoding.is_none_or(is_identity),
        })
    }
}

/// RFC 2046 §5.1.1: 1 to 70 of these characters, the last one no space.
fn boundary(content_type: &Mime) -> Result<String> {
    let mut values = content_type.params().filter(|(name, _)| *name == mime::BOUNDARY).map(|(_, value)| value);
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(malformed("The content type needs one boundary."));
    };
    let value = value.as_str();
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte);
    if !(1..=70).contains(&value.len()) || !value.bytes().all(is_allowed) || value.ends_with(' ') {
        return Err(malformed("The boundary is malformed."));
    }
    Ok(value.to_owned())
}

fn malformed(detail: &'static str) -> Problem {
    Problem::bad_request("malformed_multipart", detail)
}

fn too_much_framing() -> Problem {
    malformed("There is too much around the file.")
}

/// The name of a part is a client's to make up: it is cut, and escaped as JSON pointers demand (RFC 6901).
fn refused(part: &str, code: &'static str, detail: &'static str) -> Problem {
    let start: String = part.chars().take(64).collect();
    let pointer = format!("/{}", start.replace('~', "~0").replace('/', "~1"));
    Problem::unprocessable(vec![FieldError::new(pointer, code, detail)])
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Body;
    use futures_util::stream;

    use super::*;

    /// What a form holds: the file's name, type and bytes, or the refusal's status and code.
    type Read = Result<(String, String, Vec<u8>), (u16, &'static str)>;

    async fn read_in_chunks(form: &[u8], chunk: usize) -> Read {
        let chunks: Vec<_> =
            form.chunks(chunk.max(1)).map(|c| Ok::<_, Infallible>(Bytes::copy_from_slice(c))).collect();
        let source = Source::new(Body::from_stream(stream::iter(chunks)));
        let content_type: Mime = "multipart/form-data; boundary=BOUNDARY".parse().unwrap();
        let read = async {
            let mut reader = MultipartReader::new(source, &content_type)?;
            let head = reader.head().await?;
            let mut content = Vec::new();
            while let Some(data) = reader.next().await? {
                assert!(!data.is_empty());
                content.extend_from_slice(&data);
            }
            Ok((head.name.as_str().to_owned(), head.content_type.as_str().to_owned(), content))
        };
        read.await.map_err(|problem: Problem| (problem.status().as_u16(), problem.code()))
    }

    /// However the bytes arrive, the result is the same.
    async fn read(form: impl AsRef<[u8]>) -> Read {
        let form = form.as_ref();
        let whole = read_in_chunks(form, form.len()).await;
        for chunk in [1, 2, 3, 7, 64] {
            assert_eq!(read_in_chunks(form, chunk).await, whole, "in chunks of {chunk}");
        }
        whole
    }

    fn form(content: &[u8]) -> Vec<u8> {
        let head = b"--BOUNDARY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\n";
        [&head[..], content, b"\r\n--BOUNDARY--\r\n"].concat()
    }

    const MALFORMED: Read = Err((400, "malformed_multipart"));
    const INVALID: Read = Err((422, "invalid_request"));

    #[tokio::test]
    async fn one_file_is_read_whatever_its_bytes_look_like() {
        for content in [
            &b""[..],
            b"hello",
            b"\r\n",
            b"\r\n--",
            b"\r\n--BOUNDAR",
            b"\r\n--BOUNDAR\r\n--BOUNDARX",
            b"--BOUNDARY",
            b"--BOUNDARY--\r\n",
            b"\r\r\n\n\0\xff",
        ] {
            let expected = Ok(("a.txt".to_owned(), "text/plain".to_owned(), content.to_vec()));
            assert_eq!(read(form(content)).await, expected, "{content:?}");
        }
    }

    #[tokio::test]
    async fn preamble_padding_and_epilogue_are_allowed_and_bounded() {
        let with = |before: &str, after: &str| [before.as_bytes(), &form(b"x"), after.as_bytes()].concat();
        assert!(read(with("\r\n", "")).await.is_ok());
        assert!(read(with("preamble\r\n", "epilogue")).await.is_ok());
        let padded =
            "--BOUNDARY \t\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\nx\r\n--BOUNDARY-- \t";
        assert_eq!(read(padded).await, Ok(("a".to_owned(), "application/octet-stream".to_owned(), b"x".to_vec())));
        let long = "y".repeat(FRAMING_MAX_BYTES);
        assert_eq!(read(with(&format!("{long}\r\n"), "")).await, MALFORMED);
        assert_eq!(read(with("", &long)).await, MALFORMED);
    }

    #[tokio::test]
    async fn broken_framing_is_malformed() {
        let whole = form(b"content");
        let last = whole.len() - b"--\r\n".len();
        for cut in 0..=last {
            assert_eq!(read_in_chunks(&whole[..cut], cut).await, MALFORMED, "cut at {cut}");
        }
        for text in [
            "--OTHER\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\nx\r\n--OTHER--\r\n",
            "--BOUNDARY--\r\n",
            "x--BOUNDARY\r\n\r\n",
            "--BOUNDARYX\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\nx\r\n--BOUNDARY--",
            "--BOUNDARY\nContent-Disposition: form-data; name=file; filename=a\n\nx\n--BOUNDARY--\n",
            "--BOUNDARY\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\nx\r\n--BOUNDARYX\r\n--BOUNDARY--",
            "--BOUNDARY\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\nx\r\n--BOUNDARY--x",
        ] {
            assert_eq!(read(text).await, MALFORMED, "{text}");
        }
    }

    fn part(headers: &str) -> String {
        format!("--BOUNDARY\r\n{headers}\r\n\r\nx\r\n--BOUNDARY--\r\n")
    }

    const FILE: &str = "Content-Disposition: form-data; name=file; filename=a";

    #[tokio::test]
    async fn headers_of_a_part_are_read_strictly() {
        for headers in [
            String::new(),
            "Content-Type: text/plain".to_owned(),
            format!("{FILE}\r\n{FILE}"),
            format!("{FILE}\r\nContent-Type: text/plain\r\ncontent-type: text/html"),
            format!("{FILE}\r\n folded"),
            format!("{FILE}\r\nno colon"),
            format!("{FILE}\r\nX: a\rb"),
            format!("{FILE}\r\nX: a\nb"),
            format!("{FILE}\r\n: x"),
            format!("X: {}\r\n{FILE}", "x".repeat(FRAMING_MAX_BYTES)),
            "Content-Disposition: form-data; name=file; filename=a; filename=b".to_owned(),
        ] {
            assert_eq!(read(part(&headers)).await, MALFORMED, "{headers}");
        }
        assert_eq!(read([&b"--BOUNDARY\r\nX: \xff\r\n\r\n"[..], b"\r\n--BOUNDARY--"].concat()).await, MALFORMED);
        assert!(read(part(&format!("X-Other: 1\r\n{FILE}\r\nContent-Transfer-Encoding: Binary"))).await.is_ok());
    }

    #[tokio::test]
    async fn what_is_not_one_named_file_is_invalid() {
        for headers in [
            "Content-Disposition: form-data; name=other; filename=a",
            "Content-Disposition: form-data; name=file",
            "Content-Disposition: form-data; name=file; filename=\"\"",
            "Content-Disposition: form-data; name=file; filename=\"..\"",
            "Content-Disposition: form-data; name=file; filename=\"a\0b\"",
            "Content-Disposition: form-data; name=file; filename=a\r\nContent-Type: nonsense",
            "Content-Disposition: form-data; name=file; filename=a\r\nContent-Transfer-Encoding: base64",
        ] {
            assert_eq!(read(part(headers)).await, INVALID, "{headers}");
        }
        for second in ["name=file; filename=b", "name=description", "name=file"] {
            let form = format!(
                "--BOUNDARY\r\n{FILE}\r\n\r\nx\r\n--BOUNDARY\r\nContent-Disposition: form-data; {second}\r\n\r\ny\r\n--BOUNDARY--"
            );
            assert_eq!(read(form).await, INVALID, "{second}");
        }
    }

    #[test]
    fn a_form_needs_one_proper_boundary() {
        let code = |text: &str| {
            let content_type: Mime = text.parse().unwrap();
            MultipartReader::new(Source::new(Body::empty()), &content_type)
                .map(|_| ())
                .map_err(|problem| problem.code())
        };
        for good in ["boundary=x", "boundary=\"a b:c\"", "charset=utf-8; Boundary=----WebKitFormBoundaryAbC"] {
            assert_eq!(code(&format!("multipart/form-data; {good}")), Ok(()), "{good}");
        }
        for bad in [
            "charset=utf-8",
            "boundary=a; boundary=b",
            "boundary=\"a \"",
            "boundary=\"a;b\"",
            &format!("boundary={}", "x".repeat(71)),
        ] {
            assert_eq!(code(&format!("multipart/form-data; {bad}")), Err("malformed_multipart"), "{bad}");
        }
    }
}
