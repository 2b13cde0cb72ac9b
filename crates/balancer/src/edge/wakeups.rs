//! Wake-ups of a connection's task by itself.
//!
//! Both sides of an exchange run in one task, and hyper's halves wake each other through it: a chunk taken here makes room
//! there. For the runtime such a wake-up is a task to schedule, and another worker to be called up for it; measured, that
//! was the largest cost of a small request. Here it is a flag, and one more look before the task goes to sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Looks at a task's own request. The runtime's signal that a task has had its turn comes as a wake-up of itself, too, so
/// that the looks must end.
const LOOKS_MAX: usize = 3;

const ASLEEP: u8 = 0;
const POLLING: u8 = 1;
const POLLING_AND_WOKEN: u8 = 2;

/// A waker that keeps a task's wake-ups of itself within the task.
#[derive(Debug)]
pub(super) struct Wakeups {
    shared: Arc<Shared>,
    waker: Waker,
}

#[derive(Debug)]
struct Shared {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wakeups {
    pub(super) fn new() -> Self {
        let shared = Arc::new(Shared { state: AtomicU8::new(ASLEEP), task: AtomicWaker::new() });
        Self { waker: Waker::from(shared.clone()), shared }
    }

    /// Polls until there is a result or nobody has woken the task meanwhile.
    pub(super) fn poll<T>(&self, cx: &mut Context<'_>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let shared = &*self.shared;
        shared.task.register(cx.waker());
        let mut within = Context::from_waker(&self.waker);
        for _ in 0..LOOKS_MAX {
            shared.state.store(POLLING, Ordering::Release);
            if let Poll::Ready(result) = poll(&mut within) {
                return Poll::Ready(result);
            }
            let asleep = shared.state.compare_exchange(POLLING, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
            if asleep.is_ok() {
                return Poll::Pending;
            }
        }
        shared.state.store(ASLEEP, Ordering::Release);
        shared.task.wake();
        Poll::Pending
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let woken = self.state.compare_exchange(POLLING, POLLING_AND_WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if woken == Err(ASLEEP) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn counting() -> (Arc<Counting>, Waker) {
        let counting = Arc::new(Counting::default());
        (counting.clone(), Waker::from(counting))
    }

    #[test]
    fn a_task_that_wakes_itself_is_polled_again_and_not_scheduled() {
        let (scheduled, waker) = counting();
        let mut polls = 0;
        let polled: Poll<()> = Wakeups::new().poll(&mut Context::from_waker(&waker), |cx| {
            polls += 1;
            if polls == 1 {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        });
        assert!(polled.is_pending());
        assert_eq!((polls, scheduled.0.load(Ordering::SeqCst)), (2, 0));
    }

    #[test]
    fn a_task_that_never_stops_waking_itself_lets_others_run() {
        let (scheduled, waker) = counting();
        let mut polls = 0;
        let polled: Poll<()> = Wakeups::new().poll(&mut Context::from_waker(&waker), |cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        assert!(polled.is_pending());
        assert_eq!((polls, scheduled.0.load(Ordering::SeqCst)), (LOOKS_MAX, 1));
    }

    #[test]
    fn a_sleeping_task_is_woken_by_others_once() {
        let (scheduled, waker) = counting();
        let wakeups = Wakeups::new();
        let mut kept = None;
        let polled: Poll<()> = wakeups.poll(&mut Context::from_waker(&waker), |cx| {
            kept = Some(cx.waker().clone());
            Poll::Pending
        });
        assert!(polled.is_pending());
        let kept = kept.expect("a waker");
        kept.wake_by_ref();
        kept.wake();
        assert_eq!(scheduled.0.load(Ordering::SeqCst), 1);
        assert_eq!(wakeups.poll(&mut Context::from_waker(&waker), |_| Poll::Ready(7)), Poll::Ready(7));
    }
}
