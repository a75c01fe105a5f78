//! Background thread that distils beside the search, since copies take their time and what arrives does not wait.

use super::distiller::{Brief, Distiller, Passed};
use super::{DISTIL, Follow, Room};
use crate::evaluator::Evaluator;
use crate::observer::{Event, Observer};
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::DistilledSlots;
use holdfast_client::orders;
use holdfast_client::session;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Instant;

/// What is told of a pass.
enum News {
    Distilled(DistilledSlots),
    Passed(Result<ControlFlow<Failure, Passed>>),
}

/// Whoever distils.
pub(crate) struct Background {
    briefs: Sender<Brief>,
    news: Receiver<News>,
    /// What the pass at work goes by.
    at_work: Option<Brief>,
    /// When the last one began.
    began: Option<Instant>,
}

impl Background {
    /// Until it is `over` groups are begun.
    pub(crate) fn begin(mut distiller: Distiller, over: Arc<AtomicBool>) -> Self {
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
    pub(crate) fn hurry(&mut self) {
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
    pub(crate) fn distil(
        &mut self,
        evaluator: &Evaluator,
        ending: bool,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<Failure, bool>> {
        let standing = self.standing;
        let Some(background) = &mut self.background else { return Ok(ControlFlow::Continue(false)) };
        let is_time = background.began.is_none_or(|began| began.elapsed() >= DISTIL);
        if background.at_work.is_none() && is_time && !ending {
            let brief = Brief {
                standing,
                last: !standing && evaluator.is_done(),
                looked_before: evaluator.looked_before(),
                waiting: self.waiting.as_ref().map(|waiting| waiting.sequences.clone()),
            };
            // Where nobody takes it, nobody tells of it either.
            let _ = background.briefs.send(brief.clone());
            (background.at_work, background.began) = (Some(brief), Some(Instant::now()));
        }
        if background.at_work.is_none() {
            return Ok(ControlFlow::Continue(true));
        }
        if ending {
            self.end.store(true, Ordering::Relaxed);
        }
        // Where no recorder runs nothing arrives, and who copies has the ring for himself.
        let waits = ending || orders::recorder(self.path)?.is_none();
        while let Some(background) = &mut self.background
            && let Some(news) = background.next(waits)
        {
            match news {
                News::Distilled(distilled) => {
                    // Not all of them may be of this hold.
                    self.keeps = None;
                    observer.event(&Event::Distilled(distilled))?;
                }
                News::Passed(passed) => {
                    let brief = background.at_work.take();
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
                && let Some(background) = &mut self.background
            {
                background.hurry();
            }
        }
        // What came to be held since may become due.
        ControlFlow::Continue(left || !brief.is_some_and(|brief| brief.last))
    }
}
