//! Multipart uploads. Completing one copies nothing: the object consists of the parts' blobs.

use std::collections::BTreeMap;

use s3s::{
    S3Error, S3Request, S3Result,
    dto::{
        AbortMultipartUploadInput, AbortMultipartUploadOutput, ChecksumAlgorithm, ChecksumType,
        CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CompletedPart, CreateMultipartUploadInput,
        CreateMultipartUploadOutput, ETag, UploadPartInput, UploadPartOutput,
    },
    s3_error,
};

use super::{
    api::{Api, attributes_of, checksum_type},
    body,
    digests::{Algorithm, Checksums, Hasher, Promise, checksum_of_parts, checksums_of, etag_of_parts, set_checksums},
    disk::{ChecksumKind, Object, Part, Upload},
    store::Precondition,
};

/// "Amazon S3 multipart upload limits": every part but the last has at least 5 MiB, numbers are 1 to 10,000.
const MINIMUM_PART: u64 = 5 * 1024 * 1024;
const PART_NUMBERS: std::ops::RangeInclusive<i32> = 1..=10_000;

impl Api {
    pub(super) async fn create_upload(
        &self,
        mut input: CreateMultipartUploadInput,
    ) -> S3Result<CreateMultipartUploadOutput> {
        let algorithm = input.checksum_algorithm.as_ref().map(Algorithm::parse).transpose()?;
        let checksum_kind = algorithm.map(|algorithm| kind(algorithm, input.checksum_type.as_ref()));
        let upload = Upload {
            key: input.key.clone(),
            id: hex::encode(rand::random::<[u8; 16]>()),
            initiated: self.store.clock.now(),
            attributes: attributes_of!(input),
            algorithm,
            checksum_kind,
            parts: BTreeMap::new(),
        };
        let id = upload.id.clone();
        self.store.change(&input.bucket, move |bucket| bucket.put_upload(upload)).await?;
        Ok(CreateMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(id),
            checksum_algorithm: input.checksum_algorithm,
            checksum_type: checksum_kind.map(checksum_type),
            ..Default::default()
        })
    }

    pub(super) async fn receive_part(&self, req: S3Request<UploadPartInput>) -> S3Result<UploadPartOutput> {
        let mut input = req.input;
        if !PART_NUMBERS.contains(&input.part_number) {
            return Err(s3_error!(InvalidArgument, "Part number must be an integer between 1 and 10000, inclusive"));
        }
        let algorithm =
            self.store.read(&input.bucket, |bucket| Ok(bucket.upload(&input.key, &input.upload_id)?.algorithm))?;
        let promise = Promise::new(input.content_length, input.content_md5.take(), checksums_of!(input), &req.headers)?;
        let blob = self.new_blob(&input.bucket)?;
        let received = body::receive(blob, input.body.take(), promise, req.trailing_headers, algorithm).await?;

        let etag = hex::encode(&received.digests.md5);
        let checksums = received.digests.checksums;
        let part = Part {
            segment: received.segment,
            etag: etag.clone(),
            last_modified: self.store.clock.now(),
            checksums: checksums.clone(),
        };
        let UploadPartInput { bucket, key, upload_id, part_number, .. } = input;
        let record = self.store.change(&bucket, move |bucket| {
            // Looked up again: it may have been completed or aborted while the body arrived.
            let mut upload = bucket.upload(&key, &upload_id)?.clone();
            let blob = part.segment.blob.clone();
            let replaced = upload.parts.insert(part_number, part);
            bucket.put_upload(upload)?;
            blob.keep();
            if let Some(replaced) = replaced {
                replaced.segment.blob.discard();
            }
            Ok(())
        });
        record.await?;
        let mut output = UploadPartOutput { e_tag: Some(ETag::Strong(etag)), ..Default::default() };
        set_checksums!(output, checksums);
        Ok(output)
    }

    pub(super) async fn complete_upload(
        &self,
        input: CompleteMultipartUploadInput,
    ) -> S3Result<CompleteMultipartUploadOutput> {
        let promised = checksums_of!(input);
        let CompleteMultipartUploadInput { bucket, key, upload_id, multipart_upload, mpu_object_size, .. } = input;
        let named = multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
        let precondition = Precondition { if_match: input.if_match, if_none_match: input.if_none_match };
        let last_modified = self.store.clock.now();
        let mut output = CompleteMultipartUploadOutput {
            bucket: Some(bucket.clone()),
            key: Some(key.clone()),
            location: Some(format!("/{bucket}/{key}")),
            ..Default::default()
        };
        let complete = self.store.change(&bucket, move |bucket| {
            let upload = bucket.upload(&key, &upload_id)?.clone();
            let parts = select(&upload, &named)?;
            let size = parts.iter().map(|part| part.segment.size).sum::<u64>();
            if mpu_object_size.is_some_and(|promised| u64::try_from(promised) != Ok(size)) {
                return Err(s3_error!(InvalidRequest, "The size of the object is not the one specified."));
            }
            let checksums = checksums_of_object(&upload, &parts)?;
            if !checksums.is_empty() && !checksums.agree_with(&promised) {
                return Err(s3_error!(BadDigest, "A checksum you specified did not match the calculated checksum."));
            }
            let object = Object {
                key: key.clone(),
                size,
                etag: etag_of_parts(parts.iter().map(|part| part.etag.as_str()))?,
                last_modified,
                attributes: upload.attributes.clone(),
                checksums: checksums.clone(),
                checksum_kind: upload.checksum_kind,
                segments: parts.iter().map(|part| part.segment.clone()).collect(),
            };
            let etag = object.etag.clone();
            bucket.publish(object, &precondition)?;
            bucket.remove_upload(&key, &upload_id)?;
            let used: Vec<i32> = named.iter().filter_map(|part| part.part_number).collect();
            for (_, unused) in upload.parts.iter().filter(|(number, _)| !used.contains(number)) {
                unused.segment.blob.discard();
            }
            Ok((etag, checksums, upload.checksum_kind))
        });
        let (etag, checksums, kind) = complete.await?;
        output.e_tag = Some(ETag::Strong(etag));
        set_checksums!(output, checksums);
        output.checksum_type = kind.map(checksum_type);
        Ok(output)
    }

    pub(super) async fn abort_upload(&self, input: AbortMultipartUploadInput) -> S3Result<AbortMultipartUploadOutput> {
        let AbortMultipartUploadInput { bucket, key, upload_id, .. } = input;
        let abort = self.store.change(&bucket, move |bucket| {
            let upload = bucket.remove_upload(&key, &upload_id)?;
            upload.parts.values().for_each(|part| part.segment.blob.discard());
            Ok(())
        });
        abort.await?;
        Ok(AbortMultipartUploadOutput::default())
    }
}

