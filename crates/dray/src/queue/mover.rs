//! The mover of a type that has a queue.

/// The [`Mover`](crate::Mover) of a type whose field `queue` is a [`Queue`].
macro_rules! mover_on_queue {
    ($mover:ty) => {
        // SAFETY: an operation completes when the device has written its record, or that of its
        // batch, which it does last; or when the device has ended and accesses nothing any more.
        unsafe impl $crate::Mover for $mover {
            fn slots(&self) -> usize {
                self.queue.slots()
            }

            fn in_flight(&self) -> usize {
                self.queue.in_flight()
            }

            #[inline]
            unsafe fn enqueue(
                &mut self,
                operation: &$crate::Operation,
            ) -> Result<$crate::Ticket, $crate::Full> {
                self.queue.enqueue(operation)
            }

            unsafe fn enqueue_batch(
                &mut self,
                operations: &[$crate::Operation],
            ) -> Result<$crate::Ticket, $crate::BatchError> {
                self.queue.enqueue_batch(operations)
            }

            #[inline]
            fn submit(&mut self) -> $crate::Progress {
                self.queue.submit()
            }

            #[inline]
            fn poll(&mut self, into: &mut [$crate::Completion]) -> usize {
                self.queue.poll(into)
            }

            fn poll_outcomes(&mut self, into: &mut [$crate::Outcome]) -> usize {
                self.queue.poll_outcomes(into)
            }

            fn lost(&self) -> Option<$crate::QueueLost> {
                $crate::queue::Port::lost(&self.queue.port)
            }

            fn now(&self) -> $crate::Timestamp {
                self.queue.now()
            }

            fn capabilities(&self) -> $crate::Capabilities {
                self.queue.capabilities()
            }

            fn oldest_record(&self) -> Option<u64> {
                self.queue.oldest_record()
            }

            fn executor(&self) -> Option<$crate::Executor> {
                Some(self.queue.executor())
            }

            fn withdraw(&mut self) -> usize {
                self.queue.withdraw()
            }

            fn resume_page_faults(&mut self, most: u32) -> bool {
                self.queue.resume_page_faults(most);
                most > 0
            }

            unsafe fn touch(&mut self, addr: u64, write: bool) {
                // SAFETY: the caller's promise is the same.
                unsafe { $crate::cpu::touch(addr, write) };
            }
        }
    };
}

pub(crate) use mover_on_queue;
