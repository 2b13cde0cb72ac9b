//! MD5 and the additional checksums of S3: computed while a body arrives, compared with what the client said.
//!
//! "Checking object integrity in Amazon S3", Amazon S3 User Guide.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderMap;
use s3s::{
    S3Result, TrailingHeaders,
    checksum::ChecksumHasher,
    crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256},
    dto::ChecksumAlgorithm,
    s3_error,
};
use serde::{Deserialize, Serialize};

/// An additional checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

impl Algorithm {
    const ALL: [Self; 5] = [Self::Crc32, Self::Crc32c, Self::Crc64Nvme, Self::Sha1, Self::Sha256];

    /// As in `x-amz-checksum-algorithm`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
        }
    }

    /// The header or trailer that carries the value.
    fn header(self) -> &'static str {
        match self {
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
        }
    }

    pub(super) fn parse(name: &ChecksumAlgorithm) -> S3Result<Self> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name.as_str())
            .ok_or_else(|| s3_error!(InvalidRequest, "The checksum algorithm is not supported"))
    }
}

/// Values in base64, by algorithm.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checksums(BTreeMap<Algorithm, String>);

impl Checksums {
    pub(super) fn get(&self, algorithm: Algorithm) -> Option<String> {
        self.0.get(&algorithm).cloned()
    }