/// CRC64NVME is only ever of the whole object; of the others, the composite is the default.
fn kind(algorithm: Algorithm, wanted: Option<&ChecksumType>) -> ChecksumKind {
    match (algorithm, wanted.map(ChecksumType::as_str)) {
        (Algorithm::Crc64Nvme, _) | (_, Some(ChecksumType::FULL_OBJECT)) => ChecksumKind::FullObject,
        _ => ChecksumKind::Composite,
    }
}

pub(super) fn algorithm_name(algorithm: Algorithm) -> ChecksumAlgorithm {
    ChecksumAlgorithm::from_static(algorithm.name())
}

/// The parts that a client names: in order, each as it was uploaded, all but the last large enough.
fn select<'u>(upload: &'u Upload, named: &[CompletedPart]) -> S3Result<Vec<&'u Part>> {
    if named.is_empty() {
        return Err(s3_error!(MalformedXML, "You must specify at least one part"));
    }
    let mut selected: Vec<&Part> = Vec::with_capacity(named.len());
    let mut previous = 0;
    for named in named {
        let number = named.part_number.ok_or_else(|| s3_error!(MalformedXML))?;
        if number <= previous {
            return Err(s3_error!(InvalidPartOrder));
        }
        previous = number;
        let part = upload.parts.get(&number).ok_or_else(|| s3_error!(InvalidPart))?;
        let same = named.e_tag.as_ref().is_some_and(|etag| etag.value() == part.etag);
        if !same || !part.checksums.agree_with(&checksums_of!(named)) {
            return Err(s3_error!(InvalidPart));
        }
        selected.push(part);
    }
    let (_, all_but_last) = selected.split_last().ok_or_else(|| s3_error!(MalformedXML))?;
    if all_but_last.iter().any(|part| part.segment.size < MINIMUM_PART) {
        return Err(s3_error!(EntityTooSmall));
    }
    Ok(selected)
}

fn checksums_of_object(upload: &Upload, parts: &[&Part]) -> S3Result<Checksums> {
    let mut checksums = Checksums::default();
    let Some(algorithm) = upload.algorithm else { return Ok(checksums) };
    let value = match upload.checksum_kind {
        Some(ChecksumKind::FullObject) => {
            let mut hasher = Hasher::new([algorithm]);
            for part in parts {
                read_into(&mut hasher, part).map_err(S3Error::internal_error)?;
            }
            hasher.finish().checksums.get(algorithm)
        }
        _ => Some(checksum_of_parts(algorithm, parts.iter().map(|part| &part.checksums))?),
    };
    checksums.set(algorithm, value);
    Ok(checksums)
}

fn read_into(hasher: &mut Hasher, part: &Part) -> std::io::Result<()> {
    use std::io::Read;
    let mut file = std::fs::File::open(part.segment.blob.path())?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            count => hasher.update(&buffer[..count]),
        }
    }
}
