//! Distilling beside looking: it has a thread of its own, since copies take their time and what arrives does not wait.

use super::distiller::{Brief, Distilled, Distiller, Passed};
use super::{DISTIL, Follow, Room};
use crate::finding::evaluator::Evaluator;
use crate::out::Out;
use holdfast_base::ByteSize;
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::orders;
use holdfast_client::session;
use holdfast_client::times;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Instant;

/// What is told of a pass.
enum News {
    Distilled(Distilled),
    Passed(Result<ControlFlow<Failure, Passed>>),
}

/// Whoever distils.
pub(super) struct Beside {
    briefs: Sender<Brief>,
    news: Receiver<News>,
    /// What the pass at work goes by.
    at_work: Option<Brief>,
    /// When the last one began.
    began: Option<Instant>,
}

impl Beside {
    /// Until it is `over` groups are begun.
    pub(super) fn begin(mut distiller: Distiller, over: Arc<AtomicBool>) -> Self {
        let ((briefs, asked), (tell, news)) = (channel::<Brief>(), channel());
        session::give_way();
        std::thread::spawn(move || {
            for brief in asked {
                // Whoever does not listen any more needs no more.
                let say = |distilled| drop(tell.send(News::Distilled(distilled)));
                let passed = distiller.pass(&brief, &|| over.load(Ordering::Relaxed), &say);
                if tell.send(News::Passed(passed)).is_err() {
                    break;
                }
            }
        });
        Self { briefs, news, at_work: None, began: None }
    }

    /// A pass is worth beginning at once.
    pub(super) fn hurry(&mut self) {
        self.began = None;
    }

    /// The next that is told; none, if nothing is yet and nobody `waits` for it.
    fn next(&self, waits: bool) -> Option<News> {
        let next = if waits {
            self.news.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            self.news.try_recv()
        };
        match next {
            Ok(news) => Some(news),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                let broken = Failure::failed("what distils broke down");
                Some(News::Passed(Ok(ControlFlow::Break(broken))))
            }
        }
    }
}

impl Follow<'_> {
    /// Has what is due distilled while it goes on; whether something is left that may become due, or why there is no going on. At its
    /// `ending` what is begun is waited for.
    pub(super) fn distil(
        &mut self,
        evaluator: &Evaluator,
        ending: bool,
        out: &mut Out,
    ) -> Result<ControlFlow<Failure, bool>> {
        let standing = self.standing;
        let Some(beside) = &mut self.beside else { return Ok(ControlFlow::Continue(false)) };
        let is_time = beside.began.is_none_or(|began| began.elapsed() >= DISTIL);
        if beside.at_work.is_none() && is_time && !ending {
            let brief = Brief {
                standing,
                last: !standing && evaluator.is_done(),
                looked_before: evaluator.looked_before(),
                waiting: self.waiting.as_ref().map(|waiting| waiting.sequences.clone()),
            };
            // Where nobody takes it, nobody tells of it either.
            let _ = beside.briefs.send(brief.clone());
            (beside.at_work, beside.began) = (Some(brief), Some(Instant::now()));
        }
        if beside.at_work.is_none() {
            return Ok(ControlFlow::Continue(true));
        }
        if ending {
            self.end.store(true, Ordering::Relaxed);
        }
        // Where no recorder runs nothing arrives, and who copies has the ring for himself.
        let waits = ending || orders::recorder(self.path)?.is_none();
        while let Some(beside) = &mut self.beside
            && let Some(news) = beside.next(waits)
        {
            match news {
                News::Distilled(distilled) => self.tell_distilled(&distilled, out)?,
                News::Passed(passed) => {
                    let brief = beside.at_work.take();
                    let mut passed = match passed? {
                        ControlFlow::Continue(passed) => passed,
                        ControlFlow::Break(refused) => return Ok(ControlFlow::Break(refused)),
                    };
                    let trouble = passed.trouble.take();
                    return match (self.conclude(brief.as_ref(), &passed), trouble) {
                        (ControlFlow::Continue(_), Some(trouble)) => Err(trouble),
                        (concluded, _) => Ok(concluded),
                    };
                }
            }
        }
        Ok(ControlFlow::Continue(true))
    }

    /// What a pass that is over means for what waits.
    fn conclude(&mut self, brief: Option<&Brief>, passed: &Passed) -> ControlFlow<Failure, bool> {
        let Passed { freed, left, may_go, .. } = *passed;
        // What came to wait since may find more that can be distilled.
        if brief.is_some_and(|brief| brief.waiting.is_some())
            && let Some(waiting) = &mut self.waiting
        {
            let nothing_left = freed == 0 && !may_go;
            if nothing_left && self.room == Room::None {
                let full = waiting.full;
                return ControlFlow::Break(self.spent(full));
            }
            (waiting.asked, self.room) = (false, if nothing_left { Room::None } else { Room::Short });
            // There may be room by now, and what waits has no time to lose.
            if (freed > 0 || nothing_left)
                && let Some(beside) = &mut self.beside
            {
                beside.hurry();
            }
        }
        // What came to be held since may become due.
        ControlFlow::Continue(left || !brief.is_some_and(|brief| brief.last))
    }

    fn tell_distilled(&mut self, distilled: &Distilled, out: &mut Out) -> Result<()> {
        // Not all of them may be of this hold.
        self.keeps = None;
        if out.is_json() {
            return out.object(distilled);
        }
        let Distilled { at, originals, copies, elements, bytes, .. } = *distilled;
        out.line(format_args!(
            "{}: {} distilled into {copies}: {} ({})",
            times::to_the_second(at),
            counted(originals.into(), "slot"),
            counted(elements, "element"),
            ByteSize(bytes)
        ))
    }
}
