//! Bytes on their way in and out, never held whole.

use std::{io::SeekFrom, ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use s3s::{S3Error, S3ErrorCode, S3Result, TrailingHeaders, dto::StreamingBlob};
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufWriter},
};
use tokio_util::io::ReaderStream;

use super::{
    digests::{Algorithm, Digests, Promise},
    disk::{Blob, Object, Segment},
};

/// Each read and write of a file is a trip to another thread: larger pieces, fewer trips.
const PIECE: usize = 256 * 1024;

/// Bytes that arrived whole and as promised.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) segment: Segment,
    pub(super) digests: Digests,
}

/// Writes a body into `blob`. Whatever goes wrong, and when the request is dropped, the blob goes with it.
pub(super) async fn receive(
    blob: Arc<Blob>,
    body: Option<StreamingBlob>,
    promise: Promise,
    trailers: Option<TrailingHeaders>,
    also: Option<Algorithm>,
) -> S3Result<Received> {
    let mut hasher = promise.hasher(also);
    let file = File::create(blob.path()).await.map_err(S3Error::internal_error)?;
    let mut file = BufWriter::with_capacity(PIECE, file);
    let mut size: u64 = 0;
    if let Some(mut body) = body {
        while let Some(piece) = body.next().await {
            // The client went away, or its framing or a chunk's signature is wrong.
            let piece = piece.map_err(|error| S3Error::with_source(S3ErrorCode::IncompleteBody, error))?;
            hasher.update(&piece);
            size += piece.len() as u64;
            file.write_all(&piece).await.map_err(S3Error::internal_error)?;
        }
    }
    file.flush().await.map_err(S3Error::internal_error)?;
    let digests = hasher.finish();
    promise.check(trailers.as_ref(), size, &digests)?;
    Ok(Received { segment: Segment { blob, size }, digests })
}

/// A range of an object's bytes. The blobs stay while the stream is read, also when the object is deleted meanwhile.
pub(super) fn read(object: &Object, range: Range<u64>) -> StreamingBlob {
    let pieces: Vec<(Segment, Range<u64>)> = overlap(&object.segments, range).collect();
    // Each segment is opened when its turn comes.
    let bytes = stream::iter(pieces).then(|(segment, range)| open(segment, range)).try_flatten();
    StreamingBlob::wrap(bytes)
}

async fn open(
    segment: Segment,
    range: Range<u64>,
) -> std::io::Result<impl Stream<Item = std::io::Result<Bytes>> + Send + Sync> {
    let mut file = File::open(segment.blob.path()).await?;
    file.set_max_buf_size(PIECE);
    file.seek(SeekFrom::Start(range.start)).await?;
    let bytes = ReaderStream::with_capacity(file.take(range.end - range.start), PIECE);
    // The segment is held until the last byte.
    Ok(bytes.inspect_ok(move |_| {
        let _held = &segment;
    }))
}

/// The segments that a range touches, with the part of each.
fn overlap(segments: &[Segment], range: Range<u64>) -> impl Iterator<Item = (Segment, Range<u64>)> {
    let mut start = 0;
    segments.iter().filter_map(move |segment| {
        let (from, to) = (start, start + segment.size);
        start = to;
        let (first, last) = (range.start.max(from), range.end.min(to));
        (first < last).then(|| (segment.clone(), first - from..last - from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_takes_its_part_of_each_segment() {
        let folder = tempfile::tempdir().unwrap();
        let segments: Vec<Segment> = [5, 3, 4].map(|size| Segment { blob: Blob::new(folder.path()), size }).into();
        let parts = |range| overlap(&segments, range).map(|(_, range)| range).collect::<Vec<_>>();
        assert_eq!(parts(0..12), [0..5, 0..3, 0..4]);
        assert_eq!(parts(4..9), [4..5, 0..3, 0..1]);
        assert_eq!(parts(6..7), vec![1..2]);
        assert!(parts(5..5).is_empty());
    }
}
