//! One part of a file in memory, on its way to the object store.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

/// Bytes of a part; also the smallest part that S3 takes unless it is the last one ("Amazon S3 multipart upload limits").
pub(crate) const PART_BYTES: usize = 5 * 1024 * 1024;

/// A part is kept in blocks of this size, so that it grows without being copied.
const BLOCK_BYTES: usize = 64 * 1024;
/// Smallest block. What the socket gives is copied into blocks instead of being kept: a body sent in one-byte chunks would
/// otherwise cost some thirty times its length.
const MIN_BLOCK_BYTES: usize = 4 * 1024;

/// Collects at most [`PART_BYTES`].
#[derive(Debug, Default)]
pub(crate) struct PartBuffer {
    full: Vec<Bytes>,
    last: BytesMut,
    length: usize,
    /// Blocks of parts that have been sent.
    spare: Vec<BytesMut>,
}

/// Bytes that can be sent, and sent again after a failed attempt: the blocks are shared, not copied.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    blocks: Vec<Bytes>,
    length: usize,
}

impl PartBuffer {
    /// Takes as much of `data` as fits, leaves the rest there, and returns what it took.
    pub(crate) fn take_from(&mut self, data: &mut Bytes) -> Bytes {
        let taken = data.split_to(data.len().min(PART_BYTES - self.length));
        let mut rest = &taken[..];
        while !rest.is_empty() {
            if self.last.len() == self.last.capacity() {
                self.close_block();
                let fresh = || BytesMut::with_capacity(rest.len().clamp(MIN_BLOCK_BYTES, BLOCK_BYTES));
                self.last = self.spare.pop().unwrap_or_else(fresh);
            }
            let (fits, beyond) = rest.split_at(rest.len().min(self.last.capacity() - self.last.len()));
            self.last.extend_from_slice(fits);
            rest = beyond;
        }
        self.length += taken.len();
        taken
    }

    /// Whether nothing more fits.
    pub(crate) fn is_full(&self) -> bool {
        self.length == PART_BYTES
    }

    /// Empties the buffer.
    pub(crate) fn take(&mut self) -> Part {
        self.close_block();
        Part { blocks: std::mem::take(&mut self.full), length: std::mem::take(&mut self.length) }
    }

    /// Takes back the memory of a part that has been sent. An upload moves between threads, and an allocator keeps what each
    /// of them has freed: without reuse, one upload costs a part for every thread that it has been on.
    pub(crate) fn reclaim(&mut self, part: Part) {
        self.spare.extend(part.blocks.into_iter().filter_map(|block| {
            // A block that somebody still holds (a body that has not been dropped yet) is left to them.
            let mut block = block.try_into_mut().ok()?;
            block.clear();
            Some(block)
        }));
    }

    fn close_block(&mut self) {
        if !self.last.is_empty() {
            self.full.push(std::mem::take(&mut self.last).freeze());
        }
    }
}

impl Part {
    /// Number of bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// A body that sends all blocks.
    pub(crate) fn to_body(&self) -> PartBody {
        PartBody { blocks: self.blocks.clone().into_iter(), left: self.length as u64 }
    }
}

/// The blocks of a part as a body of known length.
#[derive(Debug)]
pub(crate) struct PartBody {
    blocks: std::vec::IntoIter<Bytes>,
    left: u64,
}

impl Body for PartBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let block = self.blocks.next();
        self.left -= block.as_ref().map_or(0, |block| block.len() as u64);
        Poll::Ready(block.map(|block| Ok(Frame::data(block))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn collect(part: &Part) -> Bytes {
        part.to_body().collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn bytes_come_out_as_they_went_in_and_more_than_once() {
        let data: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
        let mut buffer = PartBuffer::default();
        for chunk in data.chunks(7_001) {
            let mut chunk = Bytes::copy_from_slice(chunk);
            buffer.take_from(&mut chunk);
            assert!(chunk.is_empty());
        }
        let part = buffer.take();
        assert_eq!((part.length(), part.to_body().size_hint().exact()), (300_000, Some(300_000)));
        assert_eq!(collect(&part).await, data);
        assert_eq!(collect(&part).await, data);
        assert_eq!(buffer.take().length(), 0);
    }

    #[test]
    fn the_blocks_of_a_part_that_was_sent_are_used_again() {
        let mut buffer = PartBuffer::default();
        let mut blocks = std::collections::HashSet::new();
        for _ in 0..3 {
            buffer.take_from(&mut Bytes::from(vec![7; PART_BYTES]));
            let part = buffer.take();
            blocks.extend(part.blocks.iter().map(|block| block.as_ptr()));
            assert_eq!(part.blocks.iter().map(Bytes::len).sum::<usize>(), PART_BYTES);
            buffer.reclaim(part);
        }
        assert_eq!(blocks.len(), PART_BYTES / BLOCK_BYTES);
        // What is still on its way keeps its bytes.
        buffer.take_from(&mut Bytes::from_static(b"first"));
        let part = buffer.take();
        let sent = part.clone();
        buffer.reclaim(part);
        buffer.take_from(&mut Bytes::from_static(b"other"));
        assert_eq!(sent.blocks[0], "first");
    }

    #[test]
    fn a_full_buffer_leaves_the_rest() {
        let mut buffer = PartBuffer::default();
        let mut data = Bytes::from(vec![1; PART_BYTES + 3]);
        assert_eq!(buffer.take_from(&mut data).len(), PART_BYTES);
        assert!(buffer.is_full());
        assert_eq!(data.len(), 3);
        assert!(buffer.take_from(&mut data).is_empty());
        assert_eq!(data.len(), 3);
        buffer.take();
        assert_eq!(buffer.take_from(&mut data).len(), 3);
        assert!(!buffer.is_full());
    }

    #[test]
    fn one_byte_chunks_cost_no_more_than_their_bytes() {
        let mut buffer = PartBuffer::default();
        for _ in 0..100_000 {
            buffer.take_from(&mut Bytes::from_static(b"x"));
        }
        let part = buffer.take();
        assert!(part.blocks.len() <= 100_000 / MIN_BLOCK_BYTES + 1, "{} blocks", part.blocks.len());
    }

    #[tokio::test]
    async fn an_empty_part_is_an_empty_body() {
        let part = PartBuffer::default().take();
        assert!(part.to_body().is_end_stream());
        assert!(collect(&part).await.is_empty());
    }
}