    pub(super) fn set(&mut self, algorithm: Algorithm, value: Option<String>) {
        if let Some(value) = value {
            self.0.insert(algorithm, value);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every value that `given` has is the same here.
    pub(super) fn agree_with(&self, given: &Self) -> bool {
        given.0.iter().all(|(algorithm, value)| self.0.get(algorithm) == Some(value))
    }
}

/// Reads the five checksum members that many of s3s's inputs have.
macro_rules! checksums_of {
    ($input:expr) => {{
        let mut checksums = $crate::object_store::digests::Checksums::default();
        checksums.set($crate::object_store::digests::Algorithm::Crc32, $input.checksum_crc32.clone());
        checksums.set($crate::object_store::digests::Algorithm::Crc32c, $input.checksum_crc32c.clone());
        checksums.set($crate::object_store::digests::Algorithm::Crc64Nvme, $input.checksum_crc64nvme.clone());
        checksums.set($crate::object_store::digests::Algorithm::Sha1, $input.checksum_sha1.clone());
        checksums.set($crate::object_store::digests::Algorithm::Sha256, $input.checksum_sha256.clone());
        checksums
    }};
}
pub(super) use checksums_of;

/// Sets them in an output.
macro_rules! set_checksums {
    ($output:expr, $checksums:expr) => {{
        let checksums = &$checksums;
        $output.checksum_crc32 = checksums.get($crate::object_store::digests::Algorithm::Crc32);
        $output.checksum_crc32c = checksums.get($crate::object_store::digests::Algorithm::Crc32c);
        $output.checksum_crc64nvme = checksums.get($crate::object_store::digests::Algorithm::Crc64Nvme);
        $output.checksum_sha1 = checksums.get($crate::object_store::digests::Algorithm::Sha1);
        $output.checksum_sha256 = checksums.get($crate::object_store::digests::Algorithm::Sha256);
    }};
}
pub(super) use set_checksums;

/// What a client said about the body it sends.
#[derive(Debug, Default)]
pub(super) struct Promise {
    /// Bytes of the body, without the framing of `aws-chunked`.
    pub(super) length: Option<i64>,
    /// `Content-MD5`.
    pub(super) md5: Option<String>,
    /// Values sent as headers.
    pub(super) values: Checksums,
    /// Algorithms whose value comes as a trailer.
    trailing: BTreeSet<Algorithm>,
}

impl Promise {
    pub(super) fn new(
        length: Option<i64>,
        md5: Option<String>,
        values: Checksums,
        headers: &HeaderMap,
    ) -> S3Result<Self> {
        let announced = headers.get_all("x-amz-trailer").iter().filter_map(|value| value.to_str().ok());
        let announced: BTreeSet<String> =
            announced.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect();
        let trailing: BTreeSet<Algorithm> =
            Algorithm::ALL.into_iter().filter(|algorithm| announced.contains(algorithm.header())).collect();
        if headers.contains_key("x-amz-sdk-checksum-algorithm") && values.is_empty() && trailing.is_empty() {
            return Err(s3_error!(
                InvalidRequest,
                "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found."
            ));
        }
        Ok(Self { length, md5, values, trailing })
    }

    /// Begins to compute what will be compared, and `also`, which the upload asks for.
    pub(super) fn hasher(&self, also: Option<Algorithm>) -> Hasher {
        let algorithms = self.values.0.keys().copied().chain(self.trailing.iter().copied()).chain(also);
        Hasher::new(algorithms)
    }

    /// Compares, when the whole body has been read and its trailers with it.
    pub(super) fn check(mut self, trailers: Option<&TrailingHeaders>, size: u64, digests: &Digests) -> S3Result<()> {
        if self.length.is_some_and(|length| u64::try_from(length) != Ok(size)) {
            return Err(s3_error!(IncompleteBody));
        }
        if let Some(md5) = &self.md5 {
            let md5 = STANDARD.decode(md5).ok().filter(|md5| md5.len() == 16);
            let md5 = md5.ok_or_else(|| s3_error!(InvalidDigest))?;
            if md5 != digests.md5 {
                return Err(s3_error!(BadDigest, "The Content-MD5 you specified did not match what we received."));
            }
        }
        for algorithm in std::mem::take(&mut self.trailing) {
            let value = trailers.and_then(|trailers| {
                trailers.read(|headers| headers.get(algorithm.header())?.to_str().ok().map(str::to_owned))?
            });
            let value = value.ok_or_else(|| s3_error!(InvalidRequest, "An announced trailer is missing."))?;
            self.values.set(algorithm, Some(value));
        }
        if digests.checksums.agree_with(&self.values) {
            return Ok(());
        }
        Err(s3_error!(BadDigest, "A checksum you specified did not match the calculated checksum."))
    }
}

/// Computes MD5 and any number of checksums in one pass.
pub(super) struct Hasher {
    md5: Md5,
    checksums: ChecksumHasher,
}

impl Hasher {
    pub(super) fn new(algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        let mut checksums = ChecksumHasher::default();
        for algorithm in algorithms {
            match algorithm {
                Algorithm::Crc32 => checksums.crc32 = Some(Crc32::new()),
                Algorithm::Crc32c => checksums.crc32c = Some(Crc32c::new()),
                Algorithm::Crc64Nvme => checksums.crc64nvme = Some(Crc64Nvme::new()),
                Algorithm::Sha1 => checksums.sha1 = Some(Sha1::new()),
                Algorithm::Sha256 => checksums.sha256 = Some(Sha256::new()),
            }
        }
        Self { md5: Md5::new(), checksums }
    }

    pub(super) fn update(&mut self, data: &[u8]) {
        self.md5.update(data);
        self.checksums.update(data);
    }

    pub(super) fn finish(self) -> Digests {
        let values = self.checksums.finalize();
        Digests { md5: self.md5.finalize().to_vec(), checksums: checksums_of!(values) }
    }
}

/// What was computed.
#[derive(Debug)]
pub(super) struct Digests {
    pub(super) md5: Vec<u8>,
    pub(super) checksums: Checksums,
}

/// `md5(md5(part 1) … md5(part n))-n`, the entity tag of an object from parts.
pub(super) fn etag_of_parts<'a>(parts: impl Iterator<Item = &'a str>) -> S3Result<String> {
    let mut md5 = Md5::new();
    let mut count = 0;
    for etag in parts {
        md5.update(&hex::decode(etag).map_err(|_| s3_error!(InternalError))?);
        count += 1;
    }
    Ok(format!("{}-{count}", hex::encode(md5.finalize())))
}

/// The composite checksum: that of the parts' checksums, with the number of parts.
pub(super) fn checksum_of_parts<'a>(
    algorithm: Algorithm,
    parts: impl Iterator<Item = &'a Checksums>,
) -> S3Result<String> {
    let mut hasher = Hasher::new([algorithm]);
    let mut count = 0;
    for checksums in parts {
        let value = checksums.0.get(&algorithm).and_then(|value| STANDARD.decode(value).ok());
        hasher.update(&value.ok_or_else(|| s3_error!(InternalError))?);
        count += 1;
    }
    let value = hasher.finish().checksums.get(algorithm).unwrap_or_default();
    Ok(format!("{value}-{count}"))
}
