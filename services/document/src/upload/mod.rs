//! A file on its way in: the request is taken apart ([`request`]: a raw body or a form), measured and cut into parts while it
//! arrives ([`intake`]), and stored so that at every moment somebody is responsible for what has been left behind
//! ([`open`]). No database connection is held while bytes arrive.

pub(crate) mod buffer;
mod disposition;
mod intake;
mod multipart;
mod open;
mod request;
mod source;

pub(crate) use intake::Intake;
pub(crate) use multipart::FRAMING_MAX_BYTES;
pub(crate) use request::IncomingFile;
